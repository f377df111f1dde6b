"""HTTP bodies: chunks, compression, bombs."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
import zlib

import pytest
import zstandard
from fastwarc.stream_io import BrotliWriter
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadRecord
from recrawl.sources.bodies import decoded, unchunked

HTML = b"<html><p>words " + bytes(range(256)) * 20


def brotli(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = BrotliWriter(out)
    for at in range(0, len(data), 1 << 20):
        writer.write(data[at : at + (1 << 20)])
    writer.close()
    return out.getvalue()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACK = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "raw deflate": raw_deflate,
    "zstd": zstandard.ZstdCompressor().compress, "br": brotli, "identity": bytes, "unheard-of": bytes,
}  # fmt: skip


def headers(encoding: str) -> dict[str, str]:
    return {"content-encoding": encoding.removeprefix("raw ").upper()}


@pytest.mark.parametrize("encoding", PACK)
def test_every_encoding_is_undone(encoding: str) -> None:
    assert decoded(PACK[encoding](HTML), headers(encoding)) == HTML


def test_two_encodings_and_chunks_are_undone_in_order() -> None:
    body = zlib.compress(gzip.compress(HTML))
    chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in (body[:5], body[5:])) + b"0\r\n\r\n"
    assert decoded(chunks, {"content-encoding": "gzip, deflate", "transfer-encoding": "chunked"}) == HTML


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br"])
def test_a_header_that_lies_is_seen_through(encoding: str) -> None:
    assert decoded(HTML, headers(encoding)) == HTML
    assert decoded(b"", headers(encoding)) == b""


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "zstd", "br"])
def test_a_body_that_ends_too_early_is_refused(encoding: str) -> None:
    body = PACK[encoding](HTML)
    with pytest.raises(BadRecord, match="broken compression"):
        decoded(body[: len(body) // 2], headers(encoding))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "zstd", "br"])
def test_a_bomb_is_refused_before_it_fills_the_memory(encoding: str) -> None:
    bomb = PACK[encoding](bytes(200 << 20))
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    with pytest.raises(BadRecord, match=r"^body over 32 MiB"):  # and not "broken compression"
        decoded(bomb, headers(encoding))
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    with pytest.raises(BadRecord, match=r"^body over 1 MiB"):
        decoded(bomb, headers(encoding), 1 << 20)
    assert len(decoded(PACK[encoding](bytes(1 << 20)), headers(encoding), 1 << 20)) == 1 << 20


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"5\r\nhello\r\n6;x\r\n world\r\n0\r\nTrailer: x\r\n\r\n", b"hello world"),
        (b"<p>never chunked</p>", b"<p>never chunked</p>"),
        (b"5\r\nhel", b"hel"),  # cut off
        (b"5\r\nhello", b"hello"),
        (b"ffffffffffff\r\nhello", b"hello"),  # a size that lies
        (b"-5\r\nhello", b"-5\r\nhello"),
        (b"5\r\nhello\r\nnot a size\r\nmore", b"hellonot a size\r\nmore"),
        (b"", b""),
        (b"0\r\n\r\n", b""),
    ],
)
def test_chunks_are_joined_as_far_as_they_make_sense(body: bytes, expected: bytes) -> None:
    assert unchunked(body) == expected


def reason(body: bytes, encoding: str, transfer: str = "", limit: int = 1 << 20) -> str | None:
    """Why a body is refused; None if it is not."""
    try:
        decoded(body, {**headers(encoding), "transfer-encoding": transfer}, limit)
    except BadRecord as error:
        return error.reason
    return None


@given(st.binary(max_size=60), st.sampled_from([*PACK, "gzip, br", "zstd,gzip"]), st.sampled_from(["", "chunked"]))
def test_any_body_is_decoded_or_refused(body: bytes, encoding: str, transfer: str) -> None:
    assert reason(body, encoding, transfer) in (None, "broken compression", "body over 1 MiB")


def test_any_damage_to_a_compressed_body_is_survived() -> None:
    rng = random.Random(2)
    for encoding in ("gzip", "deflate", "raw deflate", "zstd", "br"):
        for _ in range(200):
            body = bytearray(PACK[encoding](HTML))
            for _ in range(rng.randint(1, 3)):
                body[rng.randrange(len(body))] = rng.randrange(256)
            assert reason(bytes(body), encoding) in (None, "broken compression", "body over 1 MiB")
