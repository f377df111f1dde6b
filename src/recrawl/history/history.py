"""The history: what was seen and when."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Ints
from recrawl.core.places import Place, place
from recrawl.core.times import NEVER, microseconds, parse_moment
from recrawl.history.batch import BatchBuilder
from recrawl.history.beside import Beside
from recrawl.history.bucket_view import BucketStore
from recrawl.history.description import describe
from recrawl.history.folder_check import check_urls
from recrawl.history.hints import HINTS
from recrawl.history.keys import best_rows, distinct
from recrawl.history.link_sets import LinkSets
from recrawl.history.novelty import NewOnPages, Novelty, new_anywhere, new_on_pages
from recrawl.history.plans import PLANS_TABLE
from recrawl.history.row_groups import RowGroup
from recrawl.history.schema import VISITS, Batch
from recrawl.history.store import Appended, Store, trap_ids
from recrawl.history.timeline import Timeline, TooSlim, build, ordered
from recrawl.history.visit_table import VisitTable
from recrawl.history.watching import WATCHING
from recrawl.web.urls import canonical, page_id
from recrawl.web.visit import Visit

#: The columns that say what a visit showed.
SLIM = ("page", "at", "status", "links", "text", "payload", "baseline")
ReadLinks = Literal["all", "compared", "none"]
_CACHED = ("timeline", "slim_timeline", "novelty")


class History:
    """All visits of a collection, on disk; append to it, and ask what was seen and what was new at any time.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> monday, tuesday = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    >>> history = History.create(folder)
    >>> history.add([Visit(url="https://e.org/", at=monday, links=["https://e.org/a"]),
    ...              Visit(url="https://e.org/", at=tuesday, links=["https://e.org/a", "https://e.org/b"])])
    Appended(added=2, duplicates=0, replaced=0)
    >>> history
    History(2 visits to 1 page, 2026-01-05 to 2026-01-06)
    >>> history.novelty.total("previous").tolist()
    [-1, 1]
    >>> history.as_of("2026-01-05").visits().to_arrow()["n_links"].to_pylist()
    [1]
    """

    def __init__(self, store: Store, until: datetime | None = None) -> None:
        self.store = store
        self.until = until

    @classmethod
    def open(cls, folder: str | Path, *, missing_ok: bool = False) -> History:
        """An existing history; raises `HistoryError` where there is none.

        With `missing_ok` a missing one is made, but not before the first visits are added to it.
        """
        return cls(Store(place(folder), missing_ok=missing_ok))

    @classmethod
    def create(cls, folder: str | Path) -> History:
        """The history in this folder, made at once if it is not there yet."""
        return cls(Store.create(place(folder)))

    def __repr__(self) -> str:
        return f"History({describe(self)})"

    @property
    def folder(self) -> Place:
        """Where it is: a folder, or a prefix of an object store."""
        return self.store.folder

    @property
    def beside(self) -> Beside:
        """What is kept beside the visits, by name: plans, hints, settings, notes."""
        return Beside(self.store.folder, self.store.make_if_missing)

    def append(self, batch: Batch) -> Appended:
        """Add rows that `BatchBuilder` (or `recrawl synth`) made. When this returns, the visits are safe."""
        receipt = self.store.append(batch)
        self.release()
        return receipt

    def add(self, visits: Iterable[Visit]) -> Appended:
        """Add visits; for many of them, or for files, `recrawl.import_files` is quicker and counts what it must skip."""
        builder = BatchBuilder()
        for visit in visits:
            builder.add(visit)
        return self.append(builder.take())

    def as_of(self, moment: datetime | str) -> History:
        """The same history as it was known at a moment: visits up to and including it, nothing later.

        A text is ISO 8601; without a zone it is UTC, and a date means its midnight.
        """
        at = parse_moment(moment) if isinstance(moment, str) else moment
        if at.tzinfo is None:
            raise ValueError(f"as_of needs an aware time, e.g. {at.isoformat()}+00:00")
        return History(self.store, min(at, self.until) if self.until else at)

    def layout(self) -> int | None:
        """The number of buckets that it is laid out in; None: it is not."""
        return self.store.layout()

    def bucket(self, number: int, n: int) -> History:
        """The same history restricted to the pages of one bucket of `n` (see `recrawl.history.buckets.bucket_of`); only to be read.

        Quick if the history is laid out in `n` buckets, and right in any case. All buckets together are the history. What is kept
        beside the visits (plans, hints, settings) is that of the whole history.
        """
        return History(BucketStore(self.store, number, n), self.until)

    @classmethod
    def of(cls, history: History | str | Path) -> History:
        """A history, or the one in a folder."""
        return history if isinstance(history, History) else cls.open(history)

    def detached(self) -> History:
        """The same history with caches of its own, which can be dropped without any effect on this one."""
        return History(self.store, self.until)

    def release(self) -> None:
        """Drop cached tables; they are read again on next access."""
        for name in _CACHED:
            self.__dict__.pop(name, None)

    @cached_property
    def timeline(self) -> Timeline:
        """All visits as arrays ordered by page and time, unchanged ones with their links carried forward."""
        self.__dict__.pop("slim_timeline", None)  # from now on this one serves for both
        return self._built()

    @cached_property
    def slim_timeline(self) -> Timeline:
        """The same as `timeline`, but its `rows` have only the columns that say what was seen: a third of the memory."""
        if "timeline" in self.__dict__:
            return self.timeline
        built = None
        with suppress(TooSlim):
            built = self._built(list(SLIM))
        return built or self.timeline  # outside the block: the exception would keep what was read in memory

    def _built(self, columns: list[str] | None = None) -> Timeline:
        # Visits first: what a visit shows is written before it.
        rows, files = self.store.read_at_once("visits", lambda table: table.to_table(columns, filter=self._when()))
        with ThreadPoolExecutor(1) as other:  # links are read while visits are sorted
            sets = other.submit(self.store.scan, "link_sets", LinkSets.from_groups)
            return build(ordered(rows), sets.result(), files)

    def timeline_after(
        self,
        moment: datetime | None,
        *,
        pages: tuple[int, int] | None = None,
        with_words: bool = False,
        read_links: ReadLinks = "all",
        files: frozenset[str] | None = None,
    ) -> Timeline:
        """The visits after a moment and all earlier ones to the same pages; as `slim_timeline`, but nothing else is read.

        None: all visits. `pages`: only those of pages with ids from the first to the second. `read_links`: all; "compared": only
        those of the later visits, and of visits that they are compared with; or none. Sets that are not read seem to be empty.
        `files`: only visits in files of these names; raises `FilesReplaced` where one of them is gone.
        """
        of = None if pages is None else (ds.field("page") >= pages[0]) & (ds.field("page") <= pages[1])
        with suppress(TooSlim):
            return self._built_after(moment, of, [*SLIM, "terms"] if with_words else list(SLIM), read_links, files)
        return self._built_after(moment, of, None, read_links, files)

    def _built_after(
        self,
        moment: datetime | None,
        of: ds.Expression | None,
        columns: list[str] | None,
        read_links: ReadLinks,
        only: frozenset[str] | None,
    ) -> Timeline:
        def read(table: ds.Dataset) -> pa.Table:
            if moment is None:
                return table.to_table(columns, filter=_both(self._when(), of))
            fresh = table.to_table(["page"], filter=_both(self._later(moment), of))
            of_pages = pc.is_in(ds.field("page"), pc.unique(fresh["page"]))
            return table.to_table(columns, filter=_both(_both(self._when(), of), of_pages))

        rows, files = self.store.read_at_once("visits", read, only)
        rows = ordered(rows)
        since = NEVER if moment is None else microseconds(moment)

        def with_sets(groups: list[RowGroup]) -> Timeline:
            sets, places = LinkSets.located(distinct(rows["links"].drop_null().to_numpy()), groups)
            bare = build(rows, sets, files)
            used = np.full(len(sets.digest), read_links == "all")
            if read_links == "compared":
                used[bare.compared(bare.at > since)] = True
            return replace(bare, sets=sets.with_links_of(used, places))

        return self.store.scan("link_sets", with_sets)

    @cached_property
    def novelty(self) -> Novelty:
        """What was new on each visit of the timeline, in all three meanings."""
        return count_new(self.timeline)

    def n_rows(self) -> int:
        """How many visits are stored, about: a few may be there twice, and `until` is not asked."""
        return self.store.scan("visits", lambda groups: sum(group.n_rows for group in groups))

    def n_visits_of(self, pages: Ints) -> int:
        """How many visits to some pages are stored, about."""
        of_pages = pc.is_in(ds.field("page"), pa.array(pages))
        return self.store.read_at_once("visits", lambda table: int(table.count_rows(filter=of_pages)))[0]

    def visits(self) -> VisitTable:
        """All visits as a table, for pandas or Arrow: what each showed and what was new."""
        return VisitTable(self)

    def visits_since(self, moment: datetime, columns: list[str]) -> pa.Table:
        """Some columns of the visits after a moment, as they are on disk: in no order, and a few of them perhaps twice."""
        return self.store.read("visits", columns, self._later(moment))

    def visits_with(self, column: str) -> pa.Table:
        """Page, time and one column of the visits where it is known, in no order."""
        rows = self.store.read("visits", ["page", "at", column], self._when())
        page, at = rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy()
        order = np.lexsort((at, page))
        again = order[1:][(page[order[1:]] == page[order[:-1]]) & (at[order[1:]] == at[order[:-1]])]
        if len(again):  # which of the rows counts depends on all columns
            twice = pc.is_in(ds.field("page"), pa.array(np.unique(page[again])))
            whole = ordered(self.store.read("visits", None, _both(self._when(), twice))).select(rows.column_names)
            rows = pa.concat_tables([rows.filter(pa.array(~np.isin(page, page[again]))), whole])
        return rows.filter(rows[column].is_valid())

    def page_times(self) -> tuple[Ints, Ints]:
        """The page and the time of every visit, ordered by both, without anything that the visits showed."""
        return self.page_times_after(None)[:2]

    def page_times_after(self, moment: datetime | None) -> tuple[Ints, Ints, tuple[str, ...]]:
        """The same of visits after a moment, and the names of all files that hold visits."""
        which = self._when() if moment is None else self._later(moment)
        rows, files = self.store.read_at_once("visits", lambda table: table.to_table(["page", "at"], filter=which))
        page, at = rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy()
        order = best_rows(page, at, lambda: np.zeros(len(page), np.int64))
        return page[order], at[order], files

    def _later(self, moment: datetime) -> ds.Expression:
        """Which visits are after a moment."""
        later = ds.field("at") > pa.scalar(moment.astimezone(UTC), VISITS.field("at").type)
        return later if self.until is None else later & self._when()

    def _when(self) -> ds.Expression | None:
        """Which visits belong to it; None: all."""
        if self.until is None:
            return None
        return ds.field("at") <= pa.scalar(self.until.astimezone(UTC), VISITS.field("at").type)

    def urls_of(self, ids: Ints) -> pa.Array:
        """The URLs of page or link ids; null where an id is not known."""
        return self.store.look_up(np.asarray(ids, np.int64))

    def page_urls(self, ids: Ints) -> pa.Array:
        """The URLs of visited pages: each has one, since a visit is written after its URL, or the table is damaged."""
        found = self.urls_of(ids)
        is_url = pc.or_(pc.starts_with(found, "https://"), pc.starts_with(found, "http://")).fill_null(False)
        check_urls(self.store.folder, len(found) - pc.sum(is_url, min_count=0).as_py(), len(found))
        return found

    def visited(self, url: str) -> str | None:
        """A page's URL as this history spells it; None: the page was never visited. Reads one column, not the past.

        Imports drop tracking parameters by default, and keep them with ``--keep-tracking``: both spellings are looked up.
        """
        spellings = (canonical(url), canonical(url, keep_tracking=True))
        ids = {page_id(spelling): spelling for spelling in reversed(spellings)}
        is_it, until = pc.is_in(ds.field("page"), pa.array(ids, pa.int64())), self._when()
        rows = self.store.read("visits", ["page"], is_it if until is None else is_it & until)
        known = {ids[page] for page in pc.unique(rows["page"]).to_pylist()}
        return next((spelling for spelling in spellings if spelling in known), None)

    def n_traps(self) -> int:
        """How many of the URLs seen look like crawler traps."""
        traps = trap_ids(self.store)
        if not len(traps):
            return 0
        sets = self.timeline.sets
        is_shown = np.zeros(len(sets.digest), np.bool_)
        is_shown[self.timeline.links[self.timeline.links >= 0]] = True
        links = sets.links[np.repeat(is_shown, np.diff(sets.start))]
        return int((np.isin(traps, links) | np.isin(traps, self.timeline.pages)).sum())

    def compact(self, buckets: int | None = None) -> None:
        """Rewrite the tables sorted and without repeated rows; others may go on reading and writing meanwhile.

        `buckets`: lay it out in this many buckets of whole sites, each in files of its own; 0: in none; None: as it is now.
        """
        self.store.compact(buckets)
        for table in (HINTS, PLANS_TABLE, WATCHING):
            table.compact(self.beside)


def _both(one: ds.Expression | None, other: ds.Expression | None) -> ds.Expression | None:
    """Both conditions; None: there is none."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def count_new(timeline: Timeline) -> Novelty:
    """What was new on each visit of a timeline."""
    new = count_new_on_pages(timeline)
    return new.novelty(*new_anywhere(new.link, new.visit, timeline.at, timeline.compared_with))


def count_new_on_pages(timeline: Timeline) -> NewOnPages:
    """What was new to each page by itself."""
    sets = timeline.sets
    return new_on_pages(
        page_start=timeline.page_start,
        links=timeline.links,
        compared_with=timeline.compared_with,
        set_start=sets.start,
        set_links=sets.links,
        set_n_internal=sets.n_internal,
    )
