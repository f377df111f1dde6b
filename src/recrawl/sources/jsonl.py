"""The visit record as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from recrawl.errors import BadRecord
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.json_objects import json_object
from recrawl.web.visit import FIELDS, Visit, from_record

KNOWN = FIELDS - {"base", "given"}  #: what a record may hold; anything else is counted as unknown


class JsonLines(Source):
    r"""The visit record, one JSON object per line.

    >>> from io import BytesIO
    >>> line = b'{"url": "https://e.org/", "at": 1767312000, "colour": "red"}\n'
    >>> context = Context()
    >>> [visit.url for visit in JsonLines().read(BytesIO(line), context)], dict(context.unknown_fields)
    (['https://e.org/'], {'colour': 1})
    """

    name = "jsonl"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a JSON object."""
        return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per line; fields that a visit does not have are counted."""
        for line in context.lines(stream):
            try:
                record = json_object(line)
                if not record.keys() <= KNOWN:
                    context.unknown_fields.update(record.keys() - KNOWN)
                yield from_record(record, now=context.now)
            except BadRecord as error:
                yield error
