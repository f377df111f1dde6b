"""Visits → the rows of the history's tables, ready to be appended.

This is the hot path of every import: links repeat from visit to visit and from page to page, so each spelling is canonicalised
once and remembered.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.hashing import hash64
from recrawl.core.hashtable import HashSet
from recrawl.errors import BadUrl
from recrawl.history.digests import link_set_digest, terms_digest
from recrawl.history.schema import GIVEN, TABLES, Batch
from recrawl.web import html as parse
from recrawl.web.terms import Terms, collapsed, count_terms
from recrawl.web.urls import canonical, origin, page_id, resolve, trap
from recrawl.web.visit import Given, Visit, checked_weight

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
REMEMBERED = 1_000_000  #: spellings, words and digests kept in memory (about); past that they are forgotten
_SIZES = attrgetter("content_bytes", "text_bytes")
_STATED = attrgetter(*GIVEN.names[3:])
_PLAIN = attrgetter("relevance", "baseline", "etag", "last_modified", "content_type", "title", "note")


class _Spellings(dict[str, "tuple[int, str] | None"]):
    """Every spelling of a URL so far → id and origin; None: not a URL to follow. Canonicalises those it does not know."""

    def __init__(self, learn: Callable[[str], tuple[int, str] | None]) -> None:
        self._learn = learn

    def __missing__(self, spelling: str) -> tuple[int, str] | None:
        entry = self[spelling] = self._learn(spelling)
        return entry


class _TermIds(dict[str, int]):
    """Every word so far → id."""

    def __init__(self, learn: Callable[[int, str], None]) -> None:
        self._learn = learn

    def __missing__(self, term: str) -> int:
        key = self[term] = hash64(term)
        self._learn(key, term)
        return key


class BatchBuilder:
    """Collects visits and turns them into a `Batch`.

    >>> builder = BatchBuilder()
    >>> builder.add(Visit(url="https://e.org/", at=EPOCH, links=["https://e.org/a", "https://f.org/", "mailto:x@e.org"]))
    >>> batch = builder.take()
    >>> batch["link_sets"]["n_internal"].to_pylist(), batch["urls"].num_rows, dict(builder.dropped_links)
    ([1], 3, {'not an http or https URL': 1})
    """

    def __init__(self, *, keep_tracking: bool = False) -> None:
        self.keep_tracking = keep_tracking
        self.dropped_links: Counter[str] = Counter()
        self.traps = 0
        self._spellings = _Spellings(self._learn_link)
        self._term_ids = _TermIds(self._learn_term)
        self._counted = HashSet()
        self._sent: dict[str, set[int]] = {name: set() for name in TABLES}
        self._start()

    def _start(self) -> None:
        self.n_visits = self.n_links = 0
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}

    def add(self, visit: Visit) -> None:
        """Take in one visit; raises `BadUrl` or `BadRecord`, and then nothing of it was taken."""
        importance = None if visit.importance is None else checked_weight("importance", visit.importance)
        page, page_origin = self._spellings.get(visit.url) or self._learn_page(visit.url)
        if visit.html is not None:
            visit = _with_html(visit)
        base = None if visit.base is None else canonical(visit.base, keep_tracking=True)
        terms, quality = self._words(visit)
        links = None if visit.links is None else self._link_set(visit.links, base, page_origin)
        payload = hash64(visit.payload_digest) if visit.payload_digest else None
        at = (visit.at - EPOCH) // MICROSECOND
        row = (page, at, visit.status, links, _text_digest(visit), terms, payload)
        self._rows["visits"].append((*row, *_SIZES(visit), quality, *_PLAIN(visit)))
        if visit.given is not None:
            self._take_given(page, at, visit.given)
        if importance is not None:
            self._take_importance(page, at, importance)
        self.n_visits += 1

    def take(self) -> Batch:
        """The rows collected so far; the builder starts again but remembers what it has already sent."""
        batch = {}
        for name, schema in TABLES.items():
            columns = zip(*self._rows[name], strict=True) if self._rows[name] else ((),) * len(schema)
            arrays = [_column(values, field.type) for values, field in zip(columns, schema, strict=True)]
            batch[name] = pa.table(arrays, schema=schema)
        self._start()
        memories: list[Any] = [self._spellings, self._term_ids, self._counted, *self._sent.values()]
        for memory in memories:
            if len(memory) > REMEMBERED:
                memory.clear()
        return batch

    def _learn_page(self, spelling: str) -> tuple[int, str]:
        entry = self._spellings[spelling] = self._entry(canonical(spelling, keep_tracking=self.keep_tracking))
        return entry

    def _learn_link(self, spelling: str) -> tuple[int, str] | None:
        try:
            return self._entry(canonical(spelling, keep_tracking=self.keep_tracking))
        except BadUrl as error:
            self.dropped_links[str(error).partition(":")[0]] += 1
            return None

    def _entry(self, url: str) -> tuple[int, str]:
        key = page_id(url)
        if self._first_time("urls", key):
            flagged = trap(url) is not None
            self.traps += flagged
            self._rows["urls"].append((key, url, flagged))
        return key, intern(origin(url))

    def _learn_term(self, key: int, term: str) -> None:
        if self._first_time("terms", key):
            self._rows["terms"].append((key, term))

    def _link_set(self, hrefs: Sequence[str], base: str | None, page_origin: str) -> int:
        spellings = self._spellings
        entries = [spellings[href] for href in (hrefs if base is None else _absolute(hrefs, base))]
        internal = {entry[0] for entry in entries if entry is not None and entry[1] == page_origin}
        external = {entry[0] for entry in entries if entry is not None and entry[1] != page_origin}
        inside, outside = array("q", sorted(internal)), array("q", sorted(external))
        digest = link_set_digest(inside, outside)
        if self._first_time("link_sets", digest):
            self._rows["link_sets"].append((digest, len(inside), inside + outside))
            self.n_links += len(inside) + len(outside)
        return digest

    def _take_given(self, page: int, at: int, given: Given) -> None:
        row = (page, at, *_STATED(given))
        digest = hash64(repr(row))
        if self._first_time("given", digest):
            self._rows["given"].append((digest, *row))

    def _take_importance(self, page: int, at: int, importance: float) -> None:
        row = (page, at, importance)
        digest = hash64(repr(row))
        if self._first_time("importance", digest):
            self._rows["importance"].append((digest, *row))

    def _words(self, visit: Visit) -> tuple[int | None, float | None]:
        """The digest of the words (and the vector) of a visit, and the quality of its text."""
        vector = array("f", visit.vector) if visit.vector is not None else array("f")
        sketch = short = None
        if visit.terms is not None:
            ids, counts = self._given_terms(visit.terms)
        elif visit.text is not None:
            counted = count_terms(visit.text)
            sketch = counted.sketch
            (ids, counts), short = self._counted_terms(counted.long()), self._counted_terms(counted.short())
        elif visit.vector is not None:
            ids, counts = np.empty(0, np.int64), np.empty(0, np.int32)
        else:
            return None, visit.text_quality
        digest = terms_digest(ids, counts, vector, short)
        known_words = visit.terms is not None or visit.text is not None
        if known_words and self._first_time("texts", digest):
            self._rows["texts"].append((digest, ids, counts))
        if short is not None and self._first_time("short_terms", digest):
            self._rows["short_terms"].append((digest, *short))
        if visit.vector is not None and self._first_time("vectors", digest):
            self._rows["vectors"].append((digest, vector))
        if sketch is not None and self._first_time("sketches", digest):
            self._rows["sketches"].append((digest, sketch))
        if visit.text_quality is not None or not known_words:
            return digest, visit.text_quality
        return digest, parse.text_quality(len(ids), int(counts.sum()))

    def _given_terms(self, terms: Mapping[str, int]) -> tuple[Ints, Ints32]:
        ids = np.fromiter(map(self._term_ids.__getitem__, terms), np.int64, len(terms))
        counts = np.fromiter(terms.values(), np.int32, len(terms))
        order = np.argsort(ids)
        return ids[order], counts[order]

    def _counted_terms(self, counted: Terms) -> tuple[Ints, Ints32]:
        terms = counted.most_frequent(parse.MAX_TERMS)
        for i in self._counted.add(terms.id).tolist():
            self._learn_term(int(terms.id[i]), terms.word(i))
        return terms.id, terms.count

    def _first_time(self, table: str, key: int) -> bool:
        sent = self._sent[table]
        if key in sent:
            return False
        sent.add(key)
        return True


#: Beginnings of links that may lead to another host: line breaks and tabs do not count, so "/", a tab and "/f.org" are "//f.org".
_MAY_NAME_HOST = ("//", "/\\", "/\t", "/\n", "/\r")


def _absolute(hrefs: Sequence[str], base: str) -> list[str]:
    """Links as written on a page → absolute, not yet canonical. The common kinds are resolved without parsing."""
    base_origin = origin(base)
    return [
        href
        if href.startswith(("http://", "https://"))
        else base_origin + href
        if href.startswith("/") and not href.startswith(_MAY_NAME_HOST)
        else resolve(href, base)
        for href in hrefs
    ]


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_list(kind):
        return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
    # Lists come as machine arrays: joining their bytes is far quicker than handing Arrow every number as an object.
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(items) for items in values], out=offsets[1:])
    flat = pa.py_buffer(b"".join(items.tobytes() for items in values))
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.Array.from_buffers(kind.value_type, offsets[-1], [None, flat])
    )


def _with_html(visit: Visit) -> Visit:
    from dataclasses import replace

    page = parse.html_page(visit.html or "", visit.url)
    return replace(
        visit,
        html=None,
        links=page.hrefs if visit.links is None else visit.links,
        base=page.base if visit.links is None else visit.base,
        text=page.text if visit.text is None else visit.text,
        title=visit.title or page.title,
        text_digest=visit.text_digest or page.text_digest,
        content_bytes=page.content_bytes if visit.content_bytes is None else visit.content_bytes,
        text_bytes=page.text_bytes if visit.text_bytes is None else visit.text_bytes,
    )


def _text_digest(visit: Visit) -> int | None:
    if visit.text_digest:
        return hash64(visit.text_digest)
    if visit.text is not None:
        return collapsed(visit.text)[0]
    if visit.terms is not None:
        return hash64(repr(sorted(visit.terms.items())))
    return None
