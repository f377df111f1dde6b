"""Predictions of changes → the rows of the tables: accuracy over rounds, then over pages, with paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from recrawl.errors import NotEnoughData
from recrawl.experiments.experts_judged import Judged
from recrawl.experiments.experts_settings import (
    BAGGING,
    BOOSTING,
    COIN,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    UNION,
    ExpertSettings,
    Row,
)

Floats = NDArray[np.float64]


def rows(part: str, judged: list[Judged], settings: ExpertSettings, lengths: Sequence[int]) -> Iterator[Row]:
    """One part's rows in the order they are told; `lengths` are the numbers of rounds that part "scan" learns from."""
    n, k, main = settings.n_train, settings.k, settings.method
    best = (RELATED, main, k, n)
    single = (SINGLE, "", 0, n)
    if part == "settings":
        yield from _compared(judged, n, [single, best, (RELATED, "random", k, n)], best, n - 1)
    elif part == "combining":
        yield from _compared(
            judged, n, [single, *((name, main, k, n) for name in (UNION, BOOSTING, BAGGING)), best], best, n - 1
        )
    elif part == "selection":
        yield from _compared(
            judged,
            n,
            [
                (RELATED, name, k, n)
                for name in dict.fromkeys((main, *settings.methods))
                if (RELATED, name, k, n) in judged[0].told
            ],
            best,
            n - 1,
        )
    elif part == "history":
        start = max(*lengths, n) - 1  # the same rounds for all
        for length in lengths:
            three = (RELATED, main, k, length)
            yield from _compared(judged, length, [(SINGLE, "", 0, length), three], three, start)
    elif part == "number":
        yield from _compared(
            judged, n, [single, *((RELATED, main, number, n) for number in settings.ks)], single, n - 1
        )


def _compared(
    judged: list[Judged],
    n: int,
    methods: list[tuple[str, str, int, int]],
    against: tuple[str, str, int, int],
    start: int,
) -> Iterator[Row]:
    """Scores on the same rounds from `start` on, also of those who know the past alone; and what parts them from one method."""
    masks = [(one.label >= 0) & (np.arange(len(one.label)) >= start) for one in judged]
    kept = [(one, mask) for one, mask in zip(judged, masks, strict=True) if mask.any()]
    if not kept:
        raise NotEnoughData(
            f"after the first {start + 1} rounds no page that passes the filter was seen twice in a row, so nothing can be judged. "
            "Ask for fewer rounds to learn from with --train, or for longer ones with --every"
        )
    scored = {method: [_scores(one.label[m] == 1, one.told[method][m] > 0) for one, m in kept] for method in methods}
    yield from _simple(kept, n, [row[0] for row in scored.get(against, [])])
    baseline = np.array([row[0] for row in scored[against]]) if against in scored else None
    for method, rows in scored.items():
        name, chosen, k, length = method
        yield _row(name, chosen, k, length, np.array(rows), baseline if method != against else None, kept)


def _simple(kept: list[tuple[Judged, NDArray[np.bool_]]], n: int, against: list[float]) -> Iterator[Row]:
    baseline = np.array(against) if against else None
    shares = [np.nan_to_num(one.share[n][mask]) for one, mask in kept]
    truths = [one.label[mask] == 1 for one, mask in kept]
    coin = [_coin(truth, share) for truth, share in zip(truths, shares, strict=True)]
    threshold = [_scores(truth, share > 0.5) for truth, share in zip(truths, shares, strict=True)]
    majority = [_scores(truth, np.full(len(truth), truth.mean() > 0.5)) for truth in truths]
    for name, rows in ((MAJORITY, majority), (COIN, coin), (THRESHOLD, threshold)):
        yield _row(name, "", 0, n, np.array(rows), baseline, kept)


def _row(
    name: str,
    chosen: str,
    k: int,
    n: int,
    scores: Floats,
    baseline: Floats | None,
    kept: list[tuple[Judged, NDArray[np.bool_]]],
) -> Row:
    accuracy = scores[:, 0]
    p_value = None
    if baseline is not None and len(accuracy) > 1 and np.ptp(accuracy - baseline) > 0:
        p_value = float(stats.ttest_rel(accuracy, baseline).pvalue)
    return {
        "method": name,
        "experts": chosen,
        "k": k,
        "n_train": n,
        "accuracy": float(accuracy.mean()),
        "balanced_accuracy": float(np.nanmean(scores[:, 1])) if not np.isnan(scores[:, 1]).all() else None,
        "deviation": float(accuracy.std(ddof=1)) if len(accuracy) > 1 else None,
        "n_pages": len(accuracy),
        "n_predictions": int(sum(mask.sum() for _, mask in kept)),
        "p_value": p_value,  # paired t-test over pages against the method the part is about
    }


def _scores(truth: NDArray[np.bool_], says: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy and balanced accuracy; NaN where there is one class only."""
    right = says == truth
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)


def _coin(truth: NDArray[np.bool_], share: Floats) -> tuple[float, float]:
    """The expectation over coins that show "change" with the given probabilities."""
    right = np.where(truth, share, 1 - share)
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)
