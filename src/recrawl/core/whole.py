"""What all parts of a collection have in common: sums, counts and samples over parts that may be in different processes.

Most of what is learnt of a page rests on its own past and that of its site. The rest is worked out together: every part makes its
own contribution, and all get the same result, which depends neither on how many parts there are nor on their order. Where a
collection is in one piece, its own contribution is all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32

if TYPE_CHECKING:
    from recrawl.core.exact_sums import ExactSums  # compiled, which takes a second to import

P = TypeVar("P")
R = TypeVar("R")
Columns = Mapping[str, NDArray[Any]]  #: of equal length


class Whole:
    """A collection in one piece. An engine has its own kind, which asks the other parts as well.

    >>> whole = Whole()
    >>> whole.total("links", lambda: np.full(10, 0.1)), whole.count("pages", lambda: 3)
    (1.0, 3)
    """

    def together(self, name: str, contribute: Callable[[], P], join: Callable[[Sequence[P]], R]) -> R:
        """The result of joining the contributions of all parts; `join` is a function of a module, so that it can be named.

        `name` says what is asked for, and differs from all others until more is learnt. All parts must ask for the same things in
        the same order. Contributions are only worked out if the result is not known yet.
        """
        return join([contribute()])

    def once(self, name: str, work: Callable[[], P]) -> P:
        """The result of work of one's own that need not be done again if asking is interrupted later on."""
        return work()

    def named(self, prefix: str) -> Whole:
        """The same, asked by names that begin so."""
        return self

    def total(self, name: str, terms: Callable[[], Floats]) -> float:
        """The exact sum of the terms of all parts."""

        def contribute() -> ExactSums:
            from recrawl.core.exact_sums import ExactSums

            sums = ExactSums()
            sums.add(terms())
            return sums

        return float(self.totals(name, contribute)[0])

    def totals(self, name: str, sums: Callable[[], ExactSums]) -> Floats:
        """The exact sums of all parts."""
        return self.together(name, sums, added)

    def count(self, name: str, number: Callable[[], int]) -> int:
        """The sum of a number of each part."""
        return int(self.together(name, lambda: int(number()), counted))

    def counts(self, name: str, numbers: Callable[[], Ints]) -> Ints:
        """The sums of some numbers of each part."""
        return self.together(name, numbers, counted)

    def greatest(self, name: str, number: Callable[[], float]) -> float:
        """The greatest of a number of each part."""
        return self.together(name, lambda: float(number()), greatest)

    def rows(self, name: str, columns: Callable[[], Columns]) -> Columns:
        """The rows of all parts, in the order of the first column, which no two of them share."""
        return self.together(name, columns, sorted_rows)

    def best(self, name: str, n: int, value: Floats, page: Ints) -> Ints:
        """Which of these pages, in their order, are among the `n` of greatest value in all parts: their places, the best first."""
        return np.argsort(-value, kind="stable")[:n]

    def first_claims(self, link: Ints32, worth: Floats, page: Ints) -> Flags:
        """Which links, each shown by a page that is visited for its worth, no page of another part shows that comes first."""
        return np.ones(len(link), np.bool_)


ONE_PIECE = Whole()


def added(parts: Sequence[ExactSums]) -> Floats:
    """The sums of several parts."""
    from recrawl.core.exact_sums import ExactSums

    sums = ExactSums(len(parts[0].digits))
    for part in parts:
        sums.include(part)
    return sums.values()


def counted(parts: Sequence[Any]) -> Any:
    """Whole numbers, or arrays of them, added."""
    return sum(parts[1:], start=parts[0])


def greatest(parts: Sequence[float]) -> float:
    """The greatest number."""
    return max(parts)


def sorted_rows(parts: Sequence[Columns]) -> Columns:
    """All rows in the order of their first column.

    >>> rows = sorted_rows([{"id": np.array([5, 1]), "size": np.array([2.0, 3.0])}, {"id": np.array([4]), "size": np.array([7.0])}])
    >>> rows["size"].tolist()
    [3.0, 7.0, 2.0]
    """
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(next(iter(joined.values())), kind="stable")
    return {name: values[order] for name, values in joined.items()}


def sampled(ids: Ints, n_all: int, most: int) -> Ints:
    """About `most` of the rows of all parts, always the same ones, by ids that are as good as random; all, if there are no more.

    >>> ids = np.arange(1000) * 7_000_000_000_000_007
    >>> len(sampled(ids, 1000, 1000)), 100 < len(sampled(ids, 1000, 200)) < 250
    (1000, True)
    """
    every = n_all // most + 1 if n_all > most else 1
    return np.flatnonzero(_mixed(ids) % np.uint64(every) == 0) if every > 1 else np.arange(len(ids))


def _mixed(ids: Ints) -> NDArray[np.uint64]:
    """Ids whose low bits depend on all of their bits."""
    mixed = ids.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))
