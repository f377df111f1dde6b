"""Every error that a user can meet, one family.

::

    RecrawlError                 catch this to catch them all; the message is meant for people
    ├── BadUrl                   not an http(s) URL
    ├── BadRecord                one record that cannot be used; counted and skipped on import
    ├── BadSource                a whole file or stream that cannot be read
    │   └── BadXml               a sitemap or feed that is not the XML it should be
    ├── HistoryError             the history is missing, newer than this program, or cannot be written
    ├── NotEnoughData            the question needs more visits than there are
    ├── BadOption                an option has a value that it cannot have, or two contradict each other
    │   ├── BadBudget            not a number of pages nor a share of them
    │   └── UnknownPolicy        no policy of that name
    ├── MissingPackage           an optional package is not installed
    ├── BadPlugin                a plug-in cannot be loaded or is not what it should be
    ├── BadModel                 a file is not a model, is damaged, or does not fit
    ├── BadState                 what was learnt cannot be kept, or what was kept is damaged
    ├── EngineError              an engine (Sail, Spark) cannot be reached, or a task failed on its workers
    ├── ReplayError              a replay ended before its time
    ├── UnsafeUrl                a URL leads to an address that is not public
    └── ArchiveError             the remote archive did not answer as it should
        ├── TryAgain             it may do so later
        └── ArchiveBusy          it asks to come back later: the run ends, the next one goes on
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


class BadXml(BadSource):
    """A file is not the expected XML, or is broken from some point on; the message says why."""


class HistoryError(RecrawlError):
    """The history is missing, was written by a newer version, or cannot be written."""


class NotEnoughData(RecrawlError):
    """The history holds too little for the question asked."""


class BadOption(RecrawlError, ValueError):
    """An option has a value that it cannot have, or two options contradict each other."""


class BadBudget(BadOption):
    """The text is not a budget."""


class UnknownPolicy(BadOption, LookupError):
    """There is no policy of that name, or it has no such setting."""


class MissingPackage(RecrawlError, ImportError):
    """An optional package is not installed; the message has the command that installs it."""


class BadPlugin(RecrawlError):
    """A plug-in cannot be loaded, or is not what it should be."""


class BadModel(RecrawlError):
    """A file is not a model, is damaged, or does not fit this history."""


class BadState(RecrawlError):
    """What a policy has learnt cannot be kept, or what was kept is damaged or belongs to something else."""


class EngineError(RecrawlError):
    """An engine cannot be reached, cannot do what was asked, or a task failed on one of its workers."""


class ReplayError(RecrawlError):
    """A replay ended before its time."""


class UnsafeUrl(RecrawlError):
    """A URL that a crawler must not fetch. `reason` is a short stable name that reports count by."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return (UnsafeUrl, (self.reason, self.detail))


class ArchiveError(RecrawlError):
    """The remote archive refused, failed, or answered nonsense."""


class TryAgain(ArchiveError):
    """A failure that may pass; `wait` is how many seconds the server asked for, None where it did not say."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class ArchiveBusy(ArchiveError):
    """The archive refuses all requests for longer than the run may wait."""
