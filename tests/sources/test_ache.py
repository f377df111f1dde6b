"""What ACHE stores, in the layouts that its documentation and its serialised classes name."""

from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from making import AT, http, imported, links, record, urls
from recrawl.errors import BadRecord
from recrawl.models.link_relevance import Focus, RelevanceEvidence
from recrawl.sources import Context, detect
from recrawl.sources.ache import Ache
from recrawl.sources.streams import plain
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

HTML = "<title>Floods</title><p>Water é <a href='/x'>next</a>".encode("latin-1")
MILLISECONDS = int(AT.timestamp() * 1000)


def stored(**changes: Any) -> dict[str, Any]:
    """A page as FILES, FILESYSTEM_JSON and KAFKA have it."""
    return {
        "url": "https://e.org/page",
        "redirected_url": None,
        "content": b64encode(HTML).decode(),
        "content_type": "text/html; charset=ISO-8859-1",
        "response_headers": {"Content-Type": ["text/html; charset=ISO-8859-1"], "ETag": ['"1"'], "Content-Encoding": ["gzip"]},
        "fetch_time": MILLISECONDS,
        "relevance": {"relevance": 0.75, "isRelevant": True},
        "crawler_id": "default",
    } | changes  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    """A page as ELASTICSEARCH has it."""
    return {
        "domain": "e.org",
        "url": "https://e.org/page",
        "title": "Floods",
        "text": "Water",
        "retrieved": "2026-01-02T03:04:05.000+0000",
        "words": ["water"],
        "wordsMeta": [],
        "topPrivateDomain": "e.org",
        "html": HTML.decode("latin-1"),
        "isRelevant": "relevant",
        "relevance": 0.75,
    } | changes


BEFORE_0_8 = stored(response_body=HTML.decode("latin-1"), content_type=None)
BEFORE_0_8["response_headers"] = {"content-type": ["text/html"], "etag": ['"1"']}
del BEFORE_0_8["content"]


def lines(*pages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(page).encode() + b"\n" for page in pages)


def read(*pages: dict[str, Any], **context: Any) -> list[Visit | BadRecord]:
    return list(Ache().read(BytesIO(lines(*pages)), Context(**context)))


@pytest.mark.parametrize(
    "page",
    [
        stored(),
        stored(content=b64encode(gzip.compress(HTML)).decode()),  # stored as it was sent
        BEFORE_0_8,
        document(responseHeaders={"ETag": ['"1"']}),
        {"_index": "pages", "_type": "page", "_id": "1", "_source": document(responseHeaders={"ETag": ['"1"']})},
        document(responseHeaders={"ETag": ['"1"']}, retrieved=MILLISECONDS),
    ],
    ids=["json", "compressed content", "before 0.8", "elasticsearch", "dump of an index", "date as a number"],
)  # fmt: skip
def test_every_layout_is_the_same_visit(page: dict[str, Any]) -> None:
    assert detect(lines(page), "x").name == "ache"
    (visit,) = read(page)
    assert isinstance(visit, Visit)
    assert (visit.url, visit.at, visit.status, visit.links) == ("https://e.org/page", AT, 200, ["/x"])
    assert (visit.title, visit.etag, visit.relevance) == ("Floods", '"1"', 0.75)
    assert "Water é" in (visit.text or "")


def test_a_redirect_is_a_visit_of_its_own() -> None:
    asked, arrived = read(stored(redirected_url="https://e.org/final"))
    assert isinstance(asked, Visit)
    assert isinstance(arrived, Visit)
    assert (asked.url, asked.status, asked.links, asked.relevance) == (
        "https://e.org/page",
        302,
        ["https://e.org/final"],
        None,
    )
    assert (arrived.url, arrived.status, arrived.relevance) == ("https://e.org/final", 200, 0.75)
    assert len(read(stored(redirected_url="https://E.org:443/page"))) == 1


def test_a_page_that_is_not_html_shows_no_links_and_one_without_content_says_nothing_of_them() -> None:
    (pdf,) = read(
        stored(content=b64encode(b"%PDF-1.7").decode(), content_type="application/pdf", response_headers=None)
    )
    (bare,) = read(
        {name: value for name, value in document(isRelevant="irrelevant", relevance=None).items() if name != "html"}
    )
    assert isinstance(pdf, Visit)
    assert isinstance(bare, Visit)
    assert not pdf.links
    assert (bare.links, bare.text, bare.relevance) == (None, "Water", 0.0)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (stored(fetch_time=0), "no time"),
        (stored(fetch_time=None), "no time"),
        (stored(fetch_time=MILLISECONDS * 3), "time in the future"),
        (stored(url=None), "no url"),
        (stored(url="mailto:a@e.org"), "not a URL"),
        (stored(redirected_url="mailto:a@e.org"), "not a URL"),
        (stored(content="abc"), "content is not Base64"),
        (stored(content="A" * 4000), "body over 1,000 bytes"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_next_one_read(page: dict[str, Any], reason: str) -> None:
    bad, good = read(page, stored(content=""), max_body=1000)
    assert isinstance(bad, BadRecord)
    assert bad.reason == reason
    assert isinstance(good, Visit)


def test_deflated_files_and_single_objects_are_imported_without_a_word_about_their_format(tmp_path: Path) -> None:
    rolling = zlib.compress(lines(stored(), stored(url="https://e.org/2")))
    single = json.dumps(stored(url="https://e.org/3")).encode()  # FILESYSTEM_JSON: no end of line
    report, history = imported(tmp_path, rolling, single, zlib.compress(single, 9))
    assert (report.added, report.duplicates, dict(report.skipped)) == (3, 1, {})
    assert urls(history) == ["https://e.org/2", "https://e.org/3", "https://e.org/page"]
    assert links(history)["https://e.org/2"] == ["https://e.org/x"]


def test_of_a_file_that_is_still_being_written_all_whole_lines_arrive(tmp_path: Path) -> None:
    packer = zlib.compressobj()
    data = packer.compress(lines(*(stored(url=f"https://e.org/{i}") for i in range(3)))) + packer.flush(
        zlib.Z_SYNC_FLUSH
    )
    report, _ = imported(tmp_path, data)
    assert report.added == 3
    assert plain(data).startswith(b'{"url"')


def test_a_visit_record_with_fields_of_that_name_stays_a_visit_record() -> None:
    assert detect(b'{"url": "https://e.org/", "at": 1767312000, "retrieved": 1}', "x").name == "jsonl"
    text = json.dumps({"url": "https://e.org/", "text": '{"fetch_time": 1}', "at": 1767312000}).encode()
    assert detect(text, "x").name == "jsonl"


def test_warc_files_have_no_status_line_but_a_relevance_and_the_requested_url(tmp_path: Path) -> None:
    block = http(HTML, content_type="text/html; charset=ISO-8859-1").partition(b"\r\n")[2]
    marks = {"ACHE_IsRelevant": "true", "ACHE_Relevance": "0,7500000000"}
    same = record("https://e.org/page", block, **marks, ACHE_Requested_URL="https://e.org/page")
    led = record("https://e.org/final", block, **marks, ACHE_Requested_URL="https://e.org/short")
    other = record("https://e.org/other", block)  # of another crawler: broken
    report, history = imported(tmp_path, same + led + other)
    assert (report.added, dict(report.skipped)) == (3, {"no HTTP status line": 1})
    assert urls(history) == ["https://e.org/final", "https://e.org/page", "https://e.org/short"]
    ids = history.timeline.pages
    relevance = dict(zip(ids.tolist(), RelevanceEvidence.of(history, Focus()).recorded(ids).tolist(), strict=True))
    assert relevance[page_id("https://e.org/page")] == relevance[page_id("https://e.org/final")] == 0.75
