"""What an import did: visits read, added and skipped, each skip by its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.core.words import count
from recrawl.errors import BadRecord
from recrawl.history.store import Appended

Reason = str


@dataclass
class InputTally:
    """How many records of one input were read, and how many others it holds."""

    visits_are: str  # which records are visits
    n_read: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)  # records that are no visits, by type

    def add(self, part: InputTally) -> None:
        """Add what was counted while a part of the input was read."""
        self.n_read += part.n_read
        self.passed_over.update(part.passed_over)

    def note(self, name: str) -> str | None:
        """Why nothing was read, if the input holds only other records.

        >>> InputTally("responses", 0, Counter(request=2, warcinfo=1)).note("a.warc")
        'a.warc: nothing was read. Visits are responses; it holds only 2 request records, 1 warcinfo record.'
        """
        if self.n_read or not self.passed_over:
            return None
        others = ", ".join(count(n, f"{kind} record") for kind, n in self.passed_over.most_common())
        return f"{name}: nothing was read. Visits are {self.visits_are}; it holds only {others}."


@dataclass
class ImportReport:
    """What an import did: ``read == added + duplicates + sum(skipped)``.

    >>> report = ImportReport()
    >>> report.skip(BadRecord("not JSON", "unexpected end"), "visits.jsonl line 3")
    >>> dict(report.skipped), report.examples
    ({'not JSON': 1}, {'not JSON': 'visits.jsonl line 3: unexpected end'})
    """

    read: int = 0
    added: int = 0
    duplicates: int = 0
    replaced: int = 0  # duplicates that hold more than the row already there
    skipped: Counter[Reason] = field(default_factory=Counter)
    examples: dict[Reason, str] = field(default_factory=dict)
    unknown_fields: Counter[str] = field(default_factory=Counter)
    not_numbers: Counter[str] = field(
        default_factory=Counter
    )  # values that should be numbers: taken as not known, by field
    notes: list[str] = field(default_factory=list)  # what an input cannot give, each once
    inputs: dict[str, InputTally] = field(default_factory=dict, repr=False)  # by name
    dropped_links: Counter[Reason] = field(default_factory=Counter)
    traps: int = 0
    failed_inputs: list[str] = field(default_factory=list)  # that could not be read (to the end), with the reason
    _pages: list[Ints] = field(default_factory=list, repr=False)

    @property
    def pages(self) -> int:
        """Distinct pages among the visits read."""
        return len(np.unique(np.concatenate(self._pages))) if self._pages else 0

    def skip(self, error: BadRecord, where: str) -> None:
        """Count one record that cannot be used, and keep the first of each reason as an example."""
        self.read += 1
        self.skipped[error.reason] += 1
        self.examples.setdefault(error.reason, f"{where}: {error.detail}" if error.detail else where)

    def note(self, receipt: Appended, pages: Ints) -> None:
        """Add what one commit made safe."""
        self.added += receipt.added
        self.duplicates += receipt.duplicates
        self.replaced += receipt.replaced
        self._pages.append(np.unique(pages))

    def merge(self, part: ImportReport) -> None:
        """Add what was counted while a part of the input was read."""
        self.read += part.read
        self.added += part.added
        self.duplicates += part.duplicates
        self.replaced += part.replaced
        self._pages += part._pages
        self.traps += part.traps
        self.skipped.update(part.skipped)
        self.unknown_fields.update(part.unknown_fields)
        self.not_numbers.update(part.not_numbers)
        self.add_notes(part.notes)
        self.dropped_links.update(part.dropped_links)
        for reason, example in part.examples.items():
            self.examples.setdefault(reason, example)
        self.failed_inputs += part.failed_inputs
        for name, tally in part.inputs.items():
            self.inputs.setdefault(name, InputTally(tally.visits_are)).add(tally)

    def add_notes(self, notes: Iterable[str]) -> None:
        """Add what is not said yet."""
        self.notes += [note for note in dict.fromkeys(notes) if note not in self.notes]

    def end(self) -> None:
        """Note the inputs from which nothing was read; when all of them are read to the end."""
        self.add_notes(filter(None, (tally.note(name) for name, tally in self.inputs.items())))

    def as_dict(self) -> dict[str, Any]:
        """What ``recrawl import --json`` prints."""
        return {
            "read": self.read,
            "added": self.added,
            "duplicates": self.duplicates,
            "replaced": self.replaced,
            "skipped": dict(self.skipped.most_common()),
            "pages": self.pages,
            "examples": self.examples,
            "unknown_fields": dict(self.unknown_fields.most_common()),
            "not_numbers": dict(self.not_numbers.most_common()),
            "notes": self.notes,
            "dropped_links": dict(self.dropped_links.most_common()),
            "traps": self.traps,
            "failed_inputs": self.failed_inputs,
        }
