"""The evaluation of Radinsky and Bennett at size: every page with its experts, taught anew for every prediction."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Row, peak_gigabytes
from benchmarks.temporal import made_up
from recrawl.papers.experts.evaluation import evaluate_contents
from recrawl.papers.experts.settings import ExpertSettings

PAGES, ROUNDS, EXPERTS, TRAIN = 1_000, 180, 20, 50
LIMIT = 10


def run(n_pages: int = PAGES) -> Iterator[Row]:
    contents = made_up(n_pages, ROUNDS)
    random = np.random.default_rng(0)
    changed = (random.random(contents.shape) < 0.45).astype(np.int8)  # all pages pass the filter
    changed[:, 0] = -1
    settings = ExpertSettings(
        parts=("settings",), methods=(), k=EXPERTS, ks=(EXPERTS,), n_train=TRAIN, n_trains=(TRAIN,)
    )
    evaluate_contents(made_up(8, 80), changed[:8, :80], settings)  # compiles
    before = peak_gigabytes()
    started = time.perf_counter()
    found = evaluate_contents(contents, changed, settings)
    minutes = (time.perf_counter() - started) / 60
    n_windows = ROUNDS - TRAIN + 1
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
