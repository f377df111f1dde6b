"""Signalled changes in a replay: what sources had said by then, as far as the crawler's own visits have proven them."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Ints, Ints8
from recrawl.core.times import NEVER, US_PER_DAY
from recrawl.insight.hints.of_pages import SourceSignals, combined
from recrawl.insight.hints.track_record import TrackRecord
from recrawl.world.pages import Need, Signals, Visits
from recrawl.world.recorded import World
from recrawl.world.recorded_hints import SourceHints

_FAR = np.iinfo(np.int64).max


class HeardSignals:
    """What a crawler in a recorded world has heard, cycle by cycle.

    A source counts on a host as in a plan (`signals_of`): once its record there is good. The record comes from the visits that
    this crawler made, not from those that were recorded, so that nothing is known that it did not see.
    """

    def __init__(self, world: World) -> None:
        assert world.hints is not None
        n_hosts = int(world.host.max(initial=-1)) + 1
        self._sources = [_Heard(kind, hints, world.host, n_hosts) for kind, hints in world.hints.sources.items()]
        self._last_seen: Ints = np.full(world.n_pages, NEVER)  # when each page last came back

    @classmethod
    def of(cls, world: World, needs: frozenset[Need]) -> HeardSignals | None:
        """None where the policy takes no signals, or none was ever read."""
        return cls(world) if world.hints is not None and Need.SIGNALS in needs else None

    def listen(self, now: int) -> None:
        """Hear what was read up to a moment; it must be called before the visits of that moment are noted."""
        for source in self._sources:
            source.listen(now)

    def note(self, visits: Visits) -> None:
        """Judge by these visits what was said before them."""
        page, changed = visits.page[visits.came], visits.changed[visits.came]
        for source in self._sources:
            source.judge(page, changed, self._last_seen[page])
        self._last_seen[page] = visits.at[visits.came]

    def signals(self, n_pages: int) -> Signals | None:
        """The signals for the first pages; None where no source of any host names nearly all changes."""
        return combined((source.signals(n_pages) for source in self._sources), n_pages)


class _Heard:
    """The sources of one kind."""

    def __init__(self, kind: str, hints: SourceHints, host: Ints, n_hosts: int) -> None:
        self.kind, self.hints, self.host = kind, hints, host
        self.n_claims = self.n_reads = 0  # heard so far
        n_pages = len(host)
        self.newest: Ints = np.full(n_pages, NEVER)  # the last change named
        self.pending: Ints = np.full(n_pages, NEVER)  # the same, of what was read since the page last came back
        self.n_changes: Ints = np.zeros(n_pages, np.int64)
        self.first_read, self.last_read = np.full(n_pages, _FAR), np.full(n_pages, NEVER)
        self.host_read: Ints = np.full(n_hosts, NEVER)  # when a source of each host was last read
        self.counts: Ints = np.zeros((4, n_hosts), np.int64)  # visits judged, hinted, changed, right
        self.is_other = _first_of_each(hints)

    def listen(self, now: int) -> None:
        hints = self.hints
        heard = slice(self.n_claims, int(np.searchsorted(hints.read_at, now, side="right")))
        row, read_at, changed_at = hints.row[heard], hints.read_at[heard], hints.changed_at[heard]
        for newest in (self.newest, self.pending):
            np.maximum.at(newest, row, changed_at)
        np.add.at(self.n_changes, row[self.is_other[heard]], 1)
        np.minimum.at(self.first_read, row, read_at)
        np.maximum.at(self.last_read, row, read_at)
        reads = slice(self.n_reads, int(np.searchsorted(hints.host_read_at, now, side="right")))
        np.maximum.at(self.host_read, hints.read_host[reads], hints.host_read_at[reads])
        self.n_claims, self.n_reads = heard.stop, reads.stop

    def judge(self, page: Ints, changed: Ints8, last_seen: Ints) -> None:
        """Compare what was said since each page last came back with what its visit showed."""
        host, hinted = self.host[page], self.pending[page] > last_seen
        is_judged = (last_seen != NEVER) & (changed >= 0) & (self.host_read[host] > last_seen)
        is_changed = changed == 1
        every = np.ones(len(page), np.bool_)
        for i, which in enumerate((every, hinted, is_changed, hinted & is_changed)):
            np.add.at(self.counts[i], host[is_judged & which], 1)
        self.pending[page] = NEVER

    def signals(self, n_pages: int) -> SourceSignals:
        known, n_changes = slice(n_pages), self.n_changes[:n_pages]
        first, last = self.first_read[known].min(initial=_FAR), self.last_read[known].max(initial=NEVER)
        return SourceSignals(
            is_complete=TrackRecord(self.kind, *self.counts).is_complete[self.host[known]],
            changed_at=np.where(n_changes > 0, self.newest[known], NEVER),
            n_changes=n_changes.copy(),
            days=(float(last) - float(first)) / US_PER_DAY if last >= first else 0.0,
        )


def _first_of_each(hints: SourceHints) -> Flags:
    """Whether each claim is the first to name this change of the page: one that several readings name is one."""
    is_other: Flags = np.zeros(len(hints.row), np.bool_)
    if len(hints.row):
        is_other[np.unique(np.stack([hints.row, hints.changed_at]), axis=1, return_index=True)[1]] = True
    return is_other
