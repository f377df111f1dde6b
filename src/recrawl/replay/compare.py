"""Is the difference between two policies more than chance? A paired bootstrap over days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.replay.run import Row
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import column

LEVEL = 0.95  #: of the confidence interval
SAMPLES = 10_000
FEW_DAYS = 10  #: fewer days give an interval that is only rough
_CHUNK = 500  # samples drawn at once: memory stays small for histories of many years


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better one policy is than another with the same budget, and how sure that is."""

    policy: str
    against: str
    budget: int
    difference: float | None  # of the coverages, or of the shares of current copies
    low: float | None = None  # ends of the 95% interval
    high: float | None = None
    p_value: float | None = None  # two-sided
    days: int
    note: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than chance at the 5% level."""
        return self.p_value is not None and self.p_value < 1 - LEVEL

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)


def compare(
    run: Replayed,
    reference: Replayed,
    samples: int = SAMPLES,
    seed: int = 0,
    *,
    goal: str = "links",
    by_weight: bool = False,
) -> Comparison:
    """Draw days with replacement, the same for both policies, and see how the difference of their coverages varies.

    Whole days (UTC) are drawn, because what is published in one hour depends on the hours before. A link counts for the day on
    which it was published, whenever it was found; so no policy can find more of a day than there was, and no difference is beyond
    what coverages can differ by. With the goal content the shares of current copies are compared instead, cycle by cycle. A copy
    stays current, or stale, from day to day, so that interval is rather too narrow. `by_weight`: each link or page counts by its
    importance, for runs over pages that differ in it.

    References: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 8 and 13.
    """
    if [row["at"] for row in run.rows] != [row["at"] for row in reference.rows]:
        raise ValueError(f"{run.policy} and {reference.policy} were not replayed over the same cycles")
    gained, published = _by_day(run.rows, *_gained(run.rows, reference.rows, goal, "_weight" if by_weight else ""))
    n_days = len(published)
    names: dict[str, Any] = {"policy": run.policy, "against": reference.policy, "budget": run.budget, "days": n_days}
    if not published.sum():
        return Comparison(**names, difference=None, note="nothing was published")
    difference = float(gained.sum() / published.sum())
    if n_days < 2:
        return Comparison(**names, difference=difference, note="one day only: nothing can be said of chance")
    drawn = _differences(gained, published, samples, seed)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    note = f"only {n_days} days: a rough interval" if n_days < FEW_DAYS else ""
    return Comparison(**names, difference=difference, low=low, high=high, p_value=p_value(drawn), note=note)


def against(runs: Sequence[Replayed], reference: Replayed, samples: int = SAMPLES, seed: int = 0) -> list[Comparison]:
    """Every other run with the same budget, compared with one."""
    others = (run for run in runs if run.budget == reference.budget and run is not reference)
    return [compare(run, reference, samples, seed) for run in others]


def p_value(drawn: Floats) -> float:
    """Twice the share of samples on the rarer side of 0; never 0, since one more sample might always fall there.

    >>> p_value(np.array([0.1] * 19)), p_value(np.array([-0.1, 0.1, 0.2]))
    (0.1, 1.0)
    """
    rarer = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(drawn) + 1))


def _gained(rows: Sequence[Row], reference: Sequence[Row], goal: str, by: str) -> tuple[Floats, Floats]:
    """In every cycle how much more one run has than the other, and how much there was to have; `by`: the end of the columns."""
    if goal == "content":
        return column(rows, f"current{by}") - column(reference, f"current{by}"), np.ones(len(rows))
    return _found_of(rows, f"after{by}") - _found_of(reference, f"after{by}"), column(rows, f"published{by}")


def _found_of(rows: Sequence[Row], after_how_long: str) -> Floats:
    """How many of the links published in each cycle were found, at any time; or what they weigh."""
    found = np.zeros(len(rows))
    for i, row in enumerate(rows):
        for after, n in row[after_how_long]:
            if i >= after:  # published in a cycle that was replayed
                found[i - after] += n
    return found


def _by_day(rows: Sequence[Row], gained: Floats, published: Floats) -> tuple[Floats, Floats]:
    """What was gained and what was published on every calendar day; times are written in UTC."""
    _, day = np.unique([row["at"][:10] for row in rows], return_inverse=True)
    return np.bincount(day, gained).astype(np.float64), np.bincount(day, published).astype(np.float64)


def _differences(gained: Floats, published: Floats, samples: int, seed: int) -> Floats:
    """The difference in every sample; samples of days on which nothing was published say nothing and are left out."""
    random, n_days = np.random.default_rng(seed), len(published)
    chunks = []
    for start in range(0, samples, _CHUNK):
        size = min(_CHUNK, samples - start)
        times = random.multinomial(n_days, np.full(n_days, 1 / n_days), size)
        whole = times @ published
        chunks.append((times @ gained)[whole > 0] / whole[whole > 0])
    return np.concatenate(chunks)
