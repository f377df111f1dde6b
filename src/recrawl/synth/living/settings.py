"""The settings of a living web, and what goes wrong on it on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from recrawl.errors import RecrawlError

#: Shares of pages, in the order of `Habit`.
HABITS = ("no_validators", "dated_only", "weak_etags", "lying_etags", "changing_etags")
#: Shares of responses.
MISHAPS = ("server_errors", "resets", "short_bodies", "long_bodies", "slow")


def _require(of: Any, name: str, holds: bool, rule: str) -> None:
    if not holds:
        raise RecrawlError(f"{name} of a living web must be {rule}, not {getattr(of, name)}.")


@dataclass(frozen=True)
class Faults:
    """What goes wrong, as shares between 0 and 1; `Faults()` is a web without faults, `TYPICAL` a realistic one.

    A page has at most one of the five habits of validators, a response at most one fault.

    >>> Faults(resets=1.5)
    Traceback (most recent call last):
    recrawl.errors.RecrawlError: resets of a living web must be between 0 and 1, not 1.5.
    """

    gone: float = 0.0  # pages that respond with 404 from some step on
    moved: float = 0.0  # pages that are linked under an old address, which redirects

    no_validators: float = 0.0  # pages sent without ETag and Last-Modified
    dated_only: float = 0.0  # pages sent with Last-Modified and without ETag
    weak_etags: float = 0.0  # pages whose ETag is a weak one
    lying_etags: float = 0.0  # pages whose ETag stays the same although they change
    changing_etags: float = 0.0  # pages whose ETag differs in every response

    lying_sitemaps: float = 0.0  # sites (the last ones) whose sitemap says that every page has just changed

    server_errors: float = 0.0  # responses that are 500 or 503
    resets: float = 0.0  # responses cut off in the middle by a reset of the connection
    short_bodies: float = 0.0  # responses that end before the announced length
    long_bodies: float = 0.0  # responses that go on after the announced length
    slow: float = 0.0  # responses that wait for `slow_seconds`

    slow_seconds: float = 0.5
    robots_down: int = 0  # steps for which robots.txt of the fourth site responds with 503

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name not in ("slow_seconds", "robots_down"):
                _require(self, each.name, 0 <= getattr(self, each.name) <= 1, "between 0 and 1")
        for together in (HABITS, MISHAPS):
            total = sum(self.shares(together))
            _require(self, together[0], total <= 1 + 1e-9, f"at most 1 together with {', '.join(together[1:])}")
        _require(self, "slow_seconds", self.slow_seconds >= 0, "0 or more")
        _require(self, "robots_down", self.robots_down >= 0, "0 or more")

    def shares(self, names: Sequence[str]) -> list[float]:
        """The shares of these names."""
        return [getattr(self, name) for name in names]


TYPICAL = Faults(
    gone=0.03, moved=0.03, no_validators=0.2, dated_only=0.1, weak_etags=0.1, lying_etags=0.02, changing_etags=0.05,
    lying_sitemaps=0.2, server_errors=0.01, resets=0.003, short_bodies=0.003, long_bodies=0.003, slow=0.01,
)  # fmt: skip


@dataclass(frozen=True)
class Living:
    """One living web; equal settings make equal webs, whatever port the servers get.

    >>> Living(sites=10, pages=5)
    Traceback (most recent call last):
    recrawl.errors.RecrawlError: pages of a living web must be at least 10, one for every site, not 5.
    """

    sites: int = 6  # hosts, each with a loopback address of its own: 127.0.1.1, 127.0.1.2, …
    pages: int = 300  # that exist from the first step on; articles are added
    every: timedelta = timedelta(hours=6)  # one step
    steps: int = 120  # the last step; the first is 0
    start: datetime = datetime(2020, 7, 13, tzinfo=UTC)  # of step 0
    seed: int = 0
    port: int = 0  # of all servers; 0: the system chooses

    hubs: float = 0.03  # share of pages, besides the home pages, that gain links all day long
    hub_links: float = 24.0  # links that a hub gains per day, on average
    private: float = 0.03  # share of pages under /private/, which robots.txt forbids
    words_per_text: float = 150.0
    crawl_delay: float = 1.0  # seconds between two visits, requested by the second site

    faults: Faults = TYPICAL
    traps: bool = False  # whether the home page of the last site links to the traps
    max_per_second: float | None = None  # requests per host and second; above, the response is 429

    def __post_init__(self) -> None:
        _require(self, "sites", 1 <= self.sites <= 10_000, "between 1 and 10,000")
        _require(self, "pages", self.pages >= self.sites, f"at least {self.sites}, one for every site")
        _require(self, "steps", self.steps >= 0, "0 or more")
        _require(self, "crawl_delay", self.crawl_delay >= 0, "0 or more")
        _require(self, "hub_links", self.hub_links >= 0, "0 or more")
        for name in ("hubs", "private"):
            _require(self, name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        allowed = self.max_per_second is None or self.max_per_second > 0
        _require(self, "max_per_second", allowed, "more than 0, or None for no limit")
