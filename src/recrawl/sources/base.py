"""What a source is: it detects one kind of input and reads it as visits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import BinaryIO, ClassVar

from recrawl.errors import BadRecord
from recrawl.web.visit import Visit

MAX_BODY = 32 << 20  #: bytes of a decoded body; records with larger ones are skipped


class Cut(Enum):
    """Where an input may be cut into pieces that are read independently, by several processes at once."""

    LINES = "lines"  # every line is a record; `read` gets a block of whole lines
    RECORDS = "records"  # records begin at positions that `Source.next_record` finds; `read` gets a range of them
    NOWHERE = "nowhere"  # `read` gets all of it


@dataclass(kw_only=True)
class Context:
    """How an input is to be read, and what is counted on the way."""

    max_body: int = MAX_BODY  # bytes
    now: datetime | None = None  # what counts as the future; None: the clock
    first_line: bytes = b""  # of the whole input, where it is cut at lines
    start: int = 0  # where it is cut at records: read those that begin in [start, stop)
    stop: int | None = None  # None: to the end
    end: int = 0  # set by the source: where the first record behind `stop` begins, however far that is
    n_lines: int = 0  # lines of the input read so far, for messages; counted by `lines`
    unknown_fields: Counter[str] = field(default_factory=Counter)  # counted by the source, reported to the user
    not_numbers: Counter[str] = field(default_factory=Counter)  # the same: values taken as not known, by field
    passed_over: Counter[str] = field(default_factory=Counter)  # the same: records that are no visits, by type
    notes: list[str] = field(default_factory=list)  # what the input cannot give; each is reported once

    def lines(self, stream: BinaryIO) -> Iterator[bytes]:
        r"""The lines of a stream without their ends, counted; empty ones are left out.

        >>> from io import BytesIO
        >>> context = Context()
        >>> list(context.lines(BytesIO(b"one\n\ntwo"))), context.n_lines
        ([b'one', b'two'], 3)
        """
        for line in stream:
            self.n_lines += 1
            if line.strip():
                yield line.removesuffix(b"\n")


class Source(ABC):
    r"""One kind of input.

    To add one, write a file with a class like this and add a row to `recrawl.sources.ALL`; or publish it from another package as an
    entry point of the group ``recrawl.sources``. `recrawl.sources.contract.check_source` checks that it behaves.

    >>> from datetime import UTC
    >>> class Log(Source):
    ...     name, cut = "log", Cut.LINES
    ...     def detects(self, head: bytes, filename: str = "") -> bool:
    ...         return head.startswith(b"#log")
    ...     def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
    ...         for line in context.lines(stream):
    ...             if not line.startswith(b"#"):
    ...                 yield Visit(url=line.decode("utf-8", "replace"), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> from io import BytesIO
    >>> [visit.url for visit in Log().read(BytesIO(b"#log\nhttps://e.org/\n"), Context())]
    ['https://e.org/']
    """

    name: ClassVar[str]  #: as ``--format`` takes it
    cut: ClassVar[Cut] = Cut.NOWHERE
    #: Whether `read` needs the file as it is, seekable, and decompresses by itself. Otherwise gzip and zstd are undone for it.
    raw: ClassVar[bool] = False
    #: Which records are visits, for an input that holds only others.
    visits_are: ClassVar[str] = "records of visits"

    @abstractmethod
    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether an input is of this kind, by its first bytes without compression (and its name, if the bytes do not say)."""

    @abstractmethod
    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """The visits of an input, and a `BadRecord` for every record that cannot be used.

        Raises `BadSource` only where the input cannot be read at all, or not from here on.
        """

    def next_record(self, stream: BinaryIO, position: int) -> int | None:
        """Where the next record begins at or after a position; None: nowhere. Needed for `Cut.RECORDS` only."""
        raise NotImplementedError(f"{self.name} is not cut at records")
