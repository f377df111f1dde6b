"""Numbers given for every page."""

from __future__ import annotations

import numpy as np
import pytest

from made_visits import unseen
from recrawl.policies.base import Policy
from recrawl.policies.freshness_value import FreshnessValue
from recrawl.policies.lambda_crawl import LambdaCrawl
from recrawl.policies.nutch_adaptive import NutchAdaptive
from recrawl.policies.stormcrawler_adaptive import StormcrawlerAdaptive
from recrawl.policies.weights import weights_for


def test_pages_without_numbers_are_equal() -> None:
    assert weights_for(unseen(3), None, "score").tolist() == [1, 1, 1]
    assert weights_for(unseen(2), np.array([0, 5]), "score").tolist() == [0, 5]


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_a_number_that_is_none_is_refused_by_its_value(wrong: float) -> None:
    with pytest.raises(ValueError, match=f"importance holds {wrong}"):
        weights_for(unseen(2), np.array([1.0, wrong]), "importance")


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (NutchAdaptive(score=np.ones(2)), "score"),
        (StormcrawlerAdaptive(score=np.ones(2)), "score"),
        (LambdaCrawl(importance=np.ones(2)), "importance"),
        (FreshnessValue(importance=np.ones(2)), "importance"),
    ],
)
def test_numbers_for_another_number_of_pages_are_refused(policy: Policy, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} holds 2 numbers for 3 pages"):
        policy.start(unseen(3))
