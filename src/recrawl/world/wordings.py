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
from recrawl.world.change import sketches_of
from recrawl.world.contents import Contents, contents_of
from recrawl.world.every import Every
from recrawl.world.notions import Notion, Shingles, Steps, notion_from, spelled

_NOTION, _VERSIONS, _SKETCHES = "notion.txt", "versions.npy", "sketches.npy"  # names of files


def known_contents(history: History, every: Every, needed: bool) -> Contents | None:
    """What the pages said, in the same rounds; None where the words of no page are known, which is an error if `needed`."""
    try:
        return contents_of(history, every)
    except NotEnoughData:
        if needed:
            raise
        return None


def shown_texts(contents: Contents, page: Ints, first: int) -> Ints32:
    """Which text each page showed in each cycle [cycle, page]; -1 where it was not seen, or its words are not known.

    Cycle 0 is round `first` with everything before it, as in the world.
    """
    seen = contents.seen[:, first:].copy()
    seen[:, 0] = contents.text[:, first] >= 0
    text = np.full((seen.shape[1], len(page)), -1, np.int32)
    row, known = _rows(contents, page)
    text[:, known] = np.where(seen, contents.text[:, first:], -1)[row].T
    return text


@dataclass(frozen=True)
class Wordings:
    """The texts of the numbered versions of a world's pages, and what counts as a change between two of them."""

    notion: Notion
    counts: sparse.csr_matrix  # [text, term]
    text: Ints  # [version]: a row of `counts`
    digest: Ints  # [version]: of the visible text; 0: not known
    sketches: Ints32 | None = None  # [text, bucket]

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
        )
        same[tested] = ~self.notion.changed(steps)
        return same

    def save(self, folder: Path) -> None:
        """Write everything but the counts, for `load`."""
        (folder / _NOTION).write_text(spelled(self.notion), "utf-8")
        np.save(folder / _VERSIONS, np.stack([self.text, self.digest]))
        if self.sketches is not None:
            np.save(folder / _SKETCHES, self.sketches)

    @classmethod
    def load(cls, folder: Path, counts: sparse.csr_matrix) -> Self | None:
        """What was saved; None if nothing was."""
        if not (folder / _NOTION).exists():
            return None
        text, digest = np.load(folder / _VERSIONS, mmap_mode="r")
        sketches = np.load(folder / _SKETCHES, mmap_mode="r") if (folder / _SKETCHES).exists() else None
        return cls(notion_from((folder / _NOTION).read_text("utf-8")), counts, text, digest, sketches)


def versions_by_words(
    notion: Notion, history: History, contents: Contents, version: Ints, *, page: Ints, first: int
) -> tuple[Ints, Wordings]:
    """Versions [cycle, page] by what pages said, and their texts; -1 before a page's words are known.

    Pages whose words are never known keep their `version`, as a number above all that have words.
    """
    said = np.stack([contents.text.ravel().astype(np.int64), contents.digest.ravel()], axis=1)
    distinct, number = np.unique(said[said[:, 0] >= 0], axis=0, return_inverse=True)
    numbered = np.full(contents.text.size, -1, np.int64)
    numbered[said[:, 0] >= 0] = number.ravel()
    row, known = _rows(contents, page)
    result = np.where(version >= 0, version + len(distinct), -1)
    result[:, known] = numbered.reshape(contents.shape)[:, first:][row].T
    sketches = sketches_of(history, contents) if isinstance(notion, Shingles) else None
    return result, Wordings(notion, contents.counts, distinct[:, 0], distinct[:, 1], sketches)


def _within(version: Ints, n_versions: int) -> Flags:
    return (version >= 0) & (version < n_versions)


def _rows(contents: Contents, page: Ints) -> tuple[Ints, Flags]:
    """The rows in the contents of the pages whose words are known, and which pages these are; contents are ordered by id."""
    at = np.minimum(np.searchsorted(contents.page, page), len(contents.page) - 1)
    known = contents.page[at] == page
    return at[known], known
