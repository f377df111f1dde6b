"""What came with the data of a page's place in the web, over the rounds of a panel: used instead of what links would tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats32

NETWORK = ("n_inlinks_internal", "n_inlinks_external", "trustrank")  #: what can be given


@dataclass(frozen=True)
class GivenNetwork:
    """Given inlinks and ranks. All matrices are [page, round].

    >>> trust = np.array([[3.0, np.nan], [np.nan, np.nan]], np.float32)
    >>> given = GivenNetwork({"trustrank": trust}, is_given=np.array([[True, True]] * 2), stand_ins=np.zeros((2, 2), np.bool_))
    >>> given.instead_of(np.ones((2, 2), np.float32), "trustrank").tolist()
    [[3.0, 1.0], [nan, 1.0]]
    """

    values: dict[str, Floats32]  # by the names in `NETWORK`; NaN where not stated
    is_given: Flags  # the data state something of the page in that round
    stand_ins: Flags  # its links are made up: nothing can be worked out from them

    def instead_of(self, computed: Floats32, name: str) -> Floats32:
        """A quantity as given; computed for pages of which nothing is stated, and in rounds in which it is given for none.

        Given and computed numbers are on different scales, so a page of which the data say nothing else is not known.
        """
        if name not in self.values:
            return np.where(self.stand_ins, np.nan, computed).astype(np.float32)
        stated = self.values[name]
        is_known_in_round = np.asarray((~np.isnan(stated)).any(axis=0))
        counts = self.is_given & (is_known_in_round | self.stand_ins)
        return np.where(counts, stated, computed).astype(np.float32)

    def has(self, name: str) -> bool:
        """Whether the quantity is given for any page."""
        return name in self.values and not bool(np.isnan(self.values[name]).all())

    def each(self, change: Callable[[NDArray[Any], Any], NDArray[Any]]) -> GivenNetwork:
        """The same with every matrix changed; the second argument of `change` is what fills new cells."""
        values = {name: change(matrix, np.nan) for name, matrix in self.values.items()}
        return GivenNetwork(values, change(self.is_given, False), change(self.stand_ins, False))
