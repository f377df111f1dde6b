"""The crawls of Dang et al. (2022): links, sizes and what is stated of inlinks and ranks arrive as visits."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_table import DATES, VECTOR, Crawled, address, crawled_page, row
from making import imported
from recrawl.insight.features import Feature, known_before
from recrawl.insight.vectors import page_vectors
from recrawl.sources import detect
from recrawl.world.panel import build


def record(url: str, date: str, crawl: Crawled, vector: str = "not set", **more: Any) -> dict[str, Any]:
    """A fetch as the authors' crawler writes it."""
    ranks = {
        "metrics": {"entries": [{"id": "PageRank", "value": "1"}, {"id": "TrustValue", "value": str(crawl.trust)}]}
    }

    def links(targets: frozenset[str]) -> list[dict[str, Any]]:
        return [{"linkInfo": {"linkType": "a", "text": "x"}, "targetUrl": target} for target in sorted(targets)]

    return {
        "url": url,
        "fetch": {
            "fetchDate": f"2020-{date} 08:15",
            "contentDigest": f"digest {crawl.length}",
            "contentLength": crawl.length,
            "textSize": crawl.text,
            "textQuality": crawl.quality,
            "semanticVector": vector,
            "internalLinks": links(crawl.internal) or None,
            "externalLinks": links(crawl.external),
            "language": "en",
        }
        | more,
        "history": {"changeCount": 1, "fetchCount": 2},
        "urlViewInfo": {"numInLinksInt": str(crawl.inlinks[0]), "numInLinksExt": crawl.inlinks[1], "metrics": {"entries": [ranks]}},
    }  # fmt: skip


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in records)


def test_the_crawls_and_the_table_made_of_them_give_the_same_numbers(tmp_path: Path) -> None:
    rng, records, rows = random.Random(5), [], {}
    for i in range(8):
        crawls = crawled_page(address(i), rng)
        rows[address(i)] = row(address(i), crawls, rng)
        vector = json.dumps([rows[address(i)][name] for name in VECTOR])
        records += [record(address(i), date, crawl, vector) for date, crawl in zip(DATES, crawls, strict=True)]
    files = [gzip.compress(lines(*records[i::2])) for i in range(2)]
    report, history = imported(tmp_path, *files)
    assert (report.added, report.pages, dict(report.skipped)) == (80, 8, {})
    assert dict(report.unknown_fields) == {"fetch.language": 80}
    assert report.notes == ["fetchDate has no time zone; it is taken as UTC"]
    panel = build(history)
    known = known_before(history, panel, 9)

    def stated(name: str) -> np.ndarray:
        return np.array([rows[url][name] for url in panel.url.to_pylist()], np.float32)

    for lag in range(9):
        suffix = f"-{lag}" if lag else ""
        np.testing.assert_array_equal(panel.n_new_internal[:, 9 - lag], stated(f"diffInternalOutLinks{suffix}"))
        np.testing.assert_array_equal(panel.n_new_external[:, 9 - lag], stated(f"diffExternalOutLinks{suffix}"))
        for name, ours in (("numInternalInLinks", "n_inlinks_internal"), ("trustRank", "trustrank")):
            found = known.matrix((Feature(ours, lag),), 9)[:, 0]
            np.testing.assert_array_equal(found, stated(f"{name}{suffix}"))
    np.testing.assert_array_equal(panel.base["n_internal"][:, 8], stated("numInternalOutLinks"))
    assert not np.isnan(
        known.matrix((Feature("pagerank"),), 9)
    ).any()  # worked out from the links, which are known here
    np.testing.assert_array_equal(page_vectors(history, panel, 8).values[:, 7], stated("SV7"))
    rate = known.matrix((Feature("content_change_rate", 1),), 9)[:, 0]
    np.testing.assert_allclose(rate, stated("changeRate"), rtol=1e-6)


PAGE = crawled_page("https://e.org/", random.Random(1))[3]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"fetch": {"fetchDate": "2020-07-13 08:15"}}, "no url"),
        ({"url": "https://e.org/", "fetch": None}, "no fetch"),
        ({"url": "https://e.org/", "fetch": {"internalLinks": []}}, "no time"),
        ({"url": "https://e.org/", "fetch": {"fetchDate": "yesterday"}}, "unreadable time"),
        (
            {"url": "https://e.org/", "fetch": {"fetchDate": "2020-07-13", "internalLinks": "many"}},
            "links is not a list",
        ),
        (["url"], "not a JSON object"),
    ],
)
def test_records_that_cannot_be_used_are_counted_and_the_others_arrive(tmp_path: Path, entry: Any, reason: str) -> None:
    report, _ = imported(tmp_path, lines(record("https://e.org/", "07-13", PAGE), entry))
    assert (report.added, dict(report.skipped)) == (1, {reason: 1})


def test_numbers_that_are_none_are_counted_and_not_known(tmp_path: Path) -> None:
    odd = record("https://e.org/", "07-13", PAGE, vector="[1, oops]", contentLength="long")
    trust = {"metrics": {"entries": [{"id": "TrustValue", "value": "high"}]}}
    odd["urlViewInfo"] = {"numInLinksInt": "?", "metrics": {"entries": [trust]}}
    more = {"url": "https://e.org/b", "fetch": {"fetchDate": 1594628100, "externalLinks": ["https://f.org/", 3, {}]}}
    report, history = imported(tmp_path, lines(odd, more))
    unusable = {"contentLength": 1, "semanticVector": 1, "numInLinksInt": 1, "TrustValue": 1}
    assert (report.added, dict(report.not_numbers)) == (2, unusable)
    assert history.timeline.n_links()[1].tolist().count(1) == 1
    assert not history.store.read("given").num_rows


def test_only_json_that_describes_a_fetch_is_taken_for_these_crawls() -> None:
    assert detect(lines(record("https://e.org/", "07-13", PAGE)), "x").name == "lbla-crawls"
    assert detect(b'{"url": "https://e.org/", "at": 1767312000, "note": "fetch"}', "x").name == "jsonl"
    assert detect(b'{"url": "https://e.org/", "diffInternalOutLinks": 3}', "x").name == "lbla"
    assert detect(b"url,at,numInternalOutLinks\n", "x").name == "csv"
