"""Archives damaged at random: whatever the damage, reading comes to an end and says what it could not use.

``RECRAWL_FUZZ=10000 pytest tests/robustness/test_fuzz.py`` for more of it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from io import BufferedReader

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from making import packed, page_record
from recrawl.errors import BadRecord, BadSource, BadUrl
from recrawl.history import BatchBuilder
from recrawl.sources import Context, Source
from recrawl.sources.jsonl import JsonLines
from recrawl.sources.streams import decompressed, line_blocks
from recrawl.sources.table import Csv, Parquet
from recrawl.sources.wacz import Wacz
from recrawl.sources.warc import Warc
from recrawl.web.visit import Visit
from shared_data import fixture_files

N_MUTATIONS = int(os.environ.get("RECRAWL_FUZZ", "1500"))
SECONDS = 10  # of processor time, for one damaged file of a few kilobytes; all the others take milliseconds

Mutation = Callable[[bytearray, random.Random, bytes], None]


def flip(data: bytearray, rng: random.Random, other: bytes) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.randint(1, 40)] = rng.randbytes(rng.randint(1, 40))


def delete(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data))
    del data[at : at + int(2 ** rng.uniform(0, 10))]


def repeat(data: bytearray, rng: random.Random, other: bytes) -> None:
    at, to = rng.randrange(len(data)), rng.randrange(len(data))
    data[to:to] = data[at : at + int(2 ** rng.uniform(0, 10))]


def splice(data: bytearray, rng: random.Random, other: bytes) -> None:
    data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]


def truncate(data: bytearray, rng: random.Random, other: bytes) -> None:
    del data[rng.randrange(len(data)) :]


def odd_number(data: bytearray, rng: random.Random, other: bytes) -> None:
    """Another number in place of one: a length, a status, a date."""
    at = next((i for i in range(rng.randrange(len(data)), len(data)) if data[i : i + 1].isdigit()), None)
    if at is not None:
        data[at : at + 1] = rng.choice([b"-1", b"0", b"99999999999999999999", b"2147483648", b" ", b"1e9", b"\xb2"])


MUTATIONS: tuple[Mutation, ...] = (flip, flip, overwrite, delete, repeat, splice, truncate, odd_number)


def samples() -> list[bytes]:
    """Real archives (made-up ones where there are none), as they are, plain, and compressed again."""
    found = [path.read_bytes() for path in fixture_files(".warc", ".warc.gz") if path.stat().st_size < 60_000]
    found = found or [packed([page_record(i) for i in range(6)], how) for how in ("plain", "gz")]
    plain = [data if data.startswith(b"WARC/") else decompressed(opened(data)).read() for data in found]
    compressed = [
        b"".join(zstandard.ZstdCompressor().compress(b"WARC/" + part) for part in data.split(b"WARC/")[1:])
        for data in plain[:4]
    ]
    return [*found, *plain, *compressed]


def opened(data: bytes) -> BufferedReader:
    return BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]


def mutated(data: bytes, other: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
        if changed:
            rng.choice(MUTATIONS)(changed, rng, other)
    return bytes(changed)


def test_no_damage_to_an_archive_crashes_or_stalls_the_reader() -> None:
    originals = samples()
    builder = BatchBuilder()
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(N_MUTATIONS):
        rng = random.Random(seed)
        data = mutated(rng.choice(originals), rng.choice(originals), rng)
        began = time.process_time()
        for item in Warc().read(io.BytesIO(data), Context(max_body=4 << 20)):
            outcomes[take(item, builder)] += 1
        slowest = max(slowest, time.process_time() - began)
        assert slowest < SECONDS, f"seed {seed}"
        if builder.n_visits > 5000:
            builder.take()
    builder.take()
    print(f"{N_MUTATIONS:,} damaged archives, slowest {slowest:.3f} s: {dict(outcomes.most_common())}")
    assert outcomes["visit"] > N_MUTATIONS // 2
    assert outcomes["broken WARC record"] > N_MUTATIONS // 10


def take(item: Visit | BadRecord, builder: BatchBuilder) -> str:
    """What became of one item: it is taken as a visit, or there is a reason why not."""
    if isinstance(item, BadRecord):
        return item.reason
    try:
        builder.add(item)
    except (BadRecord, BadUrl) as error:
        return str(error).partition(":")[0]
    return "visit"


def test_no_damage_to_a_wacz_crashes_the_reader() -> None:
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/a.warc.gz", packed([page_record(i) for i in range(5)], "gz"))
        archive.writestr("archive/b.warc", packed([page_record(i) for i in range(5)], "plain"))
    original, outcomes = out.getvalue(), Counter[str]()
    for seed in range(N_MUTATIONS // 5):
        rng = random.Random(seed)
        try:
            for item in Wacz().read(io.BytesIO(mutated(original, original, rng)), Context()):
                outcomes["visit" if isinstance(item, Visit) else item.reason] += 1
        except BadSource:
            outcomes["refused"] += 1
    assert outcomes["visit"] > 100
    assert outcomes["refused"] > 10


LINES = b'{"url":"https://e.org/","at":1767312000,"links":["https://e.org/a"],"terms":{"w":1},"status":200}\n' * 5
CSV = (
    b'url,at,links,terms,status,title\nhttps://e.org/,1767312000,"[""https://e.org/a""]","{""w"":1}",200,"a ""b""\nc"\n'
    * 3
)


def test_no_damage_to_lines_and_tables_crashes_the_readers() -> None:
    builder = BatchBuilder()
    outcomes: Counter[str] = Counter()
    for seed in range(N_MUTATIONS):
        rng = random.Random(seed)
        if seed % 2:
            items = JsonLines().read(io.BytesIO(mutated(LINES, CSV, rng)), Context())
        else:
            items = Csv().read(io.BytesIO(mutated(CSV, LINES, rng)), Context())
        for item in items:
            outcomes[take(item, builder)] += 1
    builder.take()
    assert outcomes["visit"] > 100
    assert len(outcomes) > 8


@settings(max_examples=100)
@given(
    st.binary(max_size=200),
    st.sampled_from([gzip.compress, zstandard.ZstdCompressor().compress]),
    st.integers(0, 10**6),
)
def test_no_damage_to_a_compressed_stream_crashes_the_reader(
    data: bytes, pack: Callable[[bytes], bytes], seed: int
) -> None:
    damaged = mutated(pack(data), data + b"x", random.Random(seed))
    with contextlib.suppress(BadSource):
        assert all(isinstance(block, bytes) for block in line_blocks(decompressed(opened(damaged))))


@pytest.mark.parametrize("source", [Parquet(), Wacz()], ids=["Parquet", "WACZ"])
def test_random_bytes_are_no_parquet_and_no_wacz(source: Source) -> None:
    for seed in range(50):
        with pytest.raises(BadSource):
            list(source.read(io.BytesIO(random.Random(seed).randbytes(500)), Context()))
