"""Temporal content similarity: cross-correlation and dynamic time warping of all pairs that the content filter leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import fft, sparse

from benchmarks.measure import Row, cpu_side_by_side, peak_gigabytes
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.online import OnlineSimilarity
from recrawl.models.experts.series import Series, candidates, word_series
from recrawl.models.experts.warping import warped
from recrawl.world.contents import Contents

PAGES, DAYS, WORDS = 2_000, 180, 150
BAND = 10
TOPICS, TOPIC_WORDS, COMMON_WORDS = 20, 1_000, 5_000
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Result = TypeVar("Result")


def run(n_pages: int = PAGES, n_days: int = DAYS) -> Iterator[Row]:
    is_full = (n_pages, n_days) == (PAGES, DAYS)
    small = made_up(20, 10)
    cross_correlation(word_series(small), *candidates(small))  # compiled or read from the cache before it counts
    warped(word_series(small), *candidates(small), band=BAND)
    contents = made_up(n_pages, n_days)
    texts_gb = peak_gigabytes()

    def target(below: float) -> str:
        return f"< {below:g}" if is_full else ""

    (page, expert), seconds, _ = timed(lambda: candidates(contents))
    yield Row(f"content filter, {n_pages:,} pages: {len(page):,} pairs", seconds, "s")
    series, seconds, _ = timed(lambda: word_series(contents))
    yield Row(f"  series of {len(series.values):,} words × {n_days} days", seconds, "s")
    _, seconds, note = timed(lambda: cross_correlation(series, page, expert))
    met = seconds < 120 if is_full else None
    yield Row("  cross-correlation, all delays", seconds, "s", target(120), met, note)
    _, seconds, note = timed(lambda: warped(series, page, expert, band=BAND))
    met = seconds < 600 if is_full else None
    yield Row(f"  dynamic time warping, band of {BAND}", seconds, "s", target(600), met, note)
    yield from against_fourier(series, page, expert)
    yield from round_by_round(contents, series, page[:20_000], expert[:20_000])
    note = f"{texts_gb:.1f} GB of it before the first measurement: the made-up texts"
    yield Row("  peak memory", peak_gigabytes(), "GB", target(4), peak_gigabytes() < 4 if is_full else None, note)


def against_fourier(series: Series, page: Ints, expert: Ints) -> Iterator[Row]:
    """The same similarities by Fourier transforms, each made once only, for the pairs of a fifth of the experts."""
    some = expert % 5 == 0
    page, expert = page[some], expert[some]
    quick, slow = cpu_side_by_side(
        2, lambda: cross_correlation(series, page, expert), lambda: by_fourier(series, page, expert)
    )
    error = float(np.abs(cross_correlation(series, page, expert) - by_fourier(series, page, expert)).max())
    what = f"  direct sums against Fourier transforms, {len(page):,} pairs"
    yield Row(what, slow / quick, "×", note=f"processor time; largest difference {error:.0e}")


def by_fourier(series: Series, page: Ints, expert: Ints) -> Floats:
    n = series.values.shape[1]
    size = fft.next_fast_len(2 * n, real=True)
    own = fft.rfft(standardised(series.values), size)

    def best(row: Ints, theirs: Floats, at: Ints) -> Floats:
        shown = np.flatnonzero(np.ptp(theirs, axis=1))
        transformed = np.conj(fft.rfft(standardised(theirs[shown]), size)) if len(shown) else own[:0]
        number = np.full(len(theirs), -1)
        number[shown] = np.arange(len(shown))
        compared, found = np.flatnonzero(number[at] >= 0), np.zeros(len(row))
        for start in range(0, len(compared), 256):  # few enough for the cache
            part = compared[start : start + 256]
            found[part] = fft.irfft(own[row[part]] * transformed[number[at[part]]], size)[:, 1:n].max(axis=1)
        return found

    return series.similarity(page, expert, best)


def standardised(values: Floats) -> Floats:
    """Mean 0 and length 1; constant series are 0."""
    centred = np.where(np.ptp(values, axis=1, keepdims=True) > 0, values - values.mean(axis=1, keepdims=True), 0.0)
    unit: Floats = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-300)
    return unit


def round_by_round(contents: Contents, series: Series, page: Ints, expert: Ints) -> Iterator[Row]:
    """The same without old visits: what a new day costs, and that nothing is lost."""
    online = OnlineSimilarity(series.words, page, expert, max_delay=14)
    started = time.perf_counter()
    for text in contents.text.T:
        online.add(contents.counts, text)
    seconds = (time.perf_counter() - started) / contents.shape[1]
    yield Row(f"  online, {len(page):,} pairs, up to 14 days of delay", seconds, "s a day")
    error = float(np.abs(online.value() - cross_correlation(series, page, expert, max_delay=14)).max())
    yield Row("  largest difference from all days at once", error, "", "≤ 1e-9", error <= 1e-9)


def made_up(n_pages: int, n_days: int, seed: int = 0) -> Contents:
    """Pages of `WORDS` words about one of some topics; 5 % of a page's words are replaced every day."""
    random = np.random.default_rng(seed)
    n_terms = COMMON_WORDS + TOPICS * TOPIC_WORDS
    topic = random.integers(TOPICS, size=n_pages)

    def drawn(page: Ints) -> Ints:
        """Words by their rank, the frequent ones first: half are common to all pages, half belong to the topic."""
        share = random.random(len(page)) ** 3
        of_topic = COMMON_WORDS + topic[page] * TOPIC_WORDS + share * TOPIC_WORDS
        return np.where(random.random(len(page)) < 0.5, share * COMMON_WORDS, of_topic).astype(np.int64)

    every = np.repeat(np.arange(n_pages), WORDS)
    word = drawn(every)
    days = []
    for day in range(n_days):
        if day:
            replaced = np.flatnonzero(random.random(len(word)) < 0.05)
            word[replaced] = drawn(every[replaced])
        days.append(sparse.csr_matrix((np.ones(len(word), np.float32), (every, word)), (n_pages, n_terms)))
    counts = sparse.vstack(days, "csr")
    counts.sort_indices()
    text = np.arange(n_days * n_pages, dtype=np.int32).reshape(n_days, n_pages).T.copy()
    ends = np.datetime64("2026-01-01", "us") + np.arange(n_days) * np.timedelta64(1, "D")
    seen = np.ones((n_pages, n_days), np.bool_)
    return Contents(
        page=np.arange(n_pages),
        url=pa.array([f"https://example.org/{page}" for page in range(n_pages)]),
        rounds=ends,
        text=text,
        seen=seen,
        is_baseline=~seen,
        digest=text.astype(np.int64) + 1,
        counts=counts,
        vocabulary=np.arange(n_terms),
    )


def timed(work: Callable[[], Result]) -> tuple[Result, float, str]:
    """The result, the seconds by the clock, and how many of them a processor was busy with it: others may use it too."""
    started, busy = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - started, f"one core, {time.process_time() - busy:.1f} s of it"
