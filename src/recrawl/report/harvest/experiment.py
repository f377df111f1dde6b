"""What each part of expected-harvest contributes, whether its intervals hold, and what it knows of pages without a past."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from recrawl.core.arrays import Flags, Floats, Ints, LinkLists
from recrawl.core.times import moment
from recrawl.policies.budget import Budget
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.policies.harvest.learning import credited
from recrawl.policies.harvest.model import StockModel
from recrawl.policies.harvest.parts import Parts
from recrawl.replay.many import OnCycles, replay_many
from recrawl.replay.run import known_only, meet_pages
from recrawl.replay.summary import summarise
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Visits
from recrawl.world.recorded import World

PARTS = ("ablation", "calibration", "hidden")
#: What is left out → settings of the policy.
ABLATIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "overlap with siblings": {"overlap": False},
    "links that a page has alone": {"alone": False},
    "learnt lifetimes of links": {"lifetimes": False},
    "urgency and safety": {"urgency": False, "safety": False},
    "urgency": {"urgency": False},
    "safety": {"safety": False},
    "horizon": {"horizon": False},
    "discount within the cycle": {"discount": False},
    "rhythm": {"rhythm": False},
    "look around (size, site, folder, name, text)": {"around": False},
    "folders and names": {"folders": False},
    "learnt differences of rates": {"levels": False},
    "related pages": {"related": False},
    "first visits": {"explore": 0.0},
    "failures": {"failures": False},
}
LEVELS = (0.5, 0.8, 0.95)
#: What the model may know of a page that was seen once.
LOOKS = {
    "one visit alone": Parts(around=False),
    "one visit, and pages of its size and site": Parts(folders=False, related=False),
    "and pages of its folder and its name": Parts(related=False),
    "and related pages": Parts(),
}
HIDDEN = 0.2  #: of the pages, whose past is hidden


@dataclass(frozen=True)
class Ablation:
    """Coverage with one part left out: one entry per budget, the mean over several orders of the pages."""

    left_out: str
    coverage: tuple[float, ...]
    within_4_cycles: tuple[float, ...]
    chance: tuple[float | None, ...]  # standard error of the change of coverage; None: only one order was tried


@dataclass(frozen=True)
class CalibrationResult:
    """How accurate expectations and intervals were over a replay."""

    budget: int
    expected: float  # new links, in all plans together
    found: int
    # Level → probability that the intervals state, and share of the counts that are in them.
    levels: dict[float, tuple[float, float]]
    bins: list[tuple[float, float, int]]  # visits by their expectation: mean expectation, mean count, number of visits


@dataclass(frozen=True)
class HiddenPagesResult:
    """Rank correlation of expected and actual new links, for pages whose past is hidden."""

    n_pages: int
    skill: dict[str, float | None]  # by what the model knows of them; None: all expectations, or all counts, are equal


@dataclass
class HarvestResult:
    """All parts of the experiment."""

    n_pages: int
    n_cycles: int
    discoverable: int
    budgets: tuple[int, ...]
    ablations: list[Ablation] = field(default_factory=list)
    calibrated: list[CalibrationResult] = field(default_factory=list)
    hidden: HiddenPagesResult | None = None


def harvest(
    world: World,
    budgets: Sequence[int],
    parts: Sequence[str] = PARTS,
    orders: int = 3,
    workers: int | None = None,
    on_step: Callable[[str], None] = lambda what: None,
    on_cycles: OnCycles = lambda done, total: None,
) -> HarvestResult:
    """Run the parts of the experiment; the ablation is averaged over a number of `orders` of the pages, which decide ties."""
    result = HarvestResult(world.n_pages, world.n_cycles, world.discoverable, tuple(budgets))
    if "ablation" in parts:
        on_step("what each part contributes")
        result.ablations = list(_ablated(world, budgets, orders, workers, on_cycles))
    if "calibration" in parts:
        for budget in budgets:
            on_step(f"whether expectations hold, {budget:,} pages per cycle")
            result.calibrated.append(calibrate(world, budget))
    if "hidden" in parts:
        on_step("pages without a past")
        result.hidden = hide(world)
    return result


# -- ablation ----------------------------------------------------------------------------------------------------------


def _ablated(
    world: World, budgets: Sequence[int], orders: int, workers: int | None, on_cycles: OnCycles
) -> Iterator[Ablation]:
    left_out = {name: own for name, own in ABLATIONS.items() if world.related is not None or name != "related pages"}
    policies = [ExpectedHarvest(**own) for own in left_out.values()]
    coverage = np.zeros((len(policies), len(budgets), orders))
    early = np.zeros_like(coverage)
    for order in range(orders):
        shuffled = world if order == 0 else world.reordered(np.random.default_rng(order).permutation(world.n_pages))
        runs = replay_many(shuffled, policies, [Budget(n) for n in budgets], workers=workers, on_cycles=on_cycles)
        for i, run in enumerate(runs):
            place, summary = (i % len(policies), i // len(policies), order), summarise(run)
            coverage[place], early[place] = summary.coverage or 0.0, summary.within_4_cycles or 0.0
    for name, covered, soon in zip(left_out, coverage, early, strict=True):
        change = covered - coverage[0]
        error = change.std(axis=1, ddof=1) / np.sqrt(orders) if orders > 1 else [None] * len(budgets)
        yield Ablation(name, tuple(covered.mean(axis=1).tolist()), tuple(soon.mean(axis=1).tolist()), tuple(error))


# -- calibration -------------------------------------------------------------------------------------------------------


def calibrate(world: World, budget: int, policy: ExpectedHarvest | None = None) -> CalibrationResult:
    """Replay the policy and compare every expectation and interval with what the visit brought.

    A link that several pages of a plan show counts for the first of them, as it does in what the plan expects.
    """
    policy = policy or ExpectedHarvest()
    crawler = Crawler(world, policy.needs)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    expected, brought = [], []
    inside: dict[float, list[Flags]] = {level: [] for level in LEVELS}
    stated: dict[float, list[Floats]] = {level: [] for level in LEVELS}
    for cycle in range(1, world.n_cycles + 1):
        meet_pages(crawler, policy)
        choice = policy.choose(crawler.pages, known_only(Budget(budget), crawler), moment(int(world.time[cycle])))
        assert choice.expected is not None
        assert choice.spread is not None
        intervals = {level: choice.spread(np.arange(len(choice)), level) for level in LEVELS}
        seen = crawler.visit(choice.page)
        counts = credited(choice.page, choice.score, seen.visits)
        policy.observe(seen.visits)
        expected.append(choice.expected)
        brought.append(counts)
        for level, interval in intervals.items():
            inside[level].append((counts >= interval.low) & (counts <= interval.high))
            stated[level].append(interval.stated)
    expectations, counts = np.concatenate(expected), np.concatenate(brought)
    levels = {
        level: (float(np.concatenate(stated[level]).mean()), float(np.concatenate(inside[level]).mean()))
        for level in LEVELS
    }
    return CalibrationResult(
        budget, float(expectations.sum()), int(counts.sum()), levels, list(_binned(expectations, counts))
    )


def _binned(expected: Floats, counts: Ints) -> Iterator[tuple[float, float, int]]:
    edges = np.append(0.0, np.geomspace(0.03, 300.0, 9))
    bin_of = np.digitize(expected, edges)
    for number in np.unique(bin_of):
        here = bin_of == number
        yield float(expected[here].mean()), float(counts[here].mean()), int(here.sum())


# -- pages without a past ----------------------------------------------------------------------------------------------


def hide(world: World, share: float = HIDDEN, ahead: float = 0.25, seed: int = 0) -> HiddenPagesResult:
    """Learn from the first three quarters of the cycles, without some pages, and predict the new links of these afterwards.

    The hidden pages are seen once, at the end of what is learnt from: their size is known and nothing else. Skill is the rank
    correlation between the expected and the actual number of new links on them in the last quarter.
    """
    end = max(1, int(world.n_cycles * (1 - ahead)))
    random = np.random.default_rng(seed)
    here = world.of_cycle(end)
    seen = world.row[here][world.shows[here] >= 0].astype(np.int64)
    hidden = np.zeros(world.n_pages, np.bool_)
    hidden[random.permutation(seen)[: round(share * len(seen))]] = True
    actual = _later_links(world, end)[hidden]

    def skill(parts: Parts, is_hidden: Flags) -> float | None:
        rate = _learnt(world, end, is_hidden, parts).rate()
        rate = rate[hidden[: len(rate)]]
        may_differ = len(actual) > 2 and np.ptp(rate) > 0 and np.ptp(actual) > 0
        return float(stats.spearmanr(rate, actual).statistic) if may_differ else None

    no_page = np.zeros(world.n_pages, np.bool_)
    looks = {name: parts for name, parts in LOOKS.items() if world.related is not None or name != "and related pages"}
    skills = {"their own past": skill(Parts(), no_page)} | {name: skill(parts, hidden) for name, parts in looks.items()}
    return HiddenPagesResult(int(hidden.sum()), skills)


def _learnt(world: World, end: int, hidden: Flags, parts: Parts) -> StockModel:
    """The model after watching all pages but the hidden ones until a cycle, and in that one all."""
    crawler = Crawler(world, frozenset())
    model = StockModel(crawler.pages, parts)
    model.observe(_without(crawler.first.visits, hidden))
    for cycle in range(1, end + 1):
        if crawler.meet_pages() < len(crawler.pages):
            model.extend(crawler.pages)
        visits = crawler.visit_recorded().visits
        model.observe(visits if cycle == end else _without(visits, hidden))
    model.refit()
    return model


def _without(visits: Visits, hidden: Flags) -> Visits:
    """The visits of all other pages."""
    kept = ~hidden[visits.page]
    names = ("at", "page", "age_hours", "is_first", "answered", "gone", "failed", "changed", "n_new_since", "updated")
    rows: dict[str, Any] = {name: getattr(visits, name)[kept] for name in names}
    return replace(visits, **rows, shown=_some(visits.shown, kept), new=_some(visits.new, kept))


def _some(lists: LinkLists, kept: Flags) -> LinkLists:
    return LinkLists(np.append(0, np.cumsum(lists.sizes[kept])), lists.links[np.repeat(kept, lists.sizes)])


def _later_links(world: World, end: int) -> Ints:
    """For each page, how many of the links that no page showed up to a cycle it shows after it."""
    pairs = [np.empty(0, np.int64)]
    for cycle in range(end + 1, len(world.time)):
        here = world.of_cycle(cycle)
        shows = world.shows[here]
        page, shows = world.row[here][shows >= 0].astype(np.int64), shows[shows >= 0]
        sizes = world.sets.sizes[shows]
        begin = np.repeat(world.sets.start[shows], sizes)
        link = world.sets.links[begin + np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)].astype(
            np.int64
        )
        owner = np.repeat(page, sizes)
        new = world.first_shown[link] > end
        pairs.append(np.unique(np.concatenate([pairs.pop(), owner[new] * len(world.link) + link[new]])))
    return np.bincount(pairs[0] // len(world.link), minlength=world.n_pages)
