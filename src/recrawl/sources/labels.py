"""Labelled examples for the relevance classifier: CSV with a header, or JSON lines."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import orjson

from recrawl.core.csv_text import read_rows
from recrawl.errors import BadSource

_TRUE = frozenset({"1", "1.0", "yes", "true", "relevant", "positive"})
_FALSE = frozenset({"0", "0.0", "no", "false", "irrelevant", "negative"})
#: A cell may hold a whole text.
csv.field_size_limit(50_000_000)


def read_labels(path: str) -> Iterator[tuple[str, bool] | None]:
    """Text (else URL) and label of each row; None for a row that cannot be used."""
    if path == "-":
        yield from _rows(sys.stdin)
        return
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            yield from _rows(file)
    except (OSError, csv.Error) as error:
        raise BadSource(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _rows(file: TextIO) -> Iterator[tuple[str, bool] | None]:
    first = file.readline()
    if first.lstrip().startswith("{"):
        yield _example(_parsed(first))
        for line in file:
            if line.strip():
                yield _example(_parsed(line))
        return
    names = next(csv.reader([first]), [])
    for cells in read_rows(file):
        yield _example(dict(zip((name.strip().lower() for name in names), cells, strict=False)))


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        row = orjson.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _example(row: Mapping[str, Any]) -> tuple[str, bool] | None:
    """The text (else the URL) and the label of a row.

    >>> _example({"url": "https://e.org/a", "label": "yes"}), _example({"url": "https://e.org/a"})
    (('https://e.org/a', True), None)
    """
    label = str(row.get("label", "")).strip().lower()
    text = row.get("text") or row.get("url")
    if label not in _TRUE | _FALSE or not isinstance(text, str) or not text.strip():
        return None
    return text, label in _TRUE
