"""The tables of a history: plain Parquet that any engine reads.

A visit is a small row that points at content-addressed link sets and texts, so an unchanged page costs one row and nothing
more. All ids and digests are signed 64-bit XXH64 (`recrawl.core.hashing`).
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

FORMAT = 1  #: raised when an older recrawl could no longer read the tables

VISITS = pa.schema(
    [
        ("page", pa.int64()),  # id of the canonical URL
        ("at", pa.timestamp("us", "UTC")),
        ("status", pa.int16()),
        ("links", pa.int64()),  # digest of a link set; null: not known
        ("text", pa.int64()),  # digest of the visible text without its links; null: not known
        ("terms", pa.int64()),  # digest of the words of the whole visible text; null: not known
        ("payload", pa.int64()),  # digest of the bytes; null: not known
        ("content_bytes", pa.int64()),
        ("text_bytes", pa.int64()),
        ("text_quality", pa.float32()),
        ("relevance", pa.float32()),
        ("baseline", pa.bool_()),
        ("etag", pa.string()),
        ("last_modified", pa.string()),
        ("content_type", pa.string()),
        ("title", pa.string()),
        ("note", pa.string()),
    ]
)
LINK_SETS = pa.schema(
    [
        ("digest", pa.int64()),
        ("n_internal", pa.int32()),  # how many of `links`, from the front, are internal to the page
        ("links", pa.list_(pa.int64())),  # ids: the internal ones ascending, then the external ones ascending
    ]
)
TEXTS = pa.schema(
    [
        ("digest", pa.int64()),  # as in visits.terms
        ("terms", pa.list_(pa.int64())),  # term ids, ascending
        ("counts", pa.list_(pa.int32())),
    ]
)
# Numbers, words of one or two characters, pairs of characters of scripts without spaces. Those of `texts` are the others.
SHORT_TERMS = pa.schema(TEXTS)
VECTORS = pa.schema([("digest", pa.int64()), ("vector", pa.list_(pa.float32()))])  # digest as in visits.terms
# Of `recrawl.web.shingles`; digest as in visits.terms.
SKETCHES = pa.schema([("digest", pa.int64()), ("sketch", pa.list_(pa.int32()))])
# What a source states of a page at a visit instead of showing it, as `recrawl.web.visit.Given`; null: not stated.
GIVEN = pa.schema(
    [
        ("digest", pa.int64()),  # of all that follows
        ("page", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("n_internal", pa.int64()),
        ("n_external", pa.int64()),
        ("n_inlinks_internal", pa.int64()),
        ("n_inlinks_external", pa.int64()),
        ("trustrank", pa.float64()),
        ("path_depth", pa.int64()),
        ("domain_depth", pa.int64()),
        ("stand_ins", pa.bool_()),  # the links that the visit points at are made up
    ]
)
# How much a page matters from a visit on, as its record states it.
IMPORTANCE = pa.schema(
    [
        ("digest", pa.int64()),  # of all that follows
        ("page", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("importance", pa.float64()),
    ]
)
TERMS = pa.schema([("id", pa.int64()), ("term", pa.string())])
URLS = pa.schema([("id", pa.int64()), ("url", pa.string()), ("trap", pa.bool_())])

#: In the order they are committed: visits last, so that whatever a visit points at is already there.
TABLES = {
    "urls": URLS,
    "terms": TERMS,
    "link_sets": LINK_SETS,
    "texts": TEXTS,
    "short_terms": SHORT_TERMS,
    "vectors": VECTORS,
    "sketches": SKETCHES,
    "given": GIVEN,
    "importance": IMPORTANCE,
    "visits": VISITS,
}

#: Tables that histories made by earlier versions do not have: read as empty, made when there are rows for them.
LATER = frozenset({"sketches", "short_terms", "given", "importance"})

#: The column that identifies a row; visits are keyed by (page, at) instead.
KEY = {
    "urls": "id",
    "terms": "id",
    "link_sets": "digest",
    "texts": "digest",
    "short_terms": "digest",
    "vectors": "digest",
    "sketches": "digest",
    "given": "digest",
    "importance": "digest",
}

#: Tables of which every row is about one page.
BY_PAGE = ("visits", "given", "importance")

#: Tables that visits point into, and the column of `visits` that does so.
SHOWN = {"link_sets": "links", "texts": "terms", "short_terms": "terms", "vectors": "terms", "sketches": "terms"}

Batch: TypeAlias = dict[str, pa.Table]  #: table name → rows; missing tables are empty
