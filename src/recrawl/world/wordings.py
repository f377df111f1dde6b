"""What the pages of a world said in each cycle, and which of their versions are alike by some notion of change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Flags, Ints, Ints32
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.history.stored_words import all_words
from recrawl.world.change import stored_sketches
from recrawl.world.notions import Notion, Shingles, Steps, notion_from, spelled

_NOTION, _VERSIONS = "notion.txt", "versions.npy"  # names of files
_MAY_BE_THERE = ("sketches", "has_short", "is_short")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What pages said at some visits of a history: one entry per visit."""

    text: Ints32  # row of `counts`; -1: its words are not known
    digest: Ints  # of the visible text; 0: not known
    counts: sparse.csr_matrix  # [text, term]
    terms: Ints  # [text]: digest of the words, as in the tables texts and sketches
    has_short: Flags  # [text], as in `AllWords`
    is_short: Flags  # [term]

    def versions(
        self, notion: Notion, history: History, version: Ints, page: Ints32, is_seen: Flags
    ) -> tuple[Ints, Wordings]:
        """Versions by what pages said, and their texts; -1 where a page's words are not known.

        Pages whose words are never known keep their `version`, as a number above all that have words.
        """
        said = np.stack([self.text.astype(np.int64), self.digest], axis=1)
        worded = is_seen & (self.text >= 0)
        distinct, number = np.unique(said[worded], axis=0, return_inverse=True)
        is_worded_page = np.zeros(int(page.max(initial=-1)) + 1, np.bool_)
        is_worded_page[page[worded]] = True
        result = np.where((version >= 0) & ~is_worded_page[page], version + len(distinct), -1)
        result[worded] = number.ravel()
        sketches = stored_sketches(history, self.terms) if isinstance(notion, Shingles) else None
        words = Wordings(
            notion=notion,
            counts=self.counts,
            text=distinct[:, 0],
            digest=distinct[:, 1],
            sketches=sketches,
            has_short=self.has_short,
            is_short=self.is_short,
        )
        return result, words


def said_at(history: History, visit: Ints, needed: bool) -> Said | None:
    """What pages said at some visits (rows of the timeline); None where no words are known, which is an error if `needed`."""
    timeline = history.timeline
    copy = timeline.latest[visit]
    stored, digest = (
        np.where(copy >= 0, timeline.rows[name].fill_null(0).to_numpy()[np.maximum(copy, 0)], 0)
        for name in ("terms", "text")
    )
    known = stored != 0
    if not known.any():
        if needed:
            raise NotEnoughData(
                "the words of no page are known in this history; import visits with text, terms or html"
            )
        return None
    distinct, number = np.unique(stored[known], return_inverse=True)
    text = np.full(len(visit), -1, np.int32)
    text[known] = number
    words = all_words(history, distinct)
    return Said(
        text=text,
        digest=digest,
        counts=words.counts,
        terms=distinct,
        has_short=words.has_short,
        is_short=words.is_short,
    )


@dataclass(frozen=True, kw_only=True)
class Wordings:
    """The texts of the numbered versions of a world's pages, and what counts as a change between two of them."""

    notion: Notion
    counts: sparse.csr_matrix  # [text, term]
    text: Ints  # [version]: a row of `counts`
    digest: Ints  # [version]: of the visible text; 0: not known
    sketches: Ints32 | None = None  # [text, bucket]
    has_short: Flags | None = None  # [text], as in `AllWords`
    is_short: Flags | None = None  # [term]

    def alike(self, before: Ints, after: Ints) -> Flags:
        """Whether nothing that counts changed from one version to another; versions without words must be equal."""
        same: Flags = before == after
        tested = np.flatnonzero(~same & _within(before, len(self.text)) & _within(after, len(self.text)))
        a, b = before[tested], after[tested]
        steps = Steps(
            counts=self.counts,
            before=self.text[a],
            after=self.text[b],
            digest_before=self.digest[a],
            digest_after=self.digest[b],
            sketches=self.sketches,
            has_short=self.has_short,
            is_short=self.is_short,
        )
        same[tested] = ~self.notion.changed(steps)
        return same

    def save(self, folder: Path) -> None:
        """Write everything but the counts, for `load`."""
        (folder / _NOTION).write_text(spelled(self.notion), "utf-8")
        np.save(folder / _VERSIONS, np.stack([self.text, self.digest]))
        for name in _MAY_BE_THERE:
            if getattr(self, name) is not None:
                np.save(folder / f"wordings_{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path, counts: sparse.csr_matrix) -> Self | None:
        """What was saved; None if nothing was."""
        if not (folder / _NOTION).exists():
            return None
        text, digest = np.load(folder / _VERSIONS, mmap_mode="r")
        files = {name: folder / f"wordings_{name}.npy" for name in _MAY_BE_THERE}
        more = {name: np.load(file, mmap_mode="r") for name, file in files.items() if file.exists()}
        notion = notion_from((folder / _NOTION).read_text("utf-8"))
        return cls(notion=notion, counts=counts, text=text, digest=digest, **more)


def _within(version: Ints, n_versions: int) -> Flags:
    return (version >= 0) & (version < n_versions)
