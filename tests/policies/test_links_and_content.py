"""New links and changed content in one score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.policies.links_and_content import LinksAndContent, weighed
from recrawl.testing import check_generated, check_policy


@pytest.mark.parametrize(
    "weight", [pytest.param(0.0, marks=pytest.mark.more), 0.5, pytest.param(1.0, marks=pytest.mark.more)]
)
def test_the_policy_for_both_keeps_the_contract_of_policies(weight: float) -> None:
    check_policy(lambda: LinksAndContent(weight))
    check_generated(lambda: LinksAndContent(weight), 20)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_beyond_its_bounds_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="from 0"):
        LinksAndContent(weight)


gains = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=20)


@given(gains, st.floats(0, 1))
def test_the_weighed_gain_grows_with_both(pairs: list[tuple[float, float]], weight: float) -> None:
    links, changed = np.array(pairs).T
    score = weighed(links, changed, weight, np.ones(len(links), np.bool_))
    assert np.isfinite(score).all()
    no_worse = (links[:, None] >= links) & (changed[:, None] >= changed)
    assert (score[:, None] >= score)[no_worse].all()


def test_gains_that_are_expected_of_no_page_do_not_count() -> None:
    none, some, everyone = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.ones(3, np.bool_)
    assert weighed(none, some, 0.5, everyone).tolist() == [0.25, 0.5, 0.75]
    assert weighed(some, none, 0.5, ~everyone).tolist() == [0.0, 0.0, 0.0]
