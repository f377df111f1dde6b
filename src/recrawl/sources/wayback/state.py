"""What was already requested and delivered: one small JSON file per URL, safe against a kill at any moment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from recrawl.core.files import write_bytes
from recrawl.core.hashing import hash64
from recrawl.errors import ArchiveError, BadRecord
from recrawl.sources.wayback.index import Capture, IndexPage, check

FORMAT = 1
Key = tuple[str, str]  # timestamp and original URL of a capture
Span = tuple[str | None, str | None]  # from, to


@dataclass
class UrlState:
    """The captures of one URL as far as they are known, and which of them the caller has stored."""

    url: str
    path: Path
    span: Span = (None, None)  # the requested time
    since: str | None = None  # where the current request begins: later than `span` if only later captures are requested
    resume_key: str | None = None
    complete_at: datetime | None = None  # when the index had listed everything; None: it has not yet
    captures: dict[Key, Capture] = field(default_factory=dict)
    stored: dict[Key, bool] = field(default_factory=dict)  # acknowledged captures; True: with all that can be known

    def begin(self, span: Span, since: str | None) -> None:
        """Start a new request; what is known and stored stays."""
        self.span, self.since, self.resume_key, self.complete_at = span, since, None, None

    def add(self, answer: IndexPage, now: datetime) -> int:
        """Add one page of the index and return how many captures were new.

        The index repeats itself, and may list a page and something else under one time: then the page counts.
        """
        before = len(self.captures)
        for capture in answer.captures:
            known = self.captures.setdefault(capture.key, capture)
            if capture.is_page and not known.is_page and capture.key not in self.stored:
                self.captures[capture.key] = capture
        self.resume_key = answer.resume_key
        self.complete_at = now if answer.resume_key is None else None
        return len(self.captures) - before

    def in_order(self) -> list[Capture]:
        """The captures within the span, by time."""
        since, until = self.span
        inside = (c for c in self.captures.values() if (since or "") <= c.timestamp <= (until or "~"))
        return sorted(inside, key=lambda capture: capture.key)

    def save(self) -> None:
        """Write the file in one step: it is the old one or the new one, never half."""
        try:
            write_bytes(self.path, orjson.dumps(self._record()))
        except OSError as error:
            raise ArchiveError(f"cannot keep the state of {self.url} in {self.path}: {error.strerror}") from error

    def _record(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "url": self.url,
            "span": self.span,
            "since": self.since,
            "resume_key": self.resume_key,
            "complete_at": self.complete_at,
            "captures": [
                [c.timestamp, c.original, c.mimetype, c.status, c.digest, self.stored.get(c.key)]
                for c in self.captures.values()
            ],
        }


def state_path(folder: Path, url: str, *about: object) -> Path:
    """The file of one URL; `about` is what else makes it another question: which archive, with or without mementos."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", url.partition("://")[2])[:60].strip("-.")
    return folder / f"{readable}-{hash64(repr((url, *about))) & (1 << 64) - 1:016x}.json"


def load(url: str, path: Path) -> tuple[UrlState, str | None]:
    """The state of a URL, new if there is none, and a note where the file was unreadable and had to be set aside."""
    try:
        return _from_record(url, path, orjson.loads(path.read_bytes())), None
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
    complete_at = None if record["complete_at"] is None else datetime.fromisoformat(record["complete_at"])
    if complete_at is not None and complete_at.tzinfo is None:
        raise ValueError("a time without zone")
    state = UrlState(
        url,
        path,
        span=(since, until),
        since=_text(record["since"]),
        resume_key=_text(record["resume_key"]),
        complete_at=complete_at,
    )
    for *fields, stored in record["captures"]:
        capture = _capture(*fields)
        state.captures[capture.key] = capture
        if stored is not None:
            state.stored[capture.key] = bool(stored)
    return state


def _capture(timestamp: str, original: str, mimetype: str, status: int | None, digest: str | None) -> Capture:
    if not (isinstance(timestamp, str) and isinstance(original, str) and isinstance(mimetype, str)):
        raise TypeError("a capture's time, URL or type is not a text")
    if not (status is None or isinstance(status, int)):
        raise TypeError("a capture's status is not a number")
    capture = Capture(timestamp, original, mimetype, status, _text(digest))
    check(capture)
    return capture


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a text")
