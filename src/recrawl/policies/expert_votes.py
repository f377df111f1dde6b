"""How the experts of a page vote: with the paper's weights, or with those of a forecaster that knows who was right before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Floats, Ints8
from recrawl.core.growing import grown
from recrawl.core.suggest import unknown
from recrawl.models.experts.selection import Experts
from recrawl.models.experts.votes import VOTES, compiled_votes


@dataclass
class PastVotes:
    """What the page itself and its experts said in the last cycles: 1, -1, or 0 where they said nothing.

    The paper's vote needs none of it, and then nothing is kept.
    """

    said: Ints8  # [page, the page itself and its experts, cycle]
    by_accuracy: bool

    @classmethod
    def for_panel(cls, n_pages: int, k: int, n: int, vote: str) -> PastVotes:
        """Nothing was said yet; `n` cycles will be remembered."""
        if vote not in VOTES:
            raise ValueError(unknown("vote", vote, VOTES))
        by_accuracy = vote == "accuracy" and k > 0
        return cls(np.zeros((n_pages, 1 + k if by_accuracy else 0, n), np.int8), by_accuracy)

    def copy(self) -> PastVotes:
        """The same, to change."""
        return PastVotes(self.said.copy(), self.by_accuracy)

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self.said = grown(self.said, n_pages)

    def shift(self, n: int) -> None:
        """Some cycles go by."""
        n = min(n, self.said.shape[2])
        self.said[:, :, : self.said.shape[2] - n] = self.said[:, :, n:].copy()
        self.said[:, :, self.said.shape[2] - n :] = 0

    def of_new(self, before: Experts | None, after: Experts) -> PastVotes:
        """What those said that are experts still, and the pages themselves."""
        if not self.by_accuracy or before is None:
            return self
        said = np.zeros_like(self.said)
        said[:, 0] = self.said[:, 0]
        n = min(len(before.neighbour), len(after.neighbour))
        for place in range(before.neighbour.shape[1]):
            old = before.neighbour[:n, place]
            page, at = np.nonzero((after.neighbour[:n] == old[:, None]) & (old[:, None] >= 0))
            said[page, 1 + at] = self.said[page, 1 + place]
        return PastVotes(said, True)

    def result(self, page: int, opinions: Floats, weight: Floats, change: Ints8, sigma: int) -> Floats:
        """The result of the vote for the last cycles, between -1 and 1; opinions [page itself and experts, cycle] count by sign.

        `change` has the page's cycles up to now.
        """
        n_voters, n = opinions.shape
        signs = np.where(opinions > 0, 1, -1)
        total = float(weight.sum())
        if not self.by_accuracy:
            shares: Floats = (signs * weight[:, None]).sum(axis=0) / (total if total > 0 else 1.0)
            return shares
        said = self.said[page]
        said[:n_voters, said.shape[1] - n :] = signs
        label = np.full(said.shape[1], -1, np.int8)
        label[:-sigma] = change[len(change) - said.shape[1] + sigma :]
        weights = np.repeat(weight[:, None], said.shape[1], axis=1)
        votes: Floats = compiled_votes(said[:n_voters], weights, label, sigma)
        return np.nan_to_num(votes[-n:], nan=-1.0)

    def right(self, page: int, change: Ints8, sigma: int) -> Floats:
        """How often the page itself and each expert was right, of what it said and is known; NaN where nothing is."""
        said = self.said[page]
        label = change[len(change) - said.shape[1] + sigma :]
        came_true = np.where(label == 1, 1, -1)
        judged = (said[:, : len(label)] != 0) & (label >= 0)
        n = judged.sum(axis=1)
        hits = (judged & (said[:, : len(label)] == came_true)).sum(axis=1)
        shares: Floats = np.divide(hits, n, out=np.full(len(n), np.nan), where=n > 0)
        return shares
