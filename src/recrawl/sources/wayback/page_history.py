"""What each capture of a page says, given those before it: the same again, a new copy, or no copy at all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from recrawl.sources import cdx
from recrawl.sources.wayback.captures import Capture
from recrawl.web.visit import Outcome, Visit

NOTE = "archive"


@dataclass
class CaptureSequence:
    """The captures of one URL so far, in order of time."""

    last: Capture | None = None  # the latest copy
    complete: bool = True  # whether all that can be known of the latest copy was learnt
    _copies: dict[str, Capture] = field(default_factory=dict)  # digest → a capture that says what it is

    def resolve(self, capture: Capture) -> Capture:
        """A revisit with the MIME type and status of the copy it repeats, where that is known."""
        copy = self._copies.get(capture.digest or "") if capture.is_revisit else None
        return capture if copy is None else replace(capture, mimetype=copy.mimetype, status=copy.status)

    def is_unchanged(self, capture: Capture) -> bool:
        """Whether a (resolved) capture shows the latest copy again.

        A revisit of something unknown counts as unchanged only at the start of the sequence, where nothing contradicts it.
        """
        if self.last is None:
            return capture.is_revisit
        if capture.digest is None:
            return capture.is_revisit
        return (
            capture.digest == self.last.digest and capture.status == self.last.status and capture.status in (200, None)
        )

    def remember(self, capture: Capture, *, complete: bool) -> None:
        """Go on to the next capture; errors and missing pages say nothing about the copy."""
        if capture.status is not None and capture.digest is not None:
            self._copies.setdefault(capture.digest, capture)
        if capture.status is None or Outcome.of(capture.status) is Outcome.OK:
            self.last, self.complete = capture, complete


def plain_visit(capture: Capture, status: int) -> Visit:
    """The visit that the index alone shows."""
    return Visit(
        url=capture.original,
        at=capture.at,
        status=status,
        payload_digest=payload_digest(capture),
        content_type=capture.content_type,
        note=NOTE,
    )


def payload_digest(capture: Capture) -> str | None:
    """The digest with the name of its function, as WARC files write it."""
    return None if capture.digest is None else cdx.payload_digest(capture.digest)
