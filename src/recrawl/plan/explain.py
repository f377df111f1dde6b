"""Why a page is, or is not, in the plan: the numbers behind, what it overlaps with, and what would have to change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from recrawl.errors import RecrawlError
from recrawl.plan.make import Request, Situation, budget_of, changed_at_least, expected_of, reasons
from recrawl.policies.base import LEVEL, NEVER, Cause, Choice, moment
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.policies.pairs import PairTable
from recrawl.urls import page_id

#: What stands in the way → what would have to change.
_WAYS_OUT = {
    Cause.HOST_CAP: "its host has its share already: raise --per-host",
    Cause.SITE_CAP: "its site has its share already: raise --per-site",
    Cause.TOO_SOON: "it was visited less than --min-gap ago",
    Cause.GONE: "it answered 404 or 410: use --retry-gone",
    Cause.EXCLUDED: "it fits a pattern of --exclude",
    Cause.UNPROMISING: "it is less likely than the threshold to have what is looked for: lower that, or let it wait",
}


@dataclass(frozen=True)
class Explanation:
    """What a plan thinks of one page."""

    url: str
    policy: str
    is_picked: bool
    rank: int | None  # in a plan without limit
    n_known: int
    cause: str
    reason: str  # what speaks for it
    what_would_change: str
    expected: float
    probability: float
    probability_changed: float | None  # since it was last seen; None: not known
    n_visits: int
    n_answers: int
    n_failures: int  # in a row
    n_new_links: int  # ever found on it
    n_hits: int  # visits that found any
    n_compared: int  # visits that could be compared with an earlier copy
    n_changed: int  # of these, with another text or other links
    last_visit_at: datetime | None
    last_change_at: datetime | None
    waited_hours: float | None
    weighed: dict[str, float]  # by what its worth was multiplied, as far as the policy tells
    overlaps: list[tuple[str, float]]  # pages of its site that showed the same new links, and how far
    passed_over_for: str | None  # the picked page that it overlaps with


def explain(situation: Situation, request: Request, url: str, now: datetime) -> Explanation:
    """Why this page is, or is not, among the pages that the request would get."""
    pages = situation.pages
    at = np.flatnonzero(situation.page == page_id(url))
    if not len(at):
        raise RecrawlError(
            f"{url} was never visited, so no plan can hold it. Import a visit of it first; for what a never visited page promises "
            "see recrawl predict --url"
        )
    page = int(at[0])
    budget = budget_of(situation, request, now)
    policy = situation.chooser(request)
    choice = policy.choose(pages, budget, now)
    everything = policy.choose(pages, replace(budget, pages=len(pages), per_cycle=budget.pages), now)
    rank = np.flatnonzero(everything.page == page)
    cause = Cause(int(choice.cause[page])) if choice.cause is not None else Cause.BELOW_CUT
    picked = page in set(choice.page.tolist())
    (expected, probability), changes = _foretold(situation, request, everything, page, now), situation.changes
    (changed,) = changed_at_least(situation.changed(now, np.array([page])), np.array([probability]), request)
    waited = float(pages.age_hours(now)[page])
    rival = int(choice.overlaps[page]) if choice.overlaps is not None and cause is Cause.OVERLAP else -1
    past = situation.expectation
    return Explanation(
        url=url,
        policy=situation.policy.name,
        is_picked=picked,
        rank=int(rank[0]) + 1 if len(rank) else None,
        n_known=len(pages),
        cause="picked" if picked else cause.name.lower().replace("_", " "),
        reason=reasons(situation, everything, [int(rank[0])])[0] if len(rank) else "",
        what_would_change="" if picked else _way_out(cause, int(rank[0]) + 1 if len(rank) else None, len(choice)),
        expected=float(expected),
        probability=float(probability),
        probability_changed=None if changes is None else float(changed),
        n_visits=int(pages.n_visits[page]),
        n_answers=int(pages.n_answers[page]),
        n_failures=int(pages.n_failures[page]),
        n_new_links=int(past.n_links[page]),
        n_hits=int(past.n_hits[page]),
        n_compared=0 if changes is None else int(changes.n_compared[page]),
        n_changed=0 if changes is None else int(changes.n_changed[page]),
        last_visit_at=None if pages.last_visit[page] == NEVER else moment(pages.last_visit[page]),
        last_change_at=None if situation.last_change[page] == NEVER else moment(situation.last_change[page]),
        waited_hours=waited if np.isfinite(waited) else None,
        weighed=_weighed(everything, int(rank[0])) if len(rank) else {},
        overlaps=_overlaps(situation, page),
        passed_over_for=situation.url[rival].as_py() if rival >= 0 else None,
    )


def _foretold(situation: Situation, request: Request, ranked: Choice, page: int, now: datetime) -> tuple[float, float]:
    """New links expected of the page and the probability of any, as the plan itself would show them."""
    at = np.flatnonzero(ranked.page == page)
    if not len(at):  # something stands in its way
        expected, likely = situation.foretold(request, now)
        return expected[page], likely[page]
    by_past, likely = situation.expectation.expect(situation.pages, now, ranked.page)
    expected = expected_of(ranked, by_past, situation.expectation.size)[at[0]]
    told = ranked.spread(at, LEVEL).any[0] if ranked.spread is not None else np.nan
    return expected, likely[at[0]] if np.isnan(told) else told


def _weighed(ranked: Choice, place: int) -> dict[str, float]:
    """Why the page was ranked above or below others that expect as much."""
    told = {name: float(ranked.detail[name][place]) for name in ("urgency", "safety") if name in ranked.detail}
    return {name: value for name, value in told.items() if np.isfinite(value)}


def _way_out(cause: Cause, rank: int | None, n_chosen: int) -> str:
    if cause is Cause.OVERLAP:
        return "it shows the same new links as a page that was picked; it comes in when that one does not"
    if cause in _WAYS_OUT:
        return _WAYS_OUT[cause]
    if rank is None:
        return "the policy would not pick it with any budget"
    return f"a budget of {rank:,} pages would reach it ({n_chosen:,} were picked)"


def _overlaps(situation: Situation, page: int, top: int = 5) -> list[tuple[str, float]]:
    policy, table = situation.policy, getattr(situation.policy, "overlap_", None)
    pairs = table.of(page)[:top] if isinstance(table, PairTable) else []
    if isinstance(policy, ExpectedHarvest):
        pairs = policy.showers(page, top)
    return [(situation.url[other].as_py(), share) for other, share in pairs if share > 0]
