"""A score per page → the best pages within a budget, none that overlaps with one already picked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice, PageName, Sentence
from recrawl.world.pages import Pages

if TYPE_CHECKING:
    from recrawl.policies.pairs import PairTable

#: Sentences for pages that were never visited, and for those visited once.
UNVISITED, VISITED_ONCE = "never visited yet", "visited once: a second visit shows how it changes"


def take(
    score: Floats,
    pages: Pages,
    budget: Budget,
    *,
    reason: str = "",
    detail: dict[str, NDArray[Any]] | None = None,
    expected: Floats | None = None,
    first: Flags | None = None,
    may: Flags | None = None,
    ties: Floats | None = None,
    overlap: PairTable | None = None,
    above: float = 0.7,
    fill: bool = False,
    judges_new: bool = False,
    weighs: bool = False,
) -> Choice:
    """Pick by descending score, ties by `ties` (the greatest first) and then in the order of the pages.

    `first` marks pages that come before all others; `may` the only ones that are worth a visit at all. A page that overlaps by more
    than `above` with one already picked is passed over (Pham et al., Algorithm 2); with `fill` such pages still use up what would
    be left of the budget. `reason` is a sentence with {fields} from `detail`; pages visited at most once have sentences of their
    own, unless the policy `judges_new`. `detail` and `expected` hold one entry for every page. `weighs`: the score is what a visit
    is worth, so it is multiplied by how much the page matters (`Pages.importance`).

    >>> pages = Pages.unseen(site=np.array([0, 0, 1]), host=np.array([0, 0, 1]))
    >>> take(np.array([5.0, 9.0, 7.0]), pages, Budget(2, per_host=1)).page
    array([1, 2])
    """
    from recrawl.policies.picking import caps_of, pick_in_order

    n, importance = len(pages), pages.importance if weighs else None
    score = pages.weighed(score) if weighs else score
    cause = np.full(n, Cause.BELOW_CUT, np.int8)
    is_free = np.ones(n, np.bool_)
    if may is not None:
        cause[~may], is_free = Cause.UNPROMISING, may.copy()
    if budget.barred is not None:
        barred = budget.barred > 0
        cause[barred] = budget.barred[barred]
        is_free &= ~barred
    free = np.flatnonzero(is_free)
    order = free[_descending(score, first, ties, free)]
    chosen, overlaps = pick_in_order(
        order, min(budget.pages, n), caps_of(pages, budget), cause, overlap=overlap, above=above, fill=fill
    )
    turn = [-np.where(np.isnan(score), -np.inf, score)]
    turn += [] if ties is None else [-ties]
    turn = turn if first is None else [~first, *turn]
    sentence = Sentence(reason, {name: values[chosen] for name, values in (detail or {}).items()})
    return Choice(
        page=chosen,
        score=score[chosen],
        reason=sentence if judges_new else UnlessNew(sentence, pages.n_visits[chosen]),
        expected=None if expected is None else expected[chosen],
        cause=cause,
        overlaps=overlaps,
        factors={} if importance is None else {"importance": importance[chosen]},
        is_trial=None if first is None else (first & pages.is_new)[chosen],
        turn=tuple(turn),
    )


@dataclass(frozen=True)
class UnlessNew:
    """A sentence, but for pages that were visited at most once: no policy can judge those by their past.

    >>> from recrawl.policies.choice import by_number
    >>> reason = UnlessNew(Sentence("waited {hours:.0f} h", {"hours": np.array([3.0, 9.0])}), np.array([1, 5]))
    >>> reason(0, by_number), reason(1, by_number)
    ('visited once: a second visit shows how it changes', 'waited 9 h')
    """

    sentence: Sentence
    n_visits: Ints  # of each page picked

    def __call__(self, i: int, name: PageName) -> str:
        """The sentence for the i-th page."""
        if self.n_visits[i] >= 2:
            return self.sentence(i, name)
        return VISITED_ONCE if self.n_visits[i] else UNVISITED


def _descending(score: Floats, first: Flags | None, ties: Floats | None, free: Ints) -> Ints:
    keys = [-np.where(np.isnan(score[free]), -np.inf, score[free])]
    if ties is not None:
        keys.insert(0, -ties[free])
    if first is not None:
        keys.append(~first[free])
    return np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
