"""History + policy + budget → plan. Read this first: everything else serves it."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl import urls
from recrawl.change import ANY, Notion, notion_or_any
from recrawl.discovery import Crawler
from recrawl.hashing import hash64
from recrawl.history import History
from recrawl.plan.changes import ChangeExpectation
from recrawl.plan.goals import ForBoth, Goal
from recrawl.plan.hinted import Hinted, Hints, hints_of
from recrawl.policies.base import (
    LEVEL,
    NEVER,
    Budget,
    Cause,
    Choice,
    Flags,
    Floats,
    Ints,
    Name,
    Pages,
    Policy,
    Spread,
    microseconds,
)
from recrawl.policies.expectation import Expectation
from recrawl.world import record

Step = Callable[[str], None]
Learning = Expectation | ChangeExpectation | Policy
MAX_RELATED = (
    100_000  #: pages; of more the related ones are not looked at, since finding them takes too long for a plan
)
N_RELATED = 30  #: related pages of each page, as in the papers, for policies that look around


@dataclass(frozen=True)
class Request:
    """What a plan is asked for."""

    pages: int  # the budget
    per_host: int | None = None
    per_site: int | None = None
    min_gap: timedelta = timedelta(0)  # no page sooner after its last visit
    exclude: Sequence[str] = ()  # shell patterns of URLs that must not be fetched
    threshold: float | None = None  # only pages at least so likely to have what the goal asks for
    retry_gone: bool = False  # also pages that answered 404 or 410
    every: str = "crawl"  # what a cycle is, when learning from the past
    max_wait: timedelta = timedelta(days=30)  # a page that waits longer starves
    goal: Goal = "links"  # what counts as gain
    forbidden: Ints | None = None  # ids of pages that must not be fetched
    use_hints: bool = True  # of sitemaps and feeds, where they have proven true
    change: str = ANY  # what counts as a change (`recrawl.change`): any difference in text or links, or some notion


@dataclass(frozen=True)
class Plan:
    """The pages to fetch next: one entry a page, the best first; and what was left out and why."""

    id: str
    made_at: datetime
    policy: str
    request: Request
    page: Ints  # ids in the history
    url: pa.Array
    host: list[str]
    expected: Floats  # new links
    low: Floats  # ends of the 80% interval; NaN: the policy has none
    high: Floats
    probability: Floats  # of at least one
    probability_changed: Floats  # that the page no longer is as it was when last seen; NaN: not known
    last_visit_at: NDArray[np.datetime64]  # NaT: never
    last_change_at: NDArray[np.datetime64]  # when new links were last seen on it; NaT: never
    due_at: NDArray[np.datetime64]  # never before `made_at`
    reason: list[str]
    n_known: int = 0
    left_out: dict[str, int] = field(default_factory=dict)  # cause → pages
    #: New links expected of the policy's first 1, 2, … pages, up to one more than twice the budget.
    links_by_budget: Floats = field(default_factory=lambda: np.empty(0))
    changed_by_budget: Floats = field(default_factory=lambda: np.empty(0))  # changed pages expected among them
    n_starving: int = 0
    budget_needed: int = 0  # pages a cycle, so that none waits longer than `request.max_wait`

    def __len__(self) -> int:
        return len(self.page)

    @property
    def gain(self) -> Floats:
        """What a visit of each page brings: new links, or the probability of change if the goal is content alone."""
        return self.probability_changed if self.request.goal == "content" else self.expected

    @property
    def yield_by_budget(self) -> Floats:
        """The same of the policy's first 1, 2, … pages together."""
        return self.changed_by_budget if self.request.goal == "content" else self.links_by_budget

    @property
    def gain_at_cut(self) -> float:
        """The same of one page more."""
        return self.at_cut(self.yield_by_budget)

    def at_cut(self, curve: Floats) -> float:
        """What one page more would add to one of the curves."""
        n = len(self)
        return float(curve[n] - curve[n - 1]) if 0 < n < len(curve) else 0.0


class Expecting(Protocol):
    """Says what a visit of each page would bring, and what its visits have brought."""

    size: Floats  # links on the page when it was last seen; NaN: not known
    n_links: Floats  # new links found on it so far
    n_hits: Floats  # times that any were found

    def expect(self, pages: Pages, now: datetime, of: Ints | None = None) -> tuple[Floats, Floats]:
        """New links expected of a visit now, and the probability of at least one; for some pages, or for all."""


@dataclass
class Situation:
    """All that the past tells at this moment: the ground on which a plan is made and explained."""

    page: Ints  # ids in the history
    url: pa.Array
    pages: Pages
    policy: Policy
    expectation: Expecting
    last_change: Ints  # microseconds; NEVER
    cycle_hours: float  # usual time between two cycles
    changes: ChangeExpectation | None = None  # None: nobody looked whether pages changed
    hints: Hints | None = None  # what sitemaps and feeds say; None: nobody read any

    def chooser(self, request: Request) -> Policy:
        """Who chooses: the policy, after hinted pages where hints have proven true."""
        if not self.hints or not request.use_hints:
            return self.policy
        return Hinted(self.policy, self.hints, self.expectation, request.goal)

    def changed(self, now: datetime, of: Ints | None = None) -> Floats:
        """The probability that the copy kept of each page is out of date; NaN where nobody knows."""
        if self.changes is None:
            return np.full(len(self.pages) if of is None else len(of), np.nan)
        changed = self.changes.expect(now, of)
        if self.hints is None:
            return changed
        hinted = self.hints.probability if of is None else self.hints.probability[of]
        return np.where(np.isnan(hinted), changed, hinted)

    def foretold(self, request: Request, now: datetime) -> tuple[Floats, Floats]:
        """New links expected of a visit of each page and the probability of any, whatever may stand in its way.

        As the policy says where it does, else as the page's past does.
        """
        expected, likely = self.expectation.expect(self.pages, now)
        choice = self.chooser(request).choose(self.pages, Budget(len(self.pages), per_cycle=request.pages), now)
        expected[choice.page] = expected_of(choice, expected[choice.page], self.expectation.size)
        likely[choice.page] = _either(_spread(choice).any, likely[choice.page])
        return expected, likely

    def promise(self, request: Request, now: datetime) -> Floats:
        """How likely each page has what the goal asks for: new links, a change, or either."""
        if request.goal == "content":
            return self.changed(now)
        links = self.foretold(request, now)[1]
        return links if request.goal == "links" else np.fmax(links, self.changed(now))


def survey(
    history: History,
    policy: Policy,
    every: str = "crawl",
    on_step: Step = lambda what: None,
    notion: Notion | None = None,
) -> Situation:
    """Let the policy look at everything that was ever visited, cycle by cycle, as if it had made those visits itself.

    `notion`: what counts as a change of a page; any difference if None.
    """
    on_step("the past, cycle by cycle")
    is_few = len(history.slim_timeline.pages) <= MAX_RELATED
    n_related = N_RELATED if policy.needs_related and is_few else 0
    world = record(history, every, everything=True, n_related=n_related, with_words=policy.needs_words, notion=notion)
    # Cycles end later than most of their visits: what a page waited counts from its own.
    timeline = history.slim_timeline
    last_visit = timeline.at[timeline.page_start[1:] - 1][np.searchsorted(timeline.pages, world.page)]
    hints = hints_of(history, world.page, world.host, last_visit)
    del timeline
    history.release()  # as large as all that follows: the world has what is needed of it
    crawler = Crawler(world, policy.needs_updates)
    expectation, changes = Expectation(world.n_pages), ChangeExpectation(world.n_pages)
    last_change = np.full(world.n_pages, NEVER)
    policy.start(crawler.pages)
    learning: tuple[Learning, ...] = (expectation, changes, policy)
    if isinstance(policy, ForBoth):  # it learns just this by itself
        expectation, changes, learning = policy.links_, policy.changes_, (policy,)
    with ThreadPoolExecutor(len(learning)) as threads:  # none knows of the others
        for cycle, found in enumerate(crawler.recorded()):
            visits = found.visits
            list(threads.map(lambda one, visits=visits: one.observe(visits), learning))
            last_change[visits.page[visits.n_new_since > 0]] = world.time[cycle]
    crawler.pages.last_visit[:] = last_visit
    changes.seen_at(last_visit)
    policy.seen_at(last_visit)
    last_change = np.minimum(last_change, last_visit)
    gaps = np.diff(world.time) / 3.6e9
    usual = float(np.median(gaps)) if len(gaps) else 24.0
    return Situation(world.page, world.url, crawler.pages, policy, expectation, last_change, usual, changes, hints)


def make(
    history: History,
    policy: Policy,
    request: Request,
    now: datetime | None = None,
    on_step: Step = lambda what: None,
) -> Plan:
    """The plan for now (or for another moment): what the policy chooses, within budget and caps."""
    if now is not None:
        history = history.as_of(now)
    situation = survey(history, policy, request.every, on_step, notion_or_any(request.change))
    return chosen(situation, request, now or history.until or datetime.now(UTC))


def budget_of(situation: Situation, request: Request, now: datetime) -> Budget:
    """The budget, with the pages that must not be fetched barred."""
    pages = situation.pages
    barred = np.zeros(len(pages), np.int8)
    if request.exclude:
        barred[matching(situation.url, request.exclude)] = Cause.EXCLUDED
    if request.forbidden is not None:
        barred[np.isin(situation.page, request.forbidden) & (barred == 0)] = Cause.EXCLUDED
    if not request.retry_gone:
        barred[pages.is_gone & (barred == 0)] = Cause.GONE
    soon = pages.age_hours(now) < request.min_gap / timedelta(hours=1)
    barred[soon & (barred == 0)] = Cause.TOO_SOON
    if request.threshold is not None:
        unlikely = situation.promise(request, now) < request.threshold
        barred[unlikely & (barred == 0)] = Cause.UNPROMISING
    return Budget(request.pages, request.per_host, request.per_site, barred)


def chosen(situation: Situation, request: Request, now: datetime) -> Plan:
    """The policy's choice as a plan."""
    pages = situation.pages
    budget = budget_of(situation, request, now)
    # With twice the budget first: what the policy remembers of its last choice must be the real one.
    policy = situation.chooser(request)
    twice = min(2 * budget.pages + 1, len(pages))
    ranked = policy.choose(pages, replace(budget, pages=twice, per_cycle=budget.pages), now)
    choice = policy.choose(pages, budget, now)
    (expected, probability), size = situation.expectation.expect(pages, now, choice.page), situation.expectation.size
    links_of_ranked, likely_of_ranked = situation.expectation.expect(pages, now, ranked.page)
    spread = _spread(choice)
    likely, likely_of_ranked = _either(spread.any, probability), _either(_spread(ranked).any, likely_of_ranked)
    may = np.ones(len(pages), np.bool_) if budget.barred is None else budget.barred == 0
    left = _left_out(choice, len(pages))
    last = pages.last_visit[choice.page]
    waits = pages.age_hours(now)
    starving = may & (waits > request.max_wait / timedelta(hours=1))
    starving[choice.page] = False
    url = situation.url.take(pa.array(choice.page))
    return Plan(
        id=_name(now, situation.policy.name, situation.page[choice.page], expected_of(choice, expected, size)),
        made_at=now,
        policy=situation.policy.name,
        request=request,
        page=situation.page[choice.page],
        url=url,
        host=[urls.host(text) for text in url.to_pylist()],
        expected=expected_of(choice, expected, size),
        low=spread.low,
        high=spread.high,
        probability=likely,
        probability_changed=changed_at_least(situation.changed(now, choice.page), likely, request),
        last_visit_at=_times(last),
        last_change_at=_times(situation.last_change[choice.page]),
        due_at=_times(np.maximum(microseconds(now), np.where(last == NEVER, NEVER, last + _us(request.min_gap)))),
        reason=reasons(situation, choice),
        n_known=len(pages),
        left_out=left,
        links_by_budget=np.cumsum(expected_of(ranked, links_of_ranked, size)),
        changed_by_budget=np.cumsum(changed_at_least(situation.changed(now, ranked.page), likely_of_ranked, request)),
        n_starving=int(starving.sum()),
        budget_needed=int(np.ceil(may.sum() * situation.cycle_hours / (request.max_wait / timedelta(hours=1)))),
    )


def reasons(situation: Situation, choice: Choice, which: Sequence[int] | None = None) -> list[str]:
    """Why each page was picked, in words, or some of them; for a page that nobody knows how to judge yet, just that."""
    new = situation.pages.is_new[choice.page]
    never = situation.pages.n_visits[choice.page] == 0
    words = []

    def called(of: int) -> Name:
        """How other pages are called in a sentence about one: by their path, if they are of the same host."""
        host = situation.pages.host

        def name(page: int) -> str:
            url = str(situation.url[page].as_py())
            return "/" + url.split("/", 3)[-1] if host[page] == host[of] else url

        return name

    for i in range(len(choice)) if which is None else which:
        if never[i] and not situation.policy.judges_new:
            words.append("never visited yet")
        elif new[i] and not situation.policy.judges_new:
            words.append("visited once: a second visit tells how it changes")
        else:
            words.append(choice.why(i, called(int(choice.page[i]))))
    return words


def matching(url: pa.Array, patterns: Sequence[str]) -> Flags:
    """Which URLs fit one of the shell patterns (``*``, ``?``, ``[…]``); a pattern without any of these is a prefix."""
    found = np.zeros(len(url), np.bool_)
    for pattern in patterns:
        plain = pattern if any(sign in pattern for sign in "*?[") else pattern + "*"
        # Atomic groups save Python time; the engine used here does not know them and does not need them.
        expression = fnmatch.translate(plain).replace(r"\Z", r"\z").replace("(?>", "(?:")
        found |= np.asarray(pa.compute.match_substring_regex(url, f"^{expression}"))
    return found


def expected_of(choice: Choice, otherwise: Floats, size: Floats) -> Floats:
    """New links expected of the pages picked: what the policy says, else what their past says.

    None above the links that the page has, unless the policy also says how sure it is: then it knows what a page may show.
    """
    if choice.expected is None:
        return otherwise
    own = np.where(np.isnan(choice.expected), otherwise, choice.expected)
    return own if choice.spread is not None else np.fmin(own, size[choice.page])


def _spread(choice: Choice) -> Spread:
    """How sure the policy is, NaN where it does not say."""
    if choice.spread is not None:
        return choice.spread(np.arange(len(choice)), LEVEL)
    return Spread(*(np.full(len(choice), np.nan) for _ in range(4)))


def _left_out(choice: Choice, n_pages: int) -> dict[str, int]:
    if choice.cause is None:
        return {"below cut": n_pages - len(choice)}
    counts = np.bincount(choice.cause, minlength=len(Cause))
    return {cause.name.lower().replace("_", " "): int(counts[cause]) for cause in Cause if cause and counts[cause]}


def _either(told: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(told), otherwise, told)


def changed_at_least(changed: Floats, any_link: Floats, request: Request) -> Floats:
    """A page with a new link has changed, if any difference counts; NaN where nobody looked whether pages changed.

    Where changes are what a plan is made for, they stay as it was made by.
    """
    return np.maximum(changed, any_link) if request.change == ANY and request.goal == "links" else changed


def _name(now: datetime, policy: str, page: Ints, expected: Floats) -> str:
    digest = hash64(f"{now.isoformat()} {policy} ".encode() + page.tobytes() + expected.tobytes()) & 0xFFFFFFFF
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest:08x}"


def _times(us: Ints) -> NDArray[np.datetime64]:
    return np.where(us == NEVER, np.datetime64("NaT", "us"), us.view("datetime64[us]"))


def _us(gap: timedelta) -> int:
    return gap // timedelta(microseconds=1)
