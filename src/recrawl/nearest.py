"""The nearest texts by cosine: all compared with all, or only with those in the cells of similar texts nearest to each.

How many cells to look into is decided by the true neighbours of a sample, and the recall of what was found is measured on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import faiss
import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recrawl.hashing_arrays import hash64_slices

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]
Progress = Callable[[float], None]  # is told the share that is done

_TIE = 1e-5  # cosines that differ by no more are equally near: float32 cannot tell
_SAMPLE = 1_000  # pages whose true neighbours decide how far to look
_ROWS, _COLUMNS = 1_024, 4_096  # of one product of matrices: large enough for speed, small enough for the cache
_TEXTS_PER_JOB = 16_384


def unheard(share: float) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True)
class Nearest:
    """The best found so far, most similar first; number -1 and cosine 0 where there are fewer."""

    number: Numbers  # [text, k]
    cosine: Floats

    @classmethod
    def none(cls, n: int, k: int, least: float = 0.0) -> Nearest:
        """Nothing found yet, and nothing accepted that is not above `least`."""
        return cls(np.full((n, k), -1, np.int32), np.full((n, k), least, np.float32))

    def part(self, start: int, end: int) -> Nearest:
        """A view of some rows."""
        return Nearest(self.number[start:end], self.cosine[start:end])


@dataclass(frozen=True)
class Identical:
    """Which pages have the same vector, to the bit: they need to be searched for once only."""

    text: Numbers  # [page] number of its text
    first: NDArray[np.int64]  # [text] the first page that has it; texts are numbered in this order
    start: NDArray[np.int64]  # [text + 1]
    page: Numbers  # pages by text, ascending: those of text i are page[start[i]:start[i + 1]]

    def expand(self, texts: Nearest) -> Nearest:
        """From texts to pages: the page's own twins first, then all pages of the most similar text, and so on."""
        found = Nearest.none(len(self.text), texts.number.shape[1])
        _expand(self.text, self.start, self.page, texts.number, texts.cosine, found.number, found.cosine)
        return found


@dataclass(frozen=True)
class Cells:
    """Texts sorted by the centre they are nearest to."""

    center: Floats  # [cell, dimension]
    start: NDArray[np.int64]  # [cell + 1]
    number: Numbers  # text numbers by cell: those of cell c are number[start[c]:start[c + 1]]
    unit: Floats  # their vectors

    def of_text(self) -> NDArray[np.int64]:
        """The cell of every text."""
        cell = np.empty(len(self.number), np.int64)
        cell[self.number] = np.repeat(np.arange(len(self.center)), np.diff(self.start))
        return cell


def identical(unit: Floats) -> Identical:
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
    unit: Floats,
    k: int,
    min_recall: float,
    seed: int,
    on_progress: Progress,
) -> tuple[Nearest, float]:
    """What is found in the nearest cells, and the recall; if that is too low after all, in twice as many."""
    while True:
        found = same.expand(_within_cells(cells, n_cells, k, on_progress))
        recall = _recall(found, unit, seed)
        if recall >= min_recall or n_cells == len(cells.center):
            return found, recall
        n_cells = min(2 * n_cells, len(cells.center))


def among_all(wanted: Numbers, texts: Floats, k: int, on_progress: Progress = unheard) -> Nearest:
    """The true neighbours of some texts among all."""
    nearest, number = Nearest.none(len(wanted), k), np.arange(len(texts), dtype=np.int32)

    def job(start: int, end: int) -> None:
        own, part = wanted[start:end], nearest.part(start, end)
        _compare(texts[own], own, np.arange(len(own)), texts, number, part)

    _in_parallel(job, len(wanted), _ROWS, on_progress)
    return nearest


def make_cells(texts: Floats, seed: int) -> Cells:
    """About 2 √n cells: then finding the nearest cells costs as much as looking into a few of them."""
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


def _nearest_cells(unit: Floats, center: Floats, n: int) -> Numbers:
    nearest, number = Nearest.none(len(unit), n, least=-2.0), np.arange(len(center), dtype=np.int32)
    nobody = np.full(len(unit), -1, np.int32)
    _compare(unit, nobody, np.arange(len(unit)), center, number, nearest)
    return nearest.number


def cells_needed(cells: Cells, texts: Floats, k: int, min_recall: float, seed: int) -> tuple[int, float]:
    """How many cells to look into, and the share of all texts that is in them.

    A true neighbour is found if its cell is among those looked into, so the recall for any number of cells follows from the
    true neighbours of a sample. Two standard errors are added, for it is only a sample.
    """
    sample = _sample(len(texts), seed)
    truth = among_all(sample, texts, k).number
    rank = np.argsort(np.argsort(-(texts[sample] @ cells.center.T), axis=1), axis=1)
    found = np.zeros(rank.shape)  # [text, number of cells - 1]
    at, column = np.nonzero(truth >= 0)
    np.add.at(found, (at, rank[at, cells.of_text()[truth[at, column]]]), 1)
    found = np.cumsum(found, axis=1)[found.any(axis=1)]
    if not len(found):
        return 1, 0.0
    found /= found[:, -1:]
    sure = found.mean(axis=0) - 2 * found.std(axis=0) / np.sqrt(len(found))
    n = int(np.argmax(np.r_[sure, np.inf] >= min(min_recall, 1.0)))
    n = min(n + 1, len(cells.center))
    looked_into = (rank < n) @ np.diff(cells.start)
    return n, float(looked_into.mean() / len(texts))


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


def _by_cell(cells: Numbers) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each cell with the rows that look into it, the rows' nearest cells first.

    After those, few texts of the other cells are near enough to be remembered, which is the slow part.
    """
    n = cells.shape[1]
    key = (np.arange(n) > 0) * (np.int64(cells.max()) + 1) + cells
    order = np.argsort(key, axis=None, kind="stable")
    ends = np.flatnonzero(np.diff(key.reshape(-1)[order], append=-1))
    for start, end in zip(np.r_[0, ends[:-1] + 1], ends + 1, strict=True):
        yield int(cells.reshape(-1)[order[start]]), order[start:end] // n


def _compare(
    unit: Floats, own: Numbers, rows: NDArray[np.int64], members: Floats, number: Numbers, nearest: Nearest
) -> None:
    """Offer all members to some rows of `unit`; `number` names the members, `own` the rows themselves."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        queries = unit[some]
        for first in range(0, len(members), _COLUMNS):
            block = slice(first, first + _COLUMNS)
            _offer(queries @ members[block].T, some, own, number[block], nearest.number, nearest.cosine)


def _in_parallel(job: Callable[[int, int], None], n: int, size: int, on_progress: Progress = unheard) -> None:
    """Run the job on ranges of 0..n, one thread for each core; the jobs share no row, so they need no locks.

    Matrices are multiplied by one core each: cores that share a small product wait for each other most of the time.
    """
    n_threads = faiss.omp_get_max_threads()
    size = max(1, min(size, -(-n // (4 * n_threads))))
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
        jobs = [pool.submit(job, start, min(start + size, n)) for start in range(0, n, size)]
        try:
            for done, finished in enumerate(as_completed(jobs), 1):
                finished.result()
                on_progress(done / len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)  # or Ctrl-C would wait for all jobs that have not begun


def _sample(n: int, seed: int) -> Numbers:
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n, min(n, _SAMPLE), replace=False)).astype(np.int32)


def _recall(found: Nearest, unit: Floats, seed: int) -> float:
    """The share of the true neighbours that were found, for pages other than those that decided how far to look."""
    sample = _sample(len(unit), seed + 1)
    truth = among_all(sample, unit, found.number.shape[1])
    is_right = (found.number[sample] >= 0) & (found.cosine[sample] >= truth.cosine[:, -1:] - _TIE)
    n_true = np.count_nonzero(truth.number >= 0)
    return min(1.0, np.count_nonzero(is_right) / n_true) if n_true else 1.0


# -- kernels ----------------------------------------------------------------------------------------------------------


def _offer_py(cosines: Any, rows: Any, own: Any, number: Any, best: Any, best_cosine: Any) -> None:
    """Insert what is near enough into the sorted lists of the rows; ties go to the lower number."""
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
