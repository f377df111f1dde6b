"""What counts as a change of a page's content, and where in a history it happened.

There are three notions to pick from: the words are distributed differently (`Significant`), anything in the text differs
(`Digest`), or too little of the wording is left (`Shingles`). `changes` finds them for every page and round, from `Contents` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc

from recrawl.core.arrays import Flags, Floats, Ints, Ints8, Ints32
from recrawl.core.suggest import unknown
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.history.stored_words import term_counts
from recrawl.web.shingles import EMPTY, N_BUCKETS, sketch_similarities
from recrawl.web.visit import Outcome
from recrawl.world.contents import Contents
from recrawl.world.notion_names import ANY as ANY


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Pairs of what a page showed and what it shows next; texts are rows of `counts`."""

    counts: sparse.csr_matrix
    before: Ints
    after: Ints
    digest_before: Ints  # of the visible text; 0: not known
    digest_after: Ints
    sketches: Ints32 | None = None  # [text, bucket]

    def each_pair_once(self, measure: Callable[[Ints, Ints], Floats]) -> Floats:
        """A measure of two texts for all steps, computed once for each distinct pair."""
        n = np.int64(self.counts.shape[0])
        pairs, which = np.unique(self.before * n + self.after, return_inverse=True)
        return measure(*np.divmod(pairs, n))[which]


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
        return steps.each_pair_once(lambda a, b: chi_squared(steps.counts, a, b, self.min_expected)) < self.alpha


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
        return steps.each_pair_once(lambda a, b: _similarity(steps, a, b)) < self.threshold


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


def changes(contents: Contents, notion: Notion, sketches: Ints32 | None = None) -> Ints8:
    """Whether each page changed in each round [page, round]: 1 or 0; -1 where that is not known.

    A page is compared with what it showed when it was last seen before. The answer is not known where the page was not seen, where
    it was seen for the first time, and where the way it is read changed since. `sketches` (by `sketches_of`) are for the notion
    `Shingles`.
    """
    change = np.full(contents.shape, -1, np.int8)
    page, at = np.nonzero(_comparable(contents))
    text, digest = contents.text.astype(np.int64), contents.digest
    steps = Steps(
        counts=contents.counts,
        before=text[page, at - 1],
        after=text[page, at],
        digest_before=digest[page, at - 1],
        digest_after=digest[page, at],
        sketches=sketches,
    )
    change[page, at] = notion.changed(steps)
    return change


def changes_at_visits(history: History, visit: Ints, notion: Notion) -> Ints8:
    """Whether pages changed at some visits of a history (rows of its timeline): 1 or 0; -1 where that is not known.

    As `changes`, for visits instead of rounds: each is compared with the page's last visit before it whose words are known.
    """
    timeline = history.timeline
    stored = timeline.rows["terms"].fill_null(0).to_numpy()
    terms = np.where(timeline.latest >= 0, stored[np.maximum(timeline.latest, 0)], 0)
    worded = np.flatnonzero((terms != 0) & (timeline.outcome <= Outcome.UNCHANGED))
    n_baselines, before = np.cumsum(timeline.baseline), np.full(timeline.n_visits, -1, np.int64)
    earlier, later = worded[:-1], worded[1:]
    same = (timeline.page[earlier] == timeline.page[later]) & (n_baselines[earlier] == n_baselines[later])
    before[later[same]] = earlier[same]
    known = before[visit] >= 0
    last, now = before[visit[known]], visit[known]
    distinct, number = np.unique(np.stack([terms[last], terms[now]]), return_inverse=True)
    old, new = number.reshape(2, -1)
    counts = term_counts(history, distinct)[1]
    digest = timeline.rows["text"].fill_null(0).to_numpy()[np.maximum(timeline.latest, 0)]
    sketches = stored_sketches(history, distinct) if isinstance(notion, Shingles) else None
    changed = np.full(len(visit), -1, np.int8)
    steps = Steps(
        counts=counts,
        before=old,
        after=new,
        digest_before=digest[last],
        digest_after=digest[now],
        sketches=sketches,
    )
    changed[known] = notion.changed(steps)
    return changed


def _comparable(contents: Contents) -> Flags:
    """Where a page was seen and had been seen before, and is still read in the same way."""
    comparable = contents.seen.copy()
    comparable[:, :1] = False
    comparable[:, 1:] &= contents.text[:, :-1] >= 0
    # Copies before and after a baseline are not compared, even if the words of the baseline are not known.
    n_baselines = np.cumsum(contents.is_baseline, axis=1)
    n_when_seen = np.maximum.accumulate(np.where(contents.seen, n_baselines, 0), axis=1)
    comparable[:, 1:] &= n_baselines[:, 1:] == n_when_seen[:, :-1]
    return comparable


def sketches_of(history: History, contents: Contents) -> Ints32:
    """The sketches of the texts (rows of `contents.counts`) [text, bucket]; all empty where the history has none.

    It has them for visits with text or html; importing these again adds what an older history lacks. Texts of the same words in
    another order share one sketch, that of the first to be imported: mere rearrangement is no change.
    """
    if contents.terms is None:
        return np.full((contents.counts.shape[0], N_BUCKETS), EMPTY, np.int32)
    return stored_sketches(history, contents.terms)


def stored_sketches(history: History, terms: Ints) -> Ints32:
    """The sketches of texts by the digests of their words [text, bucket]; empty ones where the history has none."""
    sketches = np.full((len(terms), N_BUCKETS), EMPTY, np.int32)
    table = history.store.read("sketches", where=pc.is_in(ds.field("digest"), pa.array(terms)))
    if table.num_rows:
        stored = table["sketch"].combine_chunks().flatten().to_numpy().reshape(-1, N_BUCKETS)
        place = pc.index_in(pa.array(terms), table["digest"].combine_chunks())
        known = np.asarray(place.is_valid())
        sketches[known] = stored[place.fill_null(0).to_numpy()[known]]
    return sketches


def _similarity(steps: Steps, before: Ints, after: Ints) -> Floats:
    if steps.sketches is None:
        return weighted_jaccard(steps.counts, before, after)
    has_sketch = (steps.sketches != EMPTY).any(axis=1)
    sketched = has_sketch[before] & has_sketch[after]
    similarity = np.empty(len(before))
    similarity[sketched] = sketch_similarities(steps.sketches, before[sketched], after[sketched])
    similarity[~sketched] = weighted_jaccard(steps.counts, before[~sketched], after[~sketched])
    return similarity


# -- two texts' words side by side ------------------------------------------------------------------------------------


def chi_squared(counts: sparse.csr_matrix, before: Ints, after: Ints, min_expected: float = 0.0) -> Floats:
    """The p-values of the chi-squared test whether pairs of texts (rows of `counts`) draw their words from one distribution.

    The table of a pair has two rows, and a column for every word that either text has; words of neither text do not count. No
    continuity correction. Rare words: those whose expected count in either text is below `min_expected` are pooled into one
    column, however small that is. 5 is the textbook's rule; by default every word counts by itself, as the paper mentions no
    pooling. Words a history does not keep (it keeps the most frequent of a text, and not how many there were) form no column.

    A text against itself, or a table of a single column, has p = 1; a text without words against one with words has p = 0. Words
    that occur once say little: two texts of 300 different words each, none in common, have p = 0.48, and with every word twice
    2e-42. Where pages are that short or that varied, `Digest` and `Shingles` are the better notions.

    >>> texts = sparse.csr_matrix([[30, 10, 0], [10, 30, 0], [30, 9, 1]])
    >>> chi_squared(texts, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.0, 0.5908]

    References: Radinsky and Bennett (2013), Eq. 1.
    """
    statistic, freedom = _chi_squared(*_rows(counts), before, after, min_expected)
    p = np.ones(len(before))
    tested = freedom > 0
    p[tested] = chdtrc(freedom[tested], statistic[tested])
    return p


def weighted_jaccard(counts: sparse.csr_matrix, before: Ints, after: Ints) -> Floats:
    """What pairs of texts (rows of `counts`) have in common: the sum of the smaller counts by the sum of the larger ones.

    >>> weighted_jaccard(sparse.csr_matrix([[2, 1, 0], [2, 0, 1]]), np.array([0, 0]), np.array([0, 1])).tolist()
    [1.0, 0.5]
    """
    return np.asarray(_weighted_jaccard(*_rows(counts), before, after))


def _rows(counts: sparse.csr_matrix) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.generic], int]:
    """The arrays of a matrix with ascending columns, and the most words that two of its rows can have."""
    if not counts.has_sorted_indices:
        counts = counts.sorted_indices()
    return counts.indptr, counts.indices, counts.data, 2 * int(np.diff(counts.indptr).max(initial=0))


@njit(cache=True, nogil=True)
def _side_by_side(starts, terms, data, a, b, table):  # type: ignore[no-untyped-def]
    """Fill in the counts of every word that either text has; return the number of these words."""
    i, end_i, j, end_j, n = starts[a], starts[a + 1], starts[b], starts[b + 1], 0
    while i < end_i or j < end_j:
        table[0, n] = table[1, n] = 0.0
        word = min(terms[i] if i < end_i else terms[j], terms[j] if j < end_j else terms[i])
        if i < end_i and terms[i] == word:
            table[0, n] = data[i]
            i += 1
        if j < end_j and terms[j] == word:
            table[1, n] = data[j]
            j += 1
        n += table[0, n] + table[1, n] > 0  # a count stored as 0 is not a word
    return n


@njit(cache=True, nogil=True)
def _chi_squared(starts, terms, data, widest, before, after, min_expected):  # type: ignore[no-untyped-def]
    statistic, freedom = np.zeros(len(before)), np.zeros(len(before), np.int64)
    table = np.empty((2, widest))
    for pair in range(len(before)):
        if before[pair] == after[pair]:
            continue
        n = _side_by_side(starts, terms, data, before[pair], after[pair], table)
        total_a, total_b = table[0, :n].sum(), table[1, :n].sum()
        if total_a == 0 or total_b == 0:
            if n:
                statistic[pair], freedom[pair] = np.inf, 1
            continue
        fewer, rarest = min(total_a, total_b), min_expected * (total_a + total_b)
        rare_a = rare_b = weighted = 0.0
        n_columns = 0
        for word in range(n):
            a, b = table[0, word], table[1, word]
            if (a + b) * fewer < rarest:
                rare_a += a
                rare_b += b
            else:
                weighted += (a * total_b - b * total_a) ** 2 / (a + b)
                n_columns += 1
        if rare_a + rare_b > 0:
            weighted += (rare_a * total_b - rare_b * total_a) ** 2 / (rare_a + rare_b)
            n_columns += 1
        # Observed less expected is (a * total_b - b * total_a) / total in one row and the negative of it in the other.
        statistic[pair], freedom[pair] = weighted / (total_a * total_b), n_columns - 1
    return statistic, freedom


@njit(cache=True, nogil=True)
def _weighted_jaccard(starts, terms, data, widest, before, after):  # type: ignore[no-untyped-def]
    similarity = np.ones(len(before))
    table = np.empty((2, widest))
    for pair in range(len(before)):
        n = _side_by_side(starts, terms, data, before[pair], after[pair], table)
        if n:
            smaller, larger = np.minimum(table[0, :n], table[1, :n]), np.maximum(table[0, :n], table[1, :n])
            similarity[pair] = smaller.sum() / larger.sum()
    return similarity
