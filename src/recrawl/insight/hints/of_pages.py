"""What sitemaps and feeds say of each page now, as far as that has proven true on its host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import NEVER, US_PER_DAY, moment
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.insight.hints.evidence import HintEvidence, hint_evidence
from recrawl.insight.hints.track_record import TrackRecord
from recrawl.world.page_names import named_pages
from recrawl.world.pages import Signals


@dataclass(frozen=True)
class Hints:
    """What sitemaps and feeds say of each page, as far as that is worth something on its host."""

    probability: Floats  # that the page changed since its last visit; NaN where no proven source says so
    reason: list[str]  # "" where nothing says that it changed

    def __bool__(self) -> bool:
        return bool((~np.isnan(self.probability)).any())


@dataclass(frozen=True, kw_only=True)
class SourceSignals:
    """What the sources of one kind signal: one entry per page."""

    is_complete: Flags
    changed_at: Ints
    n_changes: Ints
    days: float


def hints_of(history: History, page: Ints, host: Ints, last_visit: Ints) -> Hints | None:
    """What is hinted of these pages now; None where no sitemap or feed was ever read.

    `host` numbers the hosts of the pages, `last_visit` is in microseconds. A history as of some time ignores
    what was read later.
    """
    probability, reason, any_source = np.full(len(page), np.nan), [""] * len(page), False
    for evidence in hint_evidence(history, page, host):
        any_source = True
        newest, record = evidence.newest(), evidence.record()
        hinted = newest > last_visit
        likely = record.probability(host, hinted)
        better = ~np.isnan(likely) & ~(likely <= probability)
        probability[better] = likely[better]
        for i in np.flatnonzero(better & hinted).tolist():
            reason[i] = record.reason(int(host[i]), moment(int(newest[i])))
    return Hints(probability, reason) if any_source else None


def signals_of(history: History, page: Ints, host: Ints) -> Signals | None:
    """Changes of these pages that complete sources name; None where no source of any host names nearly all changes.

    A change that several readings name is one. Changes can be signalled from the first to the last reading on.
    """
    return combined((_signals(evidence, host) for evidence in hint_evidence(history, page, host)), len(page))


def _signals(evidence: HintEvidence, host: Ints) -> SourceSignals:
    claim = np.unique(np.stack([evidence.row, evidence.changed_at]), axis=1)[0]
    n_changes = np.bincount(claim, minlength=len(host))
    return SourceSignals(
        is_complete=evidence.record().is_complete[host],
        changed_at=np.where(n_changes > 0, evidence.newest(), NEVER),
        n_changes=n_changes,
        days=float(np.ptp(evidence.read_at)) / US_PER_DAY if len(evidence.read_at) else 0.0,
    )


def no_signals(n_pages: int) -> Signals:
    """Nothing is signalled of any page."""
    return Signals(
        is_complete=np.zeros(n_pages, np.bool_),
        changed_at=np.full(n_pages, NEVER),
        n_changes=np.zeros(n_pages, np.int64),
        days=np.zeros(n_pages),
    )


def combined(sources: Iterable[SourceSignals], n_pages: int) -> Signals | None:
    """The signals of all kinds of sources; None where none is complete on any host.

    A host has one source that counts: of two complete ones the first, which is the sitemap.
    """
    signals = no_signals(n_pages)
    for source in sources:
        here = source.is_complete & ~signals.is_complete
        signals = Signals(
            is_complete=signals.is_complete | source.is_complete,
            changed_at=np.where(here, source.changed_at, signals.changed_at),
            n_changes=np.where(here, source.n_changes, signals.n_changes),
            days=np.where(here, source.days, signals.days),
        )
    return signals if signals.is_complete.any() else None


def track_records(history: History) -> list[TrackRecord]:
    """The track record of each kind of source on every host of the history."""
    if not HINTS.read(history.beside).num_rows or not history.slim_timeline.n_visits:
        return []
    page, _, host, _ = named_pages(history, history.slim_timeline.pages)
    return [evidence.record() for evidence in hint_evidence(history, page, host)]


def hint_counts(history: History) -> dict[str, dict[str, int]]:
    """How often each kind of source was right, in numbers that add up over hosts."""
    return {
        record.kind: {
            "judged_hosts": int((record.n_visits > 0).sum()),
            "proven_hosts": int(record.is_proven.sum()),
            "hinted": int(record.n_hinted.sum()),
            "right": int(record.n_right.sum()),
        }
        for record in track_records(history)
    }
