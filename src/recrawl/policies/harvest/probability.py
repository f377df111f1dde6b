"""How likely a page has any new link: as the model predicts, corrected by how often its predictions were right."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from recrawl.core.arrays import Flags, Floats

ODDS = np.arange(-6.0, 7.0)  #: log odds around which visits are judged together: from 1 in 400 to 400 in 401
PSEUDO_VISITS = 5.0  #: visits around each of these, as if the predictions for them had been right


class ProbabilityCalibration:
    """Calibrated probabilities: of the visits predicted to bring links with probability p, a share of p must have brought some.

    The correction at each of `ODDS` is the log odds of the outcomes less those of the predictions; between these it is
    interpolated. So a higher prediction becomes a lower probability only if it was so in the past.

    kept: share of what was learnt that still counts a cycle later.
    """

    def __init__(self, kept: float) -> None:
        self.kept = kept
        # Visits without links and visits with some, as they were and as they were predicted.
        self.outcomes, self.predictions = np.zeros((2, len(ODDS))), np.zeros((2, len(ODDS)))

    def corrected(self, predicted: Floats) -> Floats:
        """The probability, given that of the model.

        >>> calibration = ProbabilityCalibration(1.0)
        >>> calibration.learn(np.full(400, 0.5), np.arange(400) % 10 == 0)  # half was predicted to bring links, a tenth did
        >>> calibration.corrected(np.array([0.5, 0.999])).round(2).tolist()
        [0.1, 1.0]
        """
        before = PSEUDO_VISITS * np.stack([expit(-ODDS), expit(ODDS)])
        real, due = np.log(self.outcomes + before), np.log(self.predictions + before)
        odds = _odds(predicted)
        corrected: Floats = expit(odds + np.interp(odds, ODDS, (real[1] - real[0]) - (due[1] - due[0])))
        return corrected

    def learn(self, predicted: Floats, some: Flags) -> None:
        """Compare the predictions for some visits with whether they brought any links."""
        place = np.clip(_odds(predicted) - ODDS[0], 0.0, len(ODDS) - 1.0)
        below = np.minimum(place.astype(np.int64), len(ODDS) - 2)
        for known, now in ((self.outcomes, some.astype(np.float64)), (self.predictions, predicted)):
            known *= self.kept
            # A visit between two of `ODDS` counts for both, the more the nearer: as the correction is interpolated.
            for which, part in ((below, below + 1.0 - place), (below + 1, place - below)):
                known += [np.bincount(which, part * share, len(ODDS)) for share in (1.0 - now, now)]


def _odds(probability: Floats) -> Floats:
    odds: Floats = logit(np.clip(probability, 1e-12, 1.0 - 1e-12))
    return odds
