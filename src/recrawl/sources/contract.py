"""What every source must keep to, as a check that authors of plug-ins can run on theirs."""

from __future__ import annotations

import io
import pickle
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, cast

from recrawl.errors import BadRecord, BadSource
from recrawl.sources import streams
from recrawl.sources.base import Context, Cut, Source
from recrawl.web.visit import Visit

_NAME = re.compile(r"[a-z][a-z0-9_+-]*")


def check_source(source: Source, samples: Iterable[bytes], *, n_damaged: int = 200, seed: int = 0) -> None:
    """Raise `AssertionError` with what is wrong, if anything is.

    `samples` are whole inputs of the source's format, each with at least one usable record. They are read as they are, in pieces,
    and in `n_damaged` damaged forms: truncated, with changed bytes, with random bytes.

    >>> from recrawl.sources import named
    >>> check_source(named("jsonl"), [b'{"url": "https://e.org/", "at": 1767312000}'])
    >>> check_source(named("jsonl"), [b"url,at"])
    Traceback (most recent call last):
    AssertionError: jsonl does not detect sample 0, which begins with b'url,at'
    """
    given = [bytes(sample) for sample in samples]
    _require(bool(given), "give at least one sample")
    _check_attributes(source)
    rng = random.Random(seed)
    for number, sample in enumerate(given):
        what = f"sample {number}"
        _check_detection(source, sample, what)
        items = _check_whole(source, sample, what)
        if source.cut is Cut.LINES:
            _check_blocks_of_lines(source, sample, items, what)
        elif source.cut is Cut.RECORDS:
            _check_ranges(source, sample, items, what)
        for i in range(n_damaged):
            _check_survives(source, _damaged(sample, rng), f"{what}, damaged (number {i}, seed {seed})")
    for data in (b"", b"\n", b"\0", bytes(range(256)), rng.randbytes(5_000)):
        _check_survives(source, data, f"input {data[:12]!r} ({len(data):,} bytes)")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _check_attributes(source: Source) -> None:
    _require(isinstance(source, Source), f"{source!r} is not derived from recrawl.sources.Source")
    name = getattr(source, "name", None)
    _require(isinstance(name, str), f"{type(source).__name__} has no name")
    _require(bool(_NAME.fullmatch(str(name))), f"the name {name!r} is not lower-case letters, digits, _, + or -")
    _require(isinstance(source.cut, Cut), f"{name}: cut is {source.cut!r}, not one of {[str(cut) for cut in Cut]}")
    try:
        pickle.loads(pickle.dumps(source))
    except Exception as error:
        raise AssertionError(
            f"{name} cannot be sent to other processes ({error}); define its class at the top level of a module"
        ) from error


def _check_detection(source: Source, sample: bytes, what: str) -> None:
    head = streams.plain(sample[: streams.HEAD])
    try:
        detected = source.detects(head, "input")
        by_nothing = source.detects(b"", "input")
        for n in range(min(len(head), 64)):
            source.detects(head[:n], "input")
    except Exception as error:
        raise AssertionError(f"{source.name} raises {error!r} when it looks at the beginning of {what}") from error
    _require(bool(detected), f"{source.name} does not detect {what}, which begins with {head[:24]!r}")
    _require(not by_nothing, f"{source.name} detects an empty input")


def _check_whole(source: Source, sample: bytes, what: str) -> list[Any]:
    items = _read(source, sample, what)
    n_visits = sum(isinstance(item, Visit) for item in items)
    reasons = [item.reason for item in items if isinstance(item, BadRecord)]
    _require(n_visits > 0, f"{source.name} reads no visit from {what}; reasons: {reasons[:3]}")
    _require(
        _comparable(_read(source, sample, what)) == _comparable(items), f"{source.name} reads {what} differently again"
    )
    return items


def _check_blocks_of_lines(source: Source, sample: bytes, items: list[Any], what: str) -> None:
    """Each line by itself gives what all lines together give."""
    lines = _plain(source, sample).splitlines(keepends=True)
    first = next((line.strip() for line in lines if line.strip()), b"")
    apart = [item for line in lines for item in _stream_items(source, io.BytesIO(line), what, first_line=first)]
    _require(
        _comparable(apart) == _comparable(items),
        f"{source.name} is cut at lines, but reads {what} differently line by line: use Context.first_line for what the first "
        "line of a file says, or cut = Cut.NOWHERE",
    )


def _check_ranges(source: Source, sample: bytes, items: list[Any], what: str) -> None:
    """Two ranges of records give what all records together give."""
    stream = io.BytesIO(sample)
    for target in range(0, len(sample), max(len(sample) // 8, 1)):
        middle = source.next_record(stream, target)
        if middle is None:
            continue
        _require(target <= middle <= len(sample), f"{source.name}: next_record({target}) is {middle} in {what}")
        apart = [
            item
            for start, stop in ((0, middle), (middle, None))
            for item in _stream_items(source, io.BytesIO(sample), what, start=start, stop=stop)
        ]
        _require(
            _comparable(apart) == _comparable(items),
            f"{source.name} reads {what} differently when it is cut at byte {middle}",
        )


def _check_survives(source: Source, data: bytes, what: str) -> None:
    try:
        source.detects(streams.plain(data[: streams.HEAD]), "input")
    except Exception as error:
        raise AssertionError(f"{source.name} raises {error!r} when it looks at the beginning of {what}") from error
    with suppress(BadSource):  # the input cannot be read as a whole, and the source says so
        _read(source, data, what)


def _read(source: Source, data: bytes, what: str) -> list[Any]:
    plain = _plain(source, data)
    first = plain.lstrip().partition(b"\n")[0] if source.cut is Cut.LINES else b""
    stream = io.BytesIO(plain) if source.raw else cast(BinaryIO, io.BufferedReader(_Pipe(plain)))
    return list(_stream_items(source, stream, what, first_line=first))


def _plain(source: Source, data: bytes) -> bytes:
    return data if source.raw else streams.decompressed(cast(BinaryIO, io.BytesIO(data))).read()


def _stream_items(source: Source, stream: BinaryIO, what: str, **context: Any) -> Iterator[Any]:
    try:
        for item in source.read(stream, Context(**context)):
            _check_item(source, item, what)
            yield item
    except (AssertionError, BadSource):
        raise
    except Exception as error:
        raise AssertionError(
            f"{source.name} raises {error!r} when it reads {what}; yield BadRecord for a record, raise BadSource for the input"
        ) from error


def _check_item(source: Source, item: object, what: str) -> None:
    if isinstance(item, Visit):
        _require(isinstance(item.url, str), f"{source.name} yields a visit whose url is {item.url!r} for {what}")
        _require(
            item.at.tzinfo is not None, f"{source.name} yields a visit whose time has no zone for {what}: {item.at}"
        )
    elif isinstance(item, BadRecord):
        _require(
            0 < len(item.reason) <= 100, f"{source.name} yields a BadRecord without a short reason: {item.reason!r}"
        )
    else:
        raise AssertionError(f"{source.name} yields {item!r} for {what}, which is neither a Visit nor a BadRecord")


def _comparable(items: list[Any]) -> list[str]:
    return [repr((item.reason, item.detail)) if isinstance(item, BadRecord) else repr(item) for item in items]


def _damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    at = rng.randrange(len(changed) + 1)
    match rng.randrange(4):
        case 0:
            del changed[at:]
        case 1:
            changed[at:at] = rng.randbytes(rng.randrange(1, 50))
        case 2:
            del changed[at : at + rng.randrange(1, 50)]
        case _:
            for _ in range(rng.randrange(1, 20)):
                if changed:
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


class _Pipe(io.RawIOBase):
    """Bytes that can be read once, from the beginning to the end."""

    def __init__(self, data: bytes) -> None:
        self._rest = memoryview(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)
