"""Cross-correlation that is updated with every round and needs no old visits.

The correlation over all rounds so far follows from the sums of both series, of their squares and of their products at every delay:
(Σ x[i] y[i - d]) - mean y · (Σ x without the first d) - mean x · (Σ y without the last d) + (N - d) mean x mean y. So of the old
values only the sums of the first few are kept, and the last few themselves.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 9.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import sparse

from recrawl.core.arrays import Flags, Floats, Ints32
from recrawl.insight.series.correlation import delays
from recrawl.models.experts.series import Words, read_words
from recrawl.world.contents import Contents

MAX_DELAY = 14


class OnlineCorrelation:
    """The best correlation over some delays of many pairs of series, fed one value of every series at a time.

    Pair i compares series x[i] with what series y[i] was d rounds before; a series may be in many pairs. The values are taken
    relative to the first one of their series: then a constant series has sums of exactly 0, and little is lost to rounding.

    >>> pairs = OnlineCorrelation(n_series=2, x=[0], y=[1], max_delay=2)
    >>> for values in ([0.0, 4.0], [0.0, 0.0], [4.0, 0.0], [0.0, 0.0]):
    ...     pairs.add(values)
    >>> pairs.value()
    array([0.83333333])
    """

    def __init__(
        self, n_series: int, x: ArrayLike, y: ArrayLike, max_delay: int = MAX_DELAY, first_delay: int = 1
    ) -> None:
        delays(1, first_delay, max_delay)
        self.first_delay, self.max_delay = first_delay, max_delay
        self.n_rounds = 0
        self._x, self._y = np.asarray(x, np.int32), np.asarray(y, np.int32)
        if len(self._x) != len(self._y):
            raise ValueError(f"{len(self._x)} series x, but {len(self._y)} series y; there must be one for each")
        self._first = np.zeros(n_series)
        self._sum, self._squares = np.zeros(n_series), np.zeros(n_series)
        self._head = np.zeros((n_series, max_delay + 1))  # [series, d]: the sum of the first d values
        self._latest = np.zeros((n_series, max_delay + 1))  # that of round t is in column t % (max_delay + 1)
        self._products = np.zeros((len(self._x), max_delay + 1))  # [pair, d]

    def add(self, values: ArrayLike) -> None:
        """The values of all series in the next round."""
        new = np.array(values, np.float64)
        if new.shape != self._sum.shape:
            raise ValueError(f"{new.size} values for {self._sum.size} series; there must be one for each")
        if not self.n_rounds:
            self._first = new.copy()
        new -= self._first
        self._sum += new
        self._squares += new**2
        self._head[:, self.n_rounds + 1 :] += new[:, None]
        self._latest[:, self.n_rounds % (self.max_delay + 1)] = new
        _multiply(self._x, self._y, self._latest, self.n_rounds, self.first_delay, self._products)
        self.n_rounds += 1

    def value(self) -> Floats:
        """The best correlation of every pair over the rounds so far, as `correlation` has it for all of them; 0 before any."""
        first, last = delays(self.n_rounds, self.first_delay, self.max_delay)
        if last < first:
            return np.zeros(len(self._x))
        newest_first = self._latest[:, (self.n_rounds - 1 - np.arange(self.max_delay + 1)) % (self.max_delay + 1)]
        tail = np.cumsum(newest_first, axis=1) - newest_first  # [series, d]: the sum of the last d values
        deviation = np.sqrt(np.maximum(self._squares - self._sum**2 / self.n_rounds, 0.0))
        best: Floats = _best_of_sums(
            self._x, self._y, self._sum, deviation, self._head, tail, self._products, self.n_rounds, first, last
        )
        return best


class OnlineSimilarity:
    """Temporal content similarity by cross-correlation for given pairs of pages, fed with what they show, round by round.

    The words and weights are those of one moment, for example of the window in which the experts were chosen. Fed with the rounds
    of that window, it equals `cross_correlation` with the same `max_delay`. `followed` says for the words of every pair's page, one
    pair after the other, whether they count; by default all do.
    """

    def __init__(
        self,
        words: Words,
        page: ArrayLike,
        expert: ArrayLike,
        max_delay: int = MAX_DELAY,
        first_delay: int = 1,
        followed: Flags | None = None,
    ) -> None:
        page, expert = np.asarray(page, np.int64), np.asarray(expert, np.int64)
        row, pair = words.rows_of(page)
        if followed is not None:
            row, pair = row[followed], pair[followed]
        self._pair = pair.astype(np.int32)
        self._weight, self._n_pairs = words.weight[row], len(page)
        n, word = len(row), words.word[row]
        n_words = int(word.max(initial=0)) + 1
        # A series is a word on a page; most are in many pairs.
        keys, number = np.unique(
            np.append(page[self._pair], expert[self._pair]) * n_words + np.tile(word, 2), return_inverse=True
        )
        self._page, self._start = np.unique(keys // n_words, return_index=True)
        self._start = np.append(self._start, len(keys))
        self._word = keys % n_words
        self.correlation = OnlineCorrelation(len(keys), number[:n], number[n:], max_delay, first_delay)

    def add(self, counts: sparse.csr_matrix, text: Ints32) -> None:
        """What the pages show in the next round: for each page a row of `counts` (texts × terms), -1 if it is not known."""
        factor = np.ones(counts.shape[1])  # a correlation is the same with and without idf
        values = read_words(counts, text.reshape(-1, 1), self._page, self._start, self._word, factor)
        self.correlation.add(values[:, 0])

    def value(self) -> Floats:
        """The similarity of every pair over the rounds so far."""
        return np.bincount(self._pair, self._weight * self.correlation.value(), self._n_pairs).astype(np.float64)


def online_correlation(
    contents: Contents, words: Words, page: ArrayLike, expert: ArrayLike, max_delay: int = MAX_DELAY
) -> Floats:
    """The similarity of pairs of pages over all rounds of the contents, fed to an `OnlineSimilarity` one after the other."""
    similarity = OnlineSimilarity(words, page, expert, max_delay)
    for text in contents.text.T:
        similarity.add(contents.counts, np.ascontiguousarray(text))
    return similarity.value()


@njit(cache=True)
def _multiply(x: Any, y: Any, latest: Any, now: Any, first: Any, products: Any) -> None:
    size = latest.shape[1]
    for pair in range(len(x)):
        value, earlier = latest[x[pair], now % size], latest[y[pair]]
        if value != 0.0:
            for d in range(first, min(now, size - 1) + 1):
                products[pair, d] += value * earlier[(now - d) % size]


@njit(cache=True)
def _best_of_sums(
    x: Any, y: Any, total: Any, deviation: Any, head: Any, tail: Any, products: Any, n: Any, first: Any, last: Any
) -> Any:
    correlation = np.zeros(len(x))
    for pair in range(len(x)):
        a, b = x[pair], y[pair]
        scale = deviation[a] * deviation[b]
        if not scale > 0.0:
            continue
        mean_x, mean_y = total[a] / n, total[b] / n
        best = -np.inf
        for d in range(first, last + 1):
            later, sooner = total[a] - head[a, d], total[b] - tail[b, d]
            product = products[pair, d] - mean_y * later - mean_x * sooner + (n - d) * mean_x * mean_y
            best = max(best, product)
        correlation[pair] = best / scale
    return correlation
