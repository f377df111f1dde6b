"""What every page said in every round: its words as counts, carried forward where it was not visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from recrawl.core.arrays import Flags, Ints, Ints32, Times
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.history.stored_words import all_words
from recrawl.world.every import Every
from recrawl.world.rounds import last_in_round, rounds_of


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Words of pages by rounds. Matrices are [page, round], pages ascend by id.

    `text` is carried forward: what a page said when it was last seen; `seen` says whether that was in the round itself.
    """

    page: Ints  # ids in the history
    url: pa.Array
    rounds: Times  # the end of each
    text: Ints32  # row of `counts`; -1: its words were not known yet
    seen: Flags  # it answered in this round, and its words are known
    is_baseline: Flags  # the way it is read changed: not to be compared with earlier rounds
    digest: Ints  # of the visible text when it was last seen; 0: not known
    counts: sparse.csr_matrix  # [text, term]: every distinct text once
    vocabulary: Ints  # term ids: the columns of `counts`
    terms: Ints | None = None  # [text]: digest of the words, as in the tables texts and sketches
    has_short: Flags | None = None  # [text], as in `AllWords`
    is_short: Flags | None = None  # [term]

    @property
    def shape(self) -> tuple[int, int]:
        """Pages, rounds."""
        return self.text.shape[0], self.text.shape[1]

    def window(self, start: int, stop: int) -> Contents:
        """Some rounds of the same pages."""
        return self._cut(slice(None), slice(start, stop))

    def select(self, pages: Ints | Flags) -> Contents:
        """Some of the pages."""
        return self._cut(pages, slice(None))

    def _cut(self, pages: slice | Ints | Flags, rounds: slice) -> Contents:
        return Contents(
            page=self.page[pages],
            url=self.url.take(pa.array(np.arange(len(self.page))[pages])),
            rounds=self.rounds[rounds],
            text=self.text[pages][:, rounds],
            seen=self.seen[pages][:, rounds],
            is_baseline=self.is_baseline[pages][:, rounds],
            digest=self.digest[pages][:, rounds],
            counts=self.counts,
            vocabulary=self.vocabulary,
            terms=self.terms,
        )


def contents_of(history: History, every: Every = "1d", min_share: float = 0.0) -> Contents:
    """What the pages of a history said, round by round.

    `min_share` leaves out pages whose words are known in a smaller share of the rounds; one round is always needed. Of several
    visits to a page in a round the last one whose words are known counts.
    """
    timeline = history.timeline
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    rounds = rounds_of(timeline, every)
    worded = np.asarray(timeline.rows["terms"].is_valid())[np.maximum(timeline.latest, 0)] & (timeline.latest >= 0)
    chosen = last_in_round(timeline, rounds, worded)
    if not len(chosen):
        raise NotEnoughData("the words of no page are known in this history; import visits with text, terms or html")
    shown, of_round = timeline.select(chosen), rounds.of_visit[chosen]
    terms = shown.rows["terms"].fill_null(0).to_numpy()
    pages, row = np.unique(shown.page, return_inverse=True)
    shape = (len(pages), len(rounds.ends))
    stored, known, baseline, digest = (np.zeros(shape, kind) for kind in (np.int64, np.bool_, np.bool_, np.int64))
    stored[row, of_round] = terms
    known[row, of_round] = terms != 0
    baseline[row, of_round] = shown.baseline
    digest[row, of_round] = shown.rows["text"].fill_null(0).to_numpy()
    enough = known.sum(axis=1) >= max(1.0, min_share * shape[1] - 1e-9)
    if not enough.any():
        raise NotEnoughData(
            f"the words of no page are known in {min_share:.0%} of the {shape[1]} rounds; ask for fewer with --min-share, or for "
            "longer rounds with --every"
        )
    pages, stored, known, baseline, digest = (each[enough] for each in (pages, stored, known, baseline, digest))
    distinct, number = np.unique(stored[known], return_inverse=True)
    text = np.full(stored.shape, -1, np.int32)
    text[known] = number
    words = all_words(history, distinct)
    return Contents(
        page=pages,
        url=history.page_urls(pages).cast(pa.string()),
        rounds=rounds.ends.view("datetime64[us]"),
        text=_carried_forward(text, known, -1),
        seen=known,
        is_baseline=baseline,
        digest=_carried_forward(digest, known, 0),
        counts=words.counts,
        vocabulary=words.vocabulary,
        terms=distinct,
        has_short=words.has_short,
        is_short=words.is_short,
    )


def _carried_forward(values: NDArray[Any], known: Flags, unknown: int) -> NDArray[Any]:
    """The last known value of every page up to each round; `unknown` before the first one."""
    newest = np.maximum.accumulate(np.where(known, np.arange(known.shape[1]), -1), axis=1)
    last = np.take_along_axis(values, np.maximum(newest, 0), axis=1)
    return np.where(newest >= 0, last, unknown).astype(values.dtype)
