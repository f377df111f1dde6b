"""The settings of a made-up web: every number that shapes it, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta

from recrawl.errors import RecrawlError

WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Activity:
    """How pages gain links of one kind, per week; those of `SynthSettings` are fitted to data.

    References: Dang et al. (2022), "Look back, look around", Table 2 and Figures 3 to 6.
    """

    never_rate: float  # share of pages that can never gain such a link
    regularity: tuple[float, float]  # the others gain some in a week with probability Beta(a, b)
    size: float  # scale of the stretched exponential of links gained in a week with any
    tail: float  # its exponent: the smaller, the heavier the tail
    volatility: float = 0.3  # spread (log) of a page's gains from week to week


@dataclass(frozen=True)
class SynthSettings:
    """One made-up web. Equal settings make equal webs; rates named per week are scaled to `every`.

    >>> SynthSettings(pages=500, seed=3).rounds
    10
    """

    pages: int = 2_000
    rounds: int = 10  # visits of every page
    every: timedelta = WEEK  # between two rounds
    start: datetime = datetime(2020, 7, 13, tzinfo=UTC)  # of the first round
    seed: int = 0
    rhythm: bool = False  # links arrive by hour of day and day of week; meant for rounds of an hour or so
    vectors: bool = False  # 192-dimensional semantic vectors
    terms: bool = True  # words of the texts

    death_rate: float = 0.001  # share of pages that die in a week: 404, or 410 for one in five
    failure_rate: float = 0.005  # share of visits that fail: 503, 500, or no answer at all (0)
    validator_rate: float = 0.3  # share of pages sent with ETag and Last-Modified
    not_modified_rate: float = 0.2  # share of their unchanged visits with the response 304
    crawl_rate: float = 0.1  # share of the time between rounds that a round's visits take

    pages_per_site: float = 6.0  # mean; the sizes are heavy-tailed
    pages_per_section: int = 6  # pages that share a topic and new links
    pages_per_topic: float = 60.0
    topic_loyalty: float = 0.7  # probability that a section has its site's topic

    topic_weight: float = 0.5  # share of a page's activity that its topic decides
    section_weight: float = 0.25  # share that its section decides; the rest is its own
    weekly_variation: float = 0.06  # spread (log) of the whole web's activity from round to round

    links_per_page: float = 30.0  # mean number of outlinks
    external_rate: float = 0.15  # share of them that is external
    sharing: float = 0.5  # 0: every page of a section gains links of its own; 1: they gain as far as possible the same
    rotating_rate: float = 0.05  # share of pages whose old links come back
    growing_rate: float = 0.05  # share of pages that never drop a link
    pruning_rate: float = 0.01  # probability that a page loses a fixed link in a week

    words_per_text: float = 300.0  # mean; log-normal
    vocabulary: int = 30_000  # distinct words of the whole web

    internal: Activity = field(default=Activity(0.33, (0.5, 0.66), 0.058, 0.27))
    external: Activity = field(default=Activity(0.79, (0.6, 1.1), 0.095, 0.32))

    def __post_init__(self) -> None:
        self._require("pages", self.pages >= 1, "at least 1")
        self._require("rounds", self.rounds >= 1, "at least 1")
        self._require("seed", self.seed >= 0, "0 or more")
        self._require("every", self.every >= timedelta(minutes=1), "at least a minute")
        self._require("start", self.start.tzinfo is not None, "a time with a zone")
        self._require("vocabulary", 1_000 <= self.vocabulary <= 300_000, "between 1,000 and 300,000")
        for name in ("pages_per_site", "pages_per_section", "pages_per_topic", "words_per_text", "links_per_page"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        rates = [each.name for each in fields(self) if each.name.endswith("_rate")]
        for name in (*rates, "sharing", "topic_loyalty", "section_weight"):
            self._require(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        self._require("topic_weight", 0 <= self.topic_weight <= 1 - self.section_weight, "at most 1 − section_weight")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise RecrawlError(f"{name} of a made-up web must be {rule}, not {getattr(self, name)}.")
