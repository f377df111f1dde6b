"""JSON objects of a file, one a line."""

from __future__ import annotations

from typing import Any

import orjson

from recrawl.errors import BadRecord

EXCERPT = 60  #: characters of a line that are quoted


def json_object(line: bytes | str) -> dict[str, Any]:
    """The JSON object of a line; raises `BadRecord` where it is none.

    >>> json_object(b'{"a": 1}')
    {'a': 1}
    >>> json_object(b"[1]")
    Traceback (most recent call last):
      ...
    recrawl.errors.BadRecord: not a JSON object: [1]
    """
    begin = line[:EXCERPT]
    excerpt = begin.decode("utf-8", "replace") if isinstance(begin, bytes) else begin
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadRecord("not JSON", f"{str(error)[:80]} in: {excerpt}") from None
    if not isinstance(record, dict):
        raise BadRecord("not a JSON object", excerpt)
    return record
