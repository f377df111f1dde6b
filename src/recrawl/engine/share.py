"""A bucket's share of a plan: what its pages would take part with, cut where the budget of all buckets ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.engine.part import Key, PartOfWhole
from recrawl.plan.assembly import chosen_pages, expected_gains, waiting
from recrawl.plan.plan import PlanRequest
from recrawl.plan.planner import budget_of
from recrawl.plan.situation import Situation
from recrawl.policies.budget import Cause
from recrawl.policies.choice import Choice

_CAPPED = (Cause.HOST_CAP, Cause.SITE_CAP)


def share_of_plan(situation: Situation, request: PlanRequest, now: datetime, whole: PartOfWhole) -> dict[str, Any]:
    """The pages of this bucket that are in the plan, those that would be with twice the budget, and why others are not."""
    pages, budget = situation.pages, budget_of(situation, request, now)
    twice = min(2 * budget.pages + 1, pages.n_of_whole)
    ranked = situation.chooser(request).choose(pages, replace(budget, pages=twice, per_cycle=budget.pages), now)
    assert ranked.turn is not None
    assert ranked.cause is not None
    keys = tuple(key[ranked.page] for key in ranked.turn)
    n, cut = whole.n_first("budget", budget.pages, keys, ranked.page)
    n_ranked, _ = whole.n_first("twice the budget", twice, keys, ranked.page)
    choice, ranked = ranked.first(n), ranked.first(n_ranked)
    cause = ranked.cause
    assert cause is not None
    cause = cause.copy()
    cause[cause == Cause.PICKED] = Cause.BELOW_CUT
    cause[choice.page] = Cause.PICKED
    capped = np.flatnonzero(np.isin(cause, _CAPPED))
    cause[capped[_is_behind(ranked, capped, cut, whole)]] = (
        Cause.BELOW_CUT
    )  # the budget was spent before it was their turn
    n_starving, n_may = waiting(situation, request, budget, choice, now)
    return {
        "chosen": chosen_pages(situation, request, now, choice),
        "ranked": expected_gains(situation, request, now, ranked),
        "keys": whole.keys(keys, ranked.page),
        "causes": np.bincount(cause, minlength=len(Cause)),
        "n_starving": n_starving,
        "n_may": n_may,
        "cycle_hours": situation.cycle_hours,
        "memo": dict(choice.memo),
    }


def _is_behind(choice: Choice, page: Ints, cut: Key | None, whole: PartOfWhole) -> Flags:
    """Whether it would have been the turn of some pages only after the last one that was picked."""
    if cut is None or not len(page):
        return np.zeros(len(page), np.bool_)
    assert choice.turn is not None
    keys = whole.keys(tuple(key[page] for key in choice.turn), page)
    return np.array([key > cut for key in keys], np.bool_)
