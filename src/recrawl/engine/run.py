"""One bucket's share of a plan: the laptop's own code on the pages of some sites, in steps between which parts hear of each other.

Every step is a function of what came before, so a bucket that was lost with its worker is followed again from the beginning, by the
same arguments and answers, to the same state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Ints, Ints32
from recrawl.core.places import Place
from recrawl.core.times import NEVER
from recrawl.core.whole import ONE_PIECE
from recrawl.engine.link_join import read_shared, write_shown
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.part import Key, PageOrder, PartOfWhole
from recrawl.engine.share import share_of_plan
from recrawl.history import History
from recrawl.history.importance import importance_of
from recrawl.insight.hints.of_pages import hints_of, no_signals, signals_of
from recrawl.plan.learning import Learnt
from recrawl.plan.new_visits import NewVisits
from recrawl.plan.plan import PlanRequest
from recrawl.plan.situation import Situation
from recrawl.plan.survey import DEFAULT_CYCLE_HOURS
from recrawl.policies.base import Policy
from recrawl.world.batches import BatchRule, CrawlPace, distinct_moments
from recrawl.world.notions import Notion
from recrawl.world.pages import Need, Visits
from recrawl.world.related import Related
from recrawl.world.roots import DOMAINS
from recrawl.world.schedule import NEVER_SHOWN, Elsewhere, Schedule
from recrawl.world.stream import BatchCuts, Segment, next_segment

#: Bytes that a bucket takes for each visit that is still to be followed, for each page and for each link, about.
VISIT_BYTES, PAGE_BYTES, LINK_BYTES = 100, 700, 24
_PLAIN = ("learnt", "segment", "known", "part", "is_learnt", "parts")
_BESIDE = ("related", "signals", "importance")  # what is known of pages beside what was learnt


@dataclass
class BucketRun:
    """A bucket as far as it was followed."""

    history: History  # of the bucket
    number: int
    n_buckets: int
    work: Place  # a folder that all workers see
    policy: Policy
    notion: Notion | None = None
    links: str = "all"
    fresh: NewVisits | None = None
    learnt: Learnt = field(init=False)
    segment: Segment | None = None
    known: Flags = field(default_factory=lambda: np.empty(0, np.bool_))  # which links are
    waiting: Visits | None = None  # a part that is not learnt from yet
    part: int = 0  # of the schedule, that comes next
    parts: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of each visit
    is_learnt: bool = False  # the part that `part` says was learnt from, and what all pages share is not settled yet

    def __post_init__(self) -> None:
        self.learnt = Learnt(self.policy)
        self.order = PageOrder(np.empty(0, np.int64), self.learnt.stream.url)
        self.whole = PartOfWhole(self.order)

    # -- steps, in this order ------------------------------------------------------------------------------------------

    def survey(self) -> dict[str, Any]:
        """What the batches of the whole collection follow from."""
        fresh = self._fresh
        pace = CrawlPace.of(fresh.page, fresh.at)
        return {
            "moments": distinct_moments(fresh.at),
            "gaps": pace.gaps,
            "n_visits": pace.n_visits,
            "n_pages": pace.n_pages,
        }

    def repeats(self, rule: BatchRule, ends: Ints, began: int) -> dict[str, Any]:
        """Where this bucket's visits part batches: pages that are visited again before the batch is over."""
        fresh = self._fresh
        showings, _ = fresh.showings(self.learnt.visits, NEVER, int(ends[-1]), self.policy.needs, self.notion)
        self.learnt.rule = rule
        segment = next_segment(
            self.learnt.stream,
            self.history,
            showings,
            BatchRule("times", ends=tuple(ends.tolist())),
            needs=self.policy.needs,
            roots=DOMAINS,
        )
        self.segment = segment
        self.fresh = None
        self.history.release()
        known_in = np.searchsorted(segment.n_known, np.arange(len(segment.new_page)), side="right")
        self.order.known_in, self.order.url = known_in, segment.new_url
        n_batches = len(ends)
        n_known = np.concatenate([segment.n_known, np.full(n_batches, len(segment.new_page))])[:n_batches]
        segment.n_known = n_known  # of all batches, also those without a visit here
        return {
            "n_visits": np.bincount(segment.batch, minlength=n_batches),
            "n_known": n_known,
            "first": self._firsts(segment, n_batches),
            "repeats": self._repeats(segment),
        }

    def shown(self, schedule: Schedule) -> dict[str, Any]:
        """The links that this bucket shows: in which part of the schedule first, when, and where read in a new way."""
        segment = self._segment
        at_cuts = schedule.at_cuts(segment.at)
        url = segment.new_url.take(segment.row[at_cuts]).to_pylist()
        part = schedule.part_of(segment.at, self.order.known_in[segment.row], url)
        self.parts, n = part, len(schedule)
        n_links = segment.n_links_before + len(segment.new_link)
        first, at, reread = _first_shown(segment, part, n_links)
        links: dict[str, NDArray[Any]] = {
            "link": segment.new_link,
            "shown_in": first,
            "first_at": at,
            "reread_in": reread,
        }
        write_shown(self.work, self.number, self.n_buckets, links)
        return {"n_visits": np.bincount(part, minlength=n), "last_at": _greatest(part, segment.at, n)}

    def begin(self, schedule: Schedule, contested: Ints) -> dict[str, Any]:
        """Get ready to learn; `contested`: which parts have links that are new in several buckets."""
        segment, stream = self._segment, self.learnt.stream
        links = read_shared(self.work, self.number, self.n_buckets)
        place = np.argsort(segment.new_link)
        ids = links["link"]
        at = place[np.searchsorted(segment.new_link[place], ids)] if len(ids) else np.empty(0, np.int64)
        number = (segment.n_links_before + at).astype(np.int32)
        order = np.argsort(number)
        is_contested = links["is_contested"].astype(np.bool_)[order]
        number, shown_in = number[order], links["shown_in"][order]
        elsewhere = Elsewhere(
            link=number,
            shown_in=shown_in,
            first_at=links["first_at"][order],
            reread_in=links["reread_in"][order],
            contested=number[is_contested],
            contested_in=shown_in[is_contested],
            is_contested_in=contested,
        )
        segment.cut = BatchCuts.of(schedule, self.parts, segment.row, elsewhere, first_batch=0)
        self.policy.start(stream.pages)
        self.whole.link_ids, self.whole.n_links_before = segment.new_link, segment.n_links_before
        self.known = stream.enter(segment)
        return {}

    def learn(self) -> dict[str, Any]:
        """Learn from all parts of the schedule, one after the other; goes on where it was interrupted."""
        segment, stream = self._segment, self.learnt.stream
        assert segment.cut is not None
        stream.pages.part_of = self.whole
        self._settle()
        while self.part < len(segment.cut.schedule):
            if self.waiting is None:
                self.waiting, n_before = stream.go_on(segment, segment.cut.part(self.part), self.known)
                self.policy.extend(stream.pages, n_before)
                self.learnt.links.extend_to(len(stream.pages))
                self.learnt.changes.extend_to(len(stream.pages))
            self._learn_from(self.waiting)
            self._settle()
        self.segment, self.known = None, self.known[:0].copy()
        return {}

    def _learn_from(self, visits: Visits) -> None:
        self.whole.scope = f"part {self.part}, learning"
        self.policy.learn_part(visits)
        self.learnt.links.observe(visits)
        self.learnt.changes.observe(visits)
        self.waiting, self.is_learnt = None, True

    def _settle(self) -> None:
        """Learn what all pages share."""
        if self.is_learnt:
            self.whole.scope = f"part {self.part}, settling"
            self.policy.settle(self.whole)
            self.is_learnt = False
            self.whole.forget(f"part {self.part},")
            self.part += 1

    def situate(self, now: datetime, uses_signals: bool) -> dict[str, Any]:
        """Look at what else is known of the pages."""
        stream, pages, whole = self.learnt.stream, self.learnt.stream.pages, self.whole
        whole.scope = "survey"
        importance = importance_of(self.history, stream.page)
        if whole.count("pages of stated importance", lambda: importance is not None):
            pages.importance = np.ones(len(pages)) if importance is None else importance
        signals = signals_of(self.history, stream.page, pages.host) if uses_signals else None
        if whole.count("signals", lambda: signals is not None):
            pages.signals = signals or no_signals(len(pages))
        hints = hints_of(self.history, stream.page, pages.host, pages.last_visit)
        return {
            "n_pages": len(pages),
            "n_hinted": int(bool(hints)),
            "n_unimportant": 0 if pages.importance is None else int((pages.importance == 0).sum()),
        }

    def page_keys(self) -> dict[str, Any]:
        """The ids of this bucket's pages, and what decides their order among all."""
        stream = self.learnt.stream
        return {"page": stream.page, "known_in": self.order.known_in, "url": stream.url}

    def relate(self, related: Related) -> dict[str, Any]:
        """Take pages with similar text, of whatever bucket, into account."""
        self.learnt.stream.pages.related = related
        return {}

    def unwatched(self, page: Ints) -> dict[str, Any]:
        """How many of some pages, by their ids, this bucket holds."""
        return {"n": int(np.isin(self.learnt.stream.page, page).sum())}

    def choose(self, request: PlanRequest, now: datetime) -> dict[str, Any]:
        """This bucket's share of the plan."""
        stream = self.learnt.stream
        situation = Situation(
            page=stream.page,
            url=stream.url,
            pages=stream.pages,
            policy=self.policy,
            expectation=self.learnt.links,
            last_change=stream.last_new,
            cycle_hours=stream.cycle_hours or DEFAULT_CYCLE_HOURS,
            changes=self.learnt.changes,
        )
        self.whole.scope = "choice"
        return share_of_plan(situation, request, now, self.whole)

    # -- on disk -------------------------------------------------------------------------------------------------------

    def n_bytes(self) -> int:
        """How much memory it takes, about."""
        stream, segment = self.learnt.stream, self.segment
        fresh = 0 if self.fresh is None else VISIT_BYTES * len(self.fresh.at)
        ahead = 0 if segment is None else VISIT_BYTES * len(segment.at) + segment.lists.links.nbytes
        return fresh + ahead + PAGE_BYTES * len(stream.pages) + LINK_BYTES * stream.n_links

    def packed(self) -> bytes:
        """All that was followed so far, with the answers that are still needed."""
        pages, visits = self.learnt.stream.pages, self.waiting
        about = {name: getattr(self, name) for name in _PLAIN}
        beside = {name: getattr(pages, name) for name in _BESIDE}
        waiting = None if visits is None else replace(visits, whole=ONE_PIECE)
        order = (self.order.known_in, self.order.url)
        links = (self.whole.link_ids, self.whole.n_links_before)
        answers = dict(self.whole.answers)
        return packed(
            {"about": about, "beside": beside, "waiting": waiting, "order": order, "links": links, "answers": answers}
        )

    def restore(self, data: bytes) -> None:
        """The inverse of `packed`."""
        kept = unpacked(data)
        for name, value in kept["about"].items():
            setattr(self, name, value)
        self.policy, pages = self.learnt.policy, self.learnt.stream.pages
        for name, value in kept["beside"].items():
            setattr(pages, name, value)
        self.order.known_in, self.order.url = kept["order"]
        self.whole.link_ids, self.whole.n_links_before = kept["links"]
        self.whole.answers = kept["answers"]
        pages.part_of = self.whole
        self.waiting = None if kept["waiting"] is None else replace(kept["waiting"], whole=self.whole)

    # -- within steps --------------------------------------------------------------------------------------------------

    @property
    def _fresh(self) -> NewVisits:
        if self.fresh is None:
            self.fresh = NewVisits.after(
                self.history,
                NEVER,
                links=self.links,  # type: ignore[arg-type]  # checked
                read_links="all" if Need.UPDATES in self.policy.needs else "compared",
            )
        return self.fresh

    @property
    def _segment(self) -> Segment:
        assert self.segment is not None
        return self.segment

    def _key(self, segment: Segment, visit: int) -> Key:
        page = int(segment.row[visit])
        return (int(segment.at[visit]), int(self.order.known_in[page]), segment.new_url[page].as_py())

    def _firsts(self, segment: Segment, n_batches: int) -> list[Key | None]:
        """The first visit to a page of this bucket in each batch."""
        order = np.lexsort((segment.row, segment.at, segment.batch))
        start = np.searchsorted(segment.batch[order], np.arange(n_batches + 1))
        return [
            self._key(segment, int(order[low])) if low < high else None
            for low, high in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        ]

    def _repeats(self, segment: Segment) -> list[tuple[int, Key, Key]]:
        """Pairs of visits to one page in one batch, without those that enclose another pair."""
        order = np.lexsort((segment.at, segment.row))
        row, batch, at = segment.row[order], segment.batch[order], segment.at[order]
        again = np.flatnonzero((row[1:] == row[:-1]) & (batch[1:] == batch[:-1])) + 1
        again = again[np.argsort(at[again], kind="stable")]
        latest = np.maximum.accumulate(at[again - 1]) if len(again) else at[again]
        is_inner = at[again - 1] >= latest  # no earlier pair began later
        inner = again[is_inner]
        return [
            (int(batch[i]), self._key(segment, int(order[i - 1])), self._key(segment, int(order[i]))) for i in inner
        ]


def _greatest(which: Ints, values: Ints, n: int) -> Ints:
    greatest = np.full(n, NEVER)
    np.maximum.at(greatest, which, values)
    return greatest


def _first_shown(segment: Segment, part: Ints, n_links: int) -> tuple[Ints32, Ints, Ints32]:
    """Of each new link: the first part in which it is shown, when, and the first in which a page read in a new way shows it."""
    first = np.full(n_links, NEVER_SHOWN, np.int32)
    at = np.full(n_links, np.iinfo(np.int64).max)
    reread = np.full(n_links, NEVER_SHOWN, np.int32)
    shown = np.flatnonzero(segment.number >= 0)
    lists = segment.lists
    for visit in np.array_split(shown, max(len(shown) // 1_000_000, 1)):
        number = segment.number[visit]
        sizes = (lists.start[1:] - lists.start[:-1])[number]
        entry = np.repeat(lists.start[:-1][number] - np.append(0, np.cumsum(sizes))[:-1], sizes) + np.arange(
            sizes.sum()
        )
        link, of = lists.links[entry], np.repeat(visit, sizes)
        np.minimum.at(first, link, part[of].astype(np.int32))
        np.minimum.at(at, link, segment.at[of])
        again = segment.baseline[of]
        np.minimum.at(reread, link[again], part[of[again]].astype(np.int32))
    new = slice(segment.n_links_before, None)
    return first[new], at[new], reread[new]
