"""Several orders made one."""

from __future__ import annotations

import numpy as np

from recrawl.policies.ranking import ranked


def test_the_score_orders_as_tuples_of_the_keys_do() -> None:
    random = np.random.default_rng(0)
    keys = [random.integers(0, 4, 200), random.integers(0, 4, 200) / 3, random.integers(0, 2, 200).astype(bool)]
    score = ranked(*keys)
    rows = list(zip(*(key.tolist() for key in keys), strict=True))
    place = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert score.tolist() == [place[row] for row in rows]


def test_nothing_and_infinities_can_be_ranked() -> None:
    assert ranked(np.empty(0), np.empty(0)).tolist() == []
    assert ranked(np.zeros(3), np.array([np.inf, -np.inf, 0.0])).tolist() == [2, 0, 1]
