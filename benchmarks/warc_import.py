"""WARC import, everything included, beside a bare fastwarc + selectolax loop and a warcio + lxml loop on the same file."""

from __future__ import annotations

import gzip
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType
from lxml import html as lxml_html
from selectolax.lexbor import LexborHTMLParser
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from benchmarks.measure import Row, best_of, cpu_side_by_side
from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.synth import SynthSettings, html_pages
from recrawl.synth.write import warc_record

#: Mark-up that pages carry around their words: the made-up pages have hardly any, those of the web have most of their bytes in it.
CHROME = (
    '<div class="card card--teaser u-mb-4" data-track="teaser" data-pos="{i}"><div class="card__media"><picture>'
    '<source srcset="/img/{i}-640.webp 640w, /img/{i}-1280.webp 1280w" sizes="(min-width: 62em) 33vw, 100vw" type="image/webp">'
    '<img loading="lazy" decoding="async" src="/img/{i}-320.jpg" alt="" width="320" height="180"></picture></div></div>'
)
SCRIPT = "<script>window.dataLayer=window.dataLayer||[];function gtag(){{dataLayer.push(arguments)}};gtag('config','{i}');</script>"


def run(n_pages: int, html_bytes: int) -> Iterator[Row]:
    folder = Path(tempfile.mkdtemp(prefix="recrawl-bench-"))
    try:
        file = folder / "crawl.warc.gz"
        n = write(file, n_pages, html_bytes)
        size = f"{html_bytes >> 10} KiB pages" if html_bytes else "bare made-up pages (about 4 KiB)"
        bare_seconds, our_seconds = cpu_side_by_side(
            3, lambda: bare_loop(file), lambda: imported(file, folder / "one", 1)
        )
        bare, per_core = n / bare_seconds, n / our_seconds
        ours = n / best_of(1, lambda: imported(file, folder / "one", 1))
        two = n / best_of(2, lambda: imported(file, folder / "two", 2))
        slow = n / best_of(1, lambda: warcio_loop(file))
        yield Row(f"WARC import of {n:,} {size}, one core", ours, "pages/s")
        yield Row(f"  a bare fastwarc + selectolax loop, {size}", bare, "pages/s")
        target = 0.4 if html_bytes else None
        met = per_core / bare >= target if target else None
        note = "processor time, taken in turns: other work on the machine does not count"
        yield Row("  ratio to the bare loop, per core", per_core / bare, "×", "≥ 0.4" if target else "", met, note)
        yield Row("  ratio to a warcio + lxml loop", ours / slow, "×", "> 1", ours > slow)
        yield Row("  two cores against one", two / ours, "×", "nearly 2", two / ours >= 1.7)
    finally:
        shutil.rmtree(folder)


def write(file: Path, n_pages: int, html_bytes: int) -> int:
    """A WARC file of the made-up web, its pages filled up with mark-up to the size of pages on the web."""
    chance = random.Random(0)
    n = 0
    with file.open("wb") as out:
        for visit, body in html_pages(
            SynthSettings(pages=n_pages, rounds=3, failure_rate=0, not_modified_rate=0, death_rate=0)
        ):
            chrome = []
            while html_bytes and len(body) + sum(map(len, chrome)) < html_bytes:
                chrome.append((CHROME if chance.random() < 0.9 else SCRIPT).format(i=chance.randrange(10**6)).encode())
            record = warc_record(visit, body.replace(b"</body>", b"".join(chrome) + b"</body>"))
            out.write(gzip.compress(record, compresslevel=6))
            n += 1
    return n


def bare_loop(file: Path) -> int:
    n = 0
    with file.open("rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True):
            tree = LexborHTMLParser(record.reader.read())
            links = [node.attributes.get("href") for node in tree.css("a[href]")]
            text = tree.body.text(separator=" ") if tree.body is not None else ""
            n += len(links) > 0 or len(text) > 0
    return n


def warcio_loop(file: Path) -> int:
    n = 0
    with file.open("rb") as stream:
        for record in WarcioIterator(stream):
            if record.rec_type == "response":
                tree = lxml_html.fromstring(record.content_stream().read())
                links = [node.get("href") for node in tree.iter("a")]
                n += len(links) > 0 or len(tree.text_content()) > 0
    return n


def imported(file: Path, folder: Path, workers: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    report = import_files(History.create(folder), [str(file)], workers=workers)
    assert report.added == report.read, report
