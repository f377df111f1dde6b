"""A recorded history that answers only what is visited: pages by cycles, and which links each page shows in each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.errors import NotEnoughData
from recrawl.history import History, Timeline
from recrawl.panel import build as build_panel
from recrawl.panel import rounds_of
from recrawl.policies.base import Flags, Ints, LinkLists, Pages
from recrawl.visits import Outcome
from recrawl.world_kernels import first_cycles, numbered
from recrawl.world_pages import folders_and_namesakes, named_pages

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.change import Notion
    from recrawl.related import Related
    from recrawl.world_words import Wordings

_NO_ARRAYS = {"url", "sets", "related", "text", "words", "wordings"}
_OF_WORDS = ("data", "indices", "indptr", "shape")
MAX_CELLS = 500_000_000  #: pages times cycles; each takes 13 bytes
#: No record of the page in this cycle; 404 or 410; any other failure; seen, but its links are not known.
NOTHING, GONE, FAILED, UNREAD = -1, -2, -3, -4
_MIX = (np.int64(-7046029254386353131), np.int64(-4417276706812531889))  # odd numbers, to mix digests


@dataclass(frozen=True)
class World:
    """What every page showed in every cycle. Matrices are [cycle, page]; pages are ordered by URL, links are small numbers.

    Cycle 0 is the first crawl that holds most pages, with whatever was recorded before it. Every policy knows it. A page that
    never showed its links is not part of the world: nobody could find anything there.

    A copy is current as long as the page's version is the one that it was made of. As a rule any difference in text or links makes
    a new version. Recorded with a notion of change (`recrawl.change`), a version is what the page said, and a copy is current as
    long as there is no such change from what it says to what the page says now, however many there were in between and whatever
    else is different: `alike` tells. A page that is read in a new way is compared with older copies all the same.
    """

    page: Ints  # ids in the history
    url: pa.Array
    site: Ints
    host: Ints
    time: Ints  # the end of each cycle, microseconds UTC
    shows: NDArray[np.int32]  # which list of `sets`; or NOTHING, GONE, FAILED, UNREAD
    version: Ints  # of the page's content, as far as anyone looked: equal numbers, nothing changed; -1: not known
    is_baseline: Flags  # the way the page is read changed since the cycle before: its links are known, not new
    sets: LinkLists
    link: Ints  # ids in the history of the numbered links
    first_shown: NDArray[np.int32]  # the cycle in which a link was first on any page; 0: known to all from the start
    related: Related | None = None  # by the texts of cycle 0
    text: NDArray[np.int32] | None = (
        None  # what each page said: a row of `words`; -1: nobody looked, or it is not known
    )
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
        return Pages.unseen(self.site, self.host, self.related, self.words, folders_and_namesakes(self.url))

    def alike(self, before: Ints, after: Ints) -> Flags:
        """Whether nothing that counts changed from one version of a page to another; unknown ones are like nothing."""
        same: Flags = before == after if self.wordings is None else self.wordings.alike(before, after)
        return same & (before >= 0) & (after >= 0)

    def until(self, cycle: int) -> World:
        """The same world cut off after a cycle."""
        cut = {name: getattr(self, name)[: cycle + 1] for name in ("time", "shows", "version", "is_baseline")}
        cut |= {} if self.text is None else {"text": self.text[: cycle + 1]}
        return _with(self, **cut, first_shown=np.where(self.first_shown > cycle, 0, self.first_shown).astype(np.int32))

    def reordered(self, order: Ints) -> World:
        """The same world with its pages in another order: what decides ties is a matter of chance."""
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        moved: dict[str, Any] = {name: getattr(self, name)[order] for name in ("page", "site", "host")}
        moved |= {name: getattr(self, name)[:, order] for name in ("shows", "version", "is_baseline")}
        moved |= {} if self.text is None else {"text": self.text[:, order]}
        if self.related is not None:
            near = self.related.neighbour[order]
            moved["related"] = replace(
                self.related,
                neighbour=np.where(near < 0, near, place[near]).astype(near.dtype),
                weight=self.related.weight[order],
            )
        return _with(self, **moved, url=self.url.take(pa.array(order)))

    def relevant(self, counts: Flags) -> World:
        """The focused setting: only these links count; all others are taken from the pages."""
        number = np.cumsum(counts, dtype=np.int64) - 1
        kept = counts[self.sets.links]
        start = np.append(0, np.cumsum(kept))[self.sets.start]
        links = number[self.sets.links[kept]].astype(np.int32)
        return _with(self, sets=LinkLists(start, links), link=self.link[counts], first_shown=self.first_shown[counts])

    def save(self, folder: Path) -> None:
        """Write the arrays, for `load`."""
        for name, values in self._arrays().items():
            np.save(folder / f"{name}.npy", values)
        (folder / "urls.txt").write_text("\n".join(self.url.to_pylist()), "utf-8")
        if self.related is not None:
            np.savez(folder / "related.npz", neighbour=self.related.neighbour, weight=self.related.weight)
        if self.text is not None:
            np.save(folder / "text.npy", self.text)
        words = self.words if self.wordings is None else self.wordings.counts
        if words is not None:
            for name in _OF_WORDS:
                np.save(folder / f"words_{name}.npy", getattr(words, name))
        if self.wordings is not None:
            self.wordings.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """A saved world, mapped into memory: several processes share it."""
        names = {field.name for field in fields(cls)} - _NO_ARRAYS
        found: dict[str, Any] = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}
        sets = LinkLists(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("set_start", "set_links")))
        text = (folder / "urls.txt").read_text("utf-8")
        from recrawl.related import Related

        related = None
        if (folder / "related.npz").exists():
            stored = np.load(folder / "related.npz")
            related = Related(stored["neighbour"], stored["weight"], "loaded", 1.0)
        found |= _loaded_words(folder) if (folder / "words_shape.npy").exists() else {}
        return cls(**found, url=pa.array(text.split("\n") if text else [], pa.string()), sets=sets, related=related)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NO_ARRAYS}
        return plain | {"set_start": self.sets.start, "set_links": self.sets.links}


def _loaded_words(folder: Path) -> dict[str, Any]:
    from scipy import sparse

    from recrawl.world_words import Wordings

    data, indices, indptr, shape = (np.load(folder / f"words_{name}.npy", mmap_mode="r") for name in _OF_WORDS)
    words = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()), copy=False)
    found: dict[str, Any] = {"wordings": Wordings.load(folder, words)}
    if (folder / "text.npy").exists():
        found |= {"text": np.load(folder / "text.npy", mmap_mode="r"), "words": words}
    return found


def _with(world: World, **changed: Any) -> World:
    return World(**{f.name: getattr(world, f.name) for f in fields(world)} | changed)


def record(
    history: History,
    every: str | timedelta | Sequence[datetime] = "crawl",
    *,
    everything: bool = False,
    n_related: int = 0,
    with_words: bool = False,
    notion: Notion | None = None,
) -> World:
    """The world of a history: cycles by recorded crawl, by period or by the times at which they end.

    Of several visits of a page in a cycle the last one that showed it counts. `everything`: also pages that never showed their
    links, and all cycles from the first visit on, as a plan needs them. `n_related`: also so many related pages of each, by the
    texts that were known before cycle 1 (for a plan: that are known now). `with_words`: also what the pages said, if that is
    known. `notion`: what counts as a change, see `World`; a page whose words are never known keeps its versions.
    """
    # What the pages said is told by all columns: read twice, others might have added visits meanwhile.
    timeline = history.timeline if with_words or notion else history.slim_timeline
    rounds = rounds_of(timeline, every)
    if len(rounds.ends) * len(timeline.pages) > MAX_CELLS:
        raise NotEnoughData(
            f"{len(rounds.ends):,} cycles of {len(timeline.pages):,} pages are too many to keep in memory; choose longer "
            "cycles with --every"
        )
    in_cycle = rounds.of_visit >= 0
    readable = in_cycle & (timeline.links >= 0) & (timeline.outcome <= Outcome.UNCHANGED)
    if not readable.any() and not everything:
        raise NotEnoughData("no visit in this history shows the links of a page, so there is nothing to replay")
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    seen = np.flatnonzero(readable)  # ordered by page and time: the last one of a cycle is written last
    with ThreadPoolExecutor(1) as other:  # neither needs the interpreter for long
        looked_up = other.submit(
            named_pages, history, timeline.pages if everything else np.unique(timeline.page[readable])
        )
        number, sets, link = _numbered(timeline, seen)
        ids, url, host, site = looked_up.result()
    first = 0 if everything else _first_full(timeline.page[readable], rounds.of_visit[readable], len(rounds.ends))
    cycle = np.maximum(rounds.of_visit - first, 0)
    shape = (len(rounds.ends) - first, len(ids))
    row = _row_of(timeline.page, ids)
    shows = np.full(shape, NOTHING, np.int32)
    unread = in_cycle & (timeline.links < 0) & (timeline.outcome <= Outcome.UNCHANGED)
    marks = ((timeline.outcome == Outcome.FAILED, FAILED), (timeline.outcome == Outcome.GONE, GONE), (unread, UNREAD))
    for which, mark in marks:
        visited = np.flatnonzero(in_cycle & (row >= 0) & which)
        shows[cycle[visited], row[visited]] = mark
    shows[cycle[seen], row[seen]] = number
    version = np.full(shape, -1, np.int64)
    shown = np.flatnonzero((readable | unread) & (row >= 0))
    version[cycle[shown], row[shown]] = _versions(timeline, shown)
    baseline = np.zeros(shape, np.bool_)
    marked = np.flatnonzero(timeline.baseline & in_cycle & (row >= 0))
    baseline[cycle[marked], row[marked]] = True
    world = World(
        page=ids,
        url=url,
        site=site,
        host=host,
        time=rounds.ends[first:],
        shows=shows,
        version=_carried(version),
        is_baseline=baseline,
        sets=sets,
        link=link,
        first_shown=_first_shown(shows, baseline, sets, number[cycle[seen] == 0], len(link)),
        related=_related(history, every, -1 if everything else first, ids, n_related) if n_related else None,
    )
    return _with_contents(world, history, every, first, with_words, notion) if with_words or notion else world


def _with_contents(
    world: World,
    history: History,
    every: str | timedelta | Sequence[datetime],
    first: int,
    with_words: bool,
    notion: Notion | None,
) -> World:
    from recrawl.world_words import shown_texts, worded, worded_versions  # few need it

    contents = worded(history, every, needed=notion is not None)
    if contents is None:
        return world
    changed: dict[str, Any] = {}
    if notion is not None:
        made = worded_versions(notion, history, contents, world.version, world.page, first)
        changed["version"], changed["wordings"] = made
    if with_words:
        changed |= {"text": shown_texts(contents, world.page, first), "words": contents.counts}
    return _with(world, **changed)


def _related(
    history: History, every: str | timedelta | Sequence[datetime], of_round: int, ids: Ints, k: int
) -> Related | None:
    """The related pages by the texts known up to a round, in the order of the pages; None where no text is known."""
    if not any(history.store.read(name, columns=["digest"]).num_rows for name in ("texts", "vectors")):
        return None
    from recrawl.related import related_pages  # heavy, and few need it
    from recrawl.vectors import page_vectors

    panel = build_panel(history, every, 0.0)
    found = page_vectors(history, panel, of_round % panel.shape[1])
    if not found.known.any():
        return None
    at = np.minimum(np.searchsorted(panel.page, ids), len(panel.page) - 1)
    vectors = np.where((panel.page[at] == ids)[:, None], found.values[at], 0).astype(np.float32)
    return related_pages(vectors, k)


def _first_full(page: Ints, of_visit: Ints, n_rounds: int) -> int:
    """The first round that holds most pages; where none does, the fullest."""
    once = np.append(True, (page[1:] != page[:-1]) | (of_visit[1:] != of_visit[:-1]))  # ordered by page and time
    held, n_pages = np.bincount(of_visit[once], minlength=n_rounds), 1 + int((page[1:] != page[:-1]).sum())
    return int(np.argmax(held > n_pages / 2)) if (held > n_pages / 2).any() else int(np.argmax(held))


def _row_of(page: Ints, ids: Ints) -> Ints:
    """Where each page stands among the pages of the world; -1 where it is not part of it."""
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids[order], page), len(ids) - 1)
    return np.where(ids[order][at] == page, order[at], -1)


def _numbered(timeline: Timeline, seen: Ints) -> tuple[Ints, LinkLists, Ints]:
    """For every visit the number of its list, the lists with small ascending numbers for links, and what those stand for.

    Lists stay in the order in which they are stored: those of a site that is crawled together stand, and are numbered, together.
    """
    shown, sets = timeline.links[seen], timeline.sets
    is_used = np.zeros(len(sets.digest), np.bool_)
    is_used[shown] = True
    number = (np.cumsum(is_used) - 1)[shown]
    before = np.full(int(is_used.sum()), -1, np.int64)
    again = np.flatnonzero(
        timeline.page[seen[1:]] == timeline.page[seen[:-1]]
    )  # what a page showed at its visit before
    again = again[number[again] < number[again + 1]]
    before[number[again + 1]] = number[again]
    start, links, link = numbered(sets.start, sets.links, sets.n_internal, np.flatnonzero(is_used), before)
    return number, LinkLists(start, links), link


def _versions(timeline: Timeline, shown: Ints) -> Ints:
    """A number for what each visit showed: its links and its text, or its bytes where neither is known; -1 where nothing is."""
    copy = timeline.latest[shown]
    content = np.zeros(len(shown), np.int64)
    for name in ("payload", "text"):
        column = timeline.rows[name]
        known = np.asarray(column.is_valid())[np.maximum(copy, 0)] & (copy >= 0)
        content = np.where(known, column.fill_null(0).to_numpy()[np.maximum(copy, 0)], content)
    links = timeline.links[shown]
    digest = np.where(links >= 0, timeline.sets.digest[np.maximum(links, 0)] if len(timeline.sets.digest) else 0, 0)
    mixed = (content * _MIX[0]) ^ (digest * _MIX[1])
    return np.where((content == 0) & (links < 0), -1, mixed & np.int64(2**62 - 1))


def _carried(version: Ints) -> Ints:
    """A page is as it was last seen, as far as anyone knows."""
    for cycle in range(1, len(version)):
        version[cycle] = np.where(version[cycle] < 0, version[cycle - 1], version[cycle])
    return version


def _first_shown(
    shows: NDArray[np.int32], baseline: Flags, sets: LinkLists, at_first: Ints, n_links: int
) -> NDArray[np.int32]:
    """The cycle that first shows each link; 0 also where a baseline does: what is read anew was not published anew.

    `at_first` are the lists of all visits of cycle 0, also of those that a later one of the same cycle replaced.
    """
    first_of_set = np.full(len(sets.sizes), np.iinfo(np.int32).max, np.int32)
    for cycle in range(len(shows) - 1, -1, -1):
        first_of_set[shows[cycle][shows[cycle] >= 0]] = cycle
    first_of_set[at_first] = 0
    first: NDArray[np.int32] = first_cycles(sets.start, sets.links, first_of_set, n_links)
    for cycle in np.flatnonzero(baseline.any(axis=1)).tolist():
        for number in shows[cycle][baseline[cycle] & (shows[cycle] >= 0)]:
            links = sets[number]
            first[links[first[links] >= cycle]] = 0
    first[first == np.iinfo(np.int32).max] = 0  # shown only by visits that were followed by another in the same cycle
    return first
