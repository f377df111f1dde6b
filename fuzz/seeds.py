"""Small samples of every format, and words that matter in it: from here, and from the shared data where that is present."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
CONFORMANCE, FIXTURES = DATA / "conformance", DATA / "fixtures"
SMALL = 8 << 10  #: bytes; larger samples are left out, since most changes to them change nothing

HTML = (
    b'<!doctype html><html><head><meta charset="utf-8"><base href="/b/"><title>T</title><meta http-equiv=refresh content="3; url=/x">'
    b'<link rel="alternate" type="application/rss+xml" href="feed.xml"></head><body><p>two words <a href="a.html?b=1&amp;c#d">link</a>'
    b"<script>var a = '<a href=x>'</script><!-- c --><area href='//e.net/'><table><td><b><i>x</b></i></table></body></html>"
)
ROBOTS = b"User-agent: bot/1.0\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 2.5\nSitemap: https://e.org/s.xml\n\nUser-agent: *\nDisallow:\n"
SITEMAP = (
    b'<?xml version="1.0" encoding="utf-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://e.org/a?b&amp;c'
    b"</loc><lastmod>2026-03-01T10:30:00+01:00</lastmod></url><url><loc><![CDATA[https://e.org/b]]></loc></url></urlset>"
)
INDEX = b"<sitemapindex><sitemap><loc>https://e.org/s.xml.gz</loc><lastmod>2026-03</lastmod></sitemap></sitemapindex>"
RSS = (
    b'<rss version="2.0"><channel><lastBuildDate>Sun, 01 Mar 2026 10:00:00 GMT</lastBuildDate><item><link>/a</link>'
    b"<pubDate>Sun, 1 March 26 10:00 CET</pubDate></item><item><guid>https://e.org/b</guid></item></channel></rss>"
)
ATOM = (
    b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://e.org/x/"><updated>2026-03-01T10:00Z</updated><entry>'
    b'<link rel="alternate" href="y"/><updated>2026-03-01T10:00:00Z</updated></entry></feed>'
)
LINE = {
    "url": "https://e.org/", "at": "2026-01-02T03:04:05Z", "status": 200, "links": ["/a", "https://e.net/"], "terms": {"w": 2},
    "html": "<p>x <a href=y>z</a>", "content_type": "text/html", "etag": '"1"', "relevance": 0.5, "importance": 2, "vector": [0.5, 1],
}  # fmt: skip
URLS = (
    b"https://user:pw@EXAMPLE.org:443/a/./b/../c;d=1?utm_source=x&b=2&a=%7e#f", b"//e.org\\a", b"http://0x7f.1/", b"http://[::1]:80/",
    b"http://xn--mnchen-3ya.de/", "http://münchen.de/é?ü".encode(), b"a/b.html", b"?q", b"data:text/html,x", b"http://e.org/a/a/a/a/a/a/",
    b"http://e.org/%2525252e/%zz", b"https://a.b.co.uk./;jsessionid=1",
)  # fmt: skip
TIMES = (
    b"2026-01-02T03:04:05Z", b"2026-03-01T10:30:00.25+01:00", b"2026", b"20260102030405", b"1767312000", b"7d", b"1.5h", b"2w", b"crawl",
    b"2025-03-01T00:00Z,2025-03-08T00:00Z", b"Sun, 1 March 26 10:00 CET", b"Fri, 02 Jan 2026 00:01:30 GMT", b"0001-01-01T00:00+01:00",
    b"9999-12-31T23:59:59-01:00", b"120",
)  # fmt: skip
CAPTURE = b"org,e)/ 20260102030405 https://e.org/ text/html 200 ABCDEF - - 1 2 x.warc.gz\n"
CDXJ = b'org,e)/ 20260102030405 {"url": "https://e.org/", "status": "200", "mime": "text/html", "digest": "AB"}\n'
TIMEMAP = (
    b'<http://a.example.org>;rel="original",\n<http://ar.example.net/web/20000620180259/http://a.example.org>\n'
    b'   ; rel="first memento";datetime="Tue, 20 Jun 2000 18:02:59 GMT"\n'
)
ACHE = b'{"url":"https://e.org/","redirected_url":"https://e.org/a","content":"PGEgaHJlZj14Pg==","fetch_time":1767312000000}\n'
CRAWLS = {
    "url": "https://e.org/",
    "fetch": {
        "fetchDate": "2020-08-03 08:15", "contentDigest": "d", "contentLength": 9, "textSize": 4, "textQuality": 0.5,
        "semanticVector": "[0.5, 1]", "internalLinks": [{"linkInfo": {"linkType": "a"}, "targetUrl": "https://e.org/b"}],
        "externalLinks": None,
    },
    "history": {"changeCount": 1, "fetchCount": 2},
    "urlViewInfo": {"numInLinksInt": "3", "numInLinksExt": 4, "metrics": {"entries": [{"metrics": {"entries": [{"id": "TrustValue", "value": "0.5"}]}}]}},
}  # fmt: skip


def dumped(*values: Any) -> bytes:
    """JSON, a line each."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def warc() -> bytes:
    """A few records: a response, a revisit, and what is not a page."""
    body = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\n\r\n' + HTML[:200]
    records = (
        ("response", "application/http; msgtype=response", body),
        ("revisit", "application/http", body[:40]),
        ("warcinfo", "text/plain", b"x"),
    )
    return b"".join(
        b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: https://e.org/%d\r\nWARC-Date: 2026-01-02T03:04:05Z\r\nContent-Type: %s\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (kind.encode(), i, mime.encode(), len(block), block)
        for i, (kind, mime, block) in enumerate(records)
    )  # fmt: skip


def wacz() -> bytes:
    """An archive of archives."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/a.warc.gz", gzip.compress(warc(), mtime=0))
        archive.writestr("datapackage.json", "{}")
    return out.getvalue()


def parquet() -> bytes:
    """Two visits, with links."""
    out = io.BytesIO()
    rows = {"url": ["https://e.org/1", "https://e.org/2"], "at": ["2026-01-02T03:04:05Z"] * 2, "links": [["/a"], None]}
    pq.write_table(pa.table(rows), out)
    return out.getvalue()


def of_sources() -> dict[str, list[bytes]]:
    """Samples by the name of their source."""
    lines = dumped(LINE, {"url": "https://e.org/2", "at": 1767312000})
    return {
        "warc": [warc(), gzip.compress(warc(), mtime=0), zstandard.ZstdCompressor().compress(warc()), *_fixtures(".warc", ".warc.gz"),
                 *_conformance("warc_more")],
        "wacz": [wacz()],
        "parquet": [parquet()],
        "cdx": [CAPTURE * 2, b" CDX N b a m s k r M S V g\n" + CAPTURE, *_fixtures(".cdx")],
        "cdxj": [CDXJ * 2, *_fixtures(".cdxj")],
        "timemap": [TIMEMAP, b'[["timestamp", "original"], ["20260102030405", "https://e.org/"]]'],
        "lbla-crawls": [dumped(CRAWLS)],
        "ache": [ACHE * 2, zlib.compress(ACHE)],
        "lbla": [
            b"url,isValid,contentLength,numInternalOutLinks\nhttps://e.org/,1,20,3\n",
            b"url,numInternalOutLinks,diffInternalOutLinks,diffInternalOutLinks-1,trustRank,SV0\nhttps://e.org/,3,1,2,0.5,1\n",
            b'{"url": "https://e.org/", "diffInternalOutLinks": 2, "diffExternalOutLinks": 0, "semanticVector": "[1, 2]"}\n',
        ],
        "jsonl": [lines, gzip.compress(lines, mtime=0)],
        "csv": [b'url,at,links,terms,status,title\nhttps://e.org/,1767312000,"[""https://e.org/a""]","{""w"":1}",200,"a ""b""\nc"\n' * 2],
    }  # fmt: skip


def _fixtures(*endings: str) -> list[bytes]:
    """Sample files whose names end so; none where the shared data is absent."""
    paths = (path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and path.name.endswith(endings))
    return [path.read_bytes() for path in paths if path.stat().st_size <= SMALL]


@cache
def _conformance(name: str) -> list[bytes]:
    return [data for _, data in _named(name) if len(data) <= SMALL]


def _named(name: str) -> list[tuple[str, bytes]]:
    path = CONFORMANCE / f"{name}.jsonl.gz"
    if not path.is_file():
        return []
    rows = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    return [(row["name"], base64.b64decode(row["base64"])) for row in rows]


def samples(name: str, *own: bytes, most: int = 200) -> list[bytes]:
    """The given samples, and some of those of the shared data, evenly over the file."""
    others = _conformance(name)
    return [*own, *others[:: max(1, len(others) // most)]]


def urls() -> list[bytes]:
    """URLs of all kinds."""
    path = CONFORMANCE / "wpt_urltestdata.json.gz"
    if not path.is_file():
        return list(URLS)
    cases = json.loads(gzip.decompress(path.read_bytes()))
    return [*URLS, *(case["input"].encode("utf-8", "replace") for case in cases if isinstance(case, dict))]


def naughty() -> list[bytes]:
    """Strings that break programs."""
    path = CONFORMANCE / "naughty_strings.json"
    return [text.encode() for text in json.loads(path.read_text())] if path.is_file() else []


@cache
def words(*names: str) -> tuple[bytes, ...]:
    r"""The words of fuzzing dictionaries: lines such as ``name="\x50K"``."""
    found = dict.fromkeys(
        _unescaped(match[1])
        for file, text in _named("dictionaries")
        if file.removesuffix(".dict") in names
        for match in re.finditer(rb'^[^#"\n]*"((?:[^"\\\n]|\\.)*)"', text, re.MULTILINE)
    )
    return tuple(word for word in found if word)


def _unescaped(text: bytes) -> bytes:
    r"""Undo ``\xNN``, ``\\`` and ``\"``."""
    return re.sub(
        rb"\\(x[0-9a-fA-F]{2}|.)",
        lambda match: bytes([int(match[1][1:], 16)]) if match[1][:1] == b"x" and len(match[1]) == 3 else match[1],
        text,
    )
