"""The contract of sources: recrawl's own keep it, for others it says what is wrong; and how a source is added."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recrawl.sources
from making import imported, packed, page_record, urls
from recrawl.core import plugins
from recrawl.errors import BadPlugin, BadRecord, BadSource
from recrawl.sources import ALL, Context, Cut, Source, detect, known, named
from recrawl.sources.contract import check_source
from recrawl.sources.jsonl import JsonLines
from recrawl.web.visit import Visit, parse_at

TIME = "2026-01-02T03:04:05Z"
CAPTURE = "org,e)/ 20260102030405 https://e.org/ text/html 200 ABC - - 1 2 x.warc.gz\n"


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"url": ["https://e.org/1", "https://e.org/2"], "at": [TIME, TIME]}), out)
    return out.getvalue()


def wacz() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/a.warc.gz", packed([page_record(i) for i in range(3)], "gz"))
    return out.getvalue()


LINE = b'{"url": "https://e.org/", "at": 1767312000}\n'
ACHE = b'{"url":"https://e.org/","redirected_url":"https://e.org/a","content":"PGE+","fetch_time":1767312000000}\n'
SAMPLES = {
    "warc": [packed([page_record(i) for i in range(5)], how) for how in ("plain", "gz", "zst")],
    "wacz": [wacz()],
    "parquet": [parquet()],
    "cdx": [CAPTURE.encode() * 3, b" CDX N b a m s k r M S V g\n" + CAPTURE.encode()],
    "cdxj": [b'org,e)/ 20260102030405 {"url": "https://e.org/", "status": "200"}\n' * 2],
    "timemap": [b'[["timestamp", "original"], ["20260102030405", "https://e.org/"]]'],
    "ache": [ACHE + b'{"url": 1}\n', zlib.compress(ACHE * 2)],
    "jsonl": [LINE + b'{"url": 1}\n', gzip.compress(LINE)],
    "lbla": [
        b"url,isValid,contentLength,numInternalOutLinks\nhttps://e.org/,1,20,3\n",
        b"url,numInternalOutLinks,diffInternalOutLinks,diffInternalOutLinks-1,trustRank,SV0\nhttps://e.org/,3,1,2,0.5,1\n",
        b'{"url": "https://e.org/", "diffInternalOutLinks": 2, "diffExternalOutLinks": 0, "semanticVector": "[1, 2]"}\n',
    ],
    "lbla-crawls": [
        b'{"url": "https://e.org/", "fetch": {"fetchDate": "2020-07-13 08:15", "textSize": 3, "semanticVector": "[1]", '
        b'"internalLinks": [{"targetUrl": "https://e.org/a"}]}, "urlViewInfo": {"numInLinksInt": "3"}}\n' * 2
    ],
    "csv": [b"url;at\nhttps://e.org/;%b\n" % TIME.encode()],
}  # fmt: skip


@pytest.mark.parametrize("source", ALL, ids=lambda source: source.name)
def test_every_source_keeps_the_contract(source: Source) -> None:
    check_source(source, SAMPLES[source.name])


# -- sources that do not keep it --------------------------------------------------------------------------------------


class Log(Source):
    """A toy format: a time and a URL per line, below a mark."""

    name = "log"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        return head.startswith(b"#log")

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        for line in context.lines(stream):
            if line.startswith(b"#"):
                continue
            at, _, url = line.decode("utf-8", "replace").partition(" ")
            try:
                yield Visit(url=url, at=parse_at(at, now=context.now))
            except BadRecord as error:
                yield error


LOG = b"#log 1\n%b https://e.org/1\n%b https://e.org/2\nyesterday https://e.org/3\n" % ((TIME.encode(),) * 2)


class Nameless(Log):
    name = "My Log"


class Uncut(Log):
    cut = "lines"  # type: ignore[assignment]


class Blind(Log):
    def detects(self, head: bytes, filename: str = "") -> bool:
        return False


class Greedy(Log):
    def detects(self, head: bytes, filename: str = "") -> bool:
        return True


class Hasty(Log):
    def detects(self, head: bytes, filename: str = "") -> bool:
        return head[0] == ord("#")


class Fragile(Log):
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        for line in context.lines(stream):
            if not line.startswith(b"#"):
                at, url = line.decode().split(" ")
                yield Visit(url=url, at=parse_at(at)) if at != "yesterday" else BadRecord("no time")


class Odd(Log):
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Any]:
        yield {"url": "https://e.org/"}


class Zoneless(Log):
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        yield Visit(url="https://e.org/", at=datetime(2026, 1, 2))


class Forgetful(Log):
    seen: ClassVar[list[int]] = []

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        self.seen.append(1)
        yield Visit(url=f"https://e.org/{len(self.seen)}", at=datetime(2026, 1, 2, tzinfo=UTC))


class ByFirstLine(Log):
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        if next(iter(stream), b"").startswith(b"#log"):
            yield from super().read(stream, context)


class Seeking(Log):
    cut = Cut.NOWHERE

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        stream.seek(0)
        yield from super().read(stream, context)


class Silent(Log):
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        yield BadRecord("nothing here")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Nameless(), "the name 'My Log'"),
        (Uncut(), "cut is 'lines'"),
        (Blind(), "does not detect sample 0"),
        (Greedy(), "detects an empty input"),
        (Hasty(), "raises IndexError"),
        (Fragile(), "yield BadRecord for a record"),
        (Odd(), "neither a Visit nor a BadRecord"),
        (Zoneless(), "has no zone"),
        (Forgetful(), "differently again"),
        (ByFirstLine(), "differently line by line"),
        (Seeking(), "raises UnsupportedOperation"),
        (Silent(), "reads no visit from sample 0; reasons: ['nothing here']"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Source) else "",
)
def test_a_source_that_breaks_the_contract_is_named_with_the_reason(source: Source, message: str) -> None:
    with pytest.raises(AssertionError) as broken:
        check_source(source, [LOG])
    assert message in str(broken.value)


def test_a_source_must_be_able_to_reach_other_processes() -> None:
    class Local(Log):
        pass

    with pytest.raises(AssertionError, match="cannot be sent to other processes"):
        check_source(Local(), [LOG])


# -- adding a source --------------------------------------------------------------------------------------------------


def test_a_source_is_added_by_a_class_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_source(Log(), [LOG])
    monkeypatch.setattr(recrawl.sources, "ALL", (*ALL, Log()))
    assert detect(LOG, "x").name == "log"
    assert named("log").name in known()
    report, history = imported(tmp_path, LOG, gzip.compress(LOG))
    assert (report.added, report.duplicates, dict(report.skipped)) == (2, 2, {"unreadable time": 2})
    assert report.examples["unreadable time"].startswith(f"{tmp_path}/input-0 line 4")
    assert urls(history) == ["https://e.org/1", "https://e.org/2"]
    with pytest.raises(BadSource, match=r"No format named 'logs'\. Did you mean 'log'\?"):
        named("logs")


@pytest.mark.parametrize("plugin", [Log, Log()], ids=["class", "object"])
def test_a_plug_in_is_a_source_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Any) -> None:
    monkeypatch.setattr(
        recrawl.sources.registry, "installed", lambda group: {"log": plugin} if group == plugins.SOURCES else {}
    )
    assert next(iter(known())) == "log"
    report, _ = imported(tmp_path, LOG)
    assert report.added == 2
    report, _ = imported(tmp_path, LOG, format="log", into="other")
    assert report.added == 2


class Impostor(Log):
    name = JsonLines.name


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Impostor, "is named 'jsonl' as another source is"),
        (dict, "must be a class derived from recrawl.sources.Source"),
    ],
)
def test_a_plug_in_that_cannot_be_a_source_is_refused(
    monkeypatch: pytest.MonkeyPatch, plugin: Any, message: str
) -> None:
    monkeypatch.setattr(recrawl.sources.registry, "installed", lambda group: {"mine": plugin})
    with pytest.raises(BadPlugin) as refused:
        known()
    assert message in str(refused.value)
