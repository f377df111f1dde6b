"""Visits → the rows of the history's tables, ready to be appended.

This is the hot path of every import: links repeat from visit to visit and from page to page, so each spelling is canonicalised
once and remembered.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa

from recrawl import parse
from recrawl.errors import BadUrl
from recrawl.hashing import hash64
from recrawl.history.digests import link_set_digest, terms_digest
from recrawl.history.schema import TABLES, Batch
from recrawl.urls import canonical, origin, page_id, resolve, trap
from recrawl.visits import Visit

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
REMEMBERED = 500_000  #: spellings and words kept in memory, at most; past that the memory starts anew
_PLAIN = (
    "etag",
    "last_modified",
    "content_type",
    "title",
    "note",
    "relevance",
    "baseline",
    "content_bytes",
    "text_bytes",
)


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
        self._spellings: dict[str, tuple[int, str] | None] = {}
        self._term_ids: dict[str, int] = {}
        self._sent: dict[str, set[int]] = {name: set() for name in TABLES}
        self._start()

    def _start(self) -> None:
        self.n_visits = self.n_links = 0
        self._rows: dict[str, dict[str, list[Any]]] = {
            name: {column: [] for column in schema.names} for name, schema in TABLES.items()
        }

    def add(self, visit: Visit) -> None:
        """Take in one visit; raises `BadUrl` or `BadRecord`, and then nothing of it was taken."""
        page = self._page(visit.url)
        if visit.html is not None:
            visit = _with_html(visit)
        terms = visit.terms if visit.terms is not None else _terms(visit)
        row = self._rows["visits"]
        row["links"].append(self._link_set(visit, page[1]))
        row["text"].append(_text_digest(visit))
        row["terms"].append(self._text(terms, visit.vector))
        row["text_quality"].append(_quality(visit, terms))
        row["page"].append(page[0])
        row["at"].append((visit.at - EPOCH) // MICROSECOND)
        row["status"].append(visit.status)
        row["payload"].append(hash64(visit.payload_digest) if visit.payload_digest else None)
        for name in _PLAIN:
            row[name].append(getattr(visit, name))
        self.n_visits += 1

    def take(self) -> Batch:
        """The rows collected so far; the builder starts anew but remembers what it has already sent."""
        batch = {
            name: pa.table([_column(self._rows[name][field.name], field.type) for field in schema], schema=schema)
            for name, schema in TABLES.items()
        }
        self._start()
        return batch

    def _page(self, url: str) -> tuple[int, str]:
        known = self._spellings.get(url)
        return known if known is not None else self._remember(url, canonical(url, keep_tracking=self.keep_tracking))

    def _remember(self, spelling: str, url: str) -> tuple[int, str]:
        if len(self._spellings) >= REMEMBERED:
            self._spellings.clear()
        entry = self._spellings[spelling] = (page_id(url), intern(origin(url)))
        if self._first_time("urls", entry[0]):
            flagged = trap(url) is not None
            self.traps += flagged
            self._append("urls", id=entry[0], url=url, trap=flagged)
        return entry

    def _link(self, absolute: str) -> tuple[int, str] | None:
        try:
            return self._remember(absolute, canonical(absolute, keep_tracking=self.keep_tracking))
        except BadUrl as error:
            self._spellings[absolute] = None
            self.dropped_links[str(error).partition(":")[0]] += 1
            return None

    def _link_set(self, visit: Visit, page_origin: str) -> int | None:
        if visit.links is None:
            return None
        internal: set[int] = set()
        external: set[int] = set()
        spellings, base, base_origin = self._spellings, visit.base, origin(visit.base) if visit.base else ""
        for href in visit.links:
            if base is None or href.startswith("http"):
                absolute = href
            elif href.startswith("/") and not href.startswith(("//", "/\\")):
                absolute = base_origin + href
            else:
                absolute = resolve(href, base)
            link = spellings.get(absolute) or (self._link(absolute) if absolute not in spellings else None)
            if link is not None:
                (internal if link[1] == page_origin else external).add(link[0])
        inside, outside = array("q", sorted(internal)), array("q", sorted(external))
        digest = link_set_digest(inside, outside)
        if self._first_time("link_sets", digest):
            self._append("link_sets", digest=digest, n_internal=len(inside), links=inside + outside)
            self.n_links += len(inside) + len(outside)
        return digest

    def _text(self, terms: Mapping[str, int] | None, vector: Any) -> int | None:
        if terms is None and vector is None:
            return None
        counts = sorted((self._term_id(term), count) for term, count in (terms or {}).items())
        ids = array("q", [term for term, _ in counts])
        numbers = array("i", [count for _, count in counts])
        values = array("f", vector) if vector is not None else array("f")
        digest = terms_digest(ids, numbers, values)
        if terms is not None and self._first_time("texts", digest):
            self._append("texts", digest=digest, terms=ids, counts=numbers)
        if vector is not None and self._first_time("vectors", digest):
            self._append("vectors", digest=digest, vector=values)
        return digest

    def _term_id(self, term: str) -> int:
        known = self._term_ids.get(term)
        if known is None:
            if len(self._term_ids) >= REMEMBERED:
                self._term_ids.clear()
            known = self._term_ids[term] = hash64(term)
            if self._first_time("terms", known):
                self._append("terms", id=known, term=term)
        return known

    def _first_time(self, table: str, key: int) -> bool:
        sent = self._sent[table]
        if key in sent:
            return False
        if len(sent) >= REMEMBERED * 4:
            sent.clear()
        sent.add(key)
        return True

    def _append(self, table: str, **values: Any) -> None:
        for column, items in self._rows[table].items():
            items.append(values[column])


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
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


def _terms(visit: Visit) -> Mapping[str, int] | None:
    if visit.text is None:
        return None
    terms = parse.term_counts(visit.text)
    if len(terms) <= parse.MAX_TERMS:
        return terms
    return dict(sorted(terms.items(), key=lambda item: (-item[1], item[0]))[: parse.MAX_TERMS])


def _text_digest(visit: Visit) -> int | None:
    if visit.text_digest:
        return hash64(visit.text_digest)
    if visit.text is not None:
        return hash64(" ".join(visit.text.split()))
    if visit.terms is not None:
        return hash64(repr(sorted(visit.terms.items())))
    return None


def _quality(visit: Visit, terms: Mapping[str, int] | None) -> float | None:
    if visit.text_quality is not None or terms is None:
        return visit.text_quality
    return parse.text_quality(terms)
