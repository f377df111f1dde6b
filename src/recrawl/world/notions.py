"""What counts as a change of a page's content: the three notions to pick from.

The words are distributed differently (`Significant`), anything in the text differs (`Digest`), or too little of the wording is
left (`Shingles`). What compares two texts is imported by the notion that needs it, so that checking a name costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.core.suggest import unknown
from recrawl.errors import RecrawlError

if TYPE_CHECKING:
    from scipy import sparse

ANY = "any"  #: every difference of text or links is a change: no notion at all


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Pairs of what a page showed and what it shows next; texts are rows of `counts`."""

    counts: sparse.csr_matrix
    before: Ints
    after: Ints
    digest_before: Ints  # of the visible text; 0: not known
    digest_after: Ints
    sketches: Ints32 | None = None  # [text, bucket]
    #: [text]: its short words are known; [word]: it is a short one, see `recrawl.web.terms`. None: all texts are alike in that.
    has_short: Flags | None = None
    is_short: Flags | None = None

    def each_pair_once(self, measure: Callable[[sparse.csr_matrix, Ints, Ints], Floats]) -> Floats:
        """A measure of two texts by their words for all steps, computed once for each distinct pair.

        Where the short words of only one of two texts are known, they are compared by their long words.
        """
        n = np.int64(self.counts.shape[0])
        pairs, which = np.unique(self.before * n + self.after, return_inverse=True)
        before, after = np.divmod(pairs, n)
        differ = self.differ_in_kind(before, after)
        measured = np.empty(len(pairs))
        measured[~differ] = measure(self.counts, before[~differ], after[~differ])
        if differ.any():
            measured[differ] = measure(self._long_words(), before[differ], after[differ])
        return measured[which]

    def differ_in_kind(self, before: Ints, after: Ints) -> Flags:
        """Whether the short words of only one of two texts are known."""
        if self.has_short is None:
            return np.zeros(len(before), np.bool_)
        differ: Flags = self.has_short[before] != self.has_short[after]
        return differ

    def _long_words(self) -> sparse.csr_matrix:
        assert self.is_short is not None
        words = self.counts.copy()
        words.data[self.is_short[words.indices]] = 0
        words.eliminate_zeros()
        return words


class Notion(Protocol):
    """What counts as a change."""

    name: ClassVar[str]

    def changed(self, steps: Steps) -> Flags:
        """Which of the steps are changes."""


@dataclass(frozen=True)
class Significant:
    """The words are distributed differently, by a chi-squared test at level `alpha`; `min_expected` as in `chi_squared`.

    References: Radinsky and Bennett (2013), Eq. 1.
    """

    name: ClassVar[str] = "significant"
    alpha: float = 0.05
    min_expected: float = 0.0

    def __post_init__(self) -> None:
        _require(0 < self.alpha < 1, self.name, f"the level {self.alpha:g} is not between 0 and 1, as 0.05 is")
        _require(0 <= self.min_expected < np.inf, self.name, f"no word can be expected {self.min_expected:g} times")

    def changed(self, steps: Steps) -> Flags:
        """Which of the steps are changes."""
        from recrawl.world.text_pairs import chi_squared

        return steps.each_pair_once(lambda words, a, b: chi_squared(words, a, b, self.min_expected)) < self.alpha


@dataclass(frozen=True)
class Digest:
    """The text differs in any way.

    By the digest of the visible text without its links, as the history keeps it; where that is not known of both, by the words.
    """

    name: ClassVar[str] = "digest"

    def changed(self, steps: Steps) -> Flags:
        """Which of the steps are changes."""
        known = (steps.digest_before != 0) & (steps.digest_after != 0)
        return np.asarray(np.where(known, steps.digest_before != steps.digest_after, steps.before != steps.after))


@dataclass(frozen=True)
class Shingles:
    """Less than `threshold` of the shingles (three words in a row) of both texts are common to them, as estimated by sketches.

    A visit imported as term counts has no order of words and so no sketch. Where either text has none, the weighted Jaccard
    similarity of the term counts is used instead: the sum of the smaller counts by the sum of the larger ones. It is usually the
    higher of the two, as one new word breaks up to three shingles.
    """

    name: ClassVar[str] = "shingles"
    threshold: float = 0.9

    def __post_init__(self) -> None:
        _require(0 < self.threshold <= 1, self.name, f"the similarity {self.threshold:g} is not between 0 and 1")

    def changed(self, steps: Steps) -> Flags:
        """Which of the steps are changes."""
        return steps.each_pair_once(lambda words, a, b: _similarity(steps, words, a, b)) < self.threshold


ALL: tuple[type[Notion], ...] = (Significant, Digest, Shingles)


def notion_or_any(text: str) -> Notion | None:
    """As `notion_from`; None for ``any``: any difference in text or links is a change."""
    return None if text.strip() == ANY else notion_from(text)


def notion_from(text: str) -> Notion:
    """A notion by its name, followed by its settings where they differ from the defaults.

    >>> notion_from("significant:0.01"), notion_from("digest"), notion_from("shingles:0.8")
    (Significant(alpha=0.01, min_expected=0.0), Digest(), Shingles(threshold=0.8))
    >>> notion_from("significant:0.05:5")  # words expected fewer than five times are pooled
    Significant(alpha=0.05, min_expected=5.0)
    """
    name, *settings = text.strip().split(":")
    by_name = {notion.name: notion for notion in ALL}
    if name not in by_name:
        raise RecrawlError(unknown("notion of change", name, by_name))
    takes = [field.name for field in fields(by_name[name])]  # type: ignore[arg-type]
    _require(len(settings) <= len(takes), name, f"{text!r} has too many settings; it takes: {':'.join([name, *takes])}")
    try:
        return by_name[name](*map(float, settings))
    except ValueError:
        raise RecrawlError(
            f"{name}: {text!r} has a setting that is not a number; write it like significant:0.01"
        ) from None


def spelled(notion: Notion) -> str:
    """A notion with all its settings, as `notion_from` reads it.

    >>> spelled(Significant(0.01)), spelled(Digest())
    ('significant:0.01:0.0', 'digest')
    """
    return ":".join([notion.name, *(repr(getattr(notion, field.name)) for field in fields(notion))])  # type: ignore[arg-type]


def _require(holds: bool, name: str, otherwise: str) -> None:
    if not holds:
        raise RecrawlError(f"{name}: {otherwise}")


def _similarity(steps: Steps, words: sparse.csr_matrix, before: Ints, after: Ints) -> Floats:
    from recrawl.web.shingles import EMPTY, sketch_similarities
    from recrawl.world.text_pairs import weighted_jaccard

    if steps.sketches is None:
        return weighted_jaccard(words, before, after)
    has_sketch = (steps.sketches != EMPTY).any(axis=1)
    # A sketch made without short words cannot be compared with one made with them.
    sketched = has_sketch[before] & has_sketch[after] & ~steps.differ_in_kind(before, after)
    similarity = np.empty(len(before))
    similarity[sketched] = sketch_similarities(steps.sketches, before[sketched], after[sketched])
    similarity[~sketched] = weighted_jaccard(words, before[~sketched], after[~sketched])
    return similarity
