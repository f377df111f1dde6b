"""Votes by past accuracy: beside a plain version, without the future, and where one expert among twenty knows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leaders import N_ROUNDS, leaders_and_followers
from recrawl.models.experts import learn
from recrawl.models.experts.examples import ExpertExamples
from recrawl.models.experts.selection import choose
from recrawl.models.experts.votes import vote_by_accuracy

N_TRAIN = 50


def slow_vote(opinions: list[list[int]], prior: list[float], outcome: list[int], sigma: int) -> list[float]:
    """AdaHedge (de Rooij et al. 2014, Fig. 1) with a prior, and sleeping experts: everything again at every time."""
    votes = []
    for t in range(len(outcome)):
        losses, gap = [0.0] * len(prior), 0.0
        for s in range(t - sigma + 1):
            if outcome[s] < 0:
                continue
            weights, rate = hedged(losses, prior, gap)
            awake = [i for i, opinion in enumerate(opinions) if opinion[s] and prior[i] > 0]
            total = sum(weights[i] for i in awake)
            if total <= 0:
                continue
            lost = {i: float((opinions[i][s] > 0) != (outcome[s] == 1)) for i in awake}
            mean = sum(weights[i] * lost[i] for i in awake) / total
            if rate == math.inf:
                mixed = min(lost[i] for i in awake if weights[i] > 0)
            else:
                mixed = -math.log(sum(weights[i] / total * math.exp(-rate * lost[i]) for i in awake)) / rate
            gap += max(mean - mixed, 0.0)
            losses = [before + lost.get(i, mean) for i, before in enumerate(losses)]
        weights, _ = hedged(losses, prior, gap)
        heard = sum(w for w, opinion in zip(weights, opinions, strict=True) if opinion[t])
        side = sum(w * opinion[t] for w, opinion in zip(weights, opinions, strict=True))
        votes.append(side / heard if heard else math.nan)
    return votes


def hedged(losses: list[float], prior: list[float], gap: float) -> tuple[list[float], float]:
    rate = math.log(max(len(prior), 2)) / gap if gap > 0 else math.inf
    least = min(loss for loss, weight in zip(losses, prior, strict=True) if weight > 0)
    behind = [loss - least if loss - least > 1e-12 else 0.0 for loss in losses]
    raw = [
        0.0 if weight <= 0 else weight * (1.0 if not b else 0.0 if rate == math.inf else math.exp(-rate * b))
        for weight, b in zip(prior, behind, strict=True)
    ]
    return [value / sum(raw) for value in raw], rate


@pytest.mark.parametrize("sigma", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_votes_are_those_of_the_plain_version(seed: int, sigma: int) -> None:
    chance = np.random.default_rng(seed)
    signs = chance.choice([-1, 0, 1], (5, 40), p=[0.4, 0.1, 0.5])
    outcome, prior = chance.integers(-1, 2, 40), np.append(chance.random(4), 0.0)
    signs[1] = np.where(chance.random(40) < 0.8, np.where(outcome == 1, 1, -1), signs[1])  # one that knows
    opinions = np.where(signs == 0, np.nan, signs * chance.random(signs.shape))
    found = vote_by_accuracy(opinions, prior, outcome.astype(np.int8), sigma)
    expected = slow_vote(signs.tolist(), prior.tolist(), outcome.tolist(), sigma)
    np.testing.assert_allclose(found, expected, atol=1e-9, equal_nan=True)


def test_before_anything_is_known_the_vote_is_the_papers() -> None:
    opinions, weight = np.array([[1.0], [-1.0], [-1.0]]), np.array([0.5, 0.2, 0.1])
    found = vote_by_accuracy(opinions, weight, np.array([-1], np.int8), 1)
    assert found[0] == pytest.approx(learn.vote(opinions, weight)[0] / weight.sum())


def test_no_vote_depends_on_a_later_outcome() -> None:
    chance = np.random.default_rng(1)
    opinions, label = chance.normal(size=(6, 60)), chance.integers(0, 2, 60).astype(np.int8)
    other, sigma, last = label.copy(), 2, 30
    other[last - sigma + 1 :] = 1 - other[last - sigma + 1 :]
    one, two = (vote_by_accuracy(opinions, np.ones(6), each, sigma) for each in (label, other))
    np.testing.assert_array_equal(one[: last + 1], two[: last + 1])
    assert (one[last + 1 :] != two[last + 1 :]).any()


def test_one_expert_that_knows_is_heard_among_twenty() -> None:
    contents, change = leaders_and_followers(n_pairs=12)
    experts = choose(contents.window(0, N_TRAIN), 20, "cross-correlation")
    examples, machine = ExpertExamples(contents, change), learn.Machine(N_TRAIN)
    right: dict[str, list[float]] = {"one": [], "similarity": [], "accuracy": []}
    for page in range(1, 24, 2):
        asked, weight = experts.of(page)
        assert asked[0] == page - 1  # its leader is the nearest
        weights = np.append(experts.own_weight[page], weight)
        opinions, label = learn.opinions(examples, page, [page, *asked], machine), examples.label(page)
        judged = (label >= 0) & (np.arange(N_ROUNDS) >= N_TRAIN - 1)
        votes = {
            "one": learn.vote(opinions[:2], weights[:2]),
            "similarity": learn.vote(opinions, weights),
            "accuracy": vote_by_accuracy(opinions, weights, label, 1),
        }
        for name, vote in votes.items():
            right[name].append(float(((vote > 0) == (label == 1))[judged].mean()))
    assert np.mean(right["one"]) > 0.87
    assert np.mean(right["similarity"]) < 0.65
    assert np.mean(right["accuracy"]) >= 0.85
