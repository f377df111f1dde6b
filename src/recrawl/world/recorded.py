"""A recorded history that answers only what is visited: what each page showed at each of its visits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.world.readings import CARRY
from recrawl.world.recorded_hints import RecordedHints
from recrawl.world.related import Related

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.world.wordings import Wordings

#: No record of the page in this cycle; 404 or 410; any other failure; seen, but its links are not known.
NOTHING, GONE, FAILED, UNREAD = -1, -2, -3, -4
# The axes of the arrays of a world. `reordered`, `relevant`, `save` and `load` follow from them.
_BY_PAGE, _BY_CYCLE, _BY_VISIT, _BY_LINK = ({"axis": axis} for axis in ("page", "cycle", "visit", "link"))
_PARTS_OF_WORDS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class AllLinks:
    """The links of a focused world that count and those that do not, numbered together."""

    sets: LinkLists  # as many as the world has: `shows` leads to them, too
    first_shown: Ints32  # as in `World`


@dataclass(frozen=True, kw_only=True)
class World:
    """What every page showed whenever it was visited: one entry per page and cycle in which it was; nothing for all others.

    Cycle 0 is where the crawl begins: the first crawls, until they hold as many pages as a usual one, with everything recorded
    before. Every policy knows it. Pages are in the order in which the recorded crawl first knew them. A page that never showed
    its links is not part of the world: nothing could be discovered there. Of several visits to a page in a cycle the last
    one that showed its links counts. Recorded for the goal content, it is the same with the content of a page instead of its links.

    A copy is current as long as the page's version is the one that it was made of. By default any difference in text or links makes
    a new version. Recorded with a notion of change (see `notions`), a version is what the page said, and a copy is current as
    long as there is no such change from what it says to what the page says now, however many there were in between and whatever
    else differs (see `alike`). A page that is read in a new way is still compared with older copies.
    """

    page: Ints = field(metadata=_BY_PAGE)  # ids in the history
    url: pa.Array
    site: Ints = field(metadata=_BY_PAGE)
    host: Ints = field(metadata=_BY_PAGE)
    first_cycle: Ints32 = field(metadata=_BY_PAGE)  # from which on the recorded crawl knew the page
    time: Ints = field(metadata=_BY_CYCLE)  # the end of each cycle, microseconds UTC
    # The visits, ordered by cycle and page.
    row: Ints32 = field(metadata=_BY_VISIT)  # the page
    cycle: Ints32 = field(metadata=_BY_VISIT)
    shows: Ints32 = field(metadata=_BY_VISIT)  # which list of `sets`; or GONE, FAILED, UNREAD
    version: Ints = field(metadata=_BY_VISIT)  # of the page's content: equal numbers, nothing changed; -1: not known
    #: The way the page is read changed since the visit before: its links are known, not new.
    is_baseline: Flags = field(metadata=_BY_VISIT)
    sets: LinkLists
    link: Ints = field(metadata=_BY_LINK)  # ids in the history of the numbered links
    #: The cycle in which a link was first on any page; 0: known to all from the start.
    first_shown: Ints32 = field(metadata=_BY_LINK)
    first_at: Ints = field(metadata=_BY_LINK)  # when it was first seen on any page, microseconds UTC
    related: Related | None = None  # by the texts of cycle 0
    hints: RecordedHints | None = None  # of sitemaps and feeds; None: not asked for, or none was read
    #: What each page said: a row of `words`; -1: its words are not known.
    text: Ints32 | None = field(default=None, metadata=_BY_VISIT)
    words: sparse.csr_matrix | None = None  # counts [text, term]
    wordings: Wordings | None = None  # which versions are alike, if not only equal ones
    depth: Ints | None = field(default=None, metadata=_BY_PAGE)  # names in the path below the root of the site
    #: How much the page matters, as was known by the end of the cycle; None: all pages are alike, which is 1.
    importance: Floats | None = field(default=None, metadata=_BY_VISIT)
    between: str = CARRY  # what pages show in cycles without a record, one of `readings.BETWEEN`
    everything: AllLinks | None = None  # where only some links count: all of them, to compare with; no policy sees it

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.page)

    @property
    def n_cycles(self) -> int:
        """How many cycles follow cycle 0."""
        return len(self.time) - 1

    @property
    def discoverable(self) -> int:
        """Distinct links that visiting every page in every cycle discovers."""
        return int((self.first_shown > 0).sum())

    def alike(self, before: Ints, after: Ints) -> Flags:
        """Whether nothing that counts changed from one version of a page to another; unknown ones are like no other."""
        same: Flags = before == after if self.wordings is None else self.wordings.alike(before, after)
        return same & (before >= 0) & (after >= 0)

    def of_cycle(self, cycle: int) -> slice:
        """The visits of a cycle."""
        # Keys of another type would have the whole array converted.
        low, high = np.searchsorted(self.cycle, np.array([cycle, cycle + 1], self.cycle.dtype))
        return slice(int(low), int(high))

    def known_pages(self, cycle: int) -> int:
        """How many pages the recorded crawl knew by the end of a cycle: the first ones."""
        return int(np.searchsorted(self.first_cycle, self.first_cycle.dtype.type(cycle), side="right"))

    def until(self, cycle: int) -> World:
        """The same world cut off after a cycle."""
        n_visits = self.of_cycle(cycle).stop
        cut: dict[str, Any] = {name: values[:n_visits] for name, axis, values in self._arrays() if axis == "visit"}
        cut["time"] = self.time[: cycle + 1]
        cut["first_shown"] = _until(self.first_shown, cycle)
        if self.everything is not None:
            cut["everything"] = AllLinks(self.everything.sets, _until(self.everything.first_shown, cycle))
        return replace(self, **cut)

    def with_all_known(self) -> World:
        """The same world with every page known from the start, also those that the recorded crawl found later."""
        return replace(self, first_cycle=np.zeros_like(self.first_cycle))

    def reordered(self, order: Ints) -> World:
        """The same world with its pages in another order, which decides ties; those known earlier still come first."""
        order = order[np.argsort(self.first_cycle[order], kind="stable")]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        moved: dict[str, Any] = {name: values[order] for name, axis, values in self._arrays() if axis == "page"}
        row = place[self.row].astype(np.int32)
        by_row = np.lexsort((row, self.cycle))
        moved |= {name: values[by_row] for name, axis, values in self._arrays() if axis == "visit"}
        if self.related is not None:
            near = self.related.neighbour[order]
            moved["related"] = replace(
                self.related,
                neighbour=np.where(near < 0, near, place[near]).astype(near.dtype),
                weight=self.related.weight[order],
            )
        moved["hints"] = self.hints and self.hints.reordered(place)
        return replace(self, **moved | {"row": row[by_row]}, url=self.url.take(pa.array(order)))

    def relevant(self, counts: Flags) -> World:
        """The focused setting: only these links count; all others are removed from the pages, and kept in `everything`."""
        number = np.cumsum(counts, dtype=np.int64) - 1
        is_kept = counts[self.sets.links]
        start = np.append(0, np.cumsum(is_kept))[self.sets.start]
        links = number[self.sets.links[is_kept]].astype(np.int32)
        kept: dict[str, Any] = {name: values[counts] for name, axis, values in self._arrays() if axis == "link"}
        everything = self.everything or AllLinks(self.sets, self.first_shown)
        return replace(self, sets=LinkLists(start, links), everything=everything, **kept)

    def save(self, folder: Path) -> None:
        """Write the arrays, for `load`."""
        for name, _, values in self._arrays():
            np.save(folder / f"{name}.npy", values)
        np.save(folder / "set_start.npy", self.sets.start)
        np.save(folder / "set_links.npy", self.sets.links)
        (folder / "urls.txt").write_text("\n".join(self.url.to_pylist()), "utf-8")
        (folder / "between.txt").write_text(self.between, "utf-8")
        if self.everything is not None:
            sets = self.everything.sets
            np.savez(
                folder / "everything.npz", start=sets.start, links=sets.links, first_shown=self.everything.first_shown
            )
        if self.related is not None:
            np.savez(folder / "related.npz", neighbour=self.related.neighbour, weight=self.related.weight)
        if self.hints is not None:
            self.hints.save(folder)
        words = self.words if self.wordings is None else self.wordings.counts
        if words is not None:
            for name in _PARTS_OF_WORDS:
                np.save(folder / f"words_{name}.npy", getattr(words, name))
        if self.wordings is not None:
            self.wordings.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """A saved world, mapped into memory: several processes share it."""
        parts: dict[str, Any] = {name: _mapped(folder, name) for name in _axes_of(cls) if _has(folder, name)}
        parts["sets"] = LinkLists(_mapped(folder, "set_start"), _mapped(folder, "set_links"))
        urls = (folder / "urls.txt").read_text("utf-8")
        parts["url"] = pa.array(urls.split("\n") if urls else [], pa.string())
        parts["between"] = (folder / "between.txt").read_text("utf-8")
        if (folder / "everything.npz").exists():
            stored = np.load(folder / "everything.npz")
            parts["everything"] = AllLinks(LinkLists(stored["start"], stored["links"]), stored["first_shown"])
        parts["hints"] = RecordedHints.load(folder)
        if (folder / "related.npz").exists():
            stored = np.load(folder / "related.npz")
            parts["related"] = Related(stored["neighbour"], stored["weight"], "loaded", 1.0)
        if _has(folder, "words_shape"):
            parts |= _loaded_words(folder, with_words="text" in parts)
        return cls(**parts)

    def _arrays(self) -> Iterator[tuple[str, str, NDArray[Any]]]:
        """The name, the axis and the values of every array that the world has."""
        for name, axis in _axes_of(type(self)).items():
            if getattr(self, name) is not None:
                yield name, axis, getattr(self, name)


def _axes_of(world: type[World]) -> dict[str, str]:
    return {each.name: each.metadata["axis"] for each in fields(world) if each.metadata}


def _until(first_shown: Ints32, cycle: int) -> Ints32:
    """When links were first shown, without what comes after a cycle."""
    return np.where(first_shown > cycle, 0, first_shown).astype(np.int32)


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.npy").exists()


def _mapped(folder: Path, name: str) -> NDArray[Any]:
    values: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return values


def _loaded_words(folder: Path, with_words: bool) -> dict[str, Any]:
    from scipy import sparse

    from recrawl.world.wordings import Wordings

    data, indices, indptr, shape = (_mapped(folder, f"words_{name}") for name in _PARTS_OF_WORDS)
    words = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()), copy=False)
    return {"wordings": Wordings.load(folder, words), "words": words if with_words else None}
