"""What a crawl is to fetch: the rest of a plan that was cut short, a plan from a file, or one made now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recrawl.change import notion_or_any
from recrawl.crawl.settings import BadSetting, Options
from recrawl.crawl.unfinished import FILE, NOT_KEPT, PLAN, came_to_its_end, note_down, noted
from recrawl.errors import BadSource, BadUrl, NotEnoughData, RecrawlError
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
from recrawl.urls import canonical, page_id

FORBIDDEN = "forbidden by robots.txt"  #: how the note of such a visit begins
FORBIDDEN_FOR = timedelta(days=7)
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
    noted: dict[str, Any] = field(default_factory=dict)  # of a plan from a file, until it is finished

    @property
    def expected(self) -> float:
        """New links expected of all of them."""
        told = (row.get("expected_new_links") for row in self.told)
        return float(sum(number for number in told if isinstance(number, int | float)))


def planned(
    history: History, options: Options, now: datetime, note: Note = lambda text: None, is_alone: bool = True
) -> Planned:
    """What is to be fetched now. A history too short to plan from gives an empty plan, and a note why.

    Beside another crawl (not `is_alone`) nothing is gone on with, and what that one noted stays.
    """
    options = options if is_alone else replace(options, resume=False)
    if options.plan == "none":
        return Planned()
    if options.plan is not None:  # asked for by name, so it goes before what an earlier crawl left
        return _from_file(history, Path(options.plan), options.resume, now, note, is_alone)
    if options.resume and (left := _left_over(history)):
        note(f"going on with plan {left.id}: {len(left.urls):,} of its pages were not fetched")
        return left
    try:
        made = _made(history.as_of(now), options, now, note)
    except NotEnoughData as error:
        note(f"nothing is planned: {error}")
        return Planned()
    if not len(made):
        left_out = ", ".join(f"{n:,} {cause}" for cause, n in made.left_out.items())
        note(f"nothing is planned: of {made.n_known:,} known pages {left_out or 'none was chosen'}")
        return Planned()
    return Planned(_kept(history, made, note, is_alone), made.url.to_pylist(), list(records(made)))


def _kept(history: History, made: Plan, note: Note, is_alone: bool) -> str | None:
    """The id under which a plan can be taken up again; None where the history takes no plan, which stops no crawl."""
    try:
        store(history, made)
        if is_alone:
            note_down(history, PLAN, {"plan": made.id})
    except RecrawlError as error:
        note(f"{NOT_KEPT}, the next one makes a new plan, since this one cannot be kept: {error}")
        return None
    return made.id


def finished(history: History, plan: Planned) -> None:
    """The crawl came to its end by itself: the next one makes a new plan."""
    came_to_its_end(history, PLAN, {"plan": plan.id} if plan.id else {})
    came_to_its_end(history, FILE, plan.noted)


def read_plan(path: Path) -> Planned:
    """A plan from a file: JSON lines as ``recrawl plan --format jsonl`` writes them, or one URL a line."""
    return _plan_of(path)[0]


def _plan_of(path: Path) -> tuple[Planned, str]:
    """A plan, and a digest of its file."""
    told: dict[str, dict[str, Any]] = {}  # a page that stands twice is fetched once
    try:
        text = path.read_bytes()
        lines = text.decode("utf-8-sig").splitlines()
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
    return Planned(None, list(told), list(told.values())), hashlib.sha256(text).hexdigest()


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
    rows = history.visits_since(now - FORBIDDEN_FOR, ["page", "at", "note"])
    page = rows["page"].to_numpy()
    is_forbidden = np.asarray(pc.fill_null(pc.starts_with(rows["note"], FORBIDDEN), False))
    order = np.lexsort((~is_forbidden, rows["at"].cast(pa.int64()).to_numpy(), page))
    newest = order[np.append(np.diff(page[order]) > 0, True)] if len(page) else order
    found: NDArray[np.int64] = page[newest[is_forbidden[newest]]]
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
    plan = noted(history, PLAN).get("plan")
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


def _from_file(history: History, path: Path, resume: bool, now: datetime, note: Note, is_alone: bool) -> Planned:
    """The plan of a file; if a crawl by it was cut short, the pages that nobody visited since it began."""
    plan, digest = _plan_of(path)
    earlier = noted(history, FILE)
    began = earlier.get("began_at")
    if resume and earlier.get("file") == digest and isinstance(began, int):
        timeline = history.slim_timeline
        visited = timeline.page[timeline.at >= began]
        left = np.flatnonzero(~np.isin([page_id(url) for url in plan.urls], visited)).tolist()
        if left:
            note(f"going on with the plan {path}: {len(left):,} of its pages were not fetched")
            urls, told = [plan.urls[i] for i in left], [plan.told[i] for i in left]
            return Planned(None, urls, told, is_resumed=True, noted=earlier)
    if not is_alone:
        return plan
    this = {"file": digest, "began_at": microseconds(now)}
    try:
        note_down(history, FILE, this)
    except RecrawlError as error:
        note(f"{NOT_KEPT}, the next one fetches all of the plan again: {error}")
    return replace(plan, noted=this)


def _is_url(url: str) -> bool:
    try:
        return bool(canonical(url))
    except BadUrl:
        return False
