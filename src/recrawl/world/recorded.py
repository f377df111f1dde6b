"""A recorded history that answers only what is visited: pages by cycles, and which links each page shows in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Ints, Ints32, LinkLists
from recrawl.world.page_names import folders_and_namesakes
from recrawl.world.pages import Pages
from recrawl.world.related import Related

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.world.wordings import Wordings

#: No record of the page in this cycle; 404 or 410; any other failure; seen, but its links are not known.
NOTHING, GONE, FAILED, UNREAD = -1, -2, -3, -4
# The axes of the arrays of a world. `until`, `reordered`, `relevant`, `save` and `load` follow from them.
_BY_PAGE, _BY_CYCLE, _BY_CYCLE_AND_PAGE, _BY_LINK = (
    {"axes": axes} for axes in (("page",), ("cycle",), ("cycle", "page"), ("link",))
)
_PARTS_OF_WORDS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True, kw_only=True)
class World:
    """What every page showed in every cycle. Matrices are [cycle, page]; pages are ordered by URL, links are small numbers.

    Cycle 0 is the first crawl that holds most pages, with everything recorded before it. Every policy knows it. A page that
    never showed its links is not part of the world: nothing could be discovered there.

    A copy is current as long as the page's version is the one that it was made of. By default any difference in text or links makes
    a new version. Recorded with a notion of change (see `change`), a version is what the page said, and a copy is current as
    long as there is no such change from what it says to what the page says now, however many there were in between and whatever
    else differs (see `alike`). A page that is read in a new way is still compared with older copies.
    """

    page: Ints = field(metadata=_BY_PAGE)  # ids in the history
    url: pa.Array
    site: Ints = field(metadata=_BY_PAGE)
    host: Ints = field(metadata=_BY_PAGE)
    time: Ints = field(metadata=_BY_CYCLE)  # the end of each cycle, microseconds UTC
    shows: Ints32 = field(metadata=_BY_CYCLE_AND_PAGE)  # which list of `sets`; or NOTHING, GONE, FAILED, UNREAD
    #: Of the page's content, carried forward between visits: equal numbers, nothing changed; -1: not known.
    version: Ints = field(metadata=_BY_CYCLE_AND_PAGE)
    #: The way the page is read changed since the cycle before: its links are known, not new.
    is_baseline: Flags = field(metadata=_BY_CYCLE_AND_PAGE)
    sets: LinkLists
    link: Ints = field(metadata=_BY_LINK)  # ids in the history of the numbered links
    #: The cycle in which a link was first on any page; 0: known to all from the start.
    first_shown: Ints32 = field(metadata=_BY_LINK)
    related: Related | None = None  # by the texts of cycle 0
    #: What each page said: a row of `words`; -1: it was not visited, or its words are not known.
    text: Ints32 | None = field(default=None, metadata=_BY_CYCLE_AND_PAGE)
    words: sparse.csr_matrix | None = None  # counts [text, term]
    wordings: Wordings | None = None  # which versions are alike, if not only equal ones

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

    def pages(self) -> Pages:
        """The pages before anything was visited."""
        groups = folders_and_namesakes(self.url)
        return Pages.unseen(self.site, self.host, related=self.related, words=self.words, url_groups=groups)

    def alike(self, before: Ints, after: Ints) -> Flags:
        """Whether nothing that counts changed from one version of a page to another; unknown ones are like no other."""
        same: Flags = before == after if self.wordings is None else self.wordings.alike(before, after)
        return same & (before >= 0) & (after >= 0)

    def until(self, cycle: int) -> World:
        """The same world cut off after a cycle."""
        cut: dict[str, Any] = {name: values[: cycle + 1] for name, axes, values in self._arrays() if axes[0] == "cycle"}
        cut["first_shown"] = np.where(self.first_shown > cycle, 0, self.first_shown).astype(np.int32)
        return replace(self, **cut)

    def reordered(self, order: Ints) -> World:
        """The same world with its pages in another order, which decides ties."""
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        moved: dict[str, Any] = {name: values[..., order] for name, axes, values in self._arrays() if "page" in axes}
        if self.related is not None:
            near = self.related.neighbour[order]
            moved["related"] = replace(
                self.related,
                neighbour=np.where(near < 0, near, place[near]).astype(near.dtype),
                weight=self.related.weight[order],
            )
        return replace(self, **moved, url=self.url.take(pa.array(order)))

    def relevant(self, counts: Flags) -> World:
        """The focused setting: only these links count; all others are removed from the pages."""
        number = np.cumsum(counts, dtype=np.int64) - 1
        is_kept = counts[self.sets.links]
        start = np.append(0, np.cumsum(is_kept))[self.sets.start]
        links = number[self.sets.links[is_kept]].astype(np.int32)
        kept: dict[str, Any] = {name: values[counts] for name, axes, values in self._arrays() if axes == ("link",)}
        return replace(self, sets=LinkLists(start, links), **kept)

    def save(self, folder: Path) -> None:
        """Write the arrays, for `load`."""
        for name, _, values in self._arrays():
            np.save(folder / f"{name}.npy", values)
        np.save(folder / "set_start.npy", self.sets.start)
        np.save(folder / "set_links.npy", self.sets.links)
        (folder / "urls.txt").write_text("\n".join(self.url.to_pylist()), "utf-8")
        if self.related is not None:
            np.savez(folder / "related.npz", neighbour=self.related.neighbour, weight=self.related.weight)
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
        if (folder / "related.npz").exists():
            stored = np.load(folder / "related.npz")
            parts["related"] = Related(stored["neighbour"], stored["weight"], "loaded", 1.0)
        if _has(folder, "words_shape"):
            parts |= _loaded_words(folder, with_words="text" in parts)
        return cls(**parts)

    def _arrays(self) -> Iterator[tuple[str, tuple[str, ...], NDArray[Any]]]:
        """The name, the axes and the values of every array that the world has."""
        for name, axes in _axes_of(type(self)).items():
            if getattr(self, name) is not None:
                yield name, axes, getattr(self, name)


def _axes_of(world: type[World]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.metadata["axes"] for each in fields(world) if each.metadata}


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
