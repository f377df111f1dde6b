"""Why a page is, or is not, in the plan: the numbers behind, what it overlaps with, and what would have to change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.times import NEVER, moment
from recrawl.plan.plan import PlanRequest
from recrawl.plan.situation import Situation
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice
from recrawl.web.urls import page_id

#: Why a page was left out → what would have to change.
_WAYS_OUT = {
    Cause.HOST_CAP: "its host has its share already: raise --per-host",
    Cause.SITE_CAP: "its site has its share already: raise --per-site",
    Cause.TOO_SOON: "it was visited less than --min-gap ago",
    Cause.GONE: "it answered 404 or 410: use --retry-gone",
    Cause.EXCLUDED: "it matches a pattern of --exclude",
    Cause.NOT_WATCHED: "it is not watched: recrawl watch URL watches it again, or use --unwatched",
    Cause.UNIMPORTANT: "its importance is 0, and pages that matter use up the budget: raise --budget, or state another importance",
    Cause.UNPROMISING: "its probability is below the threshold: lower the threshold, or let the page wait",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanExplanation:
    """Why one page is, or is not, in a plan, with the numbers behind it."""

    url: str
    policy: str
    is_picked: bool
    rank: int | None  # in the plan; of a page that is not in it, in a choice without limit
    n_known: int
    cause: str
    reason: str  # why it would be picked
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
    importance: float  # how much the page matters, as its visits state it; 1 if they do not
    weighed: dict[str, float]  # numbers that its score was multiplied with, as far as the policy has any
    overlaps: list[tuple[str, float]]  # pages of its site that showed the same new links, and how far
    passed_over_for: str | None  # the picked page that it overlaps with
    experts: list[
        dict[str, Any]
    ]  # pages that it is judged by, where the policy asks other pages: url, weight, right, is_lost

    def __repr__(self) -> str:
        place = f"rank {self.rank:,} of {self.n_known:,}" if self.rank else f"no rank among {self.n_known:,}"
        return f"PlanExplanation({self.url}: {'in' if self.is_picked else 'not in'} the plan by {self.policy}, {place})"


def explain(situation: Situation, request: PlanRequest, budget: Budget, url: str, now: datetime) -> PlanExplanation:
    """Why this page is, or is not, among the pages that the request would get."""
    pages, page = situation.pages, _page(situation, url)
    policy = situation.chooser(request)
    choice = policy.choose(pages, budget, now)
    thought = policy.explain(pages, page, now, budget, situation.page_names(page))
    cause = Cause(int(choice.cause[page])) if choice.cause is not None else Cause.BELOW_CUT
    is_picked = bool((choice.page == page).any())
    expected, probability = _expected(situation, request, budget, page, now)
    changes, past = situation.changes, situation.expectation
    (changed,) = situation.changed_given_links(request, now, np.array([page]), np.array([probability]))
    waited = float(pages.age_hours(now)[page])
    rival = int(choice.overlaps[page]) if choice.overlaps is not None and cause is Cause.OVERLAP else -1
    return PlanExplanation(
        url=url,
        policy=situation.policy.name,
        is_picked=is_picked,
        rank=_rank(situation, request, choice, page, now) if is_picked else thought.rank,
        n_known=len(pages),
        cause=Cause.PICKED.words if is_picked else cause.words,
        reason=request.in_focus(thought.reason),
        what_would_change="" if is_picked else request.in_focus(_way_out(cause, thought.rank, len(choice))),
        expected=expected,
        probability=probability,
        probability_changed=None if changes is None else float(changed),
        n_visits=int(pages.n_visits[page]),
        n_answers=int(pages.n_answers[page]),
        n_failures=int(pages.n_failures[page]),
        n_new_links=int(past.n_links[page]),
        n_hits=int(past.n_hits[page]),
        n_compared=0 if changes is None else int(changes.n_compared[page]),
        n_changed=0 if changes is None else int(changes.n_changed[page]),
        last_visit_at=_moment(pages.last_visit[page]),
        last_change_at=_moment(situation.last_change[page]),
        waited_hours=waited if np.isfinite(waited) else None,
        importance=1.0 if pages.importance is None else float(pages.importance[page]),
        weighed=dict(thought.factors),
        overlaps=[(situation.url[other].as_py(), share) for other, share in thought.overlaps if share > 0],
        passed_over_for=situation.url[rival].as_py() if rival >= 0 else None,
        experts=[
            {
                "url": situation.url[each.page].as_py(),
                "weight": each.weight,
                "right": each.right,
                "is_lost": each.is_lost,
            }
            for each in thought.experts
        ],
    )


def _rank(situation: Situation, request: PlanRequest, choice: Choice, page: int, now: datetime) -> int:
    """The rank of a page in the plan."""
    order = situation.order(situation.worth(choice, request, now))
    return int(np.flatnonzero(choice.page[order] == page)[0]) + 1


def _page(situation: Situation, url: str) -> int:
    return int(np.flatnonzero(situation.page == page_id(url))[0])


def _expected(
    situation: Situation, request: PlanRequest, budget: Budget, page: int, now: datetime
) -> tuple[float, float]:
    """New links expected of the page and the probability of any, as the plan itself would show them."""
    ranked = situation.everything(request, budget, now)
    places = np.flatnonzero(ranked.page == page)
    expected, likely = situation.expected_of_all(request, now) if not len(places) else situation.expected(ranked, now)
    at = int(places[0]) if len(places) else page
    return float(expected[at]), float(likely[at])


def _moment(us: Any) -> datetime | None:
    return None if us == NEVER else moment(us)


def _way_out(cause: Cause, rank: int | None, n_chosen: int) -> str:
    if cause is Cause.OVERLAP:
        return "it shows the same new links as a page that was picked; it would be picked if that page were not"
    if cause in _WAYS_OUT:
        return _WAYS_OUT[cause]
    if rank is None:
        return "the policy would not pick it with any budget"
    return f"a budget of {rank:,} pages would reach it ({n_chosen:,} were picked)"
