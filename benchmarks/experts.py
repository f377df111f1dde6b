"""The evaluation of Radinsky and Bennett at size, and the policy that follows from it.

`run` evaluates a thousand pages on all days: every page with its experts, trained again for every prediction. Their own size is
54,816 pages × 180 days with 20 experts:

    python -m benchmarks.experts            # one day of the evaluation, and the policy, at a twentieth, a tenth and a fifth of it
    python -m benchmarks.experts 1          # at the whole size

Every size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
from scipy import sparse

from benchmarks.measure import Row, peak_gigabytes
from benchmarks.temporal import COMMON_WORDS, TOPIC_WORDS, TOPICS, WORDS, made_up
from recrawl.papers.experts.evaluation import evaluate_contents
from recrawl.papers.experts.settings import ExpertSettings
from recrawl.world.contents import Contents

PAGES, ROUNDS, EXPERTS, TRAIN = 1_000, 180, 20, 50
LIMIT = 10
PAPERS_PAGES, CHANGE_RATE = 54_816, 0.45
SHARES = ("1/20", "1/10", "1/5")
SETTINGS = ExpertSettings(
    parts=("settings",), methods=(), k=EXPERTS, ks=(EXPERTS,), n_train=TRAIN, n_trains=(TRAIN,), alpha=0.0
)


def run(n_pages: int = PAGES) -> Iterator[Row]:
    contents = made_up(n_pages, ROUNDS)
    random = np.random.default_rng(0)
    changed = (random.random(contents.shape) < CHANGE_RATE).astype(np.int8)  # all pages pass the filter
    changed[:, 0] = -1
    evaluate_contents(made_up(8, 80), changed[:8, :80], SETTINGS)  # compiles
    before = peak_gigabytes()
    started = time.perf_counter()
    found = evaluate_contents(contents, changed, SETTINGS)
    minutes = (time.perf_counter() - started) / 60
    n_windows = ROUNDS - TRAIN
    # Those chosen by cross-correlation, as many at random, and the page itself.
    n_fits = found.n_predicted * n_windows * (2 * EXPERTS + 1)
    is_whole = n_pages == PAGES
    note = f"{n_fits:,} fits, {n_fits / minutes / 60:,.0f} a second; choosing experts by cross-correlation included"
    yield Row(
        f"experts: {found.n_predicted:,} pages × {n_windows} windows, {EXPERTS} related and {EXPERTS} random experts each",
        minutes,
        "min",
        f"< {LIMIT}" if is_whole else "",
        minutes < LIMIT if is_whole else None,
        note,
    )
    yield Row("  peak memory", peak_gigabytes(), "GB", note=f"{before:.1f} GB of it the made-up texts")


def changing(n_pages: int, n_days: int, seed: int = 0) -> tuple[Contents, np.ndarray]:
    """Pages that change on some days, by 12 % of their words, and what changed; a text that stays is stored once."""
    random = np.random.default_rng(seed)
    topic = random.integers(TOPICS, size=n_pages)

    def drawn(page: np.ndarray, n: int) -> np.ndarray:
        share = random.random((len(page), n), np.float32) ** 3
        of_topic = COMMON_WORDS + topic[page, None] * TOPIC_WORDS + share * TOPIC_WORDS
        return np.where(random.random((len(page), n), np.float32) < 0.5, share * COMMON_WORDS, of_topic).astype(
            np.int32
        )

    word = drawn(np.arange(n_pages), WORDS)
    changes = random.random((n_pages, n_days)) < CHANGE_RATE
    changes[:, 0] = True
    n_texts = int(changes.sum())
    indices, counts = np.empty(n_texts * WORDS, np.int32), np.empty(n_texts * WORDS, np.float32)
    length, text = np.empty(n_texts, np.int64), np.empty((n_pages, n_days), np.int32)
    n, end, now = 0, 0, np.empty(n_pages, np.int32)
    for day in range(n_days):
        page = np.flatnonzero(changes[:, day])
        if day:
            at = random.integers(0, WORDS, (len(page), WORDS // 8))
            word[page[:, None], at] = drawn(page, at.shape[1])
        words = np.sort(word[page], axis=1)
        first = np.ones(words.shape, np.bool_)
        first[:, 1:] = words[:, 1:] != words[:, :-1]
        place = np.flatnonzero(first)
        indices[end : end + len(place)] = words.ravel()[place]
        counts[end : end + len(place)] = np.diff(np.append(place, words.size))
        length[n : n + len(page)] = first.sum(axis=1)
        now[page] = n + np.arange(len(page))
        text[:, day], n, end = now, n + len(page), end + len(place)
    n_terms = COMMON_WORDS + TOPICS * TOPIC_WORDS
    start = np.append(0, np.cumsum(length)).astype(np.int32 if end < 2**31 else np.int64)
    stored = sparse.csr_matrix((counts[:end], indices[:end], start), shape=(n_texts, n_terms), copy=False)
    stored.has_sorted_indices = True
    seen = np.ones((n_pages, n_days), np.bool_)
    changed = changes.astype(np.int8)
    changed[:, 0] = -1
    contents = Contents(
        page=np.arange(n_pages),
        url=pa.array([f"https://example.org/{page}" for page in range(n_pages)]),
        rounds=np.datetime64("2026-01-01", "us") + np.arange(n_days) * np.timedelta64(1, "D"),
        text=text,
        seen=seen,
        is_baseline=~seen,
        digest=np.zeros((n_pages, 1), np.int64).repeat(n_days, axis=1),
        counts=stored,
        vocabulary=np.arange(n_terms),
    )
    return contents, changed


def evaluated_day(share: Fraction) -> Iterator[Row]:
    """One day of the evaluation, of all texts of 180 days."""
    small, its_changes = changing(30, 80)
    settings = replace(SETTINGS, last=1)
    evaluate_contents(small, its_changes, settings)  # compiles
    contents, changed = changing(round(PAPERS_PAGES * share), ROUNDS)
    texts, busy, steps = peak_gigabytes(), time.process_time(), [("", time.perf_counter())]
    found = evaluate_contents(
        contents, changed, settings, on_step=lambda what: steps.append((what, time.perf_counter()))
    )
    steps.append(("", time.perf_counter()))
    seconds = {what: later - at for (what, at), (_, later) in pairwise(steps[1:])}
    busy = time.process_time() - busy
    n_fits = found.n_predicted * (2 * EXPERTS + 1)
    note = f"{busy:,.0f} s of processor time; " + ", ".join(f"{what} {value:,.0f} s" for what, value in seconds.items())
    minutes = (steps[-1][1] - steps[0][1]) / 60
    what = f"experts, one day of the evaluation: {found.n_predicted:,} pages, {n_fits:,} fits"
    yield Row(what, minutes, "min", f"< {LIMIT}", minutes < LIMIT, note)
    yield Row("  peak memory", peak_gigabytes(), "GB", "< 12", peak_gigabytes() < 12, f"{texts:.1f} GB of it the texts")


def policy(share: Fraction) -> Iterator[Row]:
    """What related-experts needs for a choice after enough days to learn from, and per day."""
    from benchmarks.expert_visits import observed

    n_pages = round(PAPERS_PAGES * share)
    observed(60, TRAIN + 5, TRAIN)  # compiles
    found = observed(n_pages, TRAIN + 5, TRAIN)
    what = f"related-experts, {n_pages:,} pages, {EXPERTS} experts: one choice"
    yield Row(what, found.choose_seconds / 60, "min", f"< {LIMIT}", found.choose_seconds < 60 * LIMIT, found.note)
    yield Row(
        "  peak memory", peak_gigabytes(), "GB", "< 12", peak_gigabytes() < 12, f"{found.kept_gb:.2f} GB are kept"
    )


if __name__ == "__main__":
    part = {"day": evaluated_day, "policy": policy}
    if sys.argv[1:2] and sys.argv[1] in part:
        for row in part[sys.argv[1]](Fraction(sys.argv[2])):
            print(f"{row.what}: {row.value:,.2f} {row.unit} (target {row.target}; {row.note})", flush=True)
    else:
        for of in sys.argv[1:] or SHARES:
            for name in part:
                subprocess.run([sys.executable, "-m", "benchmarks.experts", name, of], check=True)
