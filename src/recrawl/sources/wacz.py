"""WACZ files: a zip of WARC files, read as streams."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, cast

from recrawl.errors import BadRecord, BadSource
from recrawl.parse import MAX_BODY
from recrawl.sources import warc
from recrawl.visits import Visit

MAX_RATIO = 200  #: how many times its size an entry may unpack to; WARC files in a WACZ are stored, not compressed again


def read(stream: BinaryIO, *, limit: int = MAX_BODY, now: datetime | None = None) -> Iterator[Visit | BadRecord]:
    """The visits of all WARC files under ``archive/``."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BadSource(f"the WACZ file is damaged: {error}") from error
    entries = [entry for entry in archive.infolist() if _is_warc(entry.filename)]
    if not entries:
        raise BadSource("the zip file holds no archive/*.warc.gz, so it is no WACZ")
    for entry in entries:
        problem = _refusal(entry)
        if problem:
            yield BadRecord(problem, entry.filename[:200])
            continue
        try:
            with archive.open(entry) as packed, tempfile.TemporaryFile(prefix="recrawl-") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
                yield from warc.read(cast(BinaryIO, unpacked), limit=limit, now=now)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            yield BadRecord("broken WACZ entry", f"{entry.filename[:200]}: {error}")


def _is_warc(name: str) -> bool:
    return name.startswith("archive/") and name.endswith((".warc", ".warc.gz", ".warc.zst"))


def _refusal(entry: zipfile.ZipInfo) -> str | None:
    # Entries are never written under their own names, so a path that climbs out harms nobody; it is still no honest WACZ.
    if ".." in entry.filename.split("/") or entry.filename.startswith("/"):
        return "WACZ entry with a path that climbs out"
    if entry.file_size > MAX_RATIO * max(entry.compress_size, 1 << 16):
        return "WACZ entry unpacks too far"
    return None
