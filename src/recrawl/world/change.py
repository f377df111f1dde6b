"""Where in a history the content of pages changed, by one of `world.notions`: for every page and round, or at visits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Flags, Ints, Ints8, Ints32
from recrawl.history import History, Timeline
from recrawl.history.stored_words import all_words
from recrawl.web.shingles import EMPTY, N_BUCKETS
from recrawl.web.visit import Outcome
from recrawl.world.contents import Contents
from recrawl.world.notions import Notion, Shingles, Steps


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
        has_short=contents.has_short,
        is_short=contents.is_short,
    )
    change[page, at] = notion.changed(steps)
    return change


def changes_at_visits(history: History, timeline: Timeline, visit: Ints, notion: Notion) -> Ints8:
    """Whether pages changed at some visits (rows of a timeline of the history): 1 or 0; -1 where that is not known.

    As `changes`, for visits instead of rounds: each is compared with the page's last visit before it whose words are known.
    """
    terms = words_at(timeline)
    worded = np.flatnonzero((terms != 0) & (timeline.outcome <= Outcome.UNCHANGED))
    n_baselines, before = np.cumsum(timeline.baseline), np.full(timeline.n_visits, -1, np.int64)
    earlier, later = worded[:-1], worded[1:]
    same = (timeline.page[earlier] == timeline.page[later]) & (n_baselines[earlier] == n_baselines[later])
    before[later[same]] = earlier[same]
    known = before[visit] >= 0
    last, now = before[visit[known]], visit[known]
    distinct, number = np.unique(np.stack([terms[last], terms[now]]), return_inverse=True)
    old, new = number.reshape(2, -1)
    words = all_words(history, distinct)
    digest = timeline.rows["text"].fill_null(0).to_numpy()[np.maximum(timeline.latest, 0)]
    sketches = stored_sketches(history, distinct) if isinstance(notion, Shingles) else None
    changed = np.full(len(visit), -1, np.int8)
    steps = Steps(
        counts=words.counts,
        before=old,
        after=new,
        digest_before=digest[last],
        digest_after=digest[now],
        sketches=sketches,
        has_short=words.has_short,
        is_short=words.is_short,
    )
    changed[known] = notion.changed(steps)
    return changed


def words_at(timeline: Timeline) -> Ints:
    """The digest of the words that each visit shows; 0: not known."""
    stored = timeline.rows["terms"].fill_null(0).to_numpy()
    return np.where(timeline.latest >= 0, stored[np.maximum(timeline.latest, 0)], 0)


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
