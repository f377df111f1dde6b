"""One policy over a recorded past: one plain row per cycle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.times import microseconds, moment
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.important_first import choose_important
from recrawl.replay.signals import HeardSignals
from recrawl.world.crawler import Crawler, CycleVisits
from recrawl.world.link_weights import link_weights
from recrawl.world.pages import Visits
from recrawl.world.recorded import World

Row = dict[str, Any]
SOON = 4  #: cycles within which a link counts as found soon
#: Upper ends of the classes in which ages of discovery are counted, in hours; the last class is open.
AGE_HOURS = (0.0, 1.0, 2.0, 4.0, 8.0, 12.0, 24.0, 48.0, 96.0, 168.0, 336.0, 720.0, 2160.0, 8760.0)


def replay(
    world: World, policy: Policy, budget: Budget, observed: int = 0, between: str | None = None
) -> Iterator[Row]:
    """Let the policy choose in every cycle and report what it found; it sees only what it visits.

    A link counts for the cycle in which the policy first sees it (Pham et al. 2018, section 3). In the first `observed` cycles it
    sees every page that was recorded and chooses nothing: time to learn before crawling begins (Radinsky and Bennett 2013, Fig.
    8). These cycles have no rows, and the links that they show count as known. `between`: what pages show in cycles without a
    record, if not as the world has it.

    Where pages differ in importance, policies know what was stated before the cycle, and rows have weighted numbers beside the
    plain ones: links count as `link_weights` says, copies by the importance of their pages at the end of the cycle.
    """
    crawler, heard = Crawler(world, policy.needs, between), HeardSignals.of(world, policy.needs)
    weights = link_weights(world)
    policy.start(crawler.pages)
    _observe(policy, crawler.first.visits, heard)
    for _ in range(min(observed, world.n_cycles)):
        meet_pages(crawler, policy)
        _observe(policy, crawler.visit_recorded().visits, heard)
    published = np.bincount(world.first_shown, minlength=len(world.time))
    of_all = None
    if world.everything is not None:
        of_all = np.bincount(world.everything.first_shown, minlength=len(world.time))
    for cycle in range(observed + 1, world.n_cycles + 1):
        started = time.perf_counter()
        now = moment(int(world.time[cycle]))
        meet_pages(crawler, policy)
        _hear(crawler, heard, int(world.time[cycle]))
        choice = choose_important(policy, crawler.pages, known_only(budget, crawler), now)
        chosen = time.perf_counter()
        result = crawler.visit(choice.page, choice.memo)
        seen = time.perf_counter()
        _observe(policy, result.visits, heard)
        seconds = (chosen - started) + (time.perf_counter() - seen)
        yield {
            "cycle": cycle,
            "at": now.isoformat(),
            "published": int(published[cycle]),
            **_counts(result),
            **_host_load(world.host[choice.page]),
            "current": float(crawler.is_current().mean()) if len(crawler.pages) else 0.0,
            **({} if weights is None else _weighted(world, cycle, crawler, result, weights)),
            "seconds": seconds,
        } | _of_all(result, None if of_all is None else int(of_all[cycle]))


def _hear(crawler: Crawler, heard: HeardSignals | None, now: int) -> None:
    """Let the policy know of the changes that were signalled by now."""
    if heard is not None:
        heard.listen(now)
        crawler.pages.signals = heard.signals(len(crawler.pages))


def _observe(policy: Policy, visits: Visits, heard: HeardSignals | None) -> None:
    policy.observe(visits)
    if heard is not None:
        heard.listen(microseconds(visits.ended_at))
        heard.note(visits)


def meet_pages(crawler: Crawler, policy: Policy) -> None:
    """Let the policy know of pages that are known from the next cycle on."""
    n_before = crawler.meet_pages()
    if len(crawler.pages) > n_before:
        policy.extend(crawler.pages, n_before)


def known_only(budget: Budget, crawler: Crawler) -> Budget:
    """The budget without the pages of which it is not known what a visit would show."""
    unknowable = crawler.unknowable()
    if not unknowable.any() and (budget.barred is None or len(budget.barred) == len(crawler.pages)):
        return budget
    barred = np.zeros(len(crawler.pages), np.int8)
    if budget.barred is not None:
        barred[:] = budget.barred[: len(barred)]
    barred[unknowable & (barred == 0)] = Cause.EXCLUDED
    return replace(budget, barred=barred)


def _counts(result: CycleVisits) -> Row:
    """What the visits of a cycle found."""
    visits = result.visits
    n_new = visits.n_new
    return {
        "fetches": len(visits),
        "answered": int(visits.answered.sum()),
        "found": visits.n_found,
        "shown_new": int(n_new.sum()),
        "hits": int((n_new > 0).sum()),
        "changes": int((visits.changed == 1).sum()),
        "soon": int((result.cycles <= SOON).sum()),
        "after": _counted(result.cycles),
        "ages": np.bincount(np.searchsorted(AGE_HOURS, result.ages - 1e-9), minlength=len(AGE_HOURS) + 1).tolist(),
    }


def _weighted(world: World, cycle: int, crawler: Crawler, result: CycleVisits, weights: Floats) -> Row:
    """What was published and found, and how many copies are current, by how much links and pages matter."""
    return {
        "published_weight": float(weights[world.first_shown == cycle].sum()),
        "found_weight": float(weights[result.links].sum()),
        "after_weight": _weighed(result.cycles, weights[result.links]),
        "current_weight": crawler.weighted_share(crawler.is_current()),
    }


def _of_all(result: CycleVisits, published: int | None) -> Row:
    """In a focused replay the same for all links: those that do not count cost a fetch no less."""
    if published is None or result.n_found_of_all is None:
        return {}
    return {"published_all": published, "found_all": result.n_found_of_all}


def _counted(cycles: Ints) -> list[list[int]]:
    """How many links were found how many cycles after they were published: pairs of cycles and links."""
    after, n = np.unique(cycles, return_counts=True)
    return [[int(a), int(b)] for a, b in zip(after, n, strict=True)]


def _weighed(cycles: Ints, weights: Floats) -> list[list[float]]:
    """The same by weight: pairs of cycles and what the links found after them weigh."""
    after, place = np.unique(cycles, return_inverse=True)
    return [[int(a), float(b)] for a, b in zip(after, np.bincount(place, weights, len(after)), strict=True)]


def _host_load(host: Ints) -> Row:
    """How many hosts were fetched from, and the most fetches from one of them."""
    _, n_fetches = np.unique(host, return_counts=True)
    return {"hosts": len(n_fetches), "most_of_host": int(n_fetches.max(initial=0))}
