"""What was already requested and delivered: one JSON file per question, safe against a kill at any moment.

A long list is not written again for every step: steps are appended to a journal beside it, which the next run folds in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from recrawl.core.files import write_bytes
from recrawl.core.hashing import hash64
from recrawl.errors import ArchiveError, BadRecord
from recrawl.sources.wayback import journal
from recrawl.sources.wayback.captures import Capture, IndexPage, check

FORMAT = 1
LONG = 1000  # captures; from here on steps go to the journal
Key = tuple[str, str]  # timestamp and original URL of a capture
Span = tuple[str | None, str | None]  # from, to


@dataclass
class UrlState:
    """The captures of one question as far as they are known, and which of them the caller has stored."""

    url: str
    path: Path
    span: Span = (None, None)  # the requested time
    since: str | None = None  # where the current request begins: later than `span` if only later captures are requested
    part: int = 0  # of the question that is being asked
    resume_key: str | None = None
    complete_at: datetime | None = None  # when the index had listed everything; None: it has not yet
    captures: dict[Key, Capture] = field(default_factory=dict)
    stored: dict[Key, bool] = field(default_factory=dict)  # acknowledged captures; True: with all that can be known

    def begin(self, span: Span, since: str | None) -> None:
        """Start a new request, on disk as well; what is known and stored stays."""
        self.span, self.since, self.part, self.resume_key, self.complete_at = span, since, 0, None, None
        self.save()

    def add(self, answer: IndexPage, now: datetime, n_parts: int = 1) -> int:
        """Add one page of the index, on disk as well, and return how many captures were new.

        The index repeats itself, and may list a page and something else under one time: then the page counts.
        """
        before = len(self.captures)
        for capture in answer.captures:
            known = self.captures.setdefault(capture.key, capture)
            if capture.is_page and not known.is_page and capture.key not in self.stored:
                self.captures[capture.key] = capture
        self.resume_key = answer.resume_key
        if answer.resume_key is None:
            self.part += 1
            self.complete_at = now if self.part >= n_parts else None
        rows = [self._row(capture) for capture in answer.captures]
        self._keep({"captures": rows, "of": [*self.span, self.since], **self._place()})
        return len(self.captures) - before

    def mark(self, marks: dict[Key, bool]) -> None:
        """Remember, on disk, which captures are stored, and whether with all that can be known."""
        self.stored |= marks
        self._keep({"stored": [[*key, complete] for key, complete in marks.items()]})

    def in_order(self) -> list[Capture]:
        """The captures within the span, by time."""
        since, until = self.span
        inside = (c for c in self.captures.values() if (since or "") <= c.timestamp <= (until or "~"))
        return sorted(inside, key=lambda capture: capture.key)

    def save(self) -> None:
        """Write the file in one step: it is the old one or the new one, never half."""
        with self._writing():
            write_bytes(self.path, orjson.dumps(self._record()))
            journal.remove(self.path)

    def _keep(self, step: dict[str, Any]) -> None:
        if len(self.captures) < LONG or not self.path.exists():
            self.save()
            return
        with self._writing():
            journal.append(self.path, step)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ArchiveError(f"cannot keep the state of {self.url} in {self.path}: {error.strerror}") from error

    def _record(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "url": self.url,
            "span": self.span,
            "since": self.since,
            **self._place(),
            "captures": [self._row(capture) for capture in self.captures.values()],
        }

    def _place(self) -> dict[str, Any]:
        """Where in the index the next page begins."""
        return {"part": self.part, "resume_key": self.resume_key, "complete_at": self.complete_at}

    def _row(self, c: Capture) -> list[Any]:
        row = [c.timestamp, c.original, c.mimetype, c.status, c.digest, self.stored.get(c.key)]
        return row if c.copy is None else [*row, c.copy]

    def read_place(self, record: dict[str, Any]) -> None:
        """Take over what `_place` wrote."""
        complete_at = None if record["complete_at"] is None else datetime.fromisoformat(record["complete_at"])
        if complete_at is not None and complete_at.tzinfo is None:
            raise ValueError("a time without zone")
        part = record.get("part", 0)
        if not isinstance(part, int) or part < 0:
            raise TypeError(f"{part!r} is not a number")
        self.part, self.resume_key, self.complete_at = part, _text(record["resume_key"]), complete_at

    def read_captures(self, rows: list[Any]) -> None:
        """Take over what `_row` wrote."""
        for timestamp, original, mimetype, status, digest, stored, *copy in rows:
            capture = _capture(timestamp, original, mimetype, status, digest, *copy)
            self.captures[capture.key] = capture
            if stored is not None:
                self.stored[capture.key] = bool(stored)

    def replay(self, step: dict[str, Any]) -> None:
        """Take over one step of the journal; one that belongs to an earlier request changes no place."""
        if "captures" in step:
            self.read_captures(step["captures"])
            if step["of"] == [*self.span, self.since]:
                self.read_place(step)
        for timestamp, original, complete in step.get("stored", []):
            if (timestamp, original) in self.captures:
                self.stored[timestamp, original] = bool(complete)


def state_path(folder: Path, url: str, *about: object) -> Path:
    """The file of one URL; `about` is what else makes it another question: which archive, with or without mementos."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", url.partition("://")[2] or url)[:60].strip("-.")
    return folder / f"{readable}-{hash64(repr((url, *about))) & (1 << 64) - 1:016x}.json"


def load(url: str, path: Path) -> tuple[UrlState, str | None]:
    """The state of a question, new if there is none, and a note where the file was unreadable and had to be set aside."""
    try:
        state = _from_record(url, path, orjson.loads(path.read_bytes()))
        if journal.replay(path, state.replay) is not None:
            state.save()
        return state, None
    except FileNotFoundError:
        return UrlState(url, path), None
    except (ValueError, TypeError, KeyError, BadRecord) as error:
        aside = path.with_suffix(".broken")
        os.replace(path, aside)
        note = f"state of {url} was unreadable ({error}); set aside as {aside.name} and started again"
        return UrlState(url, path), note
    except OSError as error:
        raise ArchiveError(f"cannot read the state of {url} in {path}: {error.strerror}") from error


def _from_record(url: str, path: Path, record: dict[str, Any]) -> UrlState:
    if record["format"] != FORMAT or record["url"] != url:
        raise ValueError(f"not format {FORMAT} for this URL")
    since, until = (_text(value) for value in record["span"])
    state = UrlState(url, path, span=(since, until), since=_text(record["since"]))
    state.read_place(record)
    state.read_captures(record["captures"])
    return state


def _capture(
    timestamp: str, original: str, mimetype: str, status: int | None, digest: str | None, copy: str | None = None
) -> Capture:
    if not (isinstance(timestamp, str) and isinstance(original, str) and isinstance(mimetype, str)):
        raise TypeError("a capture's time, URL or type is not a text")
    if not (status is None or isinstance(status, int)):
        raise TypeError("a capture's status is not a number")
    capture = Capture(timestamp, original, mimetype, status, _text(digest), copy=_text(copy))
    check(capture)
    return capture


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a text")
