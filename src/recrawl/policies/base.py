"""What a policy is: it sees the pages and a budget, and chooses; then it sees what the visits showed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.related import Related

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
NEVER = np.iinfo(np.int64).min
US_PER_HOUR = 3_600_000_000
LEVEL = 0.8  #: of the intervals that plans show
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """An aware time as microseconds since 1970, exactly.

    >>> microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=int(us))


@dataclass
class Pages:
    """What is known of every page that may be chosen: one entry a page, ordered by URL, so that ties go by name."""

    site: Ints  # small numbers: pages of one registrable domain share one
    host: Ints
    last_visit: Ints  # microseconds, UTC: the last time it was asked for, answered or not; NEVER
    n_visits: Ints  # times asked for
    n_answers: Ints  # times its links were seen
    n_failures: Ints  # in a row, up to now
    is_gone: Flags  # its last answer was 404 or 410
    related: Related | None = None  # pages with similar text, if texts are known
    # Pages whose URLs are spelt alike share a small number: those of one folder, and those of one name.
    alike: tuple[Ints, ...] = ()

    def __post_init__(self) -> None:
        # Counts of the words of every text that `Visits.text` may name, if asked for: a table of its own, not one entry a page.
        self.words: sparse.csr_matrix | None = None

    @classmethod
    def unseen(
        cls,
        site: Ints,
        host: Ints,
        related: Related | None = None,
        words: sparse.csr_matrix | None = None,
        alike: tuple[Ints, ...] = (),
    ) -> Pages:
        """Pages that nobody has visited yet."""
        n = len(site)
        visits, answers, failures = (np.zeros(n, np.int64) for _ in range(3))
        pages = cls(site, host, np.full(n, NEVER), visits, answers, failures, np.zeros(n, np.bool_), related, alike)
        pages.words = words
        return pages

    def __len__(self) -> int:
        return len(self.site)

    @property
    def is_new(self) -> Flags:
        """Asked for at most once: nobody knows yet how it changes."""
        return self.n_visits < 2

    def age_hours(self, now: datetime) -> Floats:
        """Hours since each page was last asked for; infinite where it never was, never negative."""
        waited = (microseconds(now) - np.where(self.last_visit == NEVER, 0, self.last_visit)) / US_PER_HOUR
        return np.where(self.last_visit == NEVER, np.inf, np.maximum(waited, 0.0))

    def note(self, visits: Visits) -> None:
        """Remember that these visits were made."""
        page, at = visits.page, microseconds(visits.at)
        self.last_visit[page] = np.maximum(self.last_visit[page], at)
        self.n_visits[page] += 1
        self.n_answers[page] += visits.answered
        self.n_failures[page] = np.where(visits.failed, self.n_failures[page] + 1, 0)
        self.is_gone[page] = visits.gone | (self.is_gone[page] & visits.failed)


@dataclass(frozen=True)
class LinkLists:
    """One list of links a visit: list i is ``links[start[i]:start[i + 1]]``, ascending numbers."""

    start: Ints
    links: NDArray[np.int32]

    @property
    def sizes(self) -> Ints:
        """How long each list is."""
        return np.diff(self.start)

    def __getitem__(self, i: int) -> NDArray[np.int32]:
        return self.links[self.start[i] : self.start[i + 1]]


@dataclass(frozen=True)
class Visits:
    """What the visits of one cycle showed: one entry a visit."""

    at: datetime  # UTC, aware
    page: Ints  # index into Pages, ascending
    age_hours: Floats  # since the page was last asked for; infinite: never before
    is_first: Flags  # it had never been asked for before, so nothing can be called new on it
    answered: Flags  # its links were seen
    gone: Flags
    failed: Flags  # nothing came back, or nobody knows what would have
    changed: NDArray[
        np.int8
    ]  # 1: text or links differ from the last copy seen (or as the world counts changes); 0: no; -1: nothing to compare with
    n_new_since: NDArray[np.int32]  # links that the last copy seen did not have; -1: nothing to compare with
    updated: NDArray[
        np.int8
    ]  # 1: a link never before seen on this page; 0: none; -1: nothing to compare with, or not asked
    shown: LinkLists  # all links
    new: LinkLists  # links that no page had shown before this cycle; a link stands on each page that shows it
    n_found: int  # the same, every link once
    text: NDArray[np.int32] | None = (
        None  # what each page said: a row of `Pages.words`; -1: not known. None: nobody asked
    )

    def __len__(self) -> int:
        return len(self.page)

    @property
    def came(self) -> Flags:
        """The page itself came back, whether its links could be read or not: enough to tell whether it changed."""
        return ~self.failed & ~self.gone

    @property
    def n_new(self) -> Ints:
        """New links of each visit: the paper's |O(s)|."""
        return self.new.sizes


class Cause(IntEnum):
    """Why a page was not picked."""

    PICKED = 0
    BELOW_CUT = 1
    HOST_CAP = 2
    SITE_CAP = 3
    OVERLAP = 4
    TOO_SOON = 5
    GONE = 6
    EXCLUDED = 7
    UNPROMISING = 8


@dataclass(frozen=True)
class Budget:
    """How many pages may be fetched, in all and of one host or site, and which not at all."""

    pages: int
    per_host: int | None = None
    per_site: int | None = None
    barred: NDArray[np.int8] | None = None  # one `Cause` a page: why it must not be picked; 0 where it may
    taken: Ints | None = None  # pages that were picked already and count for the caps
    per_cycle: int | None = None  # pages a cycle, where `pages` is more: to rank beyond what will be fetched

    def __post_init__(self) -> None:
        for name in ("pages", "per_host", "per_site"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} is {value}: a budget cannot be negative")

    def rest(self, choice: Choice, n_pages: int) -> Budget:
        """What is left of the budget after a choice: its pages are barred, and count for the caps."""
        barred = np.zeros(n_pages, np.int8) if self.barred is None else self.barred.copy()
        barred[choice.page] = Cause.BELOW_CUT
        taken = choice.page if self.taken is None else np.concatenate([self.taken, choice.page])
        return replace(self, pages=max(self.pages - len(choice), 0), barred=barred, taken=taken)


Name = Callable[[int], str]  #: what to call a page


@dataclass(frozen=True)
class Spread:
    """How sure the expected links are: one entry a page picked."""

    low: Floats  # ends of the interval
    high: Floats
    stated: Floats  # the probability that the count lies within: at least the level, since counts are whole numbers
    any: Floats  # the probability of at least one new link


@dataclass(frozen=True)
class Choice:
    """The pages picked, the best first, with what is expected of each and why."""

    page: Ints
    score: Floats  # what the policy ranked by
    # A sentence with {fields}, one for all pages or one for each; or what makes the sentence of the i-th when it is asked for.
    reason: str | tuple[str, ...] | Callable[[int, Name], str] = ""
    detail: dict[str, NDArray[Any]] = field(default_factory=dict)  # numbers behind the reason: one entry a page picked
    expected: Floats | None = None  # new links expected, where the policy has a notion of it
    cause: NDArray[np.int8] | None = None  # one `Cause` for every page there is
    overlaps: Ints | None = (
        None  # for every page left out because of overlap: the picked page that it overlaps with; else -1
    )
    spread: Callable[[Ints, float], Spread] | None = None  # of the i-th, … page picked at a level, when it is asked for

    def __len__(self) -> int:
        return len(self.page)

    def why(self, i: int, name: Name = lambda page: f"page {page}") -> str:
        """The reason for the i-th page in words; other pages are called by `name`."""
        if callable(self.reason):
            return self.reason(i, name)
        sentence = self.reason if isinstance(self.reason, str) else self.reason[i]
        return sentence.format(**{name: values[i] for name, values in self.detail.items()})

    def then(self, other: Choice) -> Choice:
        """This choice and, after it, another one from the rest of the pages."""

        def both(one: NDArray[Any] | None, two: NDArray[Any] | None) -> NDArray[Any]:
            parts = ((one, len(self)), (two, len(other)))
            return np.concatenate([np.full(n, np.nan) if values is None else values for values, n in parts])

        names = self.detail.keys() | other.detail.keys()
        cause = self.cause
        if cause is not None and other.cause is not None:
            cause = np.where(other.cause == Cause.PICKED, other.cause, cause)
        return Choice(
            np.concatenate([self.page, other.page]),
            np.concatenate([self.score, other.score]),
            lambda i, name: self.why(i, name) if i < len(self) else other.why(i - len(self), name),
            {name: both(self.detail.get(name), other.detail.get(name)) for name in sorted(names)},
            both(self.expected, other.expected),
            cause,
            self.overlaps,
            None if self.spread is None and other.spread is None else self._both_spreads(other),
        )

    def _both_spreads(self, other: Choice) -> Callable[[Ints, float], Spread]:
        """How sure both choices are, NaN where one does not say."""

        def spread(which: Ints, level: float) -> Spread:
            parts = [np.full(len(which), np.nan) for _ in range(4)]
            for choice, here, start in ((self, which < len(self), 0), (other, which >= len(self), len(self))):
                if choice.spread is not None and here.any():
                    told = choice.spread(which[here] - start, level)
                    for part, values in zip(parts, (told.low, told.high, told.stated, told.any), strict=True):
                        part[here] = values
            return Spread(*parts)

        return spread


class Policy:
    """Chooses the pages to fetch; one that learns also observes what the visits showed.

    Constructors remember their settings; `start` begins anew with a collection.
    """

    name: ClassVar[str]
    paper: ClassVar[str | None] = None
    needs_related: ClassVar[bool] = False  # whether it looks around at `Pages.related`
    needs_updates: ClassVar[bool] = False  # whether it looks at `Visits.updated`, which takes a while to find out
    needs_words: ClassVar[bool] = False  # whether it looks at `Visits.text` and `Pages.words`
    sees_future: ClassVar[bool] = False  # only for replays: an upper bound, no policy that anyone could run
    judges_new: ClassVar[bool] = False  # whether its reasons hold also for pages that were visited once or never
    foresees: ClassVar[str] = "links"  # what of the future such a policy is told: which "links" or which "changes"

    def start(self, pages: Pages) -> None:
        """Forget everything, and get ready for these pages."""

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The pages to fetch now."""
        raise NotImplementedError

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle; called once a cycle, also when nothing was visited."""

    def seen_at(self, last_visit: Ints) -> None:
        """When each page really was last asked for (microseconds): cycles end later than most of their visits."""
