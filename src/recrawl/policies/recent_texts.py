"""The texts that pages showed lately, as word counts."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.ids import places_of


class RecentTexts:
    """Texts with numbers of their own, in the order in which they appear.

    They are kept in the blocks in which they came. So nothing is copied when more come, and of what is kept beside a history
    only the new blocks are written.
    """

    def __init__(self) -> None:
        self.blocks: list[sparse.csr_matrix] = []
        self.text: Ints = np.empty(0, np.int64)  # their numbers in the stream of visits
        self.n_words = 0

    def __len__(self) -> int:
        return len(self.text)

    def add(self, text: Ints32, words: sparse.csr_matrix) -> Ints:
        """The numbers of some texts, given as rows of word counts."""
        fresh = np.setdiff1d(text, self.text)
        if len(fresh):
            more = words[fresh]
            more.sort_indices()
            self.blocks.append(more)
            self.text = np.append(self.text, fresh)
            self.n_words = max(self.n_words, words.shape[1])
        return places_of(self.text, text.astype(np.int64))

    def rows(self, some: Ints) -> sparse.csr_matrix:
        """The counts of some texts, by their numbers in ascending order."""
        parts = [block[some[low:high] - start] for block, start, low, high in self._runs(some)]
        data, indices = (
            np.concatenate([getattr(part, name) for part in parts]) if parts else np.empty(0, kind)
            for name, kind in (("data", np.float32), ("indices", np.int32))
        )
        lengths = np.concatenate([np.diff(part.indptr) for part in parts]) if parts else np.empty(0, np.int64)
        start = np.append(0, np.cumsum(lengths, dtype=np.int64))
        return sparse.csr_matrix((data, indices, start), shape=(len(some), self.n_words))

    def keep(self, some: Ints) -> Ints32:
        """Forget all but some of them; their new numbers, by the old ones, and -1 at the end."""
        kept = np.unique(some[some >= 0])
        number = np.full(len(self.text) + 1, -1, np.int32)
        number[kept] = np.arange(len(kept))
        self.blocks = [block[kept[low:high] - start] for block, start, low, high in self._runs(kept)]
        self.text = self.text[kept]
        return number

    def shown(self, text: Ints32) -> tuple[Ints32, sparse.csr_matrix]:
        """What pages showed [page, time] with the counts of these texts alone, and the row of each; -1: not known."""
        needed, row = np.unique(text, return_inverse=True)
        n_unknown = int((needed < 0).sum())
        return (row.reshape(text.shape) - n_unknown).astype(np.int32), self.rows(needed[n_unknown:].astype(np.int64))

    def _runs(self, some: Ints) -> list[tuple[sparse.csr_matrix, int, int, int]]:
        """For every block with any of some ascending texts: the block, its first number, and where its texts are among them."""
        start = np.append(0, np.cumsum([block.shape[0] for block in self.blocks], dtype=np.int64))
        cut = np.searchsorted(some, start)
        runs = zip(self.blocks, start[:-1].tolist(), cut[:-1].tolist(), cut[1:].tolist(), strict=True)
        return [run for run in runs if run[2] < run[3]]
