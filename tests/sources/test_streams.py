"""Byte streams: compression seen through, damage met late, memory bounded."""

from __future__ import annotations

import gzip
import io
import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadSource
from recrawl.sources.streams import HEAD, decompressed, first_bytes, line_blocks, plain, text_lines

LINES = b"".join(b"line number %d %d\n" % (i, random.Random(i).getrandbits(400)) for i in range(2000))
PACK = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}


def opened(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]


def read(data: bytes, **more: int) -> tuple[bytes, str | None]:
    """All that is handed on, and the error at the end."""
    found = b""
    try:
        for block in line_blocks(decompressed(opened(data)), **more):
            found += block
    except BadSource as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize("packing", PACK)
def test_lines_are_the_same_packed_and_plain(packing: str) -> None:
    packed = PACK[packing](LINES)
    assert read(LINES) == read(packed) == read(packed, block=1000) == (LINES, None)
    assert plain(packed[:HEAD]).startswith(LINES[:1000])
    half = len(LINES) // 2 + 3
    assert read(PACK[packing](LINES[:half]) + PACK[packing](LINES[half:])) == (LINES, None)


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("share", [0.3, 0.9, 0.9999])
def test_of_a_truncated_stream_whole_lines_are_handed_on(packing: str, share: float) -> None:
    packed = PACK[packing](LINES)
    found, error = read(packed[: int(len(packed) * share)])
    assert "ends too early" in (error or "")
    assert LINES.startswith(found)
    assert found == b"" or found.endswith(b"\n")
    if packing == "gz":
        assert len(found) > (share - 0.1) * len(LINES)


def test_of_a_damaged_stream_all_before_the_damage_is_handed_on() -> None:
    packed = bytearray(gzip.compress(LINES))
    middle = len(packed) // 2
    packed[middle : middle + 20] = b"\xff" * 20
    found, error = read(bytes(packed))
    assert "damaged" in (error or "")
    assert len(found) > 0.4 * len(LINES)
    assert found[: int(0.4 * len(LINES))] == LINES[: int(0.4 * len(LINES))]


def test_something_else_behind_a_packed_stream_is_named() -> None:
    found, error = read(gzip.compress(LINES) + b"something else")
    assert (found, "something else follows" in (error or "")) == (LINES, True)


def test_a_line_without_end_is_cut_and_the_next_one_read() -> None:
    long = b"x" * 100_000
    for data in (b"a\n" + long + b"\nb\n", gzip.compress(b"a\n" + long + b"\nb\n")):
        found, error = read(data, block=1000, max_line=5000)
        lines = found.splitlines()
        assert (lines[0], lines[-1], error) == (b"a", b"b", None)
        assert len(lines) == 3
        assert len(lines[1]) == 1024


@given(st.binary(max_size=300), st.integers(1, 50))
def test_blocks_are_whole_lines_and_nothing_is_lost(data: bytes, block: int) -> None:
    blocks = list(line_blocks(opened(data), block))
    assert b"".join(blocks) == data
    assert all(found.endswith(b"\n") for found in blocks[:-1])


class Pipe(io.RawIOBase):
    """A pipe that gives a few bytes at a time and cannot go back."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = min(7, len(self.rest), len(buffer))
        buffer[:n], self.rest = self.rest[:n], self.rest[n:]
        return n


@pytest.mark.parametrize("size", [0, 5, 400_000])
def test_the_first_bytes_of_a_pipe_are_not_lost(size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    head, stream = first_bytes(io.BufferedReader(Pipe(data)))  # type: ignore[arg-type]
    assert head == data[:HEAD]
    assert stream.read() == data


def test_text_lines_are_cut_where_they_would_fill_the_memory() -> None:
    found = list(text_lines(opened(b"\xef\xbb\xbfa\r\n" + b"x" * 2500 + b"\nb\0"), 1000))
    assert [len(line) for line in found] == [3, 1000, 1000, 501, 2]
    assert (found[0], found[-1]) == ("a\r\n", "b\ufffd")
