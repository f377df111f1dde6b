"""One crawl and its history: the plan, the visits, and what is safe on disk. All of recrawl's Scrapy components share it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from recrawl.crawl.follow_options import NEW
from recrawl.crawl.follower import Follower
from recrawl.crawl.following import follower_of, keep_judgements, leave_out
from recrawl.crawl.hint_rows import append_linked_feeds, linked_feeds
from recrawl.crawl.journal import Journal
from recrawl.crawl.judging import judge_of
from recrawl.crawl.planned import Planned, finished, planned
from recrawl.crawl.settings import CrawlOptions
from recrawl.crawl.soft404 import is_soft_404
from recrawl.crawl.unfinished import NOT_ALONE, CrawlLock
from recrawl.crawl.validators import Headers, StoredValidators
from recrawl.errors import BadRecord, BadUrl, RecrawlError
from recrawl.history import History
from recrawl.models.link_relevance import RELEVANT
from recrawl.sources.response import response_visit
from recrawl.web.urls import canonical, page_id
from recrawl.web.visit import Outcome, Visit

logger = logging.getLogger("recrawl")


class Stats(Protocol):
    """The methods of Scrapy's stats collector that are used here."""

    def inc_value(self, key: str, count: int = 1, start: int = 0) -> None: ...  # noqa: D102
    def set_value(self, key: str, value: Any) -> None: ...  # noqa: D102
    def get_value(self, key: str, default: Any = None) -> Any: ...  # noqa: D102


class Session:
    """Everything that one crawl reads from its history and writes into it."""

    @classmethod
    def of(cls, crawler: Any) -> Session:
        """The session of a crawler, made by the first component that needs it."""
        session: Session | None = getattr(crawler, "_recrawl_session", None)  # lives as long as the crawler
        if session is None:
            session = crawler._recrawl_session = cls(CrawlOptions.from_settings(crawler.settings), crawler.stats)
        return session

    def __init__(self, options: CrawlOptions, stats: Stats) -> None:
        self.options, self.stats = options, stats
        self.history = History.create(options.history)
        self.judge = judge_of(options)
        self.journal = Journal(self.history, self._written)
        self.lock: CrawlLock | None = None
        self.plan = Planned()
        self.plan_failure: str | None = None  # why there is no plan
        self.validators: StoredValidators | None = None
        self.follower: Follower | None = None  # None: new links are not followed
        #: Requests that were recorded → the visit, None if it failed.
        self.done: WeakKeyDictionary[Any, Visit | None] = WeakKeyDictionary()
        self._clock: Callable[[], datetime] = options.clock or (lambda: datetime.now(UTC))
        self._random = random.Random(0)
        self._feeds: set[tuple[str, int]] = set()  # a feed, and a page that links to it

    def now(self) -> datetime:
        """The current time, UTC."""
        return self._clock()

    def is_alone(self) -> bool:
        """Whether no other crawl keeps notes in the history; if another crawl is using it, a message says so."""
        self.lock = self.lock or CrawlLock(self.history)
        if not self.lock.is_alone:
            self.note(f"{NOT_ALONE}: both may request the same pages, so hosts get more requests than intended")
        return self.lock.is_ours

    def begin(self) -> Planned:
        """Make the plan and read the validators. Called in a thread, because it takes a while."""
        history = self.history.detached()
        self._plan(history)
        if self.plan.only_follows:
            self._continue_following(history)
        if self.options.conditional and self.plan.urls:
            self.validators = StoredValidators(history)
        self.stats.set_value("recrawl/planned", len(self.plan.urls))
        self.stats.set_value("recrawl/expected_new_links", round(self.plan.expected, 3))
        return self.plan

    def _plan(self, history: History) -> None:
        self.plan, self.follower = planned(history, self.options, self.now(), self.note, self.is_alone()), None
        if self.options.follow == NEW and (self.plan.urls or self.plan.only_follows):
            self.follower = follower_of(history, self.options, self.plan, self.journal.known.read())

    def _continue_following(self, history: History) -> None:
        """Finish a crawl whose planned pages were all fetched; if no new link of theirs is left, make a new plan."""
        n_left = self.follower.n_left if self.follower else 0
        if n_left:
            what = f"plan {self.plan.id}" if self.plan.id else f"the plan {self.options.plan}"
            self.note(f"continuing {what}: all of its pages were fetched, and {n_left:,} new links were not")
            return
        self._adopt()
        finished(history, self.plan)
        self._plan(history)

    def note(self, text: str) -> None:
        """Add a message for the user to the log and the stats."""
        logger.info("%s", text)
        self.stats.set_value("recrawl/notes", [*self.stats.get_value("recrawl/notes", []), text])

    def validators_of(self, url: str) -> Headers:
        """Validators for a request. A few pages get none, to detect servers that wrongly report pages as unchanged."""
        if self.validators is None or self._random.random() < self.options.full_fetches:
            return {}
        try:
            return self.validators.headers(canonical(url))
        except BadUrl:
            return {}

    # -- new links ---------------------------------------------------------------------------------------------------------

    def new_links(self) -> list[str]:
        """The new links to fetch now. They are noted as not watched first; without that note none is fetched."""
        urls = self.follower.take() if self.follower else []
        if urls:
            self.journal.settle()  # if this crawl is killed now, the next one must know what is planned and what is followed
        try:
            leave_out(self.history, urls, self.now())
        except (RecrawlError, OSError) as error:
            self.note(f"new links are not followed, since they cannot be kept out of plans: {error}")
            return []
        self.stats.inc_value("recrawl/followed", len(urls))
        return urls

    def _adopt(self) -> None:
        """Keep which of the followed pages are worth watching."""
        if self.follower is None:
            return
        judged = self.follower.judged()
        try:
            leave_out(self.history, self.follower.redirected, self.now(), "a link that was followed led on to it")
            keep_judgements(self.history, judged, self.now())
        except (RecrawlError, OSError) as error:
            logger.warning("cannot store which followed pages are worth watching: %s", error)
            return
        hubs = [page for page in judged if page.is_hub]
        self.stats.set_value("recrawl/adopted", len(hubs))
        self.stats.set_value("recrawl/adopted_pages", [page.url for page in hubs])

    # -- visits --------------------------------------------------------------------------------------------------------

    def record_response(
        self, url: str, status: int, headers: dict[str, str], body: bytes, is_cut: bool = False
    ) -> Visit | None:
        """Record a response and return its visit; None if the response is not usable."""
        if is_cut:  # links in the missing part would count as removed from the page
            self.record_failure(url, f"cut short: after {len(body):,} bytes", status)
            return None
        at = self.now()
        try:
            visit = response_visit(url, at, status, headers, body)
        except (BadRecord, BadUrl) as error:
            self.record_failure(url, str(error), status)
            return None
        if Outcome.of(status) is Outcome.FAILED:
            self._count_failure(f"status {status}")
        elif is_soft_404(visit):
            self.stats.inc_value("recrawl/soft_404")
            visit = Visit(url=url, at=at, status=404, note="soft 404", title=visit.title)
        elif self.options.hints and status == 200:
            self._feeds.update((feed, page_id(canonical(url))) for feed in linked_feeds(url, body))
        visit = self.judge(visit)
        if visit.relevance is not None and visit.relevance > RELEVANT:
            self.stats.inc_value("recrawl/relevant")
        self._record(visit)
        return visit

    def record_redirect(self, url: str, status: int, location: str) -> None:
        """Record a redirect."""
        self.stats.inc_value("recrawl/redirects")
        self._record(Visit(url=url, at=self.now(), status=status, links=[location], base=url))

    def record_failure(self, url: str, why: str, status: int = 0) -> None:
        """Record that there was no usable response."""
        self._count_failure(why.partition(":")[0][:60])
        is_failure = Outcome.of(status) is Outcome.FAILED
        self._record(Visit(url=url, at=self.now(), status=status if is_failure else 0, note=why[:500]))

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
        """Write the visits recorded since the last flush."""
        self.journal.flush()
        if self.journal.failure:
            logger.warning("the history cannot be written, visits are waiting: %s", self.journal.failure)

    def close(self, reason: str) -> None:
        """Write everything that is left. A crawl that ended by itself has finished its plan."""
        self.journal.close()
        if reason == "finished":
            self._finish()
        if self.lock is not None:
            self.lock.release()  # only now: another crawl that takes it writes its own note
        self._append_feeds()
        self._adopt()
        self._report_unwritten()

    def _report_unwritten(self) -> None:
        for why, n in self.journal.skipped.items():
            logger.warning("%d responses were not recorded: %s", n, why)
        if self.journal.spilled:
            self.stats.set_value("recrawl/spilled", self.journal.n_spilled)
            self.stats.set_value("recrawl/spilled_to", [str(path) for path in self.journal.spilled])
            self.stats.set_value("recrawl/not_written", self.journal.failure)
            logger.error(
                "%d visits could not be written into %s (%s). They are in %s; add them with recrawl import",
                self.journal.n_spilled,
                self.history.folder,
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

    def _append_feeds(self) -> None:
        try:
            if self._feeds:
                append_linked_feeds(self.history, self._feeds, self.now())
        except (RecrawlError, OSError) as error:
            logger.warning("cannot store which feeds the pages link to: %s", error)

    def _finish(self) -> None:
        try:
            finished(self.history, self.plan)
        except (RecrawlError, OSError) as error:
            logger.warning("cannot mark the plan as finished: %s", error)
