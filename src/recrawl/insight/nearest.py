"""The nearest texts by cosine: all compared with all, or each only with those in the nearest cells of similar texts.

The true neighbours of a sample decide how many cells to search; the recall of the result is measured on another sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import faiss
import numba
import numpy as np
from threadpoolctl import threadpool_limits

from recrawl.core.array_hashing import hash64_slices
from recrawl.core.arrays import Floats32, Ints, Ints32
from recrawl.core.workers import in_threads

Progress = Callable[[float], None]  # called with the share that is done

_TIE = 1e-5  # cosines that differ by no more are equally near: float32 cannot distinguish them
_SAMPLE = 1_000  # pages whose true neighbours decide how far to search
_ROWS, _COLUMNS = 1_024, 4_096  # of one product of matrices: large enough for speed, small enough for the cache
_TEXTS_PER_JOB = 16_384


def ignore(share: float) -> None:
    """Default callback: do nothing."""


@dataclass(frozen=True)
class Nearest:
    """The nearest so far, most similar first; number -1 and cosine 0 where there are fewer."""

    number: Ints32  # [text, k]
    cosine: Floats32

    @classmethod
    def none(cls, n: int, k: int, least: float = 0.0) -> Nearest:
        """No neighbours yet; only those above `least` will be accepted."""
        return cls(np.full((n, k), -1, np.int32), np.full((n, k), least, np.float32))

    def part(self, start: int, end: int) -> Nearest:
        """A view of some rows."""
        return Nearest(self.number[start:end], self.cosine[start:end])


@dataclass(frozen=True)
class Identical:
    """Which pages have the same vector, to the bit: these are searched for only once."""

    text: Ints32  # [page] number of its text
    first: Ints  # [text] the first page that has it; texts are numbered in this order
    start: Ints  # [text + 1]
    page: Ints32  # pages by text, ascending: those of text i are page[start[i]:start[i + 1]]

    def expand(self, texts: Nearest) -> Nearest:
        """From texts to pages: the page's own twins first, then all pages of the most similar text, and so on."""
        pages = Nearest.none(len(self.text), texts.number.shape[1])
        _expand(self.text, self.start, self.page, texts.number, texts.cosine, pages.number, pages.cosine)
        return pages


@dataclass(frozen=True)
class Cells:
    """Texts sorted by the nearest centre."""

    center: Floats32  # [cell, dimension]
    start: Ints  # [cell + 1]
    number: Ints32  # text numbers by cell: those of cell c are number[start[c]:start[c + 1]]
    unit: Floats32  # their vectors

    def of_text(self) -> Ints:
        """The cell of every text."""
        cell = np.empty(len(self.number), np.int64)
        cell[self.number] = np.repeat(np.arange(len(self.center)), np.diff(self.start))
        return cell


def identical(unit: Floats32) -> Identical:
    """Which rows are the same."""
    row_bytes = np.arange(len(unit) + 1, dtype=np.int64) * (unit.shape[1] * unit.itemsize)
    digests = hash64_slices(unit.reshape(-1).view(np.uint8), row_bytes)
    _, first, text = np.unique(digests, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty(len(first), np.int32)
    number[by_first] = np.arange(len(first), dtype=np.int32)
    of_page = number[text]
    start = np.r_[0, np.cumsum(np.bincount(of_page, minlength=len(first)))].astype(np.int64)
    return Identical(of_page, first[by_first], start, np.argsort(of_page, kind="stable").astype(np.int32))


def approximate(
    cells: Cells,
    n_cells: int,
    same: Identical,
    unit: Floats32,
    *,
    k: int,
    min_recall: float,
    seed: int,
    on_progress: Progress,
) -> tuple[Nearest, float]:
    """The neighbours in the nearest cells, and their recall; if that is too low after all, those in twice as many cells."""
    while True:
        nearest = same.expand(_within_cells(cells, n_cells, k, on_progress))
        recall = _recall(nearest, unit, seed)
        if recall >= min_recall or n_cells == len(cells.center):
            return nearest, recall
        n_cells = min(2 * n_cells, len(cells.center))


def among_all(wanted: Ints32, texts: Floats32, k: int, on_progress: Progress = ignore) -> Nearest:
    """The true neighbours of some texts among all."""
    nearest, number = Nearest.none(len(wanted), k), np.arange(len(texts), dtype=np.int32)

    def job(start: int, end: int) -> None:
        own, part = wanted[start:end], nearest.part(start, end)
        _compare(texts[own], own, np.arange(len(own)), texts, number, part)

    _in_parallel(job, len(wanted), _ROWS, on_progress)
    return nearest


def make_cells(texts: Floats32, seed: int) -> Cells:
    """About 2 √n cells: then finding the nearest cells costs as much as searching a few of them."""
    n_cells = max(1, min(len(texts), int(2 * np.sqrt(len(texts)))))
    training = faiss.Kmeans(
        texts.shape[1],
        n_cells,
        niter=5,
        spherical=True,
        seed=seed % 2**31,
        min_points_per_centroid=1,
        max_points_per_centroid=50,
    )
    training.train(texts)
    center = np.asarray(training.centroids, np.float32)
    cell = np.empty(len(texts), np.int64)

    def job(start: int, end: int) -> None:
        cell[start:end] = _nearest_cells(texts[start:end], center, 1)[:, 0]

    _in_parallel(job, len(texts), _TEXTS_PER_JOB)
    number = np.argsort(cell, kind="stable").astype(np.int32)
    start = np.r_[0, np.cumsum(np.bincount(cell, minlength=n_cells))].astype(np.int64)
    return Cells(center, start, number, texts[number])


def _nearest_cells(unit: Floats32, center: Floats32, n: int) -> Ints32:
    nearest, number = Nearest.none(len(unit), n, least=-2.0), np.arange(len(center), dtype=np.int32)
    own = np.full(len(unit), -1, np.int32)  # none of the centres is one of the texts
    _compare(unit, own, np.arange(len(unit)), center, number, nearest)
    return nearest.number


def cells_needed(cells: Cells, texts: Floats32, k: int, min_recall: float, seed: int) -> tuple[int, float]:
    """How many cells to search, and the share of all texts that is in them.

    A true neighbour is found if its cell is searched, so the recall for any number of cells follows from the true neighbours of a
    sample. Two standard errors are added, since it is only a sample.
    """
    sample = _sample(len(texts), seed)
    truth = among_all(sample, texts, k).number
    rank = np.argsort(np.argsort(-(texts[sample] @ cells.center.T), axis=1), axis=1)
    recall = np.zeros(rank.shape)  # [text, number of cells - 1]
    at, column = np.nonzero(truth >= 0)
    np.add.at(recall, (at, rank[at, cells.of_text()[truth[at, column]]]), 1)
    recall = np.cumsum(recall, axis=1)[recall.any(axis=1)]
    if not len(recall):
        return 1, 0.0
    recall /= recall[:, -1:]
    sure = recall.mean(axis=0) - 2 * recall.std(axis=0) / np.sqrt(len(recall))
    n = int(np.argmax(np.r_[sure, np.inf] >= min(min_recall, 1.0)))
    n = min(n + 1, len(cells.center))
    n_searched = (rank < n) @ np.diff(cells.start)
    return n, float(n_searched.mean() / len(texts))


def _within_cells(cells: Cells, n_cells: int, k: int, on_progress: Progress) -> Nearest:
    """The nearest texts in the `n_cells` cells nearest to each text."""
    nearest = Nearest.none(len(cells.number), k)

    def job(start: int, end: int) -> None:
        unit, own, part = cells.unit[start:end], cells.number[start:end], nearest.part(start, end)
        for cell, rows in _by_cell(_nearest_cells(unit, cells.center, n_cells)):
            members = slice(cells.start[cell], cells.start[cell + 1])
            _compare(unit, own, rows, cells.unit[members], cells.number[members], part)

    _in_parallel(job, len(cells.number), _TEXTS_PER_JOB, on_progress)
    by_number = np.argsort(cells.number)
    return Nearest(nearest.number[by_number], nearest.cosine[by_number])


def _by_cell(cells: Ints32) -> Iterator[tuple[int, Ints]]:
    """Each cell with the rows that search it, the rows' nearest cells first.

    After those, few texts of the other cells are near enough to be inserted, which is the slow part.
    """
    n = cells.shape[1]
    key = (np.arange(n) > 0) * (np.int64(cells.max()) + 1) + cells
    order = np.argsort(key, axis=None, kind="stable")
    ends = np.flatnonzero(np.diff(key.reshape(-1)[order], append=-1))
    for start, end in zip(np.r_[0, ends[:-1] + 1], ends + 1, strict=True):
        yield int(cells.reshape(-1)[order[start]]), order[start:end] // n


def _compare(unit: Floats32, own: Ints32, rows: Ints, members: Floats32, number: Ints32, nearest: Nearest) -> None:
    """Offer all members to some rows of `unit`; `number` names the members, `own` the rows themselves."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        queries = unit[some]
        for first in range(0, len(members), _COLUMNS):
            block = slice(first, first + _COLUMNS)
            _offer(queries @ members[block].T, some, own, number[block], nearest.number, nearest.cosine)


def _in_parallel(job: Callable[[int, int], None], n: int, size: int, on_progress: Progress = ignore) -> None:
    """Run the job on ranges of 0..n, one thread per core; the jobs share no row, so they need no locks.

    Matrices are multiplied by one core each: cores that share a small product wait for each other most of the time.
    """
    n_threads = faiss.omp_get_max_threads()
    size = max(1, min(size, -(-n // (4 * n_threads))))
    ranges = ((start, min(start + size, n)) for start in range(0, n, size))
    with threadpool_limits(1, "blas"):
        in_threads(job, ranges, n_threads, on_progress)


def _sample(n: int, seed: int) -> Ints32:
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n, min(n, _SAMPLE), replace=False)).astype(np.int32)


def _recall(nearest: Nearest, unit: Floats32, seed: int) -> float:
    """The share of the true neighbours that were found, for pages other than those that decided how far to search."""
    sample = _sample(len(unit), seed + 1)
    truth = among_all(sample, unit, nearest.number.shape[1])
    is_right = (nearest.number[sample] >= 0) & (nearest.cosine[sample] >= truth.cosine[:, -1:] - _TIE)
    n_true = np.count_nonzero(truth.number >= 0)
    return min(1.0, np.count_nonzero(is_right) / n_true) if n_true else 1.0


# -- kernels ----------------------------------------------------------------------------------------------------------


def _offer_py(cosines: Any, rows: Any, own: Any, number: Any, best: Any, best_cosine: Any) -> None:
    """Insert texts that are near enough into the sorted lists of the rows; ties go to the lower number."""
    k = best.shape[1]
    for i in range(len(rows)):
        names, values = best[rows[i]], best_cosine[rows[i]]
        for j in range(len(number)):
            cosine = cosines[i, j]
            if cosine < values[k - 1] or number[j] == own[rows[i]]:
                continue
            at = k
            while at > 0 and (values[at - 1] < cosine or (values[at - 1] == cosine and names[at - 1] > number[j])):
                if at < k:
                    names[at], values[at] = names[at - 1], values[at - 1]
                at -= 1
            if at < k:
                names[at], values[at] = number[j], cosine


def _expand_py(text: Any, start: Any, page: Any, number: Any, cosine: Any, out: Any, out_cosine: Any) -> None:
    k = out.shape[1]
    for p in range(len(text)):
        n = 0
        for i in range(-1, number.shape[1]):
            other = text[p] if i < 0 else number[text[p], i]
            if n == k or other < 0:
                break
            for twin in page[start[other] : start[other + 1]]:
                if twin != p and n < k:
                    out[p, n] = twin
                    out_cosine[p, n] = 1.0 if i < 0 else min(cosine[text[p], i], 1.0)
                    n += 1


_offer = numba.njit(cache=True, nogil=True)(_offer_py)
_expand = numba.njit(cache=True, nogil=True)(_expand_py)
