"""Damage to inputs: to bytes, and to the values of JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

LONGEST = 1 << 16  #: bytes of an input
NUMBERS = (
    b"-1",
    b"0",
    b"99999999999999999999",
    b"2147483648",
    b"4294967296",
    b"1e999",
    b"NaN",
    b"-0.0",
    b"\xb2",
    b"1e-9",
)
TEXTS = (
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n\n",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x92\xa9",
    b"%00",
    b"'",
    b'"',
    b"[[[[",
    b"\t",
)

Words = Sequence[bytes]
Mutation = Callable[[bytearray, random.Random, bytes, Words], None]


def _flip(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.randint(0, 8)] = rng.randbytes(rng.randint(1, 8))


def _delete(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    at = rng.randrange(len(data))
    del data[at : at + _length(rng)]


def _repeat(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    at, to = rng.randrange(len(data)), rng.randrange(len(data) + 1)
    times = rng.choice((1, 1, 1, 2, 50))
    data[to:to] = data[at : at + _length(rng)] * times


def _splice(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    if other:
        begin = rng.randrange(len(other))
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.choice((0, _length(rng)))] = other[begin : begin + _length(rng)]


def _truncate(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    del data[rng.randrange(len(data)) :]


def _insert_word(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    at = rng.randrange(len(data) + 1)
    data[at : at + rng.choice((0, 0, 1, 4))] = rng.choice(words or TEXTS)


def _insert_text(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(TEXTS) * rng.choice((1, 1, 1, 300))


def _change_number(data: bytearray, rng: random.Random, other: bytes, words: Words) -> None:
    """Another number in place of one: a length, a status, a date."""
    digits = [i for i, byte in enumerate(data[:4096]) if 48 <= byte <= 57]
    if digits:
        at = rng.choice(digits)
        end = at
        while end < len(data) and 48 <= data[end] <= 57:
            end += 1
        data[at : rng.choice((at + 1, end))] = rng.choice((*NUMBERS, b"%d" % rng.randrange(10_000)))


MUTATIONS: tuple[Mutation, ...] = (
    _flip, _overwrite, _delete, _repeat, _splice, _truncate, _insert_word, _insert_word, _insert_text, _change_number,
)  # fmt: skip


def _length(rng: random.Random) -> int:
    return int(2 ** rng.uniform(0, 9))


def mutated(data: bytes, other: bytes, rng: random.Random, words: Words = (), *, is_json: bool = False) -> bytes:
    """The input with one or a few changes; `other` is another input to take parts from.

    >>> mutated(b"abc", b"xyz", random.Random(1)) == mutated(b"abc", b"xyz", random.Random(1))
    True
    """
    if is_json and rng.random() < 0.8:
        changed_json = _mutated_json(data, other, rng)
        if changed_json is not None:
            return changed_json[:LONGEST]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        (rng.choice(MUTATIONS) if changed else _insert_word)(changed, rng, other, words)
    return bytes(changed[:LONGEST])


# -- JSON --------------------------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, float("nan"), float("inf"), 2**63, -(2**63), 2**64, 10**30, "", "0", "x", "\0", "\ud800",
    "é" * 40, "https://e.org/", "2026-01-02", [], {}, [[]], [None], {"": None}, {"x": {}}, [1, 2, 3], "<i8", "O", [1 << 40], [-1],
)  # fmt: skip


def _mutated_json(data: bytes, other: bytes, rng: random.Random) -> bytes | None:
    """One or a few values exchanged, dropped or moved; None where the input is not JSON."""
    values, others = _parsed(data), _parsed(other)
    if values is None:
        return None
    holder = [values]
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(holder))
        where, key = rng.choice(places)
        match rng.randrange(5):
            case 0 | 1:
                where[key] = _copied((VALUES, rng.randrange(len(VALUES))))
            case 2:
                where[key] = _copied(rng.choice(places))
            case 3:
                where[key] = _copied(rng.choice(list(_places([others]))))
            case _:
                _reshape(where, key, rng)
        if not holder:
            return b""
    return json.dumps(holder[0]).encode()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _places(value: Any, depth: int = 0) -> Any:
    """Every place of a value within lists and dicts."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inside):
        yield value, key
        if depth < 50:
            yield from _places(each, depth + 1)


def _copied(place: tuple[Any, Any]) -> Any:
    return json.loads(json.dumps(place[0][place[1]]))


def _reshape(where: Any, key: Any, rng: random.Random) -> None:
    """Drop a value, name it otherwise, or have it twice."""
    if isinstance(where, dict):
        value = where.pop(key)
        if rng.random() < 0.5:
            where[rng.choice((key.upper(), f"_{key}", "", key[:-1], rng.choice([*where, "x"])))] = value
    elif rng.random() < 0.5:
        del where[key]
    else:
        where.extend(where[:20])
