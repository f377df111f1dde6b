"""What a crawler saw of pages, cycle by cycle: the columns that `expert_panel` learns from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import sparse

from recrawl.core.arrays import Ints8, Ints32
from recrawl.core.growing import grown
from recrawl.world.contents import Contents


@dataclass
class Columns:
    """What was seen [page, cycle], the last cycle last."""

    text: Ints32  # number of the text; -1: not known yet
    change: Ints8  # 1: had changed; 0: had not; -1: not known

    @classmethod
    def empty(cls, n_pages: int, n: int) -> Columns:
        """Nothing was seen yet."""
        return cls(np.full((n_pages, n), -1, np.int32), np.full((n_pages, n), -1, np.int8))

    def extend_to(self, n_pages: int) -> None:
        """More pages are known, of which nothing was seen yet."""
        self.text, self.change = grown(self.text, n_pages, -1), grown(self.change, n_pages, -1)

    def last(self, n: int) -> Columns:
        """Copies of the last `n`."""
        return Columns(self.text[:, -n:].copy(), self.change[:, -n:].copy())

    def then(self, other: Columns) -> Columns:
        """These and, after them, others."""
        return Columns(np.hstack([self.text, other.text]), np.hstack([self.change, other.change]))


@dataclass(frozen=True)
class ShownTexts:
    """What pages showed: the texts of some columns, and the counts of these alone."""

    text: Ints32
    counts: sparse.csr_matrix


def is_foregone(label: Ints8) -> bool:
    """Whether nothing can be learnt from labels but one class, or nothing."""
    known = label[label >= 0]
    return not len(known) or bool(known.min() == known.max())


def foregone(label: Ints8) -> float:
    """What any learner decides then."""
    return 1.0 if (label == 1).any() else -1.0


def contents_from(text: Ints32, counts: sparse.csr_matrix) -> Contents:
    """What was seen, in the form from which experts are chosen."""
    n_pages, n_rounds = text.shape
    nothing = np.zeros(text.shape, np.int64)
    return Contents(
        page=np.arange(n_pages),
        url=pa.nulls(n_pages, pa.string()),
        rounds=np.arange(n_rounds).astype("datetime64[us]"),
        text=text,
        seen=text >= 0,
        is_baseline=nothing.astype(np.bool_),
        digest=nothing,
        counts=counts,
        vocabulary=np.arange(counts.shape[1]),
    )
