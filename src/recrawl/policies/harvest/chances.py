"""How likely it is that a page has any new link: as likely as the model says, corrected by how often that came true."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from recrawl.core.arrays import Flags, Floats

ODDS = np.arange(-6.0, 7.0)  #: log odds, around which visits are judged together: from 1 in 400 to 400 in 401
PSEUDO_VISITS = 5.0  #: around each, that are taken to have come true as often as was told


class Chances:
    """Probabilities kept honest: of the visits that were told to be about as likely to bring links, as many must have brought some.

    The log odds of what came, less those of what was told, are the correction at each of `ODDS`; between these it is
    interpolated. So what is told to be more likely may come out as less likely only if it was so.

    kept: share of what was learnt that still counts a cycle later.
    """

    def __init__(self, kept: float) -> None:
        self.kept = kept
        self.came, self.told = np.zeros((2, len(ODDS))), np.zeros((2, len(ODDS)))  # visits without links, and with some

    def corrected(self, told: Floats) -> Floats:
        """How likely it is, given what the model tells.

        >>> chances = Chances(1.0)
        >>> chances.learn(np.full(400, 0.5), np.arange(400) % 10 == 0)  # half of them were told to bring links, a tenth did
        >>> chances.corrected(np.array([0.5, 0.999])).round(2).tolist()
        [0.1, 1.0]
        """
        before = PSEUDO_VISITS * np.stack([expit(-ODDS), expit(ODDS)])
        came, due = np.log(self.came + before), np.log(self.told + before)
        odds = _odds(told)
        corrected: Floats = expit(odds + np.interp(odds, ODDS, (came[1] - came[0]) - (due[1] - due[0])))
        return corrected

    def learn(self, told: Floats, some: Flags) -> None:
        """Set what was told of some visits against whether they brought any."""
        place = np.clip(_odds(told) - ODDS[0], 0.0, len(ODDS) - 1.0)
        below = np.minimum(place.astype(np.int64), len(ODDS) - 2)
        for known, now in ((self.came, some.astype(np.float64)), (self.told, told)):
            known *= self.kept
            # A visit between two of `ODDS` counts for both, the more the nearer: as the correction is interpolated.
            for which, part in ((below, below + 1.0 - place), (below + 1, place - below)):
                known += [np.bincount(which, part * share, len(ODDS)) for share in (1.0 - now, now)]


def _odds(told: Floats) -> Floats:
    odds: Floats = logit(np.clip(told, 1e-12, 1.0 - 1e-12))
    return odds
