"""Inputs that unpack to many times their size: read or refused in bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from making import http, packed, page_record, record
from patience import patience

GIGABYTES = float(os.environ.get("RECRAWL_BOMB_GB", "0.3"))
MEMORY = 1 << 30  # resident bytes, of which the program itself takes about a quarter
PART = 100_000_000

#: Runs the import and prints the most memory that it used.
MEASURED = """
import re, sys
from recrawl.cli import main
try:
    main()
finally:
    print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024, file=sys.stderr)
"""


def repeated(pack: Callable[[bytes], bytes], first: bytes, last: bytes) -> bytes:
    """Gigabytes of one letter between two texts, each part packed once."""
    return pack(first) + pack(b"x" * PART) * int(GIGABYTES * 1e9 / PART) + pack(last)


LINE = b'{"url":"https://e.org/%d","at":1767312000}\n'
BOMBS = {
    "gzip lines": lambda: repeated(gzip.compress, LINE % 1, b"\n" + LINE % 2),
    "zstd lines": lambda: repeated(zstandard.ZstdCompressor().compress, LINE % 1, b"\n" + LINE % 2),
    "gzip table": lambda: repeated(gzip.compress, b"url,at\nhttps://e.org/1,1767312000\n", b"\nhttps://e.org/2,1767312000\n"),
    "bodies": lambda: packed([page_record(1), *map(bomb_record, ("gzip", "deflate", "zstd")), page_record(2)], "gz"),
    "zstd frame": lambda: packed([page_record(1), b"WARC/1.0\r\n" + b"x" * PART, page_record(2)], "zst"),
}  # fmt: skip


def bomb_record(encoding: str) -> bytes:
    body = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[encoding](
        b"x" * PART
    )
    return record(f"https://e.org/{encoding}", http(body, Content_Encoding=encoding))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured in another way here")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.more) if kind in ("zstd lines", "gzip table") else kind for kind in BOMBS],
)
def test_a_bomb_is_read_in_bounded_memory_and_what_lies_around_it_arrives(tmp_path: Path, kind: str) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(BOMBS[kind]())
    command = [
        sys.executable,
        "-c",
        MEASURED,
        "import",
        str(bomb),
        "--history",
        str(tmp_path / "h"),
        "--json",
        "--workers",
        "1",
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=patience(600), check=False)
    assert (found.returncode, "Traceback" in found.stderr) == (0, False), found.stderr
    report = json.loads(found.stdout)
    print(
        f"{kind}: {bomb.stat().st_size / 1e6:.1f} MB packed, {int(found.stderr) / 1e6:.0f} MB of memory, {report['skipped']}"
    )
    assert report["added"] == 2
    assert report["skipped"]
    assert int(found.stderr) < MEMORY


PARSED = """
import re, sys
from recrawl.web.html import page

tag = sys.argv[1].encode()
seen = page(tag * ((30 << 20) // len(tag)), "text/html", "https://e.org/")
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024, len(seen.hrefs))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured in another way here")
@pytest.mark.parametrize("tag", ["<a href=/a/page>x</a>", pytest.param("<br a=1 b=2 c=3 d=4>", marks=pytest.mark.more)])
def test_30_mb_of_tags_are_parsed_in_bounded_memory(tag: str) -> None:
    done = subprocess.run([sys.executable, "-c", PARSED, tag], capture_output=True, text=True, timeout=300, check=True)
    memory, n_links = map(int, done.stdout.split())
    assert memory < MEMORY
    assert n_links == ((30 << 20) // len(tag) if "href" in tag else 0)
