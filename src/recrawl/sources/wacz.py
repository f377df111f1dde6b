"""WACZ files: a zip of WARC files, read as streams."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from recrawl.errors import BadRecord, BadSource
from recrawl.sources.base import Context, Source
from recrawl.sources.warc import Warc
from recrawl.web.visit import Visit

_PART = 4096  # bytes copied at a time, at most those lost where an entry is damaged
MAX_RATIO = 200  #: how many times its size an entry may unpack to; the WARC files in a WACZ are compressed already


class Wacz(Source):
    """WACZ files: the WARC files under ``archive/``."""

    name = "wacz"
    raw = True
    visits_are = Warc.visits_are

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins as a zip archive."""
        return head.startswith(b"PK\x03\x04")

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """The visits of all WARC files in the archive."""
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BadSource(f"the WACZ file is damaged: {error}") from error
        entries = [entry for entry in archive.infolist() if _is_warc(entry.filename)]
        if not entries:
            raise BadSource("the zip file holds no archive/*.warc.gz, so it is not a WACZ file")
        for entry in entries:
            problem = _refusal(entry)
            if problem:
                yield BadRecord(problem, entry.filename[:200])
                continue
            with tempfile.TemporaryFile(prefix="recrawl-") as unpacked:
                damage = _unpack(archive, entry, cast(BinaryIO, unpacked))
                inner = Context(max_body=context.max_body, now=context.now, passed_over=context.passed_over)
                yield from Warc().read(cast(BinaryIO, unpacked), inner)
            if damage:
                yield BadRecord("broken WACZ entry", f"{entry.filename[:200]}: {damage}")


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, into: BinaryIO) -> str | None:
    """Copy an entry as far as it can be read; why the rest could not be read, if there is one."""
    try:
        with archive.open(entry) as packed:
            while part := packed.read(_PART):
                into.write(part)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        return str(error) or type(error).__name__
    return None


def _is_warc(name: str) -> bool:
    return name.startswith("archive/") and name.endswith((".warc", ".warc.gz", ".warc.zst"))


def _refusal(entry: zipfile.ZipInfo) -> str | None:
    # Entries are never written under their own names, so a path that climbs out does no harm; but an honest WACZ has none.
    if ".." in entry.filename.split("/") or entry.filename.startswith("/"):
        return "WACZ entry with a path that climbs out"
    if entry.file_size > MAX_RATIO * max(entry.compress_size, 1 << 16):
        return "WACZ entry unpacks too far"
    return None
