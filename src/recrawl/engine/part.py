"""A part of a collection, in a task of its own: what it asks of the whole, others answer between two tasks.

A task cannot wait for others. So it stops where it asks something that is not answered yet, and hands in its own contribution. When
all parts have done so, the answer is worked out, and the task begins again where it was: what was answered is not asked again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.core.whole import Whole

P = TypeVar("P")
R = TypeVar("R")
Key = tuple[Any, ...]  #: by which pages are ordered: numbers, the batch in which the page became known, its URL
SAMPLES = 500  #: keys that each part shows of its list, to find out where a cut is


class Asked(Exception):
    """Something that all parts must contribute to before this one can go on."""

    def __init__(self, scope: str, name: str, join: str, contribution: Any) -> None:
        super().__init__(f"{scope}: {name}")
        self.scope, self.name, self.join, self.contribution = scope, name, join, contribution


@dataclass
class PageOrder:
    """What decides the order of the pages of a part among those of all: the batch in which each became known, and its URL."""

    known_in: Ints
    url: pa.Array

    def keys(self, page: Ints) -> list[tuple[int, str]]:
        """The keys of some pages."""
        return list(zip(self.known_in[page].tolist(), self.url.take(pa.array(page)).to_pylist(), strict=True))


class PartOfWhole(Whole):
    """The whole, seen from a part; `answers` are those known so far, by scope and name."""

    def __init__(self, order: PageOrder) -> None:
        self.order = order
        self.scope, self.prefix = "", ""
        self.answers: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.link_ids: Ints = np.empty(0, np.int64)  # of the links that are new here, which come after so many others
        self.n_links_before = 0

    def together(self, name: str, contribute: Callable[[], P], join: Callable[[Sequence[P]], R]) -> R:
        """The answer, if it is known; else this part's contribution is handed in."""
        name = self.prefix + name
        key = f"{self.scope}: {name}"
        if key not in self.answers:
            raise Asked(self.scope, name, f"{join.__module__}:{join.__qualname__}", contribute())
        answer: R = self.answers[key]
        return answer

    def forget(self, scope: str) -> None:
        """Drop the answers to what was asked in scopes that begin so: nobody will ask again."""
        self.results.clear()
        for key in [key for key in self.answers if key.startswith(scope)]:
            del self.answers[key]

    def once(self, name: str, work: Callable[[], P]) -> P:
        """The result of work of this part's own, kept until the scope ends."""
        key = f"{self.scope}: {self.prefix}{name}"
        if key not in self.results:
            self.results[key] = work()
        result: P = self.results[key]
        return result

    def named(self, prefix: str) -> PartOfWhole:
        """The same, asked by names that begin so."""
        other = copy(self)
        other.prefix = self.prefix + prefix
        return other

    def best(self, name: str, n: int, value: Floats, page: Ints) -> Ints:
        """Those of these pages that are among the `n` of greatest value in all parts."""
        order = np.argsort(-value, kind="stable")
        return order[: self.n_first(name, n, (-value[order],), page[order])[0]]

    def n_first(self, name: str, n: int, keys: tuple[NDArray[Any], ...], page: Ints) -> tuple[int, Key | None]:
        """How many of these pages, in their order, are among the first `n` of all parts, and the key of the last of these.

        None: there are not more than `n`.
        """
        listed = self._keys(keys, page)
        step = max(len(page) // SAMPLES, 1)

        def sample() -> dict[str, Any]:
            return {"n": n, "step": step, "length": len(page), "keys": listed(np.arange(step - 1, len(page), step))}

        low, high = self.together(f"{name}, about", sample, bounds)

        def between() -> dict[str, Any]:
            first = 0 if low is None else _n_up_to(listed, len(page), tuple(low))
            last = len(page) if high is None else _n_up_to(listed, len(page), tuple(high))
            return {"n": n, "before": first, "after": low, "keys": listed(np.arange(first, last))}

        cut = self.together(name, between, last_key)
        return (len(page), None) if cut is None else (_n_up_to(listed, len(page), tuple(cut)), tuple(cut))

    def keys(self, keys: tuple[NDArray[Any], ...], page: Ints) -> list[Key]:
        """The keys by which pages are ordered among those of all parts."""
        return self._keys(keys, page)(np.arange(len(page)))

    def _keys(self, keys: tuple[NDArray[Any], ...], page: Ints) -> Callable[[Ints], list[Key]]:
        def listed(places: Ints) -> list[Key]:
            numbers = zip(*(key[places].astype(np.float64).tolist() for key in keys), strict=True)
            own = self.order.keys(page[places])
            return [(*number, *key) for number, key in zip(numbers, own, strict=True)]

        return listed

    def first_claims(self, link: Ints32, worth: Floats, page: Ints) -> Flags:
        """Which links no page of another part shows that comes first."""
        ids = self.link_ids[link.astype(np.int64) - self.n_links_before]

        def claims() -> dict[str, Any]:
            order = [(-w, *key) for w, key in zip(worth.tolist(), self.order.keys(page), strict=True)]
            return {"link": ids, "order": order}

        winners = self.together("links shown first", claims, first_of_each)
        mine = self.order.keys(page)
        return np.array([tuple(winners[i][1:]) == key for i, key in zip(ids.tolist(), mine, strict=True)], np.bool_)


def _n_up_to(listed: Callable[[Ints], list[Key]], length: int, key: Key) -> int:
    """How many of a sorted list are not behind a key."""
    return bisect_right(range(length), key, key=lambda place: listed(np.array([place]))[0])


def bounds(parts: Sequence[dict[str, Any]]) -> tuple[Key | None, Key | None]:
    """Two keys between which the n-th of all lists is; None: the list's end. Lists are known by every so many keys of them."""
    n, samples = parts[0]["n"], sorted((tuple(key), i) for i, part in enumerate(parts) for key in part["keys"])
    at_least, slack = 0, sum(part["step"] - 1 for part in parts)
    low = high = None
    for key, i in samples:
        at_least += parts[i]["step"]
        if at_least + slack <= n:
            low = key
        if at_least >= n:
            high = key
            break
    return low, high


def last_key(parts: Sequence[dict[str, Any]]) -> Key | None:
    """The n-th key of all lists, of which those between two bounds are given; None: there are fewer."""
    wanted = parts[0]["n"] - sum(part["before"] for part in parts)
    keys = sorted(tuple(key) for part in parts for key in part["keys"])
    if wanted <= 0:
        return parts[0]["after"] or _BEFORE_ALL
    return keys[wanted - 1] if wanted <= len(keys) else None


_BEFORE_ALL: Key = (-np.inf,)


def first_of_each(parts: Sequence[dict[str, Any]]) -> dict[int, Key]:
    """For each link the claim that comes first."""
    first: dict[int, Key] = {}
    for part in parts:
        for link, key in zip(part["link"].tolist(), part["order"], strict=True):
            if link not in first or tuple(key) < tuple(first[link]):
                first[link] = tuple(key)
    return first
