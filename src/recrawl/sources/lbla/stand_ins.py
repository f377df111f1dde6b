"""Made-up links that agree with counts of links: for data that say how many links were new, but not which."""

from __future__ import annotations

from collections.abc import Sequence


class StandIns:
    """Made-up links of one page, as many of them new at each crawl as were counted.

    >>> links = StandIns("https://e.org/")
    >>> links.next(2, 0), links.next(2, 1)
    (['https://e.org/0', 'https://e.org/1'], ['https://e.org/1', 'https://e.org/2'])
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._made = 0
        self._shown: list[int] | None = None

    def next(self, n: int, n_new: int) -> list[str]:
        """The links of one more crawl: `n_new` that were not there before, and of those that were, the rest of `n`.

        If there were not as many before, there are fewer than `n`: the number of new links is kept in any case. In the first
        crawl all are new to us.
        """
        if self._shown is None:
            self._shown, n_new = [], n
        kept = min(max(n - n_new, 0), len(self._shown))
        self._shown = self._shown[len(self._shown) - kept :] + list(range(self._made, self._made + n_new))
        self._made += n_new
        return [f"{self.prefix}{number}" for number in self._shown]


def sizes(n_new: Sequence[int], stated: Sequence[int | None]) -> list[int]:
    """How many links each crawl shows: as stated; where nothing is, as few links go as the numbers allow.

    Before a crawl with a stated number there are those that it kept, or as many as were new; after it, the new ones are added.

    >>> sizes([0, 2, 9, 1], [None, None, 10, None])
    [0, 2, 10, 11]
    >>> sizes([0, 2, 1], [None, None, None])
    [0, 2, 3]
    """
    found: list[int | None] = [None] * len(n_new)
    for i in reversed(range(len(n_new))):
        number, after = stated[i], found[i + 1] if i + 1 < len(found) else None
        if number is None and after is not None:
            number = after - n_new[i + 1]
        found[i] = None if number is None else max(number, n_new[i])
    complete: list[int] = []
    for number, new in zip(found, n_new, strict=True):
        complete.append(number if number is not None else (complete[-1] if complete else 0) + new)
    return complete
