"""How accurate the choices at each reference time were: counts, and the scores averaged over all of them (HACS section III)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints

Row: TypeAlias = dict[str, Any]
RANKINGS = ("history-aware", "last-observed", "random")
AVERAGES = ("micro", "macro")


@dataclass(frozen=True)
class ChoiceCounts:
    """What was chosen at each reference time, and what was right; one row per time, one column per threshold."""

    n_known: Ints  # pages to choose from
    n_updated: Ints  # of these, the pages with an update in the evaluated interval
    n_chosen: Ints
    n_right: Ints
    ranked: Floats  # weighted precision of each of `RANKINGS`; NaN where no page is updated any more

    @classmethod
    def of(cls, n_times: int, n_thetas: int) -> ChoiceCounts:
        """Nothing counted yet."""
        n_known, n_updated = np.zeros((2, n_times), np.int64)
        n_chosen, n_right = np.zeros((2, n_times, n_thetas), np.int64)
        ranked = np.full((n_times, len(RANKINGS)), np.nan)
        return cls(n_known=n_known, n_updated=n_updated, n_chosen=n_chosen, n_right=n_right, ranked=ranked)

    def ranking_rows(self, weeks: float) -> list[Row]:
        """The mean weighted precision of each ranking (HACS Fig. 11)."""
        scored = ~np.isnan(self.ranked[:, 0])
        means = self.ranked[scored].mean(axis=0).tolist() if scored.any() else [None] * len(RANKINGS)
        return [
            {"weeks": weeks, "ranking": name, "weighted_precision": mean, "n_times": int(scored.sum())}
            for name, mean in zip(RANKINGS, means, strict=True)
        ]


def score_rows(counts: ChoiceCounts, weeks: float, thetas: Sequence[float]) -> Iterator[Row]:
    """Precision, recall and F1 of each opponent at each threshold, over all reference times together and as a mean over them.

    `random` picks as many of the same pages; its scores are expectations, without drawing.
    """
    for i, theta in enumerate(thetas):
        n_chosen = counts.n_chosen[:, i]
        by_chance = n_chosen * counts.n_updated / np.maximum(counts.n_known, 1)
        opponents = {
            "history-aware": (n_chosen, counts.n_right[:, i].astype(np.float64)),
            "random": (n_chosen, by_chance),
            "brute-force": (counts.n_known, counts.n_updated.astype(np.float64)),
        }
        for name, (chosen, right) in opponents.items():
            common: Row = {"weeks": weeks, "theta": theta, "policy": name}
            common |= {"n_times": len(chosen), "chosen_rate": _over(chosen.sum(), counts.n_known.sum())}
            yield common | {"average": "micro"} | _micro(chosen, right, counts.n_updated)
            yield common | {"average": "macro"} | _macro(chosen, right, counts.n_updated)


def _micro(chosen: Ints, right: Floats, updated: Ints) -> Row:
    return {
        "precision": _over(right.sum(), chosen.sum()),
        "recall": _over(right.sum(), updated.sum()),
        "f1": _over(2 * right.sum(), chosen.sum() + updated.sum()),
    }


def _macro(chosen: Ints, right: Floats, updated: Ints) -> Row:
    """Means over the times at which a score is defined: something was chosen, something was updated, or either.

    `f1_where_right` leaves out the times at which nothing that was chosen was right. It flatters methods that choose little, and
    seems to be what the paper's Table I shows: random choices there have a macro F1 of 0.678 at precision 0.034 and recall 0.026.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * right / (chosen + updated)
        return {
            "precision": _mean(right / chosen, chosen > 0),
            "recall": _mean(right / updated, updated > 0),
            "f1": _mean(f1, chosen + updated > 0),
            "f1_where_right": _mean(f1, right > 0),
        }


def best_rows(scores: Sequence[Row]) -> list[Row]:
    """For each window and average the threshold of the highest F1 (HACS Table I), with the opponents at that threshold."""
    best = []
    for average in AVERAGES:
        rows = [row for row in scores if row["average"] == average]
        ours = [row for row in rows if row["policy"] == "history-aware" and row["f1"] is not None]
        if ours:
            # Of thresholds that choose the same pages, the highest.
            theta = max(ours, key=lambda row: (round(float(row["f1"]), 12), row["theta"]))["theta"]
            best += [row for row in rows if row["theta"] == theta]
    return best


def weighted_precisions(
    probability: Floats, quiet_since: Ints, following: Ints, random: np.random.Generator
) -> tuple[float, float, float]:
    """Weighted P@K of `RANKINGS`: by probability, by the time without an update, and at random (HACS section III-C).

    P@K is the part of the first K pages that is also among the K pages updated first after t. It is averaged over all K with the
    weight 1/log2(K + 1), the usual logarithmic decay, which the paper does not spell out. Equal pages are in random order, a
    different one in each ranking: among them are all that are not updated any more, and on a grid all that are updated
    in the same round. The random ranking is given its expectation, K/n at every K.
    """
    if not len(following) or following.min() == np.iinfo(np.int64).max:
        return (np.nan, np.nan, np.nan)
    weights, by_chance = _weights(len(following))
    expected = _order(following, random)
    return (
        _weighted_overlap(_order(-probability, random), expected, weights),
        _weighted_overlap(_order(quiet_since, random), expected, weights),
        by_chance,
    )


def _order(key: NDArray[Any], random: np.random.Generator) -> Ints:
    return np.lexsort((random.random(len(key)), key))


@lru_cache(maxsize=1024)
def _weights(n: int) -> tuple[Floats, float]:
    """The weights of all K, with a sum of 1, and the weighted precision of a random order."""
    k = np.arange(1, n + 1)
    weights = 1 / np.log2(k + 1)
    weights /= weights.sum()
    return weights, float((weights * k / n).sum())


@njit(cache=True)
def _weighted_overlap(first: Ints, second: Ints, weights: Floats) -> float:
    n_seen = np.zeros(len(first), np.int8)
    n_common, total = 0, 0.0
    for k in range(len(first)):
        for item in (first[k], second[k]):
            n_seen[item] += 1
            n_common += n_seen[item] == 2
        total += weights[k] * n_common / (k + 1)
    return total


def _over(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _mean(values: Floats, defined: Flags) -> float | None:
    return float(values[defined].mean()) if defined.any() else None
