"""What a crawl is to fetch: the rest of a plan that was cut short, a plan from a file, or one made now."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc
from numpy.typing import NDArray

from recrawl.change import notion_or_any
from recrawl.crawl.settings import BadSetting, Options
from recrawl.errors import BadSource, BadUrl, HistoryError, NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.panel import parse_period
from recrawl.plan.budgets import pages_of
from recrawl.plan.default import default_policy
from recrawl.plan.formats import records
from recrawl.plan.goals import ForBoth
from recrawl.plan.make import Plan, Request, Situation, chosen, survey
from recrawl.plan.score import store
from recrawl.policies import Policy, named
from recrawl.policies.base import microseconds
from recrawl.urls import canonical

FORBIDDEN = "forbidden by robots.txt"  #: how the note of such a visit begins
FORBIDDEN_FOR = timedelta(days=7)
STATE = "crawl.json"  #: in the history's directory: which plan a crawl is at, until it is finished
Note = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """Pages to fetch, the best first."""

    id: str | None = None  # of a plan kept in the history
    urls: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(
        default_factory=list
    )  # rank, expected_new_links, … for each, as recrawl plan tells them
    is_resumed: bool = False

    @property
    def expected(self) -> float:
        """New links expected of all of them."""
        told = (row.get("expected_new_links") for row in self.told)
        return float(sum(number for number in told if isinstance(number, int | float)))


def planned(history: History, options: Options, now: datetime, note: Note = lambda text: None) -> Planned:
    """What is to be fetched now. A history too short to plan from gives an empty plan, and a note why."""
    if options.plan == "none":
        return Planned()
    if options.plan is not None:  # asked for by name, so it goes before what an earlier crawl left
        return read_plan(Path(options.plan))
    if options.resume and (left := _left_over(history)):
        note(f"going on with plan {left.id}: {len(left.urls):,} of its pages were not fetched")
        return left
    try:
        made = _made(history.as_of(now), options, now, note)
    except NotEnoughData as error:
        note(f"nothing is planned: {error}")
        return Planned()
    return Planned(_kept(history, made, note), made.url.to_pylist(), list(records(made)))


def _kept(history: History, made: Plan, note: Note) -> str | None:
    """The id under which a plan can be taken up again; None where the history takes no plan, which stops no crawl."""
    try:
        store(history, made)
        _begin(history, made.id)
    except RecrawlError as error:
        note(f"should this crawl be cut short, the next one makes a new plan, since this one cannot be kept: {error}")
        return None
    return made.id


def finished(history: History, plan: Planned) -> None:
    """The crawl came to its end by itself: the next one makes a new plan."""
    path = history.store.folder / STATE
    if plan.id and _state(history).get("plan") == plan.id:
        path.unlink(missing_ok=True)


def read_plan(path: Path) -> Planned:
    """A plan from a file: JSON lines as ``recrawl plan --format jsonl`` writes them, or one URL a line."""
    told: dict[str, dict[str, Any]] = {}  # a page that stands twice is fetched once
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSource(f"cannot read the plan {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line) if line.lstrip().startswith("{") else {"url": line.strip()}
            if not isinstance(row.get("rank", 0), int):
                del row["rank"]
            told.setdefault(canonical(row["url"]), row)
        except (ValueError, KeyError, TypeError) as error:
            raise BadSource(f"{path} line {number} is neither a URL nor a planned page: {error}") from None
    return Planned(None, list(told), list(told.values()))


def _made(history: History, options: Options, now: datetime, note: Note) -> Plan:
    situation = _situation(history, options, note)
    request = Request(
        pages=min(pages_of(options.budget, len(situation.pages)), len(situation.pages)),
        per_host=options.per_host,
        per_site=options.per_site,
        min_gap=parse_period(options.min_gap) if options.min_gap else timedelta(0),
        exclude=options.exclude,
        every=options.every,
        retry_gone=options.retry_gone,
        forbidden=_forbidden(history, now),
        goal=options.goal,  # type: ignore[arg-type]  # checked when it was read
        change=options.change,
    )
    return chosen(situation, request, now)


def _forbidden(history: History, now: datetime) -> NDArray[np.int64]:
    """Pages that robots.txt forbade when they were last planned: no server was asked, and for a while none will be."""
    timeline = history.timeline
    newest = timeline.page_start[1:] - 1
    notes = pc.fill_null(pc.starts_with(timeline.rows["note"].combine_chunks(), FORBIDDEN), False)
    lately = timeline.at[newest] > microseconds(now - FORBIDDEN_FOR)
    found: NDArray[np.int64] = timeline.pages[np.asarray(notes)[newest] & lately]
    return found


def _situation(history: History, options: Options, note: Note) -> Situation:
    if options.model is not None:
        from recrawl.plan.foreseen import foresee  # reading models takes seconds to load, and most plans need none

        return foresee(history, options.model, on_note=note)
    return survey(history, _policy(history, options, note), options.every, notion=notion_or_any(options.change))


def _policy(history: History, options: Options, note: Note) -> Policy:
    if options.policy is not None:
        policy = named(options.policy)
        if policy.sees_future:
            raise BadSetting(
                "policy", options.policy, "a policy that does not know the future; this one can only be replayed"
            )
        return policy
    if options.goal == "both":
        return ForBoth()
    default = default_policy(history, options.every, options.goal, options.favour)  # type: ignore[arg-type]
    note(f"planning {default.why}")
    return named(default.policy, **default.settings)


# -- going on where a crawl was cut short ----------------------------------------------------------------------------


def _left_over(history: History) -> Planned | None:
    """The pages of the plan that a crawl was at that nobody visited since; None where there are none."""
    plan = _state(history).get("plan")
    if not isinstance(plan, str):
        return None
    rows = stored(history.store.folder, plan)
    if not rows.num_rows:
        return None
    made_at = microseconds(rows["made_at"][0].as_py())
    timeline = history.slim_timeline
    page = rows["page"].to_numpy()
    left = np.flatnonzero(~np.isin(page, timeline.page[timeline.at >= made_at]))
    if not len(left):
        return None
    urls = history.urls_of(page[left]).to_pylist()
    told = [
        {
            "rank": rows["rank"][i].as_py(),
            "expected_new_links": rows["expected"][i].as_py(),
            "probability": rows["probability"][i].as_py(),
            "reason": rows["reason"][i].as_py(),
        }
        for i in left.tolist()
    ]
    known = [i for i, url in enumerate(urls) if url is not None and _is_url(url)]
    return Planned(plan, [urls[i] for i in known], [told[i] for i in known], is_resumed=True)


def _is_url(url: str) -> bool:
    try:
        return bool(canonical(url))
    except BadUrl:
        return False


def _begin(history: History, plan: str) -> None:
    path = history.store.folder / STATE
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.write_bytes(orjson.dumps({"plan": plan}))
        beside.replace(path)
    except OSError as error:
        raise HistoryError(f"cannot write {path}: {error.strerror}") from error


def _state(history: History) -> dict[str, Any]:
    try:
        found = orjson.loads((history.store.folder / STATE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
