"""One crawl and its history: what is planned, what came back, what is safe on disk. Scrapy's parts all speak to this."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from recrawl.crawl.hint_rows import feeds_of, keep_feeds
from recrawl.crawl.journal import Journal
from recrawl.crawl.planned import Planned, finished, planned
from recrawl.crawl.settings import Options
from recrawl.crawl.soft404 import is_soft_404
from recrawl.crawl.unfinished import NOT_ALONE, Turn
from recrawl.crawl.validators import Headers, Validators
from recrawl.errors import BadRecord, BadUrl, RecrawlError
from recrawl.history import History
from recrawl.sources.response import response_visit
from recrawl.urls import canonical, page_id
from recrawl.visits import Outcome, Visit

logger = logging.getLogger("recrawl")


class Stats(Protocol):
    """What Scrapy's stats collector does."""

    def inc_value(self, key: str, count: int = 1, start: int = 0) -> None: ...  # noqa: D102
    def set_value(self, key: str, value: Any) -> None: ...  # noqa: D102
    def get_value(self, key: str, default: Any = None) -> Any: ...  # noqa: D102


class Session:
    """What one crawl reads from its history and writes into it."""

    @classmethod
    def of(cls, crawler: Any) -> Session:
        """The session of a crawler: one, whichever of its parts asks first."""
        found = getattr(crawler, "_recrawl_session", None)  # on the crawler itself, so that it goes with it
        if found is None:
            found = crawler._recrawl_session = cls(Options.from_settings(crawler.settings), crawler.stats)
        session: Session = found
        return session

    def __init__(self, options: Options, stats: Stats) -> None:
        self.options, self.stats = options, stats
        self.history = History.create(options.history)
        self.journal = Journal(self.history, self._written)
        self.turn: Turn | None = None
        self.plan = Planned()
        self.plan_failure: str | None = None  # why there is no plan
        self.validators: Validators | None = None
        self.done: WeakKeyDictionary[Any, Visit | None] = WeakKeyDictionary()  # requests that became visits
        self._clock: Callable[[], datetime] = options.clock or (lambda: datetime.now(UTC))
        self._chance = random.Random(0)
        self._feeds: set[tuple[str, int]] = set()  # that pages name

    def now(self) -> datetime:
        """What time it is."""
        return self._clock()

    def is_alone(self) -> bool:
        """Whether no other crawl is at the history; else that is told."""
        self.turn = self.turn or Turn(self.history)
        if not self.turn.is_ours:
            self.note(f"{NOT_ALONE}: hosts may be asked twice as often, for the same pages")
        return self.turn.is_ours

    def begin(self) -> Planned:
        """Plan, and learn what conditional requests need; takes a while, so it is called in a thread."""
        history = History.open(self.history.store.folder)
        self.plan = planned(history, self.options, self.now(), self.note, self.is_alone())
        if self.options.conditional and self.plan.urls:
            self.validators = Validators(history)
        self.stats.set_value("recrawl/planned", len(self.plan.urls))
        self.stats.set_value("recrawl/expected_new_links", round(self.plan.expected, 3))
        return self.plan

    def note(self, text: str) -> None:
        """Something a person should know of the plan."""
        logger.info("%s", text)
        self.stats.set_value("recrawl/notes", [*self.stats.get_value("recrawl/notes", []), text])

    def headers(self, url: str) -> Headers:
        """Validators for a request, but for the few that are fetched in full to find out who lies."""
        if self.validators is None or self._chance.random() < self.options.full_fetches:
            return {}
        try:
            return self.validators.headers(canonical(url))
        except BadUrl:
            return {}

    # -- what came back ------------------------------------------------------------------------------------------------

    def answered(
        self, url: str, status: int, headers: dict[str, str], body: bytes, is_cut: bool = False
    ) -> Visit | None:
        """A response came; the visit that it means, None where it cannot be used."""
        if is_cut:  # what is missing was not removed from the page
            self.failed(url, f"cut short: after {len(body):,} bytes", status)
            return None
        at = self.now()
        try:
            visit = response_visit(url, at, status, headers, body)
        except (BadRecord, BadUrl) as error:
            self.failed(url, str(error), status)
            return None
        if Outcome.of(status) is Outcome.FAILED:
            self._count_failure(f"status {status}")
        elif is_soft_404(visit):
            self.stats.inc_value("recrawl/soft_404")
            visit = Visit(url=url, at=at, status=404, note="soft 404", title=visit.title)
        elif self.options.hints and status == 200:
            self._feeds.update((feed, page_id(canonical(url))) for feed in feeds_of(url, body))
        self._record(visit)
        return visit

    def redirected(self, url: str, status: int, location: str) -> None:
        """A response sent the crawler on."""
        self.stats.inc_value("recrawl/redirects")
        self._record(Visit(url=url, at=self.now(), status=status, links=[location], base=url))

    def failed(self, url: str, why: str, status: int = 0) -> None:
        """No (usable) response came."""
        self._count_failure(why.partition(":")[0][:60])
        self._record(
            Visit(url=url, at=self.now(), status=status if Outcome.of(status) is Outcome.FAILED else 0, note=why[:500])
        )

    def _count_failure(self, kind: str) -> None:
        self.stats.inc_value("recrawl/failed")
        self.stats.inc_value(f"recrawl/failed/{kind}")

    def _record(self, visit: Visit) -> None:
        if not self.journal.add(visit):
            self.stats.inc_value("recrawl/skipped")
            return
        self.stats.inc_value("recrawl/visits")
        kind = {Outcome.OK: "fetched", Outcome.UNCHANGED: "not_modified", Outcome.GONE: "gone"}.get(
            Outcome.of(visit.status)
        )
        if kind:
            self.stats.inc_value(f"recrawl/{kind}")
        if self.journal.n_pending >= self.options.flush_visits:
            self.journal.flush()

    def _written(self, n_visits: int, n_new: int) -> None:
        self.stats.inc_value("recrawl/written", n_visits)
        self.stats.inc_value("recrawl/new_links", n_new)

    def flush(self) -> None:
        """Hand on what was recorded since the last time."""
        self.journal.flush()
        if self.journal.failure:
            logger.warning("visits wait to be written: %s", self.journal.failure)

    def close(self, reason: str) -> None:
        """Write all that is left; a crawl that ended by itself has finished its plan."""
        self.journal.close()
        if self.turn is not None:
            self.turn.end()
        if reason == "finished":
            self._finish()
        self._keep_feeds()
        for why, n in self.journal.skipped.items():
            logger.warning("%d responses were not recorded: %s", n, why)
        if self.journal.spilled:
            self.stats.set_value("recrawl/spilled", self.journal.n_spilled)
            self.stats.set_value("recrawl/spilled_to", [str(path) for path in self.journal.spilled])
            self.stats.set_value("recrawl/not_written", self.journal.failure)
            logger.error(
                "%d visits could not be written into %s (%s); they are in %s: recrawl import adds them",
                self.journal.n_spilled,
                self.history.store.folder,
                self.journal.failure,
                ", ".join(map(str, self.journal.spilled)),
            )
        if self.journal.n_lost:
            self.stats.set_value("recrawl/lost", self.journal.n_lost)
            logger.error(
                "%d visits are lost: neither the history nor any file could be written (%s)",
                self.journal.n_lost,
                self.journal.failure,
            )

    def _keep_feeds(self) -> None:
        try:
            if self._feeds:
                keep_feeds(self.history, self._feeds, self.now())
        except (RecrawlError, OSError) as error:
            logger.warning("the feeds that pages name are not kept: %s", error)

    def _finish(self) -> None:
        try:
            finished(self.history, self.plan)
        except (RecrawlError, OSError) as error:
            logger.warning("the plan cannot be marked as finished: %s", error)
