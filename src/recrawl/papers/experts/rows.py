"""Predictions of changes → the rows of the tables: accuracy over rounds, then over pages, with paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from recrawl.core.arrays import Flags, Floats
from recrawl.errors import NotEnoughData
from recrawl.papers.experts.predictions import MethodKey, PagePredictions
from recrawl.papers.experts.settings import (
    BAGGING,
    BOOSTING,
    BY_ACCURACY,
    COIN,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    UNION,
    ExpertSettings,
    Row,
)
from recrawl.world.contents import Contents


def rows(
    part: str, predictions: list[PagePredictions], settings: ExpertSettings, lengths: Sequence[int]
) -> Iterator[Row]:
    """One part's rows in the order of its table; `lengths` are the numbers of training rounds that part "history" compares."""
    n, k, main = settings.n_train, settings.k, settings.method
    best = MethodKey(RELATED, main, k, n)
    single = MethodKey(SINGLE, "", 0, n)
    if part == "settings":
        yield from _compared(predictions, n, [single, best, MethodKey(RELATED, "random", k, n)], best, n - 1)
    elif part == "combining":
        combined = (MethodKey(name, main, k, n) for name in (UNION, BOOSTING, BAGGING, BY_ACCURACY))
        yield from _compared(predictions, n, [single, *combined, best], best, n - 1)
    elif part == "selection":
        ways = [MethodKey(RELATED, name, k, n) for name in dict.fromkeys((main, *settings.methods))]
        known = [way for way in ways if way in predictions[0].decisions]
        yield from _compared(predictions, n, known, best, n - 1)
    elif part == "history":
        start = max(*lengths, n) - 1  # the same rounds for all
        for length in lengths:
            related = MethodKey(RELATED, main, k, length)
            yield from _compared(predictions, length, [MethodKey(SINGLE, "", 0, length), related], related, start)
    elif part == "number":
        numbers = (MethodKey(name, main, number, n) for name in (RELATED, BY_ACCURACY) for number in settings.ks)
        yield from _compared(predictions, n, [single, *numbers], single, n - 1)


def named_experts(contents: Contents, predictions: list[PagePredictions]) -> Iterator[Row]:
    """Who the experts of every page are, how much their votes count, and how often each was right on its own."""
    for each in predictions:
        for rank, (expert, weight, right) in enumerate(each.experts, 1):
            yield {
                "url": contents.url[each.page].as_py(),
                "rank": rank,
                "expert": contents.url[expert].as_py(),
                "weight": weight,
                "right": right,
            }


def _compared(
    predictions: list[PagePredictions], n: int, methods: list[MethodKey], against: MethodKey, start: int
) -> Iterator[Row]:
    """Scores on the same rounds, from `start` on, also of methods that know the past alone; and tests against one method."""
    masks = [(page.label >= 0) & (np.arange(len(page.label)) >= start) for page in predictions]
    kept = [(page, mask) for page, mask in zip(predictions, masks, strict=True) if mask.any()]
    if not kept:
        raise NotEnoughData(
            f"after the first {start + 1} rounds no page that passes the filter was seen twice in a row, so nothing can be scored. "
            "Use a smaller --train or a longer --every"
        )
    scored = {
        method: [_scores(page.label[mask] == 1, page.decisions[method][mask]) for page, mask in kept]
        for method in methods
    }
    yield from _simple(kept, n, [row[0] for row in scored.get(against, [])])
    baseline = np.array([row[0] for row in scored[against]]) if against in scored else None
    for method, rows in scored.items():
        yield _row(method, np.array(rows), baseline if method != against else None, kept)


def _simple(kept: list[tuple[PagePredictions, Flags]], n: int, against: list[float]) -> Iterator[Row]:
    baseline = np.array(against) if against else None
    shares = [np.nan_to_num(page.share[n][mask]) for page, mask in kept]
    truths = [page.label[mask] == 1 for page, mask in kept]
    coin = [_coin(truth, share) for truth, share in zip(truths, shares, strict=True)]
    threshold = [_scores(truth, share > 0.5) for truth, share in zip(truths, shares, strict=True)]
    majority = [_scores(truth, np.full(len(truth), truth.mean() > 0.5)) for truth in truths]
    for name, rows in ((MAJORITY, majority), (COIN, coin), (THRESHOLD, threshold)):
        yield _row(MethodKey(name, "", 0, n), np.array(rows), baseline, kept)


def _row(method: MethodKey, scores: Floats, baseline: Floats | None, kept: list[tuple[PagePredictions, Flags]]) -> Row:
    accuracy = scores[:, 0]
    p_value = None
    if baseline is not None and len(accuracy) > 1 and np.ptp(accuracy - baseline) > 0:
        p_value = float(stats.ttest_rel(accuracy, baseline).pvalue)
    return {
        **method._asdict(),
        "accuracy": float(accuracy.mean()),
        "balanced_accuracy": float(np.nanmean(scores[:, 1])) if not np.isnan(scores[:, 1]).all() else None,
        "deviation": float(accuracy.std(ddof=1)) if len(accuracy) > 1 else None,
        "n_pages": len(accuracy),
        "n_predictions": int(sum(mask.sum() for _, mask in kept)),
        "p_value": p_value,  # paired t-test over pages against the method the part is about
    }


def _scores(truth: Flags, predicted: Flags) -> tuple[float, float]:
    """Accuracy and balanced accuracy; NaN where there is one class only."""
    right = predicted == truth
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)


def _coin(truth: Flags, share: Floats) -> tuple[float, float]:
    """The expectation over coins that show "change" with the given probabilities."""
    right = np.where(truth, share, 1 - share)
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)
