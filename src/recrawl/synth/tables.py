"""The made-up web as rows of the history's tables, some thousand pages with all their rounds at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from recrawl.core.array_hashing import hash64_slices, hash64_strings
from recrawl.core.arrays import Flags, Ints
from recrawl.history.schema import TABLES, Batch
from recrawl.synth.settings import SynthSettings
from recrawl.synth.text import WordCounts, text_digests
from recrawl.synth.world import CONTENT_TYPE, SynthWorld

VISITS_AT_ONCE = 200_000  #: visits of a batch, about; bounds the memory


def batches(settings: SynthSettings, progress: Callable[[int, int], None] | None = None) -> Iterator[Batch]:
    """The made-up web, ready for `History.append`; `progress` is called with the number of visits made so far and in all.

    >>> [batch["visits"].num_rows for batch in batches(SynthSettings(pages=20, rounds=3))]
    [60]
    """
    world = SynthWorld(settings)
    n_pages = max(1, VISITS_AT_ONCE // settings.rounds)
    known_terms = np.zeros(settings.vocabulary, np.bool_)
    for first in range(0, settings.pages, n_pages):
        pages = np.arange(first, min(first + n_pages, settings.pages))
        yield _batch(world, pages, known_terms)
        if progress is not None:
            progress((int(pages[-1]) + 1) * settings.rounds, settings.pages * settings.rounds)


def link_set_digests(ids: Ints, starts: Ints, n_internal: Ints) -> Ints:
    """`recrawl.history.digests.link_set_digest` of many sets: those of set i are ``ids[starts[i]:starts[i + 1]]``."""
    sizes = np.diff(starts)
    begin = np.r_[0, np.cumsum(sizes + 1)]  # each set with its number of internal links in front
    flat = np.empty(begin[-1], np.int64)
    flat[begin[:-1]] = n_internal
    flat[np.arange(len(ids)) + np.repeat(np.arange(1, len(sizes) + 1), sizes)] = ids
    return hash64_slices(flat.view(np.uint8), 8 * begin)


def _batch(world: SynthWorld, pages: Ints, known_terms: Flags) -> Batch:
    n_rounds = world.settings.rounds
    page, number = np.repeat(pages, n_rounds), np.tile(np.arange(n_rounds), len(pages))
    seen = np.flatnonzero(world.behaviour.status[page, number] == 200)
    batch, links, n_links = _link_sets(world, pages, page[seen], number[seen])
    text_tables, terms = _text_tables(world, page[seen], number[seen], known_terms)
    batch |= text_tables
    batch["visits"] = _visits(world, page, number, seen, links=links, n_links=n_links, terms=terms)
    return {name: batch[name].select(schema.names).cast(schema) for name, schema in TABLES.items() if name in batch}


def _link_sets(world: SynthWorld, pages: Ints, page: Ints, number: Ints) -> tuple[Batch, Ints, Ints]:
    """Each state of a page's links once, with the URLs they need; then digest and size for every visit."""
    since = world.link_round[page, number]
    state, which = np.unique(page * world.settings.rounds + since, return_inverse=True)
    numbers, starts, n_internal = world.links.lists(*np.divmod(state, world.settings.rounds))
    ids, urls = world.addresses.ids(np.r_[numbers, pages])
    ids = ids[: len(numbers)].copy()
    _sort_slices(ids, starts, starts[:-1] + n_internal)
    digests = link_set_digests(ids, starts, n_internal)
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(ids))
    sets = pa.table({"digest": digests, "n_internal": n_internal, "links": lists})
    once = np.sort(np.unique(digests, return_index=True)[1])
    if len(once) < len(digests):
        sets = sets.take(pa.array(once))
    return {"urls": urls, "link_sets": sets}, digests[which], np.diff(starts)[which]


def _text_tables(world: SynthWorld, page: Ints, number: Ints, known: Flags) -> tuple[Batch, Ints | None]:
    """Each version of a page's text once, with the terms it needs; then the digest of its words for every visit."""
    settings, texts = world.settings, world.texts
    if not settings.terms and not settings.vectors:
        return {}, None
    state, which = np.unique(page * settings.rounds + world.text_round[page, number], return_inverse=True)
    text_page, since = np.divmod(state, settings.rounds)
    version = world.version[text_page, since]
    batch: Batch = {}
    words = WordCounts(np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(len(state) + 1, np.int64))
    if settings.terms:
        words = texts.word_counts(text_page, version)
        batch["terms"] = _new_terms(world, words.terms, known)
    vectors = texts.vectors(text_page, version) if settings.vectors else None
    digests = text_digests(words, vectors)
    if settings.terms:
        offsets = pa.array(words.starts.astype(np.int32))
        lists = (pa.ListArray.from_arrays(offsets, pa.array(values)) for values in (words.terms, words.counts))
        batch["texts"] = pa.table([pa.array(digests), *lists], names=["digest", "terms", "counts"])
    if vectors is not None:
        offsets = pa.array(np.arange(len(vectors) + 1, dtype=np.int32) * vectors.shape[1])
        flat = pa.ListArray.from_arrays(offsets, pa.array(vectors.reshape(-1)))
        batch["vectors"] = pa.table({"digest": digests, "vector": flat})
    return batch, digests[which]


def _new_terms(world: SynthWorld, used: Ints, known: Flags) -> pa.Table:
    ids = world.texts.term_ids
    new = np.isin(ids, used) & ~known
    known |= new
    return pa.table({"id": ids[new], "term": world.texts.vocabulary.filter(pa.array(new))})


def _visits(
    world: SynthWorld, page: Ints, number: Ints, seen: Ints, *, links: Ints, n_links: Ints, terms: Ints | None
) -> pa.Table:
    """One row per visit; what only a copy of the page shows is null where none was seen."""
    texts, n_rows = world.texts, len(page)
    ids = world.addresses.ids(page)[0]
    at, status = world.at[page, number], world.behaviour.status[page, number]
    rows, rounds = page[seen], number[seen]
    version = world.version[rows, rounds]
    of_copies = {
        "links": links,
        "text": hash64_strings(world.text_names(rows, ids[seen], rounds)),
        "terms": terms,
        "content_bytes": texts.content_bytes(rows, version, n_links),
        "text_bytes": texts.text_bytes(rows, version),
        "text_quality": texts.quality(rows, version),
        "etag": world.etags(rows, rounds),
        "last_modified": world.last_modified(rows, rounds),
        "content_type": pa.repeat(CONTENT_TYPE, len(seen)),
        "title": texts.titles(rows),
    }
    place = np.full(n_rows, -1)
    place[seen] = np.arange(len(seen))
    places = pa.array(place, mask=place < 0)
    columns = {name: pa.array(values).take(places) for name, values in of_copies.items() if values is not None}
    columns |= {"page": pa.array(ids), "status": pa.array(status), "baseline": pa.repeat(pa.scalar(False), n_rows)}
    columns["at"] = pa.array(at * 1_000_000).cast(pa.timestamp("us", "UTC"))
    nulls = {name: pa.nulls(n_rows, TABLES["visits"].field(name).type) for name in TABLES["visits"].names}
    return pa.table(nulls | columns)


def _sort_slices_py(values: Any, starts: Any, middle: Any) -> None:
    """Sort each list's internal and external part."""
    for i in range(len(middle)):
        values[starts[i] : middle[i]].sort()
        values[middle[i] : starts[i + 1]].sort()


_sort_slices = numba.njit(cache=True, nogil=True)(_sort_slices_py)
