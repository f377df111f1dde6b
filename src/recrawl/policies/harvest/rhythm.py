"""A clock that runs faster in busy hours: how many new links come in each hour of the week, learnt from all pages."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats

HOURS = 168  #: of a week
MAX_GAP = 12.0  #: hours: what came in a longer time says too little about the hour


class Rhythm:
    """Time as pages live it. Its mean speed over a week is 1, so an hour by this clock is an hour on average.

    `pseudo_links`: as many links as must have come in an hour of the week until its own speed weighs as much as that of its hour of
    the day and its day of the week; and in these, until they weigh as much as the mean.

    >>> rhythm = Rhythm()
    >>> float(rhythm.at(np.array([1000.0]))[0])  # nothing learnt yet: plain hours
    1000.0
    """

    def __init__(self, pseudo_links: float = 300.0) -> None:
        self.pseudo_links = pseudo_links
        self.came, self.due = np.zeros(HOURS), np.zeros(HOURS)  # links that came, and that a steady clock would expect
        self.speed = np.ones(HOURS)
        self._until = np.arange(HOURS + 1.0)  # the clock at the beginning of each hour of a week

    def at(self, hours: Floats | float) -> Floats:
        """The clock at times in hours since 1970; NaN where the time is."""
        week, hour = np.divmod(np.asarray(hours, np.float64), HOURS)
        whole = np.minimum(np.nan_to_num(hour).astype(np.int64), HOURS - 1)
        return np.asarray(week * self._until[-1] + self._until[whole] + (hour - whole) * self.speed[whole])

    def learn(self, since: Floats, now: float, n_links: Floats, rate: Floats) -> None:
        """Add visits: links that came on a page between two visits, and its rate (links an hour)."""
        short = (now - since <= MAX_GAP) & (since < now)
        if short.any():
            _spread(since[short], now, n_links[short], rate[short], self.speed, self.came, self.due)

    def refit(self) -> None:
        """Set the clock by what was learnt: an hour of the week is as busy as that hour of the day and that day, until it shows."""
        if self.came.sum() <= 0 or self.due.sum() <= 0:
            return
        came = self.came.reshape(7, 24)
        due = self.due.reshape(7, 24) * (self.came.sum() / self.due.sum())
        hour = self._drawn(came.sum(axis=0), due.sum(axis=0), 1.0)
        day = self._drawn(came.sum(axis=1), (due * hour).sum(axis=1), 1.0)
        speed = self._drawn(came, due, day[:, None] * hour).ravel()
        self.speed = speed / speed.mean()
        self._until = np.append(0.0, np.cumsum(self.speed))

    def _drawn(self, came: Floats, due: Floats, speed: Floats | float) -> Floats:
        """What came by what was due, drawn to a speed as if so many links more had come at that."""
        drawn: Floats = (came + self.pseudo_links) / (due + self.pseudo_links / speed)
        return drawn


@njit(cache=True)
def _spread(since, now, n_links, rate, speed, came, due):  # type: ignore[no-untyped-def]
    """Share the links of every visit out to the hours they may have come in, by the speed of each."""
    for i in range(len(since)):
        whole = 0.0
        for turn in range(2):
            start = since[i]
            while start < now - 1e-9:
                hour = np.floor(start + 1e-9)
                end = min(hour + 1.0, now)
                place = int(hour) % HOURS
                if turn == 0:
                    whole += (end - start) * speed[place]
                else:
                    came[place] += n_links[i] * (end - start) * speed[place] / whole
                    due[place] += rate[i] * (end - start)
                start = end
