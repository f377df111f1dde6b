"""Least squares on what is known of pages, fitted from sums by cycle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Protocol

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.times import US_PER_HOUR

N_PAGE_FEATURES = 4  #: avg, std, age, avg · age; columns of content follow, if any
N_CLOCK = 24 + 7  #: one column for each hour and each weekday, after all others
THURSDAY = 3 * 24  # 1970 began on a Thursday, and weeks begin on Monday
# Where every page was visited in every cycle, age hardly varies, and mean and mean · age are nearly the same. Chance
# differences between them must not be extrapolated to a page that waited for another time.
#: A column that varies by less than this share of its mean has no weight.
NEARLY_CONSTANT = 1e-2
#: Nor has one that varies by less than this: rounding does, and a page with another value would get any number.
TINY = 1e-9
#: Nor has a direction whose eigenvalue is below this share of the greatest.
NEARLY_DEPENDENT = 1e-6


@dataclass
class CycleExamples:
    """The visits of a cycle to learn from."""

    not_kept: ClassVar[tuple[str, ...]] = ("_sums",)

    features: Floats  # [visit, page feature], as the pages were known before
    n_new: Ints
    at: Ints  # microseconds, UTC
    _sums: tuple[Sums, ...] | None = None

    def sums(self) -> tuple[Sums, ...]:
        """All that least squares needs, worked out once: a cycle is part of many fits."""
        if self._sums is None:
            self._sums = tuple(Sums.of(self))
        return self._sums


class LinearLearner(Protocol):
    """Learns a linear combination of the features from the cycles of the past."""

    def is_enough(self, cycles: Sequence[CycleExamples]) -> bool:
        """Whether there is anything to learn from."""

    def fit(self, cycles: Sequence[CycleExamples]) -> Linear:
        """What was learnt."""


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares from sums by cycle: a fit takes no longer for five hundred visits per cycle than for one."""

    def is_enough(self, cycles: Sequence[CycleExamples]) -> bool:
        """Whether there was any visit."""
        return any(len(cycle.n_new) for cycle in cycles)

    def fit(self, cycles: Sequence[CycleExamples]) -> Linear:
        """The weights for all visits of these cycles."""
        return Linear.fit([sums for cycle in cycles for sums in cycle.sums()])


def features(mean: Floats, std: Floats, age: Floats) -> Floats:
    """The columns that differ from page to page (section 4.2)."""
    age = np.where(np.isfinite(age), age, 0.0)
    return np.column_stack([mean, std, age, mean * age])


def clock(at: datetime) -> tuple[int, int]:
    """Hour of the day, and day of the week from Monday on, in UTC."""
    utc = at.astimezone(UTC)
    return utc.hour, utc.weekday()


@dataclass(frozen=True, kw_only=True)
class Sums:
    """All that least squares needs of the visits of a cycle in one hour of the week: they share it, so their sums are enough."""

    hour: int
    day: int
    n: int
    x: Floats
    xx: Floats
    y: float
    xy: Floats

    @classmethod
    def of(cls, examples: CycleExamples) -> Iterator[Sums]:
        """The sums over visits with these page features and numbers of new links, for each hour of the week."""
        hours = (examples.at // US_PER_HOUR + THURSDAY) % (7 * 24)
        if not len(hours):
            return
        is_one = hours.min() == hours.max()  # mostly so: then nothing has to be taken apart
        for hour in hours[:1].tolist() if is_one else np.unique(hours).tolist():
            here = slice(None) if is_one else hours == hour
            x, y = examples.features[here], examples.n_new[here]
            yield cls(
                hour=hour % 24,
                day=hour // 24,
                n=len(y),
                x=x.sum(axis=0),
                xx=x.T @ x,
                y=float(y.sum()),
                xy=x.T @ y.astype(np.float64),
            )


class Linear:
    """Least squares, of smallest norm where columns depend on each other, as hours and weekdays always do."""

    def __init__(self, weight: Floats, intercept: float) -> None:
        self.weight, self.intercept = weight, intercept

    @classmethod
    def fit(cls, cycles: Sequence[Sums]) -> Linear:
        """The weights for the visits of these cycles.

        Columns of content are many: each is shrunk as if there were one more visit per column in which it played no part (ridge).
        """
        n_own = len(cycles[0].x)
        n_all = n_own + N_CLOCK
        gram, target, total = np.zeros((n_all, n_all)), np.zeros(n_all), np.zeros(n_all)
        own = slice(0, n_own)
        for cycle in cycles:
            hour, day = n_own + cycle.hour, n_own + 24 + cycle.day
            gram[own, own] += cycle.xx
            for column, other in ((hour, day), (day, hour)):
                gram[own, column] += cycle.x
                gram[column, own] += cycle.x
                gram[column, column] += cycle.n
                gram[column, other] += cycle.n
                target[column] += cycle.y
                total[column] += cycle.n
            target[own] += cycle.xy
            total[own] += cycle.x
        n, y = sum(cycle.n for cycle in cycles), sum(cycle.y for cycle in cycles)
        mean = total / n
        centred = gram - n * np.outer(mean, mean)
        scale = np.sqrt(np.maximum(np.diag(centred), 0.0) / n)
        scale[scale <= np.maximum(NEARLY_CONSTANT * np.abs(mean), TINY)] = np.inf
        scaled = centred / np.outer(scale, scale)
        of_content = np.arange(N_PAGE_FEATURES, n_own)
        scaled[of_content, of_content] += len(of_content)
        weight = np.linalg.lstsq(scaled, (target - y * mean) / scale, rcond=NEARLY_DEPENDENT)[0] / scale
        return cls(weight, float(y / n - mean @ weight))

    def predict(self, x: Floats, now: datetime) -> Floats:
        """New links expected of pages with these features at this time."""
        hour, day = clock(now)
        own, of_clock = self.weight[:-N_CLOCK], self.weight[-N_CLOCK:]
        predicted: Floats = x @ own + (self.intercept + of_clock[hour] + of_clock[24 + day])
        return predicted
