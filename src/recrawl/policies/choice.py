"""The pages that a policy picked, with what it expects of each and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.policies.budget import Cause

LEVEL = 0.8  #: of the intervals that plans show

PageName = Callable[[int], str]  #: what to call a page in a sentence
Reason = Callable[[int, PageName], str]  #: the sentence for the i-th page picked; other pages are called by name


def by_number(page: int) -> str:
    """A name for a page where nothing better is known."""
    return f"page {page}"


@dataclass(frozen=True)
class Spread:
    """How sure the expected links are: one entry per page."""

    low: Floats  # ends of the interval
    high: Floats
    stated: Floats  # the probability that the count lies within: at least the level, since counts are whole numbers
    any: Floats  # the probability of at least one new link

    @classmethod
    def unknown(cls, n: int) -> Spread:
        """NaN for each of `n` pages: the policy does not say."""
        return cls(*(np.full(n, np.nan) for _ in range(4)))


@dataclass(frozen=True)
class Sentence:
    """A sentence with {fields}, filled in for one page at a time.

    >>> Sentence("waited {hours:.0f} h", {"hours": np.array([3.2, 9.0])})(1, by_number)
    'waited 9 h'
    """

    template: str
    values: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # one entry per page picked

    def __call__(self, i: int, name: PageName) -> str:
        """The sentence for the i-th page."""
        return self.template.format(**{key: values[i] for key, values in self.values.items()})


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The pages picked, the best first, with what is expected of each and why."""

    page: Ints
    score: Floats  # what the policy ranked by
    reason: Reason = Sentence("")
    expected: Floats | None = None  # new links expected, where the policy has a notion of it
    cause: Ints8 | None = None  # one `Cause` for every page there is
    #: For every page left out because of overlap: the picked page that it overlaps with; else -1.
    overlaps: Ints | None = None
    spread: Callable[[Ints, float], Spread] | None = None  # of the i-th, … page picked at a level, worked out on demand
    #: Numbers that the score was multiplied with, such as urgency: one entry per page picked.
    factors: Mapping[str, Floats] = field(default_factory=dict)
    is_trial: Flags | None = None  # picked only to learn how the page changes; None: none was
    #: By what the pages took turns, for every page there is: ascending by the first of these, ties by the next, and then in the
    #: order of the pages. It holds for pages picked and for those that were beyond a cap when it was their turn.
    turn: tuple[NDArray[Any], ...] | None = None
    #: What the policy must remember of this choice: it comes back as `Visits.memo` with the visits made for it.
    memo: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.page)

    @classmethod
    def none(cls) -> Choice:
        """No page at all."""
        return cls(page=np.empty(0, np.int64), score=np.empty(0))

    def why(self, i: int, name: PageName = by_number) -> str:
        """The reason for the i-th page in words; other pages are called by `name`."""
        return self.reason(i, name)

    def spreads(self, level: float = LEVEL) -> Spread:
        """How sure the policy is of each page picked, NaN where it does not say."""
        return Spread.unknown(len(self)) if self.spread is None else self.spread(np.arange(len(self)), level)

    @property
    def trials(self) -> Flags:
        """Which pages were picked only to learn how they change."""
        return np.zeros(len(self), np.bool_) if self.is_trial is None else self.is_trial

    def first(self, n: int) -> Choice:
        """The first `n` pages picked; why others were not picked is not changed."""

        def cut(values: Any) -> Any:
            return None if values is None else values[:n]

        return replace(
            self,
            page=self.page[:n],
            score=self.score[:n],
            expected=cut(self.expected),
            factors={name: values[:n] for name, values in self.factors.items()},
            is_trial=cut(self.is_trial),
        )

    def then(self, other: Choice) -> Choice:
        """This choice and, after it, another one from the rest of the pages."""
        cause = self.cause
        if cause is not None and other.cause is not None:
            cause = np.where(other.cause == Cause.PICKED, other.cause, cause)

        def joined(mine: Floats | None, theirs: Floats | None) -> Floats:
            parts = ((mine, len(self)), (theirs, len(other)))
            return np.concatenate([np.full(n, np.nan) if values is None else values for values, n in parts])

        return Choice(
            page=np.concatenate([self.page, other.page]),
            score=np.concatenate([self.score, other.score]),
            reason=lambda i, name: self.why(i, name) if i < len(self) else other.why(i - len(self), name),
            expected=joined(self.expected, other.expected),
            cause=cause,
            overlaps=self.overlaps,
            spread=None if self.spread is None and other.spread is None else self._joined_spread(other),
            factors={
                name: joined(self.factors.get(name), other.factors.get(name))
                for name in sorted(self.factors.keys() | other.factors.keys())
            },
            is_trial=np.concatenate([self.trials, other.trials]),
            memo={**other.memo, **self.memo},
        )

    def _joined_spread(self, other: Choice) -> Callable[[Ints, float], Spread]:
        """How sure both choices are, NaN where one does not say."""

        def spread(which: Ints, level: float) -> Spread:
            joined = Spread.unknown(len(which))
            for choice, here, start in ((self, which < len(self), 0), (other, which >= len(self), len(self))):
                if choice.spread is not None and here.any():
                    part = choice.spread(which[here] - start, level)
                    for name in ("low", "high", "stated", "any"):
                        getattr(joined, name)[here] = getattr(part, name)
            return joined

        return spread
