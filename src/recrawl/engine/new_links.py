"""New links in all three meanings, bucket by bucket.

A page answers by itself what is new since its previous visit, and what was never on it before. What was never *anywhere* before
needs all pages: each bucket leaves the first sighting of each link on each of its pages, parted by the link; each part is looked at
as a whole, by the kernel that one machine uses for all links; and each bucket is given back its sightings that were the earliest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.hashing import hash64
from recrawl.engine.collection import bucket_in_task
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.scratch import Scratch
from recrawl.errors import HistoryError
from recrawl.history import History, Novelty, Timeline
from recrawl.history.history import count_new_on_pages
from recrawl.history.novelty import UNDEFINED, NewOnPages, new_anywhere
from recrawl.history.store import trap_ids


def leave_sightings(about: dict[str, Any], history: History, timeline: Timeline, new: NewOnPages) -> None:
    """Leave what other tasks must know of a bucket: its first sightings, its pages, and which URLs look like traps."""
    scratch, n_parts = Scratch(about["scratch"]), about["n_parts"]
    visit = new.visit >> 1
    # Sightings on visits that are compared with none cannot be new, but they make later ones old.
    code = 2 * new.visit + (timeline.compared_with[visit] >= 0)
    sighted = {"link": new.link, "at": timeline.at[visit], "code": code}
    pages, traps = timeline.pages, trap_ids(history.store)
    of_link, of_page, of_trap = (part_of(ids, n_parts) for ids in (new.link, pages, traps))
    for part in range(n_parts):
        rows = {name: values[of_link == part] for name, values in sighted.items()}
        left = {**rows, "page": pages[of_page == part], "trap": traps[of_trap == part]}
        scratch.write(f"sighted-{part}-{about['bucket']}", left)


def part_of(ids: Ints, n_parts: int) -> Ints:
    """The part to which each link belongs: ids are hashes.

    >>> part_of(np.array([0, 1 << 33, -1]), 2)
    array([0, 0, 1])
    """
    return ((ids.view(np.uint64) >> np.uint64(32)) % np.uint64(n_parts)).astype(np.int64)


def sight(task: bytes) -> bytes:
    """On a worker: leave the sightings of a bucket; returns which visits it holds."""
    about = unpacked(task)
    history = bucket_in_task(about)
    timeline = history.slim_timeline
    leave_sightings(about, history, timeline, count_new_on_pages(timeline))
    return packed(visits_digest(timeline))


def visits_digest(timeline: Timeline) -> int:
    """Shows whether a bucket still holds the same visits."""
    return hash64(timeline.page.tobytes() + timeline.at.tobytes())


def find_earliest(task: bytes) -> bytes:
    """On a worker: of all sightings of the links of a part, give back to each bucket those that were the earliest."""
    about = unpacked(task)
    scratch, part = Scratch(about["scratch"]), about["part"]
    left = [scratch.read(f"sighted-{part}-{bucket}") for bucket in range(about["n_buckets"])]
    link, at, code, page, trap = (
        np.concatenate([each[name] for each in left]) for name in ("link", "at", "code", "page", "trap")
    )
    # Each sighting as a visit of its own, so that the kernel counts 1 where it is the earliest.
    row = np.arange(len(link))
    is_earliest, n_distinct, n_links = new_anywhere(link, 2 * row, at, (code & 1) - 1)
    ends = np.cumsum([len(each["link"]) for each in left])[:-1]
    earliest = np.split(is_earliest[0] > 0, ends)
    for bucket, (each, is_first) in enumerate(zip(left, earliest, strict=True)):
        scratch.write(f"earliest-{part}-{bucket}", {"visit": each["code"][is_first] >> 1})
    trap = np.unique(trap)
    n_traps = int((np.isin(trap, link) | np.isin(trap, page)).sum())
    return packed({"n_links": int(n_links), "n_new": int(n_distinct), "n_traps": n_traps})


def count_visits(task: bytes) -> bytes:
    """On a worker: how many visits to a bucket's pages found a link that was never anywhere before."""
    return packed(len(np.unique(_earliest(unpacked(task)) >> 1)))


def anywhere_of(about: dict[str, Any], timeline: Timeline) -> Ints32:
    """Per visit of a bucket, its internal and external links that were never anywhere before."""
    if visits_digest(timeline) != about["digests"][about["bucket"]]:
        raise HistoryError(
            "visits were added while the history was read; run the same again, or up to a moment that is past: --as-of TIME"
        )
    counts = np.where(timeline.compared_with >= 0, 0, UNDEFINED).astype(np.int32)
    found = np.bincount(_earliest(about), minlength=2 * timeline.n_visits).reshape(-1, 2).T
    anywhere: Ints32 = np.where(counts >= 0, found, counts).astype(np.int32)
    return anywhere


def novelty_of(about: dict[str, Any], timeline: Timeline) -> Novelty:
    """What was new on each visit to a bucket's pages; its totals are not those of all pages."""
    return count_new_on_pages(timeline).novelty(anywhere_of(about, timeline), 0, 0)


def _earliest(about: dict[str, Any]) -> Ints:
    """The earliest sightings that a bucket was given back: 2·visit, and 1 more if the link is external."""
    scratch, bucket = Scratch(about["scratch"]), about["bucket"]
    given = [scratch.read(f"earliest-{part}-{bucket}")["visit"] for part in range(about["n_parts"])]
    return np.concatenate(given)
