"""Settings of a crawl, as ``RECRAWL_*`` in a Scrapy project: those of a plan and those of the crawl itself, from one list."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from recrawl.core.options import OptionInfo, option, options_of
from recrawl.core.suggest import unknown
from recrawl.core.times import parse_period
from recrawl.crawl.follow_options import FollowOptions, check_follow
from recrawl.errors import BadOption
from recrawl.plan.options import PlanOptions

PREFIX = "RECRAWL_"


def _finite(value: float) -> None:
    if not value < float("inf"):
        raise ValueError(f"{value} is not a number of seconds")


def _positive(value: float) -> None:
    _finite(value)
    if not value > 0:
        raise ValueError(f"{value} is not above 0")


@dataclass(frozen=True, kw_only=True)
class CrawlOptions(FollowOptions, PlanOptions):
    """The settings of a crawl. `from_settings` reads them from Scrapy's settings, `table` documents them."""

    enabled: bool = option(True, "Off: the add-on does nothing at all.")
    history: str = option(
        "", "The history's directory; created if it does not exist. Default: the environment's, else ./history."
    )
    plan: str | None = option(
        None, "A file with a plan, or with one URL per line, to use instead of making a plan; none: no plan."
    )
    resume: bool = option(True, "First continue with what an interrupted crawl did not fetch.")
    callback: str | None = option(None, "The spider's method for planned pages; default: parse.")
    conditional: bool = option(True, "Send If-None-Match and If-Modified-Since from the last visit.")
    full_fetches: float = option(
        0.05,
        "Share of planned pages that are fetched without these, to find servers that lie.",
        minimum=0.0,
        maximum=1.0,
    )
    hints: bool = option(
        False, "Read sitemaps and feeds of known hosts before planning; recrawl crawl does so by default."
    )
    hints_every: str = option(
        "1d", "Maximum age of a host's sitemaps and feeds before they are read again.", check=parse_period
    )
    retry_wait: float = option(
        10.0, "Seconds to wait after 429 or 503, where the host does not say how long.", minimum=0.0, check=_finite
    )
    flush_seconds: float = option(
        3.0, "Visits are safe in the history after this many seconds at most.", check=_positive
    )
    flush_visits: int = option(2000, "And after this many visits.", minimum=1)
    warc: str | None = option(None, "Also write every response to WARC files in this directory.")
    allow_loopback: bool = option(False, "Allow fetching from this machine; for tests.")
    clock: Any = option(None, "A function that returns the time, for tests with a simulated clock.")

    def __post_init__(self) -> None:
        if not self.history:
            object.__setattr__(self, "history", os.environ.get("RECRAWL_HISTORY") or "./history")
        PlanOptions.__post_init__(self)  # reads and checks every value
        check_follow(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> CrawlOptions:
        """The options in Scrapy's settings; of an option that takes several texts, a text is split at commas."""
        known = {PREFIX + each.name.upper(): each for each, _ in options_of(cls)}
        for name in settings:
            if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
                raise BadOption(unknown("setting", name, known))
        values: dict[str, Any] = {}
        for name, each in known.items():
            value = settings.get(name)
            is_list = str(each.type).startswith("tuple") and isinstance(value, str)
            if value is not None:
                values[each.name] = _parts(value) if is_list else value
        return cls(**values)

    def as_settings(self) -> dict[str, Any]:
        """The same as Scrapy's settings, those that are not the default."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            PREFIX + each.name.upper(): values[each.name]
            for each, _ in options_of(self)
            if values[each.name] != each.default
        }

    @staticmethod
    def table() -> list[tuple[str, str, str]]:
        """Name, default and meaning of every setting."""
        return [_row(each.name, each.default, info) for each, info in options_of(CrawlOptions)]


def _parts(text: str) -> list[str]:
    """The texts of a list, split at commas; not at those within a setting, such as ``bandit.shares=0.6,0.8``."""
    at = r",(?=\s*[^,=\s]+\.\w+\s*=)" if "=" in text and not text.startswith(("http:", "https:")) else ","
    return [part.strip() for part in re.split(at, text) if part.strip()]


def _row(name: str, default: Any, info: OptionInfo) -> tuple[str, str, str]:
    return PREFIX + name.upper(), "" if default in (None, "", ()) else repr(default), info.help
