"""The histories of a list of URLs, from the archive's index and its mementos, in steps that survive a kill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, TypeAlias
from weakref import WeakValueDictionary

from recrawl.errors import ArchiveError, BadRecord, BadUrl
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.index import PAGE_SIZE, Capture, ask_index, timestamp
from recrawl.sources.wayback.mementos import MAX_BODY, NoMemento, fetch_memento
from recrawl.sources.wayback.page_history import NOTE, CaptureSequence, payload_digest, plain_visit
from recrawl.sources.wayback.state import Key, Span, UrlState, load, state_path
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit

#: url, at, status, headers (lower-case names), body → visit
ReadPage: TypeAlias = Callable[[str, datetime, int, Mapping[str, str], bytes], Visit]

_FAILURES_IN_A_ROW = 3  # mementos; then the archive is not well, and the URL is left for the next run


@dataclass
class ArchiveReport:
    """What a run did."""

    urls: int = 0
    captures: int = 0  # new ones learnt from the index
    visits: int = 0
    mementos: int = 0
    without_links: Counter[str] = field(default_factory=Counter)  # visits with a status and digest only, by reason
    skipped: Counter[str] = field(default_factory=Counter)  # lines of the index that cannot be used, by reason
    failed: dict[str, str] = field(default_factory=dict)  # URL → why; the next run tries again
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Delivery:
    """A visit on its way; `Archive.acknowledge` it once it is stored."""

    url: str  # as requested
    visit: Visit
    _key: Key
    _complete: bool
    _state: UrlState = field(repr=False)


class Archive:
    """Histories from the Internet Archive.

    ``for delivery in archive.visits(urls)`` yields visits, each URL's in order of time, and `acknowledge` marks them as
    stored. A visit that was not acknowledged is delivered again by the next run with the same `state_dir`; one that was
    is neither delivered nor fetched again, and the index is not asked again for what it has listed. URLs that fail are
    listed in `report.failed` and keep their state; the others go on.

    The index answers for all spellings of a page (http and https, with and without www): a visit's `url` is the one
    captured. With `mementos=False` visits have digests but no links. A URL whose captures were completed longer than
    `news_after` ago is checked for later ones.
    """

    def __init__(
        self,
        client: Client,
        state_dir: Path,
        read_page: ReadPage,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        mementos: bool = True,
        page_size: int = PAGE_SIZE,
        max_body: int = MAX_BODY,
        news_after: timedelta = timedelta(days=1),
    ) -> None:
        self.client, self.state_dir, self.read_page = client, state_dir, read_page
        self.span: Span = (timestamp(since) if since else None, timestamp(until) if until else None)
        self.mementos, self.page_size, self.max_body, self.news_after = mementos, page_size, max_body, news_after
        self.report = ArchiveReport()
        # Deliveries keep their URL's state alive; a second look at the same URL must share it, or marks would be lost.
        self._states: WeakValueDictionary[str, UrlState] = WeakValueDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def visits(self, urls: Iterable[str]) -> Iterator[Delivery]:
        """All visits that were not acknowledged yet."""
        self.state_dir.mkdir(parents=True, exist_ok=True)
        for url in dict.fromkeys(url.strip() for url in urls):
            self.report.urls += 1
            try:
                canonical(url)
                state = self._state(url)
                self._ask(state)
                yield from self._deliver(state)
            except (ArchiveError, BadUrl) as error:
                self.report.failed[url] = str(error)

    def acknowledge(self, *deliveries: Delivery) -> None:
        """Remember, on disk, that these visits are stored. Cheaper for many at once: a URL's file is written once."""
        for delivery in deliveries:
            delivery._state.stored[delivery._key] = delivery._complete
        for state in {id(delivery._state): delivery._state for delivery in deliveries}.values():
            state.save()

    def _state(self, url: str) -> UrlState:
        state = self._states.get(url)
        if state is None:
            path = state_path(self.state_dir, url, self.client.base_url, self.mementos)
            state, note = load(url, path)
            self.report.notes += [note] if note else []
            self._states[url] = state
        return state

    def _ask(self, state: UrlState) -> None:
        """Complete the list of captures, from wherever the last run left it."""
        if state.span != self.span:
            state.begin(self.span, self.span[0])
        elif state.complete_at and self._may_have_news(state.complete_at):
            state.begin(self.span, max((capture.timestamp for capture in state.in_order()), default=self.span[0]))
        resumed_from: set[str | None] = set()
        while state.complete_at is None:
            resumed_from.add(state.resume_key)
            answer = ask_index(self.client, state.url, state.since, self.span[1], state.resume_key, self.page_size)
            if answer.resume_key is not None and answer.resume_key in resumed_from:
                raise ArchiveError(f"the index goes in circles: resume key {answer.resume_key!r} came twice")
            new = state.add(answer, self.client.clock.now())
            self.report.captures += new
            self.report.skipped += answer.bad + Counter({"capture listed before": len(answer.captures) - new})
            state.save()

    def _may_have_news(self, complete_at: datetime) -> bool:
        until = self.span[1]
        ended = until is not None and until < timestamp(complete_at)
        return not ended and self.client.clock.now() - complete_at > self.news_after

    def _deliver(self, state: UrlState) -> Iterator[Delivery]:
        sequences: dict[str, CaptureSequence] = {}
        failures: list[str] = []
        in_a_row = 0
        for listed in state.in_order():
            sequence = sequences.setdefault(canonical(listed.original), CaptureSequence())
            capture = sequence.resolve(listed)
            if listed.key in state.stored:
                sequence.remember(capture, complete=state.stored[listed.key])
                continue
            try:
                visit, complete = self._visit(capture, sequence)
                in_a_row = 0
            except ArchiveError as error:
                # Perhaps the next run delivers it: later captures must not be compared with those before it.
                sequence.remember(capture, complete=False)
                failures.append(f"{listed.timestamp}: {error}")
                in_a_row += 1
                if in_a_row == _FAILURES_IN_A_ROW:
                    break
                continue
            sequence.remember(capture, complete=complete)
            self.report.visits += 1
            yield Delivery(state.url, visit, listed.key, complete, state)
        if failures:
            raise ArchiveError(f"{len(failures)} mementos could not be fetched, run again to go on; {failures[0]}")

    def _visit(self, capture: Capture, sequence: CaptureSequence) -> tuple[Visit, bool]:
        """The visit that a capture shows, and whether that is all there is to know."""
        if sequence.is_unchanged(capture) and (sequence.complete or not capture.is_page):
            return self._without_links(capture, 304, "unchanged"), True
        if capture.status is None:
            return self._without_links(capture, 200, "revisit of an unknown copy"), True
        if not capture.is_page:
            reason = f"status {capture.status}" if capture.status != 200 else "not an HTML page"
            return self._without_links(capture, capture.status, reason), True
        if not self.mementos:
            return self._without_links(capture, 200, "mementos not asked for"), True
        try:
            return self._copy(capture), True
        except (NoMemento, BadRecord) as problem:
            reason = problem.reason if isinstance(problem, BadRecord) else str(problem)
            return self._without_links(capture, 200, reason), False

    def _without_links(self, capture: Capture, status: int, reason: str) -> Visit:
        self.report.without_links[reason] += 1
        return plain_visit(capture, status)

    def _copy(self, capture: Capture) -> Visit:
        memento = fetch_memento(self.client, capture, self.max_body)
        self.report.mementos += 1
        visit = self.read_page(capture.original, capture.at, 200, memento.headers, memento.body)
        return replace(visit, url=capture.original, at=capture.at, payload_digest=payload_digest(capture), note=NOTE)
