"""WARC files cut into records: where each begins and ends, its headers and its block.

Written by hand, because a reader that trusts the declared lengths loses every record that a wrong one reaches over: `fastwarc` and
`warcio` both skip to the end of the file without a word. Here a record must end where it says, at the end of its compressed member
or before the next record, or it is named as broken, and reading goes on with the next record that can be found.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

import zstandard

from recrawl.errors import BadRecord

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"  #: a zstd WARC file may begin with the dictionary of all its frames
MAX_HEADER = 1 << 20
MAX_WINDOW = 1 << 27  #: the most memory that a zstd frame may ask for
#: The types of records in the standard (ISO 28500:2017, 6).
TYPES = ("warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation")
_OPENS = re.compile(rb"WARC/[01]\.\d")
_LINE = re.compile(rb"WARC/[01]\.\d\r?\n(?=[A-Za-z])")
_CANDIDATE = re.compile(rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|" + _LINE.pattern)
_WITHIN = re.compile(rb"\r\n\r\n(?=WARC/[01]\.\d)")
_HEADER = re.compile(r"^([^\s:][^:\r\n]*):([^\r\n]*)", re.MULTILINE)
_FOLD = re.compile(r"\r?\n[ \t]+")
_SCAN, _CHUNK, _FEED = 1 << 20, 16 << 10, 512
_NEWLINES = b"\r\n"


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `headers` has lower-case names."""

    position: int  # in the file, of the record or of the compressed member that holds it
    headers: Mapping[str, str]
    block: bytes


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records are read; the blocks of all others are skipped, and their types counted."""

    types: frozenset[str]
    limit: int  # bytes of a block
    too_large: str  # the reason that larger ones are counted by
    passed_over: Counter[str] = field(default_factory=Counter)  # records of other types

    def takes(self, headers: Mapping[str, str]) -> bool:
        """Whether a record with these headers is read; if not, it is counted."""
        kind = headers.get("warc-type", "").lower()
        if kind in self.types:
            return True
        self.passed_over[kind if kind in TYPES else "other"] += 1
        return False


def looks_like(head: bytes) -> bool:
    """Whether a file begins as a WARC file, given its first bytes without compression."""
    return head.startswith((b"WARC/", DICTIONARY_MAGIC))


class _Damage(Exception):
    """A record that is not as it declares."""


class _BrokenMember(_Damage):
    """A compressed member that cannot be read on."""


def records(
    stream: BinaryIO,
    wanted: RecordFilter,
    start: int = 0,
    stop: int | None = None,
    on_end: Callable[[int], None] = lambda position: None,
) -> Iterator[Record | BadRecord]:
    """The records that begin in [start, stop) of a seekable stream, plain or compressed, one or several to a member.

    `on_end` is called with the position where reading ended: that of the first record behind `stop`, however far it is.
    """
    size = stream.seek(0, 2)
    stop = size if stop is None else min(stop, size)
    dictionary, first = _dictionary(stream)
    if first > size:
        yield BadRecord("broken WARC record", "the dictionary that the file begins with is cut off")
    position: int | None = max(start, first)
    while position is not None and position < stop:
        stream.seek(position)
        head = stream.read(16)
        if not head.strip(_NEWLINES):
            position += len(head)
            continue
        position += len(head) - len(head.lstrip(_NEWLINES))
        if position >= stop:
            break  # the lines between two records lay across `stop`
        try:
            if head.lstrip(_NEWLINES).startswith((GZIP_MAGIC, ZSTD_MAGIC)):
                member = _Member(stream, position, dictionary)
                yield from _of_member(member, wanted)
                position = member.end()
            else:
                record, position = _plain(stream, position, size, wanted)
                if record is not None:
                    yield record
        except _Damage as damage:
            resume = next_record(stream, position + 1)
            onward = "" if resume is None else f"; reading goes on at byte {resume:,}"
            yield BadRecord("broken WARC record", f"{damage} at byte {position:,}{onward}")
            position = resume
    on_end(size if position is None else position)


# -- plain records ----------------------------------------------------------------------------------------------------


def _plain(stream: BinaryIO, position: int, size: int, wanted: RecordFilter) -> tuple[Record | BadRecord | None, int]:
    """The record at a position, and where it ends."""
    stream.seek(position)
    head = stream.read(_CHUNK)
    if _header_end(head) < 0:
        head += stream.read(MAX_HEADER)
    header_end = _header_end(head)
    headers = _headers(head, header_end)
    length = _length(headers)
    end = position + header_end + length
    if end > size:
        raise _Damage(f"a record that is cut off, or declares {length:,} bytes")
    stream.seek(end)
    behind = stream.read(16)
    followed = _is_followed(behind)
    if not followed and not behind.startswith(b"\r\n\r\n"):
        raise _Damage(f"a record that does not have the {length:,} bytes it declares")
    if not wanted.takes(headers):
        return None, end
    if length > wanted.limit:
        return BadRecord(wanted.too_large, f"{length:,} bytes at byte {position:,}"), end
    stream.seek(position + header_end)
    block = stream.read(length)
    if not followed and _WITHIN.search(block):
        raise _Damage(f"a record that reaches into the next one with the {length:,} bytes it declares")
    return Record(position, headers, block), end


def _is_followed(behind: bytes) -> bool:
    """Whether a record ends here: by the end of the file or member, or by another record."""
    rest = behind.lstrip(_NEWLINES)
    return not rest or _OPENS.match(rest) is not None or rest.startswith((GZIP_MAGIC, ZSTD_MAGIC))


def _header_end(data: bytes | bytearray) -> int:
    """Where the block begins: behind the first empty line; -1 if there is none."""
    crlf = data.find(b"\r\n\r\n", 0, MAX_HEADER)
    lf = data.find(b"\n\n", 0, crlf if crlf >= 0 else MAX_HEADER)
    return lf + 2 if lf >= 0 else crlf + 4 if crlf >= 0 else -1


def _headers(data: bytes | bytearray, end: int) -> dict[str, str]:
    if not _OPENS.match(data):
        raise _Damage("no WARC header")
    if not 0 <= end <= MAX_HEADER:
        raise _Damage("a WARC header without an end")
    text = bytes(data[:end]).decode("utf-8", "replace")
    if "\n " in text or "\n\t" in text:
        text = _FOLD.sub(" ", text)
    headers: dict[str, str] = {}
    for name, value in _HEADER.findall(text):
        headers.setdefault(name.rstrip().lower(), value.strip())
    return headers


def _length(headers: Mapping[str, str]) -> int:
    digits = headers.get("content-length", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise _Damage(f"a record whose length is {digits[:40]!r}")
    return int(digits)


# -- compressed records -----------------------------------------------------------------------------------------------


class _Member:
    """The bytes of one gzip member or zstd frame, decompressed as far as needed."""

    def __init__(self, stream: BinaryIO, position: int, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        self.position = position
        self.buffer = bytearray()
        self._stream, self._dictionary = stream, dictionary
        self._start(position)

    def _start(self, position: int) -> None:
        self.ended = False
        self._read_to, self._unused = position, 0
        self._stream.seek(position)
        if self._stream.read(4).startswith(GZIP_MAGIC):
            self._gzip, self._unzip = zlib.decompressobj(31), self._gunzip
        else:
            zstd = zstandard.ZstdDecompressor(dict_data=self._dictionary, max_window_size=MAX_WINDOW)
            self._zstd, self._unzip = zstd.decompressobj(), self._unzstd

    def fill(self, n: int) -> None:
        """Have `n` bytes in the buffer, or all up to the end of the member."""
        while len(self.buffer) < n and not self.ended:
            try:
                self._unzip()
            except (zlib.error, zstandard.ZstdError) as error:
                raise _BrokenMember(f"broken compression ({error})") from None

    def fill_across(self, n: int) -> None:
        """Have `n` bytes in the buffer, also from members that go on with what this one began: some writers split records so."""
        self.fill(n)
        while len(self.buffer) < n and self._goes_on():
            self._start(self._read_to - self._unused)
            self.fill(n)

    def _goes_on(self) -> bool:
        follower = _Member(self._stream, self._read_to - self._unused, self._dictionary)
        try:
            follower.fill(64)
        except _BrokenMember:
            return False
        begins = follower.buffer.lstrip(_NEWLINES)
        return bool(begins) and not _OPENS.match(begins)

    def end(self) -> int:
        """Where the member ends in the file; what is left of it is skipped."""
        while not self.ended:
            self.buffer.clear()
            self.fill(1)
        return self._read_to - self._unused

    def drop(self, n: int) -> bool:
        """Skip `n` bytes without holding them; False if the member ends before."""
        while n > 0:
            self.fill(min(n, _SCAN))
            if not self.buffer:
                return False
            step = min(n, len(self.buffer))
            del self.buffer[:step]
            n -= step
        return True

    def _more(self, n: int) -> bytes:
        self._stream.seek(self._read_to)
        data = self._stream.read(n)
        self._read_to += len(data)
        if not data:
            raise _BrokenMember("a compressed record that is cut off")
        return data

    def _gunzip(self) -> None:
        data = self._gzip.unconsumed_tail or self._more(_CHUNK)
        self.buffer += self._gzip.decompress(data, _SCAN)
        self.ended, self._unused = self._gzip.eof, len(self._gzip.unused_data)

    def _unzstd(self) -> None:
        # The library has no limit on what one call returns, so it is fed with little.
        self.buffer += self._zstd.decompress(self._more(_FEED))
        self.ended, self._unused = self._zstd.eof, len(self._zstd.unused_data)


def _dictionary(stream: BinaryIO) -> tuple[zstandard.ZstdCompressionDict | None, int]:
    """The dictionary at the beginning of a zstd WARC file, if there is one, and where the records begin."""
    stream.seek(0)
    head = stream.read(8)
    if not head.startswith(DICTIONARY_MAGIC):
        return None, 0
    size = int.from_bytes(head[4:], "little")
    data = stream.read(min(size, MAX_WINDOW))
    if data.startswith(ZSTD_MAGIC):
        with suppress(zstandard.ZstdError):
            data = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(data).read(MAX_WINDOW)
    return zstandard.ZstdCompressionDict(data), 8 + size


def _of_member(member: _Member, wanted: RecordFilter) -> Iterator[Record | BadRecord]:
    """The records of one member: one, as the standard recommends, or several."""
    while True:
        member.fill(_CHUNK)
        del member.buffer[: len(member.buffer) - len(member.buffer.lstrip(_NEWLINES))]
        if not member.buffer and member.ended:
            return
        if not member.buffer:
            continue
        try:
            record = _next_in(member, wanted)
        except _BrokenMember:
            raise
        except _Damage as damage:
            yield BadRecord("broken WARC record", f"{damage} in the compressed record at byte {member.position:,}")
            if not _find_in(member):
                return
            continue
        if record is not None:
            yield record


def _next_in(member: _Member, wanted: RecordFilter) -> Record | BadRecord | None:
    header_end = _header_end(member.buffer)
    if header_end < 0:
        member.fill(MAX_HEADER)
        header_end = _header_end(member.buffer)
    headers = _headers(member.buffer, header_end)
    length = _length(headers)
    if length > wanted.limit:
        if not member.drop(header_end + length):
            raise _Damage(f"a record that declares {length:,} bytes")
        return (
            BadRecord(wanted.too_large, f"{length:,} bytes at byte {member.position:,}")
            if wanted.takes(headers)
            else None
        )
    end = header_end + length
    member.fill_across(end)
    member.fill(end + 16)  # reading further checks the checksum at the end of the member
    if len(member.buffer) < end or not _is_followed(bytes(member.buffer[end : end + 16])):
        raise _Damage(f"a record that does not have the {length:,} bytes it declares")
    block = bytes(member.buffer[header_end:end])
    del member.buffer[:end]
    return Record(member.position, headers, block) if wanted.takes(headers) else None


def _find_in(member: _Member) -> bool:
    """Go to the next record inside the same member, if there is one."""
    while True:
        match = _LINE.search(member.buffer, 1)
        if match:
            del member.buffer[: match.start()]
            return True
        del member.buffer[:-16]
        n = len(member.buffer)
        member.fill(n + _SCAN)
        if len(member.buffer) == n:
            return False


# -- finding records --------------------------------------------------------------------------------------------------


def next_record(stream: BinaryIO, start: int) -> int | None:
    """Where the next record begins at or after `start`: a compressed member or a plain line that opens a WARC header."""
    overlap, position = 16, start
    while True:
        stream.seek(position)
        block = stream.read(_SCAN)
        for candidate in _CANDIDATE.finditer(block):
            at = position + candidate.start()
            if _opens_record(stream, at):
                return at
        if len(block) < _SCAN:
            return None
        position += len(block) - overlap


def _opens_record(stream: BinaryIO, position: int) -> bool:
    stream.seek(position)
    head = stream.read(4096)
    try:
        if head.startswith(GZIP_MAGIC):
            head = zlib.decompressobj(31).decompress(head, 16)
        elif head.startswith(ZSTD_MAGIC):
            head = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(head).read(16)
    except (zlib.error, zstandard.ZstdError):
        return False
    return _OPENS.match(head) is not None
