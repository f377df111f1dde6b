"""A plan in the formats that crawlers take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from recrawl.core.csv_text import write_rows
from recrawl.core.suggest import unknown
from recrawl.errors import BadOption

if TYPE_CHECKING:
    import numpy as np

    from recrawl.plan.plan import Plan

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


IMPORTANCE = "importance"  #: a key more where visits state how much pages matter
#: The keys of a record: an interface. Where roots of sites are given, `SITE` follows them; where stated, `IMPORTANCE`.
COLUMNS = (
    "rank",
    "url",
    "host",
    "expected_new_links",
    "expected_low",
    "expected_high",
    "probability",
    "probability_changed",
    "due_at",
    "last_visit_at",
    "last_change_at",
    "trial",
    "reason",
)
SITE = "site"


def columns(plan: Plan) -> tuple[str, ...]:
    """The keys of a plan's records."""
    site = () if plan.site is None else (SITE,)
    return (*COLUMNS, *site, *(() if plan.importance is None else (IMPORTANCE,)))


def records(plan: Plan) -> Iterator[dict[str, Any]]:
    """One record per page, the best first, with `columns` for keys."""
    for i, url in enumerate(plan.url.to_pylist()):
        site = {} if plan.site is None else {SITE: plan.site[i]}
        record = {
            "rank": i + 1,
            "url": url,
            "host": plan.host[i],
            "expected_new_links": round(float(plan.expected[i]), 4),
            "expected_low": _known(plan.low[i]),
            "expected_high": _known(plan.high[i]),
            "probability": round(float(plan.probability[i]), 4),
            "probability_changed": _known(plan.probability_changed[i]),
            "due_at": _iso(plan.due_at[i]),
            "last_visit_at": _iso(plan.last_visit_at[i]),
            "last_change_at": _iso(plan.last_change_at[i]),
            "trial": bool(plan.is_trial[i]),
            "reason": plan.reason[i],
            **site,
        }
        yield record if plan.importance is None else record | {IMPORTANCE: float(plan.importance[i])}


def urls(plan: Plan) -> Iterator[bytes]:
    """One URL per line, for anything that reads a list."""
    for url in plan.url.to_pylist():
        yield f"{url}\n".encode()


def jsonl(plan: Plan) -> Iterator[bytes]:
    """One record per line."""
    for row in records(plan):
        yield orjson.dumps(row, option=_OPTIONS)


def table(plan: Plan) -> Iterator[bytes]:
    """CSV with a header; cells that a spreadsheet would run as a formula are quoted with an apostrophe."""
    names = columns(plan)
    yield write_rows(names, ([row[name] for name in names] for row in records(plan)))


def scrapy(plan: Plan) -> Iterator[bytes]:
    """What a Scrapy request takes: url, priority (higher first), meta; one JSON object per line."""
    n, keys = len(plan), ["rank", "expected_new_links", "probability", "probability_changed", "reason"]
    keys += [] if plan.site is None else [SITE]
    for row in records(plan):
        meta = {"recrawl": {key: row[key] for key in keys} | {"plan": plan.id}}
        request = {"url": row["url"], "priority": n - row["rank"] + 1, "dont_filter": True, "meta": meta}
        yield orjson.dumps(request, option=_OPTIONS)


def urlfrontier(plan: Plan) -> Iterator[bytes]:
    """`URLItem` messages for URLFrontier's `PutURLs`, one JSON object per line.

    Its queues are sorted by date, so a page of higher rank is dated a second earlier than the next; none in the past.
    """
    first = int(plan.made_at.astimezone(UTC).timestamp()) + 1
    for row, due in zip(records(plan), plan.due_at, strict=True):
        date = max(first, _epoch(due)) + row["rank"] - 1
        info = {"url": row["url"], "key": row["host"], "crawlID": "DEFAULT"}
        yield orjson.dumps(
            {"known": {"info": info, "refetchableFromDate": str(date)}, "ID": row["url"]}, option=_OPTIONS
        )


def heritrix(plan: Plan) -> Iterator[bytes]:
    """Lines for a ``.force`` file in Heritrix' action folder: the only way to have it fetch known URIs again."""
    for url in plan.url.to_pylist():
        yield f"F+ {url}\n".encode()


def nutch(plan: Plan) -> Iterator[bytes]:
    """A seed list for Nutch's injector: URL, fetch interval in seconds until the page is due again, and score.

    Nutch fetches the highest score first, so scores follow the ranks.
    """
    for url, due, gain in zip(plan.url.to_pylist(), plan.due_at, plan.worth, strict=True):
        wait = max(0, _epoch(due) - int(plan.made_at.timestamp()))
        yield f"{url}\tnutch.score={max(gain, 0.0):.4f}\tnutch.fetchInterval={max(wait, 1)}\n".encode()


#: Name → writer. A new format is a function and one line here; the command line, its help and the errors follow.
FORMATS: dict[str, Callable[[Plan], Iterator[bytes]]] = {
    "urls": urls,
    "jsonl": jsonl,
    "csv": table,
    "scrapy": scrapy,
    "urlfrontier": urlfrontier,
    "heritrix": heritrix,
    "nutch": nutch,
}


def writer_of(format: str) -> Callable[[Plan], Iterator[bytes]]:
    """The writer of a format; an unknown one is refused with the nearest name."""
    if format not in FORMATS:
        raise BadOption(unknown("format", format, FORMATS))
    return FORMATS[format]


def write(plan: Plan, path: str | Path, format: str = "jsonl") -> None:
    """Write a plan to a file, compressed as its name says, that appears only when it is complete."""
    from recrawl.core.files import compressed_file

    parts = writer_of(format)(plan)
    with compressed_file(path) as stream:
        for part in parts:
            stream.write(part)


def _epoch(at: np.datetime64) -> int:
    """Whole seconds since 1970."""
    return int(at.astype("datetime64[s]").astype("int64"))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _iso(at: np.datetime64) -> str | None:
    return None if str(at) == "NaT" else f"{at.astype('datetime64[s]')}Z"
