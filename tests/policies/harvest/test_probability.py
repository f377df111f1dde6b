import numpy as np
import pytest
from scipy.special import expit, logit

from recrawl.policies.harvest.probability import ODDS, PSEUDO_VISITS, ProbabilityCalibration


def slow(predicted: list[list[float]], some: list[list[bool]], kept: float, probability: float) -> float:
    """The same cycle by cycle and visit by visit."""
    counts = {(what, is_some, k): 0.0 for what in ("real", "due") for is_some in (0, 1) for k in range(len(ODDS))}
    for cycle in range(len(predicted)):
        for key in counts:
            counts[key] *= kept
        for p, is_some in zip(predicted[cycle], some[cycle], strict=True):
            x = min(max(logit(p), ODDS[0]), ODDS[-1])
            for k, centre in enumerate(ODDS):
                near = max(0.0, 1 - abs(x - centre))
                counts["real", int(is_some), k] += near
                counts["due", 1, k] += near * p
                counts["due", 0, k] += near * (1 - p)

    def moved(k: int) -> float:
        before = PSEUDO_VISITS * expit(ODDS[k])
        real = (counts["real", 1, k] + before) / (counts["real", 0, k] + PSEUDO_VISITS - before)
        due = (counts["due", 1, k] + before) / (counts["due", 0, k] + PSEUDO_VISITS - before)
        return float(np.log(real / due))

    x = logit(probability)
    below = int(np.clip(np.floor(x - ODDS[0]), 0, len(ODDS) - 2))
    part = float(np.clip(x - ODDS[below], 0, 1))
    return float(expit(x + (1 - part) * moved(below) + part * moved(below + 1)))


@pytest.mark.parametrize("kept", [1.0, 0.9])
def test_probabilities_are_those_of_a_plain_count(kept: float) -> None:
    random = np.random.default_rng(4)
    predicted = [random.uniform(0.0001, 0.9999, 30).tolist() for _ in range(6)]
    some = [(random.random(30) < 0.4).tolist() for _ in range(6)]
    calibration = ProbabilityCalibration(kept)
    for of_cycle, outcomes in zip(predicted, some, strict=True):
        calibration.learn(np.array(of_cycle), np.array(outcomes))
    for probability in (0.00002, 0.003, 0.2, 0.5, 0.73, 0.99, 0.99999):
        expected = slow(predicted, some, kept, probability)
        assert np.isclose(calibration.corrected(np.array([probability]))[0], expected)


def test_corrected_probabilities_are_right_however_wrong_the_model_is() -> None:
    random, calibration = np.random.default_rng(0), ProbabilityCalibration(0.98)
    real = random.uniform(0.02, 0.6, 60_000)
    predicted = expit(2.5 * logit(real) + 1.0)  # far too sure of itself
    for part in np.split(np.arange(50_000), 250):
        calibration.learn(predicted[part], random.random(len(part)) < real[part])
    corrected = calibration.corrected(predicted[50_000:])
    assert np.abs(corrected - real[50_000:]).mean() < 0.02
    assert np.abs(predicted[50_000:] - real[50_000:]).mean() > 0.1


def test_probabilities_of_0_and_1_stay_finite() -> None:
    calibration = ProbabilityCalibration(0.98)
    calibration.learn(np.array([0.0, 1.0]), np.array([True, False]))
    assert np.isfinite(calibration.corrected(np.array([0.0, 1.0]))).all()
    calibration.learn(np.empty(0), np.empty(0, bool))
