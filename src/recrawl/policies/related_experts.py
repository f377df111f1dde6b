"""Keep copies fresh by predicting change with related pages as experts.

References: Radinsky and Bennett (2013), "Predicting content change on the web", sections 5.3, 6 and 8.3.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from recrawl.policies.budget import Budget
from recrawl.policies.choice import PageName, by_number
from recrawl.policies.experts import SingleExpert, require
from recrawl.policies.explanation import Explanation
from recrawl.world.pages import Need, Pages

if TYPE_CHECKING:
    from recrawl.policies.expert_panel import ExpertSelection


class RelatedExperts(SingleExpert):
    """Visit the pages that have probably changed, by the words and changes of related pages and their own.

    Good where pages about the same events change together. Each page has `k` experts, chosen by `experts` when `n_train` cycles
    were seen and again every `reselect` cycles. ``cross-correlation``: pages whose words come and go together with its own, one
    page after the other; kept up to date with every cycle, so no old text is read again. ``dtw``: the same with time stretched,
    over the last `n_train` cycles. ``content``: pages with similar words. ``graph``: pages one link away. ``random``: any, to
    compare with.

    Each expert learns, from what it shows itself and from how it relates to the page, when the page changes; their votes decide.
    `vote` is what a vote counts by: ``similarity``, as in the paper, or ``accuracy``, how often the expert was right so far, which
    pays where few of the experts know. An expert that disappears (it is gone, or failed three times in a row) has no vote until
    it is back. All else is as in `SingleExpert`.

    >>> RelatedExperts(k=5, experts="dtw")
    RelatedExperts(experts='dtw', k=5)

    References: 3D of Radinsky and Bennett (2013), sections 5.3, 6, 8.3 and 9.2.
    """

    name: ClassVar[str] = "related-experts"
    paper: ClassVar[str | None] = "3D"

    def __init__(
        self,
        n_train: int = 50,
        k: int = 20,
        experts: str = "cross-correlation",
        vote: str = "similarity",
        pick: str = "coin",
        target: str = "change",
        window: int = 1,
        ahead: int = 1,
        retrain: int = 1,
        reselect: int = 50,
        c: float = 1.0,
        word_scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n_train,
            pick,
            target,
            window,
            ahead,
            retrain=retrain,
            c=c,
            word_scale=word_scale,
            seed=seed,
        )
        require(k >= 1, f"k is {k}: a page needs an expert; without any it is single-expert")
        methods = selection_methods()
        require(experts in methods, f"experts is {experts!r}: they can be chosen by {', '.join(methods)}")
        votes = vote_kinds()
        require(vote in votes, f"vote is {vote!r}: votes can count by {' or '.join(votes)}")
        require(reselect >= 1, f"reselect is {reselect}: it is a number of cycles")
        self.k, self.experts, self.vote, self.reselect = k, experts, vote, reselect
        self.needs = frozenset({Need.WORDS, Need.GRAPH} if experts == "graph" else {Need.WORDS})

    def _selection(self) -> ExpertSelection:
        from recrawl.policies.expert_panel import ExpertSelection

        return ExpertSelection(k=self.k, method=self.experts, reselect=self.reselect, vote=self.vote, seed=self.seed)

    def _basis(self) -> str:
        return f"(by its own words and changes and those of up to {self.k} related pages)"

    def explain(
        self, pages: Pages, page: int, now: datetime, budget: Budget | None = None, name: PageName = by_number
    ) -> Explanation:
        """What the policy thinks of one page, and who its experts are."""
        thought = super().explain(pages, page, now, budget, name)
        return replace(thought, experts=self.panel_.decided().named_experts(page))


def selection_methods() -> tuple[str, ...]:
    """How experts can be chosen.

    >>> selection_methods()[0]
    'cross-correlation'
    """
    from recrawl.models.experts.selection import PAPER_METHODS

    return PAPER_METHODS


def vote_kinds() -> tuple[str, ...]:
    """What the votes of experts can count by."""
    from recrawl.models.experts.votes import VOTES

    return VOTES
