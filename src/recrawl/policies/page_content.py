"""What pages say, as a few numbers per page that a linear model can weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.policies.window import Window
from recrawl.world.pages import Visits

if TYPE_CHECKING:
    from scipy import sparse

N_SCALARS = 4  #: size, magnitude of the last change, whether there was one, frequency of changes
_MIX = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio in 64 bits: spreads numbers that follow each other


class PageContent:
    """The content of every page as it was last seen, kept up to date visit by visit.

    Columns: the logarithm of the number of words; how much the word distribution of the last copy differs from that of the copy
    before it (Euclidean norm); whether the last visit showed a change; the share of visits within the window that did; and the word
    distribution itself, hashed into `dimensions` columns with random signs, which keeps inner products in expectation. All are 0
    for pages whose words are not known.

    References: Radinsky and Bennett (2013), section 4.2.1, features 1 to 3 and 5 with l = 1, which Pham, Santos and Freire (2018)
    name in section 6; Weinberger et al. (2009), "Feature hashing for large scale multitask learning".
    """

    def __init__(self, n_pages: int, dimensions: int, window: int) -> None:
        self.dimensions = dimensions
        self.size, self.magnitude, self.changed = np.zeros(n_pages), np.zeros(n_pages), np.zeros(n_pages)
        self.is_known = np.zeros(n_pages, np.bool_)
        self.words = np.zeros((n_pages, dimensions), np.float32)
        self.changes = Window(n_pages, window)

    def observe(self, visits: Visits) -> None:
        """Remember what pages said, and how that differs from what they said before."""
        compared = visits.changed >= 0
        self.changed[visits.page[compared]] = visits.changed[compared]
        self.changes.add(visits.page[compared], visits.changed[compared].astype(np.int64))
        if visits.text is None or visits.words is None:
            return
        read = visits.text >= 0
        page, counts = visits.page[read], visits.words[visits.text[read]]
        total = np.asarray(counts.sum(axis=1), np.float64).ravel()
        hashed = hashed_words(counts, total, self.dimensions)
        moved = np.linalg.norm(hashed - self.words[page], axis=1)
        self.magnitude[page] = np.where(self.is_known[page], moved, 0.0)
        self.size[page], self.words[page], self.is_known[page] = np.log1p(total), hashed, True

    def columns(self, page: Ints | slice = slice(None)) -> Floats:  # a slice cannot be changed
        """The columns of some pages, or of all."""
        scalars = (self.size, self.magnitude, self.changed, self.changes.mean)
        return np.column_stack([*(values[page] for values in scalars), self.words[page]])


def hashed_words(counts: sparse.csr_matrix, total: Floats, dimensions: int) -> Floats:
    """Word distributions [text, column]: every word adds its share, with a sign of its own, to one column of its own.

    >>> from scipy import sparse
    >>> hashed_words(sparse.csr_matrix([[2, 0, 2], [0, 0, 0]]), np.array([4.0, 0.0]), 4)
    array([[-0.5, -0.5, 0. , 0. ],
           [ 0. , 0. , 0. , 0. ]])
    """
    mixed = (counts.indices.astype(np.uint64) + np.uint64(1)) * _MIX
    column = ((mixed >> np.uint64(32)) % np.uint64(dimensions)).astype(np.int64)
    sign = np.where(mixed >> np.uint64(63), -1.0, 1.0)
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    share = sign * counts.data / total[row]
    hashed = np.bincount(row * dimensions + column, share, counts.shape[0] * dimensions).astype(np.float64)
    return hashed.reshape(counts.shape[0], dimensions)
