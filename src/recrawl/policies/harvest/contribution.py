"""What a batch of visits, or a part of one, adds to what all pages share: dispersion, rhythm, calibration, how pages come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.exact_sums import ExactSums
from recrawl.core.whole import Columns, added, counted, sorted_rows
from recrawl.policies.harvest.answering import N_RETURNS
from recrawl.policies.harvest.rhythm import HOURS


def _no_rows() -> Columns:
    none = np.empty(0)
    return {"id": none.astype(np.int64)} | dict.fromkeys(("raw", "brought", "unseen", "answers", "shape"), none)


@dataclass(kw_only=True)
class Contribution:
    """What one part adds; whoever has the sums of all parts learns from them (`settled`)."""

    is_judged: bool = False  # predictions were compared with what the visits brought
    judged: Columns = field(default_factory=_no_rows)  # a sample of these visits
    found: Ints = field(default_factory=lambda: np.zeros(2, np.int64))  # links, on pages seen before and on others
    due: ExactSums = field(default_factory=lambda: ExactSums(2))  # as predicted
    squares: ExactSums = field(default_factory=ExactSums)  # of the counts' deviations
    n_squares: int = 0
    arrivals: ExactSums = field(
        default_factory=lambda: ExactSums(2 * HOURS)
    )  # by hour of the week, and as many as were due
    returns: ExactSums = field(default_factory=lambda: ExactSums(2 * N_RETURNS))  # hours away, and pages that came back
    answers: Ints = field(default_factory=lambda: np.zeros(4, np.int64))  # see `Answering.settle`
    n_pairs: int = 0  # of siblings, by now


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What all parts of a batch add up to."""

    is_judged: bool
    judged: Columns
    found: Ints
    due: Floats
    squares: float
    n_squares: int
    arrivals: Floats
    returns: Floats
    answers: Ints
    n_pairs: int


def settled(parts: Sequence[Contribution]) -> Settled:
    """What the contributions of all parts add up to."""
    return Settled(
        is_judged=parts[0].is_judged,
        judged=sorted_rows([part.judged for part in parts]),
        found=counted([part.found for part in parts]),
        due=added([part.due for part in parts]),
        squares=float(added([part.squares for part in parts])[0]),
        n_squares=counted([part.n_squares for part in parts]),
        arrivals=added([part.arrivals for part in parts]),
        returns=added([part.returns for part in parts]),
        answers=counted([part.answers for part in parts]),
        n_pairs=counted([part.n_pairs for part in parts]),
    )
