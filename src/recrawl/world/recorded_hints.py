"""What sitemaps and feeds said while a world was recorded, so that a replay can hear it when the crawler did."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

import numpy as np

from recrawl.core.arrays import Ints


@dataclass(frozen=True, kw_only=True)
class SourceHints:
    """What the sources of one kind said, in the order of reading. Times: microseconds, UTC."""

    row: Ints  # the page of the world that was named: one entry per claim
    read_at: Ints
    changed_at: Ints  # when the page changed, according to the source
    read_host: Ints  # the host whose source was read: one entry per reading, whatever it named
    host_read_at: Ints


@dataclass(frozen=True)
class RecordedHints:
    """The hints of every kind of source, by its name."""

    sources: dict[str, SourceHints]

    def reordered(self, place: Ints) -> RecordedHints:
        """The same for pages in another order: `place` is the new number of each."""
        return RecordedHints({kind: replace(each, row=place[each.row]) for kind, each in self.sources.items()})

    def save(self, folder: Path) -> None:
        """Write one file per kind, for `load`."""
        for kind, each in self.sources.items():
            np.savez(folder / f"hints-{kind}.npz", **{field.name: getattr(each, field.name) for field in fields(each)})

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """What was saved; None where nothing was."""
        sources = {}
        for path in sorted(folder.glob("hints-*.npz"), reverse=True):  # sitemaps before feeds, as they count
            with np.load(path) as stored:
                sources[path.stem.removeprefix("hints-")] = SourceHints(**stored)
        return cls(sources) if sources else None
