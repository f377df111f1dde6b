"""The format of a file is detected from its content; every sample file is read, or refused with a reason."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from making import imported, links, packed, page_record
from recrawl.errors import BadSource
from recrawl.sources import ALL, detect
from recrawl.sources.streams import plain
from recrawl.web.urls import canonical
from shared_data import FIXTURES, MISSING, fixture_files

BEGINNINGS = {
    "warc": b"WARC/1.0\r\nWARC-Type: warcinfo\r\n",
    "wacz": b"PK\x03\x04rest",
    "parquet": b"PAR1rest",
    "cdx": b" CDX N b a m s k r M S V g\n",
    "cdxj": b'com,example)/ 20160225042329 {"url": "http://example.com/"}',
    "timemap": b'<http://a.example.org>;rel="original",\n',
    "ache": b'{"url":"https://e.org/","redirected_url":null,"content":"PGE+',
    "jsonl": b'{"url": "https://e.org/", "at": 1}\n',
    "lbla-crawls": b'{"url": "https://e.org/", "fetch": {"fetchDate": "2020-07-13 08:15", "internalLinks": []}}\n',
    "lbla": b"url,isValid,contentLength,numInternalOutLinks\n",
    "csv": b"at;title;url\n",
}


def test_every_format_is_detected_from_its_beginning_alone() -> None:
    assert set(BEGINNINGS) == {source.name for source in ALL}
    for name, head in BEGINNINGS.items():
        assert detect(head, "x").name == name
        if name not in ("wacz", "parquet"):
            assert detect(plain(gzip.compress(head)), "x").name == name
            assert detect(plain(zlib.compress(head)), "x").name == name
            assert detect(plain(zstandard.ZstdCompressor().compress(head)), "x").name == name


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "x is empty"),
        (b" \n\n", "x is empty"),
        (b"filedesc://IAH.arc 0.0.0.0", "an ARC file; convert it first"),
        (b"%PDF-1.7", "a PDF file"),
        (b"\n<!DOCTYPE html><p>", "an HTML page; put it into a JSON line"),
        (b"<HTML>", "an HTML page"),
        (b"org,iana)/ 20140127171238\tzipnum\t275\t328\t2\n", "the summary of a ZipNum index"),
        (b"\x7fELF", "the format of x is not recognised (it begins with b'\\x7fELF'). Known: warc,"),
    ],
)
def test_what_is_not_read_is_refused_with_the_way_out(head: bytes, message: str) -> None:
    with pytest.raises(BadSource) as refused:
        detect(head, "x")
    assert message in str(refused.value)


def test_names_play_no_part(tmp_path: Path) -> None:
    misnamed = tmp_path / "visits.csv"
    misnamed.write_bytes(packed([page_record(1)], "gz"))
    report, _ = imported(tmp_path, misnamed)
    assert report.added == 1


def test_a_file_of_random_bytes_is_refused(tmp_path: Path) -> None:
    for seed in range(50):
        data = random.Random(seed).randbytes(3000)
        report, _ = imported(tmp_path, data)
        assert report.added == 0
        assert report.failed_inputs or report.skipped
    magic = [
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"WARC/1.0\r\n",
        b"PK\x03\x04",
        b"PAR1",
        b" CDX N b a\n",
        b"{",
        b"\x5d\x2a\x4d\x18",
    ]
    for head in magic:
        report, _ = imported(tmp_path, head + random.Random(1).randbytes(5000))
        assert report.added == 0
        assert report.failed_inputs or report.skipped


# -- real samples -----------------------------------------------------------------------------------------------------

#: Read otherwise than warcio reads them, and why.
DIFFERENT = {
    "example-bad-non-chunked.warc.gz": 2,  # all records in one gzip member: warcio refuses
    "example-wrong-chunks.warc.gz": 1,  # a record in two gzip members: warcio refuses
    "link-extraction-test.warc": 7,  # lengths that are wrong by the empty lines behind a record: warcio stops
}
WARCS = fixture_files(".warc", ".warc.gz")
INDEXES = {"bad.cdx": 4, "dupes.cdx": 12, "dupes.cdxj": 12, "example-no-digest.cdxj": 3, "example-non-surt.cdx": 3,
           "example.cdx": 3, "example.cdxj": 3, "iana.cdx": 171, "iana.cdxj": 171, "zipnum-sample.cdx.gz": 188}  # fmt: skip
needs_data = pytest.mark.skipif(not FIXTURES.is_dir(), reason=MISSING)


def counted_by_warcio(path: Path) -> int | None:
    try:
        with path.open("rb") as stream:
            return sum(record.rec_type in ("response", "resource", "revisit") for record in ArchiveIterator(stream))
    except ArchiveLoadFailed:
        return None


@needs_data
@pytest.mark.parametrize("path", WARCS, ids=lambda path: path.name)
def test_as_many_records_are_read_as_warcio_reads(tmp_path: Path, path: Path) -> None:
    report, _ = imported(tmp_path, path)
    assert report.read == DIFFERENT.get(path.name, counted_by_warcio(path))
    assert not report.failed_inputs


@needs_data
@pytest.mark.parametrize("name", INDEXES)
def test_sample_indexes_are_read_to_the_last_line(tmp_path: Path, name: str) -> None:
    report, _ = imported(tmp_path, FIXTURES / "pywb" / name)
    assert (report.added, report.skipped) == (INDEXES[name], {})


@needs_data
@pytest.mark.parametrize("path", fixture_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_imported_or_refused_with_a_reason(tmp_path: Path, path: Path) -> None:
    report, history = imported(tmp_path, path)
    assert history.timeline.n_visits == report.added
    assert report.added or report.skipped or report.failed_inputs or path.name == "example-digest.warc"
    again, _ = imported(tmp_path, path)
    assert (again.added, again.duplicates) == (0, report.added + report.duplicates)


@needs_data
def test_an_index_and_its_archive_show_the_same_visits(tmp_path: Path) -> None:
    whole, history = imported(
        tmp_path, *(FIXTURES / "pywb" / f"iana.{ending}" for ending in ("warc.gz", "cdx", "cdxj"))
    )
    assert (whole.added, whole.duplicates) == (171, 342)
    assert links(history)["http://www.iana.org/"]


@needs_data
def test_links_of_a_real_page_are_those_that_lxml_finds(tmp_path: Path) -> None:
    from urllib.parse import urldefrag, urljoin

    import lxml.html

    _, history = imported(tmp_path, FIXTURES / "warcio" / "example-iana.org-chunked.warc")
    with (FIXTURES / "warcio" / "example-iana.org-chunked.warc").open("rb") as stream:
        record = next(record for record in ArchiveIterator(stream) if record.rec_type == "response")
        url, body = record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()
    hrefs = [href for href in lxml.html.fromstring(body).xpath("//a/@href") if not href.startswith("#")]
    (found,) = links(history).values()
    assert set(found or []) == {canonical(urldefrag(urljoin(url, href)).url) for href in hrefs}
    assert len(hrefs) > 20
