"""``recrawl plan --engine``: the plan of a history, learnt and chosen bucket by bucket; the same as on one machine.

The driver holds what all pages share, never a page. It leads all buckets through the same steps (`recrawl.engine.run`), joins what
they contribute, and merges their shares of the plan.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.core.places import Place, place
from recrawl.core.times import NEVER, microseconds, moment
from recrawl.core.words import count
from recrawl.engine.collection import BUCKETS, WORK
from recrawl.engine.link_join import join_range
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.scratch import scratch_in
from recrawl.engine.session import open_engine
from recrawl.engine.tasks import Bucket, Reply, Step, work
from recrawl.errors import EngineError, NotEnoughData
from recrawl.history import History
from recrawl.insight.world_related import related_at
from recrawl.plan.assembly import ChosenPages, ExpectedGains, assembled, left_out
from recrawl.plan.options import PlanOptions
from recrawl.plan.plan import Plan
from recrawl.plan.planner import Planner, Report, ignore
from recrawl.plan.survey import MAX_RELATED, N_RELATED
from recrawl.policies.base import Policy
from recrawl.world.batches import CrawlPace, distinct_moments, rule_for
from recrawl.world.notions import notion_or_any
from recrawl.world.pages import Need
from recrawl.world.roots import DOMAINS
from recrawl.world.schedule import Schedule


class Mapper(Protocol):
    """Runs a function of a module once per task, on whatever workers there are; results in the order of the tasks."""

    def __call__(self, function: Callable[[bytes], bytes], tasks: Sequence[bytes]) -> Iterator[bytes]:
        """The results of a function of a module for each of the tasks."""


def plan_on(
    engine: str,
    history: History,
    options: PlanOptions,
    *,
    now: datetime | None = None,
    n_buckets: int | None = None,
    on_step: Report = ignore,
    on_note: Report = ignore,
) -> Plan:
    """The pages to fetch next, planned on an engine (see `recrawl.engine.open_engine`); the same as on one machine."""
    planner = Planner(history, options, now, on_step=on_step, on_note=on_note)
    policy = planner.chosen_policy()
    check_parted(policy, planner)  # before anything slow begins
    laid_out = history.layout()
    n = n_buckets or laid_out or BUCKETS
    if laid_out != n:
        how = "not laid out in buckets" if laid_out is None else f"laid out in {count(laid_out, 'bucket')}"
        on_note(
            f"the history is {how}, so each of {n} reads all of it; recrawl compact --buckets {n} makes that quicker"
        )
    with scratch_in(history.folder / WORK) as scratch, open_engine(engine, work=scratch.folder) as opened:
        return EnginePlanner(
            planner=planner, policy=policy, map=opened.map, n_buckets=n, work=place(scratch.folder)
        ).plan()


@dataclass(kw_only=True)
class EnginePlanner:
    """Plans a history in buckets."""

    planner: Planner
    policy: Policy
    map: Mapper
    n_buckets: int
    work: Place  # a folder that all workers see
    job: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        #: Of each bucket, and how many of them the worker that holds it knows.
        self.events: list[list[Step | Reply]] = [[] for _ in range(self.n_buckets)]
        self.n_sent = [0] * self.n_buckets

    def plan(self) -> Plan:
        """The pages to fetch next."""
        planner = self.planner
        planner.on_step("reading visits")
        surveys = self._step("survey")
        if not sum(each["n_visits"] for each in surveys):
            raise NotEnoughData("the history holds no visits")
        moments = distinct_moments(np.concatenate([each.pop("moments") for each in surveys]))
        pace = joined_pace(surveys, moments)
        rule = rule_for(planner.options.every, pace)
        ends = _used(rule.batch_ends(moments, int(moments[0])), moments)
        planner.on_step(f"learning from {count(pace.n_visits, 'visit')}")
        schedule = self._schedule(self._step("repeats", rule, ends, int(moments[0])))
        schedule, contested = self._links(schedule, self._step("shown", schedule))
        self.schedule = schedule
        self._step("begin", schedule, contested)
        self._step("learn")
        planner.on_note(f"learnt from {count(int(schedule.n_visits.sum()), 'visit')}, {rule.why}")
        return self._choose()

    def _choose(self) -> Plan:
        planner, policy = self.planner, self.policy
        seen = self._step("situate", planner.now, Need.SIGNALS in policy.needs)
        if any(each["n_hinted"] for each in seen) and Need.SIGNALS not in policy.needs:
            raise EngineError(
                "hints of sitemaps and feeds have proven true here, and plans on an engine cannot use them yet"
            )
        if any(each["n_unimportant"] for each in seen):
            raise EngineError("some pages have importance 0, which plans on an engine cannot put last yet")
        n_pages = sum(each["n_pages"] for each in seen)
        if Need.RELATED in policy.needs and n_pages <= MAX_RELATED:
            self._relate()
        n_unwatched = sum(each["n"] for each in self._step("unwatched", planner.unwatched))
        request = planner.request_for(n_pages - n_unwatched)
        planner.on_step("choosing pages")
        shares = self._step("choose", request, planner.now)
        chosen, ranked = _merged(shares, request.pages)
        counts = np.sum([each["causes"] for each in shares], axis=0)
        return assembled(
            chosen=chosen,
            ranked=ranked,
            request=request,
            now=planner.now,
            policy=policy,
            n_known=n_pages,
            left_out=left_out(counts, 0),
            n_starving=sum(each["n_starving"] for each in shares),
            n_may=sum(each["n_may"] for each in shares),
            cycle_hours=shares[0]["cycle_hours"],
            memo=shares[0]["memo"],
        )

    def _relate(self) -> None:
        """Find pages with similar text, as on one machine: there are few enough for it."""
        keys = self._step("page_keys")
        page = np.concatenate([each["page"] for each in keys])
        url = [text for each in keys for text in each["url"].to_pylist()]
        order = np.lexsort((rank_of(url), np.concatenate([each["known_in"] for each in keys])))
        until = moment(int(self.schedule.ended_at[-1]))
        related = related_at(self.planner.history, page[order], N_RELATED, until)
        if related is None:
            return
        place = np.empty(len(page), np.int64)
        place[order] = np.arange(len(page))
        of_bucket = np.split(place, np.cumsum([len(each["page"]) for each in keys])[:-1])
        parts = [
            replace(related, neighbour=related.neighbour[mine], weight=related.weight[mine], place=mine)
            for mine in of_bucket
        ]
        self._step("relate", per_bucket=parts)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, name: str, *arguments: Any, per_bucket: Sequence[Any] | None = None) -> list[Any]:
        """Lead all buckets through a step, answering what they ask of the whole."""
        own = [None] * self.n_buckets if per_bucket is None else per_bucket
        for events, mine in zip(self.events, own, strict=True):
            events.append(Step(name=name, arguments=list(arguments), own=mine))
        while True:
            results = self._results()
            asked = [each["asked"] for each in results if "asked" in each]
            if not asked:
                return [each["done"] for each in results]
            if len(asked) < self.n_buckets or len({(each["scope"], each["name"]) for each in asked}) > 1:
                raise EngineError(f"the buckets do not ask the same: {sorted({each['name'] for each in asked})}")
            join = function_named(asked[0]["join"])
            value = join([each["contribution"] for each in asked])
            for events in self.events:
                events.append(Reply(key=f"{asked[0]['scope']}: {asked[0]['name']}", value=value))

    def _results(self) -> list[dict[str, Any]]:
        """What the last events came to in every bucket."""
        results: dict[int, dict[str, Any]] = {}
        while len(results) < self.n_buckets:
            missing = [b for b in range(self.n_buckets) if b not in results]
            tasks = [packed((self._bucket(b), self.n_sent[b], self.events[b][self.n_sent[b] :])) for b in missing]
            for b, result in zip(missing, map(unpacked, self.map(work, tasks)), strict=True):
                self.n_sent[b] = 0 if "lost" in result else len(self.events[b])
                if "lost" not in result:
                    results[b] = result
        return [results[b] for b in range(self.n_buckets)]

    def _bucket(self, number: int) -> Bucket:
        history, options = self.planner.history, self.planner.options
        return Bucket(
            job=self.job,
            folder=str(history.folder),
            work=str(self.work),
            until=None if history.until is None else microseconds(history.until),
            number=number,
            n=self.n_buckets,
            policy=self.policy,
            change=options.change,
            links=options.links,
        )

    def _schedule(self, found: Sequence[dict[str, Any]]) -> Schedule:
        """How the stream of all visits is cut into parts."""
        batch, keys, is_last, n_known = [], [], [], np.sum([each["n_known"] for each in found], axis=0)
        firsts = [[tuple(key) for each in found if (key := each["first"][b]) is not None] for b in range(len(n_known))]
        repeats: list[list[tuple[Any, Any]]] = [[] for _ in firsts]
        for each in found:
            for b, before, again in each["repeats"]:
                repeats[b].append((tuple(again), tuple(before)))
        for b, here in enumerate(firsts):
            if not here:
                continue
            begins = [min(here)]
            for again, before in sorted(repeats[b]):
                if before >= begins[-1]:
                    begins.append(again)
            keys += begins
            batch += [b] * len(begins)
            is_last += [0] * (len(begins) - 1) + [1]
        n = len(keys)
        return Schedule(
            batch=np.array(batch, np.int64),
            is_last=np.array(is_last, np.int64),
            began_at=np.array([key[0] for key in keys], np.int64),
            ended_at=np.full(n, NEVER),
            n_visits=np.zeros(n, np.int64),
            n_pages=n_known[np.array(batch, np.int64)],
            known_in=np.array([key[1] for key in keys], np.int64),
            url=tuple(key[2] for key in keys),
        )

    def _links(self, schedule: Schedule, shown: Sequence[dict[str, Any]]) -> tuple[Schedule, Ints]:
        """The schedule with what its parts hold, and which of them have links that are new in several buckets."""
        schedule = replace(
            schedule,
            n_visits=np.sum([each["n_visits"] for each in shown], axis=0),
            ended_at=np.max([each["last_at"] for each in shown], axis=0),
        )
        tasks = [packed((str(self.work), number, self.n_buckets, schedule)) for number in range(self.n_buckets)]
        return schedule, np.max([unpacked(each) for each in self.map(join_range, tasks)], axis=0)


def check_parted(policy: Policy, planner: Planner) -> None:
    """Refuse what cannot be planned in parts, with the reason."""
    from recrawl.policies import ALL

    options = planner.options
    if options.model is not None:
        raise EngineError("--model: stored predictions are of one machine; leave out --engine")
    if not policy.parted:
        able = ", ".join(sorted(kind.name for kind in ALL if kind.parted))
        raise EngineError(
            f"{policy.name} cannot be planned on an engine: it compares pages of different sites. Those that can: {able}"
        )
    if planner.roots != DOMAINS:
        raise EngineError("--roots: buckets hold whole registered domains; plan with other roots on one machine")
    if options.relevance is not None:
        raise EngineError("--relevance cannot be used on an engine yet")
    if notion_or_any(options.change) is not None:
        raise EngineError(f"--change {options.change} needs words, which are not read on an engine yet")


def rank_of(texts: list[str]) -> Ints:
    """The rank of each text among them in alphabetical order.

    >>> rank_of(["b", "a", "c"]).tolist()
    [1, 0, 2]
    """
    rank = np.empty(len(texts), np.int64)
    rank[np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)] = np.arange(len(texts))
    return rank


def function_named(name: str) -> Callable[[Sequence[Any]], Any]:
    """A function of a module of recrawl."""
    module, _, function = name.partition(":")
    if not module.startswith("recrawl."):
        raise EngineError(f"{name} is not one of recrawl's functions")
    found: Callable[[Sequence[Any]], Any] = getattr(importlib.import_module(module), function)
    return found


def joined_pace(surveys: Sequence[dict[str, Any]], moments: Ints) -> CrawlPace:
    """The pace of all visits, from the gaps and numbers of each bucket and the moments of all."""
    pace = CrawlPace(
        gaps=np.sum([each["gaps"] for each in surveys], axis=0),
        n_visits=sum(each["n_visits"] for each in surveys),
        n_pages=sum(each["n_pages"] for each in surveys),
    )
    pace.add(np.empty(0, np.int64), np.diff(moments))
    return pace


def _used(ends: Ints, moments: Ints) -> Ints:
    """The ends of batches that hold a visit."""
    batch = np.unique(np.searchsorted(ends, moments))
    used: Ints = ends[batch]
    return used


def _merged(shares: Sequence[dict[str, Any]], budget: int) -> tuple[ChosenPages, ExpectedGains]:
    """The shares of all buckets in the order in which the policy would have picked the pages."""
    keys = [(tuple(key), b, i) for b, each in enumerate(shares) for i, key in enumerate(each["keys"])]
    keys.sort()
    n_before = np.cumsum([0] + [len(each["keys"]) for each in shares])
    order = np.array([n_before[b] + i for _, b, i in keys], np.int64)
    links = np.concatenate([each["ranked"].links for each in shares])[order]
    changed = np.concatenate([each["ranked"].changed for each in shares])[order]
    first = [(b, i) for _, b, i in keys if i < len(shares[b]["chosen"].page)][:budget]
    parts = [each["chosen"] for each in shares]
    n_before = np.cumsum([0] + [len(part.page) for part in parts])
    order = np.array([n_before[b] + i for b, i in first], np.int64)
    columns: dict[str, Any] = {}
    for name in vars(parts[0]):
        values = [getattr(part, name) for part in parts]
        if values[0] is None:
            columns[name] = None
        elif isinstance(values[0], list):
            joined = [each for value in values for each in value]
            columns[name] = [joined[i] for i in order.tolist()]
        elif isinstance(values[0], np.ndarray):
            columns[name] = np.concatenate(values)[order]
        else:
            columns[name] = pa.concat_arrays(values).take(pa.array(order))
    return ChosenPages(**columns), ExpectedGains(links=links, changed=changed)
