import numpy as np
import pytest

from recrawl.core.hashtable import STRIDE
from recrawl.policies.harvest.siblings import Siblings
from recrawl.policies.harvest.unshared import UnsharedLinks, share_if_shared


def test_a_share_worked_out_by_hand() -> None:
    unshared = UnsharedLinks(3, pseudo_links=5.0, share=0.2, per_visit=10.0)
    page = np.array([0, 2])
    assert unshared.share(page).tolist() == [0.2, 0.2]
    # Of 4 links two were shared, and no sibling was visited that could have shown the others; of 40 no sibling showed any, though
    # a shared one would have been shown with 3/4.
    unshared.learn(page, np.array([4, 40]), np.array([2, 40]), np.array([1.0, 0.25]), np.array([1.0, 1.0]))
    assert np.isclose(unshared.share(page)[0], (2 * 0.2 + 5 * 0.2) / (4 + 5))
    assert np.isclose(unshared.share(page)[1], (10 * 0.2 / (0.2 + 0.8 * 0.25) + 5 * 0.2) / (10 + 5))
    assert unshared.share()[1] == 0.2
    unshared.learn(page, np.array([0, 0]), np.array([0, 0]), np.ones(2), np.array([0.5, 0.5]))
    assert np.isclose(unshared.share(page)[0], (2 * 0.2 / 2 + 5 * 0.2) / (4 / 2 + 5))


@pytest.mark.parametrize("real", [0.0, 0.3, 0.9])
def test_the_real_share_is_learnt_though_siblings_miss_links(real: float) -> None:
    chance, unshared = np.random.default_rng(1), UnsharedLinks(1)
    for _ in range(400):
        missed = chance.choice([0.1, 0.4, 0.8])
        own = chance.random(6) < real
        not_shown = own | (chance.random(6) < missed)
        unshared.learn(np.array([0]), np.array([6]), np.array([not_shown.sum()]), np.array([missed]), np.array([0.999]))
    assert abs(unshared.share()[0] - real) < 0.06


def test_pairs_hold_the_share_of_links_that_are_shared_also_reversed() -> None:
    siblings = Siblings(np.zeros(3, np.int64))
    keys = np.array([0 * STRIDE + 1, 0 * STRIDE + 2, 2 * STRIDE + 0])
    siblings.add_new(keys)
    siblings.hit(keys, np.array([4.0, 40.0, 1.0]))
    unshared = np.array([0.5, 0.0, 0.25])
    pairs, turned = siblings.neighbours(unshared), siblings.neighbours(unshared, is_reversed=True)
    assert np.allclose(pairs.if_shared, share_if_shared(pairs.share, unshared[[0, 0, 2]]))
    assert pairs.if_shared[pairs.other == 2].tolist() == [0.999]  # no more than certain
    assert turned.other.tolist() == [2, 0, 0]
    assert np.allclose(turned.if_shared, share_if_shared(turned.share, unshared[turned.other]))
    assert pairs.unshared is unshared
