"""Which visits something was learnt from: enough to see later whether the same visits are still all there were until then."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Flags, Ints
from recrawl.core.times import moment
from recrawl.history.history import SLIM, History
from recrawl.history.keys import ranges_of
from recrawl.history.schema import VISITS
from recrawl.history.timeline import Timeline, TooSlim, ordered

AT_ONCE = 8_000_000  #: visits that are held, about
_MORE = ("short_terms", "sketches")  # tables that older histories lack: what is in them is added by a second import
_ODD = np.int64(-7046029254386353131)


@dataclass(frozen=True)
class PastVisits:
    """Visits up to a moment: how many, a digest of them all, and the files that they were read from.

    As long as these files are part of the history, nothing but the files added since has to be looked at. After a compaction the
    digest shows whether the visits are the same.
    """

    n: int = 0
    digest: int = 0
    files: frozenset[str] = field(default_factory=frozenset)
    columns: tuple[str, ...] = SLIM  # that the digest is of
    #: By table: digests of texts (ascending) that it had nothing of. An import of the same pages may add that.
    lacking: dict[str, Ints] = field(default_factory=dict, compare=False)

    def with_more(
        self, history: History, timeline: Timeline, since: int, until: int, files: tuple[str, ...]
    ) -> PastVisits:
        """The same with the visits of a timeline after one moment and up to another; `files`: all that hold visits."""
        rows = np.flatnonzero((timeline.at > since) & (timeline.at <= until))
        n, digest = _digest(timeline.rows, rows, self.columns)
        whole, lacking = (self.digest + digest) & 0xFFFFFFFFFFFFFFFF, self.lacking
        if "terms" in self.columns:
            texts = np.unique(timeline.rows["terms"].take(pa.array(rows)).drop_null().to_numpy())
            lacking = {name: np.union1d(lacking.get(name, texts[:0]), _lacking(history, name, texts)) for name in _MORE}
        return replace(self, n=self.n + n, digest=whole, files=frozenset(files), lacking=lacking)

    def says_more(self, history: History) -> bool:
        """Whether more is known by now of what pages said at these visits."""
        return any(len(_lacking(history, name, texts)) < len(texts) for name, texts in self.lacking.items())

    def confirmed(self, history: History, until: int) -> PastVisits | None:
        """The same, with the files that hold them now; None where the visits up to the moment are not these any more."""
        before = ds.field("at") <= pa.scalar(moment(until), VISITS.field("at").type)

        def check(table: ds.Dataset) -> bool:
            files = {os.path.basename(file): file for file in table.files}
            if self.files <= files.keys():
                added = [path for name, path in files.items() if name not in self.files]
                return not added or _dataset(added, table).count_rows(filter=before) == 0
            return (self.n, self.digest) == self._counted(table, before)

        is_same, files = history.store.read_at_once("visits", check)
        return replace(self, files=frozenset(files)) if is_same else None

    def _counted(self, table: ds.Dataset, before: pc.Expression) -> tuple[int, int]:
        """How many visits a table holds, and their digest; the visits of some pages after those of others."""
        n, digest = 0, 0
        for of_pages in ranges_of("page", max(1, -(-table.count_rows() // AT_ONCE))):
            which = before if of_pages is None else before & of_pages
            try:
                rows = ordered(table.to_table(list(self.columns), filter=which))
            except TooSlim:
                rows = ordered(table.to_table(filter=which))
            n_here, digest_here = _digest(rows, np.arange(rows.num_rows), self.columns)
            n, digest = n + n_here, (digest + digest_here) & 0xFFFFFFFFFFFFFFFF
        return n, digest

    def still_holds(self, history: History, until: int, files: tuple[str, ...]) -> bool:
        """Whether they were the same at the moment when some files were read: nothing that is older came between two looks."""
        return self.files == frozenset(files) or self.confirmed(history, until) is not None

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "n": self.n,
            "digest": f"{self.digest:016x}",
            "files": sorted(self.files),
            "columns": list(self.columns),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PastVisits:
        """The inverse of `as_dict`."""
        digest = int(values["digest"], 16)
        return cls(int(values["n"]), digest, frozenset(values["files"]), tuple(values["columns"]))


def _dataset(files: list[str], like: ds.Dataset) -> ds.Dataset:
    """Some of the files of a dataset."""
    return ds.dataset(files, schema=like.schema, filesystem=like.filesystem, format="parquet")


def _lacking(history: History, name: str, texts: Ints) -> Ints:
    """The texts, by digest, that a table has nothing of."""
    known = history.store.read(name, ["digest"], pc.is_in(ds.field("digest"), pa.array(texts)))
    return texts[~np.isin(texts, known["digest"].to_numpy())]


def _digest(rows: pa.Table, which: Ints, columns: tuple[str, ...]) -> tuple[int, int]:
    """How many rows these are, and a sum of hashes: the same in any order."""
    mixed = np.zeros(len(which), np.int64)
    with np.errstate(over="ignore"):
        for name in columns:
            column = rows[name]
            known: Flags = np.asarray(column.is_valid())[which]
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            values = column.cast(pa.int64()).fill_null(0).to_numpy()[which]
            mixed = (mixed ^ (values + known)) * _ODD
            mixed ^= (mixed >> np.int64(29)) & np.int64(0x7FFFFFFFF)
        total = int(mixed.astype(np.uint64).sum(dtype=np.uint64)) if len(mixed) else 0
    return len(which), total
