"""The histories of pages, prefixes and domains, from an archive's index and its mementos, in steps that survive a kill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, TypeAlias
from weakref import WeakValueDictionary

from recrawl.errors import ArchiveBusy, ArchiveError, BadRecord, BadUrl
from recrawl.sources.wayback.captures import EXACT, Capture, IndexPage, IndexRequest, timestamp
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.deliveries import ArchiveReport, Delivery
from recrawl.sources.wayback.filters import EVERYTHING, Filters
from recrawl.sources.wayback.interface import Interface
from recrawl.sources.wayback.internet_archive import InternetArchive
from recrawl.sources.wayback.mementos import MAX_BODY, NoMemento, fetch_memento
from recrawl.sources.wayback.page_history import NOTE, CaptureSequence, payload_digest, plain_visit
from recrawl.sources.wayback.probe import find_interface, forget, named_interface
from recrawl.sources.wayback.question import Question
from recrawl.sources.wayback.state import Key, Span, UrlState, load, state_path
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit

#: url, at, status, headers (lower-case names), body → visit
ReadPage: TypeAlias = Callable[[str, datetime, int, Mapping[str, str], bytes], Visit]

PAGE_SIZE = 1000  # captures of one page in one answer
WIDE_PAGE_SIZE = 10_000  # of many pages
_FAILURES_IN_A_ROW = 3  # mementos; then the archive is not well, and the URL is left for the next run


class Archive:
    """Histories from a web archive.

    A URL may be a page, a prefix (``e.org/~me/*``) or a domain (``*.e.org``), see `Question`. `interface` names what the server
    speaks; without it, it is found out and remembered in `state_dir`. `copies` is where copies are, for an index that has none.

    ``for delivery in archive.visits(urls)`` yields visits, each URL's in order of time, and `acknowledge` marks them as
    stored. A visit that was not acknowledged is delivered again by the next run with the same `state_dir`; one that was
    is neither delivered nor fetched again, and the index is not asked again for what it has listed. URLs that fail are
    listed in `report.failed` and keep their state; the others go on, unless the archive refuses everything (`report.stopped`).

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
        filters: Filters = EVERYTHING,
        interface: str | None = None,
        copies: str | None = None,
        page_size: int | None = None,
        max_body: int = MAX_BODY,
        news_after: timedelta = timedelta(days=1),
    ) -> None:
        self.client, self.state_dir, self.read_page = client, state_dir, read_page
        self.span: Span = (timestamp(since) if since else None, timestamp(until) if until else None)
        self.mementos, self.page_size, self.max_body, self.news_after = mementos, page_size, max_body, news_after
        self.filters, self.copies = filters, copies
        self.report = ArchiveReport()
        self._interface = named_interface(interface, client.base_url) if interface else None
        self._is_named = interface is not None
        self._unknown: ArchiveError | None = None  # why it could not be found out what the server speaks
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
                question = Question.of(url)
                interface = self._speaking(question)
                state = self._state(question, interface)
                self._ask(question, state, interface)
                yield from self._deliver(question, state, interface)
            except ArchiveBusy as error:
                self.report.failed[url] = self.report.stopped = str(error)
                return
            except (ArchiveError, BadUrl) as error:
                self.report.failed[url] = str(error)

    def acknowledge(self, *deliveries: Delivery) -> None:
        """Remember, on disk, that these visits are stored. Cheaper for many at once: a question's file is written once."""
        marks: dict[int, tuple[UrlState, dict[Key, bool]]] = {}
        for delivery in deliveries:
            marks.setdefault(id(delivery._state), (delivery._state, {}))[1][delivery._key] = delivery._complete
        for state, stored in marks.values():
            state.mark(stored)

    def _speaking(self, question: Question) -> Interface:
        """What the server speaks, found out with the first question."""
        if self._unknown is not None:
            raise self._unknown  # asked once, not again for every URL
        if self._interface is None:
            try:
                self._interface = find_interface(self.client, self.state_dir, question.url)
            except ArchiveError as error:
                self._unknown = error
                raise
        if question.match not in self._interface.matches:
            raise ArchiveError(
                f"{self.client.base_url} lists the captures of single pages only ({self._interface.name}); "
                "give pages instead of a pattern"
            )
        return replace(self._interface, copies=self.copies) if self.copies else self._interface

    def _state(self, question: Question, interface: Interface) -> UrlState:
        state = self._states.get(question.text)
        if state is None:
            # Other interfaces have other resume keys, so what one of them began another one cannot continue.
            spoken = () if isinstance(interface, InternetArchive) else (interface.name,)
            path = state_path(self.state_dir, question.text, self.client.base_url, self.mementos, *spoken)
            state, note = load(question.text, path)
            self.report.notes += [note] if note else []
            self._states[question.text] = state
        return state

    def _ask(self, question: Question, state: UrlState, interface: Interface) -> None:
        """Complete the list of captures, from wherever the last run left it."""
        if state.span != self.span:
            state.begin(self.span, self.span[0])
        elif state.complete_at and self._may_have_news(state.complete_at):
            state.begin(self.span, max((capture.timestamp for capture in state.in_order()), default=self.span[0]))
        resumed_from: set[tuple[int, str | None]] = set()
        while state.complete_at is None:
            resumed_from.add((state.part, state.resume_key))
            answer = self._page(question, state, interface)
            if answer.resume_key is not None and (state.part, answer.resume_key) in resumed_from:
                raise ArchiveError(f"the index goes in circles: resume key {answer.resume_key!r} came twice")
            new = state.add(answer, self.client.clock.now(), len(question.parts))
            self.report.captures += new
            self.report.skipped += answer.bad + Counter({"capture listed before": len(answer.captures) - new})

    def _page(self, question: Question, state: UrlState, interface: Interface) -> IndexPage:
        url, match = question.parts[min(state.part, len(question.parts) - 1)]
        size = self.page_size or (PAGE_SIZE if match == EXACT else WIDE_PAGE_SIZE)
        request = IndexRequest(
            url=url, match=match, since=state.since, until=self.span[1], resume_key=state.resume_key, page_size=size
        )
        try:
            return interface.ask(self.client, request)
        except ArchiveBusy:
            raise
        except ArchiveError:
            if not self._is_named:
                forget(self.state_dir, self.client.base_url)  # perhaps it speaks something else now
            raise

    def _may_have_news(self, complete_at: datetime) -> bool:
        until = self.span[1]
        ended = until is not None and until < timestamp(complete_at)
        return not ended and self.client.clock.now() - complete_at > self.news_after

    def _deliver(self, question: Question, state: UrlState, interface: Interface) -> Iterator[Delivery]:
        sequences: dict[str, CaptureSequence] = {}
        failures: list[str] = []
        in_a_row = 0
        wanted, left_out = self.filters.apply(question, state.in_order())
        self.report.skipped += left_out
        if question.match != EXACT:
            wanted.sort(key=lambda capture: canonical(capture.original))  # page by page, each in order of time
        for listed in wanted:
            sequence = sequences.setdefault(canonical(listed.original), CaptureSequence())
            capture = sequence.resolve(listed)
            if listed.key in state.stored:
                sequence.remember(capture, complete=state.stored[listed.key])
                continue
            try:
                visit, complete = self._visit(capture, sequence, interface)
                in_a_row = 0
            except ArchiveBusy:
                raise
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

    def _visit(self, capture: Capture, sequence: CaptureSequence, interface: Interface) -> tuple[Visit, bool]:
        """The visit that a capture shows, and whether that is all there is to know."""
        if sequence.is_unchanged(capture) and (sequence.complete or not capture.is_page):
            return self._without_links(capture, 304, "unchanged"), True
        if capture.is_revisit and capture.status is None:
            return self._without_links(capture, 200, "revisit of an unknown copy"), True
        if not (capture.is_page or capture.is_bare):
            reason = f"status {capture.status}" if capture.status != 200 else "not an HTML page"
            return self._without_links(capture, capture.status or 200, reason), True
        if not self.mementos:
            return self._without_links(capture, 200, "mementos not asked for"), True
        address = interface.copy_address(capture)
        if address is None:
            return self._without_links(capture, 200, "the archive shows no raw copy"), True
        try:
            return self._copy(capture, address), True
        except (NoMemento, BadRecord) as problem:
            reason = problem.reason if isinstance(problem, BadRecord) else str(problem)
            return self._without_links(capture, 200, reason), False

    def _without_links(self, capture: Capture, status: int, reason: str) -> Visit:
        self.report.without_links[reason] += 1
        return plain_visit(capture, status)

    def _copy(self, capture: Capture, address: str) -> Visit:
        memento = fetch_memento(self.client, address, capture, self.max_body)
        self.report.mementos += 1
        visit = self.read_page(capture.original, capture.at, memento.status, memento.headers, memento.body)
        return replace(visit, url=capture.original, at=capture.at, payload_digest=payload_digest(capture), note=NOTE)
