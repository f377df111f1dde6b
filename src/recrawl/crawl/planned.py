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

from recrawl.core.arrays import Ints
from recrawl.core.times import microseconds
from recrawl.crawl.follow_options import NEW
from recrawl.crawl.settings import CrawlOptions
from recrawl.crawl.unfinished import FILE, NOT_KEPT, PLAN, read_note, remove_note, write_note
from recrawl.errors import BadSource, BadUrl, NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.plan.formats import records
from recrawl.plan.plan import Plan
from recrawl.plan.planner import Planner
from recrawl.plan.score import store
from recrawl.web.urls import canonical, page_id

FORBIDDEN = "forbidden by robots.txt"  #: how the note of such a visit begins
FORBIDDEN_FOR = timedelta(days=7)
Note = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """Pages to fetch, the best first."""

    id: str | None = None  # of a plan kept in the history
    urls: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(
        default_factory=list
    )  # rank, expected_new_links, … of each, as `recrawl plan` has them
    noted: dict[str, Any] = field(default_factory=dict)  # of a plan from a file, until it is finished
    began_at: int | None = None  # microseconds: when the crawl began that it continues; None: it begins now
    pages: Ints | None = None  # ids of all its pages, if it continues a crawl: also of those that were fetched

    @property
    def only_follows(self) -> bool:
        """Whether all of its pages were fetched, and only new links of theirs may be left to fetch."""
        return self.began_at is not None and not self.urls

    @property
    def expected(self) -> float:
        """New links expected of all of them."""
        numbers = (row.get("expected_new_links") for row in self.rows)
        return float(sum(number for number in numbers if isinstance(number, int | float)))


def planned(
    history: History, options: CrawlOptions, now: datetime, note: Note = lambda text: None, is_alone: bool = True
) -> Planned:
    """What is to be fetched now. A history too short to plan from gives an empty plan, and a note why.

    Beside another crawl (not `is_alone`) no earlier plan is continued, and what that crawl noted stays.
    """
    options = options if is_alone else replace(options, resume=False)
    if options.plan == "none":
        return Planned()
    if options.plan is not None:  # named by the user, so it comes before what an earlier crawl left
        return _from_file(history, Path(options.plan), options, now, note, is_alone)
    if options.resume and (left := _left_over(history, options.follow)):
        if left.urls:
            note(f"continuing plan {left.id}: {len(left.urls):,} of its pages were not fetched")
        return left
    try:
        made = _made(history, options, now, note)
    except NotEnoughData as error:
        note(f"nothing is planned: {error}")
        return Planned()
    if not len(made):
        left_out = ", ".join(f"{n:,} {cause}" for cause, n in made.left_out.items())
        note(f"nothing is planned: of {made.n_known:,} known pages {left_out or 'none was chosen'}")
        return Planned()
    return Planned(_kept(history, made, options, note, is_alone), made.url.to_pylist(), list(records(made)))


def _kept(history: History, made: Plan, options: CrawlOptions, note: Note, is_alone: bool) -> str | None:
    """The id under which a plan can be continued; None where the history cannot store it, which does not stop a crawl."""
    try:
        store(history, made)
        if is_alone:
            write_note(history, PLAN, {"plan": made.id} | _follows(options))
    except RecrawlError as error:
        note(f"{NOT_KEPT}, the next one makes a new plan, since this one cannot be kept: {error}")
        return None
    return made.id


def finished(history: History, plan: Planned) -> None:
    """The crawl was not interrupted: the next one makes a new plan."""
    noted = read_note(history, PLAN)
    if plan.id and noted.get("plan") == plan.id:
        remove_note(history, PLAN, noted)
    remove_note(history, FILE, plan.noted)


def _follows(options: CrawlOptions) -> dict[str, str]:
    """What the note of a crawl says of new links: only those that were to be followed are followed later."""
    return {"follow": NEW} if options.follow == NEW else {}


def read_plan(path: Path) -> Planned:
    """A plan from a file: JSON lines as ``recrawl plan --format jsonl`` writes them, or one URL per line."""
    return _plan_of(path)[0]


def _plan_of(path: Path) -> tuple[Planned, str]:
    """A plan, and a digest of its file."""
    pages: dict[str, dict[str, Any]] = {}  # a page that is listed twice is fetched once
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
            pages.setdefault(canonical(row["url"]), row)
        except (ValueError, KeyError, TypeError) as error:
            raise BadSource(f"{path} line {number} is neither a URL nor a planned page: {error}") from None
    return Planned(None, list(pages), list(pages.values())), hashlib.sha256(text).hexdigest()


def _made(history: History, options: CrawlOptions, now: datetime, note: Note) -> Plan:
    planner = Planner(history, options, now, forbidden=_forbidden(history.as_of(now), now), carry=True, on_note=note)
    return planner.plan()


def _forbidden(history: History, now: datetime) -> Ints:
    """Pages that robots.txt forbade when they were last planned: no server was asked, and for a while none will be."""
    rows = history.visits_since(now - FORBIDDEN_FOR, ["page", "at", "note"])
    page = rows["page"].to_numpy()
    is_forbidden = np.asarray(pc.fill_null(pc.starts_with(rows["note"], FORBIDDEN), False))
    order = np.lexsort((~is_forbidden, rows["at"].cast(pa.int64()).to_numpy(), page))
    newest = order[np.append(np.diff(page[order]) != 0, True)] if len(page) else order
    found: Ints = page[newest[is_forbidden[newest]]]
    return found


# -- continuing an interrupted crawl -----------------------------------------------------------------------------------


def _left_over(history: History, follow: str) -> Planned | None:
    """The pages of an interrupted crawl's plan that were not visited since; None where there are none, and nothing to follow."""
    noted = read_note(history, PLAN)
    plan = noted.get("plan")
    if not isinstance(plan, str):
        return None
    rows = stored(history.beside, plan)
    if not rows.num_rows:
        return None
    made_at = microseconds(rows["made_at"][0].as_py())
    timeline = history.slim_timeline
    page = rows["page"].to_numpy()
    left = np.flatnonzero(~np.isin(page, timeline.page[timeline.at >= made_at]))
    follows_new = follow == NEW and noted.get("follow") == NEW
    if not len(left) and not follows_new:
        return None
    urls = history.urls_of(page[left]).to_pylist()
    planned_rows = [
        {
            "rank": rows["rank"][i].as_py(),
            "expected_new_links": rows["expected"][i].as_py(),
            "probability": rows["probability"][i].as_py(),
            "reason": rows["reason"][i].as_py(),
        }
        for i in left.tolist()
    ]
    known = [i for i, url in enumerate(urls) if url is not None and _is_url(url)]
    return Planned(plan, [urls[i] for i in known], [planned_rows[i] for i in known], began_at=made_at, pages=page)


def _from_file(
    history: History, path: Path, options: CrawlOptions, now: datetime, note: Note, is_alone: bool
) -> Planned:
    """The plan of a file; if a crawl of it was interrupted, the pages not visited since it began."""
    plan, digest = _plan_of(path)
    earlier = read_note(history, FILE)
    began = earlier.get("began_at")
    if options.resume and earlier.get("file") == digest and isinstance(began, int):
        timeline, pages = history.slim_timeline, np.array([page_id(url) for url in plan.urls], np.int64)
        visited = timeline.page[timeline.at >= began]
        left = np.flatnonzero(~np.isin(pages, visited)).tolist()
        if left:
            note(f"continuing the plan {path}: {len(left):,} of its pages were not fetched")
        if left or options.follow == earlier.get("follow") == NEW:
            urls, kept = [plan.urls[i] for i in left], [plan.rows[i] for i in left]
            return Planned(None, urls, kept, noted=earlier, began_at=began, pages=pages)
    if not is_alone:
        return plan
    this = {"file": digest, "began_at": microseconds(now)} | _follows(options)
    try:
        write_note(history, FILE, this)
    except RecrawlError as error:
        note(f"{NOT_KEPT}, the next one fetches all of the plan again: {error}")
    return replace(plan, noted=this)


def _is_url(url: str) -> bool:
    try:
        return bool(canonical(url))
    except BadUrl:
        return False
