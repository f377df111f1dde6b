"""Rows that a model learns from: the pages of several rounds, the oldest round first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.core.arrays import Floats32
from recrawl.insight.features import FeatureInputs, Features
from recrawl.insight.targets import Target

MAX_ROWS = 400_000  #: more would add little but time


def pooled(
    known: FeatureInputs,
    target: Target,
    features: Features,
    rounds: Sequence[int],
    seed: int = 0,
    max_rows: int = MAX_ROWS,
) -> tuple[Floats32, Floats32]:
    """Rows of several rounds, those with a known target; a random part of them if there are more than `max_rows`."""
    chance = np.random.default_rng(seed)
    truths = [target.values(known.panel, of_round) for of_round in rounds]
    share = min(1.0, max_rows / max(sum(int((~np.isnan(truth)).sum()) for truth in truths), 1))
    blocks = []
    for of_round, truth in zip(rounds, truths, strict=True):
        pages = np.flatnonzero(~np.isnan(truth))
        if share < 1:
            pages = np.sort(chance.choice(pages, int(share * len(pages)), replace=False))
        blocks.append((known.matrix(features, of_round)[pages], truth[pages]))
    if not blocks:
        return np.empty((0, len(features)), np.float32), np.empty(0, np.float32)
    return np.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])
