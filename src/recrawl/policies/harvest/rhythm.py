"""A clock that runs faster in busy hours: how many new links arrive in each hour of the week, learnt from all pages."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats
from recrawl.core.exact_sums import ExactSums

HOURS = 168  #: of a week
MAX_GAP = 12.0  #: hours: links of a longer time say too little about the hour


class Rhythm:
    """A clock with the rhythm of the pages. Its mean speed over a week is 1, so an hour by this clock is an hour on average.

    `pseudo_links`: links after which the speed of an hour of the week weighs as much as that of its hour of the day and its day of
    the week; and in these, links after which they weigh as much as the mean.

    >>> rhythm = Rhythm()
    >>> float(rhythm.at(np.array([1000.0]))[0])  # nothing learnt yet: plain hours
    1000.0
    """

    def __init__(self, pseudo_links: float = 300.0) -> None:
        self.pseudo_links = pseudo_links
        # New links by hour, and as many as a steady clock would expect.
        self.arrivals, self.due = np.zeros(HOURS), np.zeros(HOURS)
        self.speed = np.ones(HOURS)
        self._until = np.arange(HOURS + 1.0)  # the clock at the beginning of each hour of a week

    def at(self, hours: Floats | float) -> Floats:
        """The clock at times in hours since 1970; NaN where the time is."""
        week, hour = np.divmod(np.asarray(hours, np.float64), HOURS)
        whole = np.minimum(np.nan_to_num(hour).astype(np.int64), HOURS - 1)
        return np.asarray(week * self._until[-1] + self._until[whole] + (hour - whole) * self.speed[whole])

    def by_hour(self, since: Floats, now: Floats, n_links: Floats, rate: Floats) -> ExactSums:
        """By the hours of the week: links that arrived on pages between two visits, then those due at their rates (per hour)."""
        short, sums = (now - since <= MAX_GAP) & (since < now), ExactSums(2 * HOURS)
        if short.any():
            visits = since[short], now[short], n_links[short], rate[short]
            place, arrived, due = _spread(*visits, self.speed, int(MAX_GAP) + 2)
            sums.add(arrived, place)
            sums.add(due, HOURS + place)
        return sums

    def learn(self, by_hour: Floats) -> None:
        """Add visits, as `by_hour` says."""
        self.arrivals, self.due = self.arrivals + by_hour[:HOURS], self.due + by_hour[HOURS:]

    def refit(self) -> None:
        """Set the clock: an hour of the week is as busy as its hour of the day and its day, unless its own links say otherwise."""
        if self.arrivals.sum() <= 0 or self.due.sum() <= 0:
            return
        arrivals = self.arrivals.reshape(7, 24)
        due = self.due.reshape(7, 24) * (self.arrivals.sum() / self.due.sum())
        hour = self._shrunk(arrivals.sum(axis=0), due.sum(axis=0), 1.0)
        day = self._shrunk(arrivals.sum(axis=1), (due * hour).sum(axis=1), 1.0)
        speed = self._shrunk(arrivals, due, day[:, None] * hour).ravel()
        self.speed = speed / speed.mean()
        self._until = np.append(0.0, np.cumsum(self.speed))

    def _shrunk(self, arrivals: Floats, due: Floats, speed: Floats | float) -> Floats:
        """Arrivals divided by what was due, shrunk towards a speed as if `pseudo_links` more had arrived at that speed."""
        shrunk: Floats = (arrivals + self.pseudo_links) / (due + self.pseudo_links / speed)
        return shrunk


@njit(cache=True)
def _spread(since, now, n_links, rate, speed, most):  # type: ignore[no-untyped-def]
    """The links of every visit divided among the hours in which they may have arrived (`most` for each), by the speed of each."""
    places = np.empty(most * len(since), np.int64)
    arrivals, due, n = np.empty(len(places)), np.empty(len(places)), 0
    for i in range(len(since)):
        whole = 0.0
        for turn in range(2):
            start = since[i]
            while start < now[i] - 1e-9:
                hour = np.floor(start + 1e-9)
                end = min(hour + 1.0, now[i])
                place = int(hour) % HOURS
                if turn == 0:
                    whole += (end - start) * speed[place]
                else:
                    places[n] = place
                    arrivals[n] = n_links[i] * (end - start) * speed[place] / whole
                    due[n] = rate[i] * (end - start)
                    n += 1
                start = end
    return places[:n], arrivals[:n], due[:n]
