"""What a worker reports of an import, as bytes."""

from __future__ import annotations

import json
import struct
from collections import Counter

import numpy as np

from recrawl.history.import_report import ImportReport, InputTally

_COUNTERS = ("skipped", "unknown_fields", "not_numbers", "dropped_links")
_PLAIN = ("read", "added", "duplicates", "replaced", "examples", "notes", "traps", "failed_inputs")


def report_bytes(report: ImportReport) -> bytes:
    """A report as JSON, followed by the ids of the pages that were read.

    >>> report = ImportReport(read=3, added=2, skipped=Counter({"not JSON": 1}))
    >>> report_from(report_bytes(report)) == report
    True
    """
    about = {name: getattr(report, name) for name in (*_COUNTERS, *_PLAIN)}
    about["inputs"] = {name: vars(tally) for name, tally in report.inputs.items()}
    text = json.dumps(about).encode()
    pages = np.unique(np.concatenate(report._pages)) if report._pages else np.empty(0, np.int64)
    return struct.pack("<q", len(text)) + text + pages.astype("<i8").tobytes()


def report_from(data: bytes) -> ImportReport:
    """The report that was written."""
    (length,) = struct.unpack_from("<q", data)
    about = json.loads(data[8 : 8 + length])
    pages = np.frombuffer(data, "<i8", offset=8 + length).astype(np.int64)
    report = ImportReport(**{name: about[name] for name in _PLAIN})
    for name in _COUNTERS:
        setattr(report, name, Counter(about[name]))
    report.inputs = {
        name: InputTally(each["visits_are"], each["n_read"], Counter(each["passed_over"]))
        for name, each in about["inputs"].items()
    }
    report._pages = [pages] if len(pages) else []
    return report
