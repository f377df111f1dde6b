"""Numbers for the texts and words that a stream of visits shows, in the order in which they appear, so that they never change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.ids import places_of
from recrawl.history import History
from recrawl.history.stored_words import all_words


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass
class StreamTexts:
    """The texts and words shown so far. Their numbers do not depend on how the stream is cut into segments."""

    digest: Ints = field(default_factory=_none)  # of the words of each text, as in the table texts
    term: Ints = field(default_factory=_none)  # ids of the words: the columns of counts

    def read(self, history: History, digest: Ints) -> tuple[Ints32, sparse.csr_matrix]:
        """The number of the text at each of some visits, in the order of time (0: no words, -1 in the result), and word counts.

        The counts have a row for every text so far; those of texts that are not among these are empty.
        """
        shown, first, place = np.unique(digest, return_index=True, return_inverse=True)
        number = places_of(self.digest, shown)
        is_new = (number < 0) & (shown != 0)
        order = np.flatnonzero(is_new)[np.argsort(first[is_new])]
        number[order] = len(self.digest) + np.arange(len(order))
        self.digest = np.concatenate([self.digest, shown[order]])
        is_text = number >= 0
        by_number = np.flatnonzero(is_text)[np.argsort(number[is_text])]
        words = all_words(history, shown[by_number])
        return number[place].astype(np.int32), self._placed(words.counts, words.vocabulary, number[by_number])

    def _placed(self, counts: sparse.csr_matrix, ids: Ints, row: Ints) -> sparse.csr_matrix:
        """Counts with the columns that their words have here, in the rows of their texts (ascending)."""
        column = places_of(self.term, ids)
        appeared, first = np.unique(
            counts.indices, return_index=True
        )  # words by the text that has them first, then by id
        appeared = appeared[np.argsort(first)]
        fresh = appeared[column[appeared] < 0]
        column[fresh] = len(self.term) + np.arange(len(fresh))
        self.term = np.concatenate([self.term, ids[fresh]])
        length = np.zeros(len(self.digest), np.int64)
        length[row] = np.diff(counts.indptr)
        placed = sparse.csr_matrix(
            (counts.data, column[counts.indices], np.append(0, np.cumsum(length))),
            shape=(len(self.digest), len(self.term)),
        )
        placed.sort_indices()
        return placed
