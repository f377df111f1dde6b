import numpy as np
import pytest
from scipy.special import expit, logit

from recrawl.policies.harvest.chances import ODDS, PSEUDO_VISITS, Chances


def slow(told: list[list[float]], some: list[list[bool]], kept: float, asked: float) -> float:
    """The same cycle by cycle and visit by visit."""
    counts = {(what, is_some, k): 0.0 for what in ("came", "told") for is_some in (0, 1) for k in range(len(ODDS))}
    for cycle in range(len(told)):
        for key in counts:
            counts[key] *= kept
        for chance, is_some in zip(told[cycle], some[cycle], strict=True):
            x = min(max(logit(chance), ODDS[0]), ODDS[-1])
            for k, centre in enumerate(ODDS):
                near = max(0.0, 1 - abs(x - centre))
                counts["came", int(is_some), k] += near
                counts["told", 1, k] += near * chance
                counts["told", 0, k] += near * (1 - chance)

    def moved(k: int) -> float:
        before = PSEUDO_VISITS * expit(ODDS[k])
        came = (counts["came", 1, k] + before) / (counts["came", 0, k] + PSEUDO_VISITS - before)
        due = (counts["told", 1, k] + before) / (counts["told", 0, k] + PSEUDO_VISITS - before)
        return float(np.log(came / due))

    x = logit(asked)
    below = int(np.clip(np.floor(x - ODDS[0]), 0, len(ODDS) - 2))
    part = float(np.clip(x - ODDS[below], 0, 1))
    return float(expit(x + (1 - part) * moved(below) + part * moved(below + 1)))


@pytest.mark.parametrize("kept", [1.0, 0.9])
def test_chances_are_those_of_a_plain_count(kept: float) -> None:
    random = np.random.default_rng(4)
    told = [random.uniform(0.0001, 0.9999, 30).tolist() for _ in range(6)]
    some = [(random.random(30) < 0.4).tolist() for _ in range(6)]
    chances = Chances(kept)
    for one, came in zip(told, some, strict=True):
        chances.learn(np.array(one), np.array(came))
    for asked in (0.00002, 0.003, 0.2, 0.5, 0.73, 0.99, 0.99999):
        assert np.isclose(chances.corrected(np.array([asked]))[0], slow(told, some, kept, asked))


def test_what_is_told_comes_true_as_often_whatever_the_model_told() -> None:
    random, chances = np.random.default_rng(0), Chances(0.98)
    real = random.uniform(0.02, 0.6, 60_000)
    told = expit(2.5 * logit(real) + 1.0)  # far too sure of itself
    for part in np.split(np.arange(50_000), 250):
        chances.learn(told[part], random.random(len(part)) < real[part])
    corrected = chances.corrected(told[50_000:])
    assert np.abs(corrected - real[50_000:]).mean() < 0.02
    assert np.abs(told[50_000:] - real[50_000:]).mean() > 0.1


def test_certainties_are_no_accident() -> None:
    chances = Chances(0.98)
    chances.learn(np.array([0.0, 1.0]), np.array([True, False]))
    assert np.isfinite(chances.corrected(np.array([0.0, 1.0]))).all()
    chances.learn(np.empty(0), np.empty(0, bool))
