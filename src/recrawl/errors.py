"""The errors a user can meet, one family.

::

    RecrawlError                 catch this to catch them all; the message is meant for people
    ├── BadUrl                   not an http(s) URL
    ├── BadRecord                one record that cannot be used; counted and skipped on import
    ├── BadSource                a whole file or stream that cannot be read
    ├── HistoryError             the history is missing, newer than this program, or cannot be written
    ├── NotEnoughData            the question needs more visits than there are
    └── ArchiveError             the remote archive did not answer as it should
"""


class RecrawlError(Exception):
    """Base of all errors whose message is meant for the user."""


class BadUrl(RecrawlError, ValueError):
    """The text is not an absolute http or https URL."""


class BadRecord(RecrawlError, ValueError):
    """One record cannot be used. `reason` is a short stable name that reports count by."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return (BadRecord, (self.reason, self.detail))


class BadSource(RecrawlError):
    """A file or stream cannot be read at all, or not from here on."""


class HistoryError(RecrawlError):
    """The history is missing, was written by a newer version, or cannot be written."""


class NotEnoughData(RecrawlError):
    """The history holds too little for the question asked."""


class ArchiveError(RecrawlError):
    """The remote archive refused, failed, or answered nonsense."""
