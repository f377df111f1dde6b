"""What can be set, as ``RECRAWL_*`` in a Scrapy project: one list from which reading and documentation follow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from recrawl.change import notion_or_any
from recrawl.errors import RecrawlError
from recrawl.panel import parse_period
from recrawl.plan.budgets import BadBudget, share_or_number

PREFIX = "RECRAWL_"


def _setting(default: Any, told: str) -> Any:
    """A field that can be read from the settings, with what it means."""
    return field(default=default, metadata={"told": told})


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of a crawl. `from_settings` reads them; `table` tells them."""

    enabled: bool = _setting(True, "Off: the add-on does nothing at all.")
    history: str = _setting(
        "", "The history's directory; made if it is not there. Default: the environment's, else ./history."
    )
    budget: str = _setting("10%", "How many pages to plan: a number, or a share of those known.")
    goal: str = _setting("links", "What to find: links, content or both.")
    change: str = _setting("any", "What makes a copy outdated: any difference, or significant, digest, shingles.")
    policy: str | None = _setting(None, "Who chooses; default: what recrawl tune recommended, else expected-harvest.")
    favour: str | None = _setting(
        None, "Find most links in the end (coverage) or now (freshness), by expected-harvest."
    )
    model: str | None = _setting(None, "Plan by the predictions of a model that recrawl train made.")
    per_host: int | None = _setting(None, "At most so many planned pages of one host.")
    per_site: int | None = _setting(None, "At most so many planned pages of one registered domain.")
    min_gap: str | None = _setting(None, "No page sooner after its last visit, such as 6h.")
    exclude: tuple[str, ...] = _setting((), "No planned URL that begins so, or fits so (*, ?).")
    retry_gone: bool = _setting(False, "Also plan pages that answered 404 or 410.")
    every: str = _setting("crawl", "What a cycle is when learning from the past: crawl, or a period such as 1d.")
    plan: str | None = _setting(
        None, "A file with a plan, or with URLs one a line, to take instead of making one; none: no plan."
    )
    resume: bool = _setting(True, "First go on with what a crawl that was cut short had yet to fetch.")
    callback: str | None = _setting(None, "The spider's method for planned pages; default: parse.")
    conditional: bool = _setting(True, "Send If-None-Match and If-Modified-Since from the last visit.")
    full_fetches: float = _setting(
        0.05, "Share of planned pages that are fetched without these, to find servers that lie."
    )
    hints: bool = _setting(
        False, "Read sitemaps and feeds of known hosts before planning; recrawl crawl does so by default."
    )
    hints_every: str = _setting(
        "1d", "How old what a host's sitemaps and feeds said may be before they are read again."
    )
    retry_wait: float = _setting(10.0, "Seconds a host is left alone after 429 or 503, where it does not say how long.")
    flush_seconds: float = _setting(3.0, "Visits are safe in the history after so many seconds at the latest.")
    flush_visits: int = _setting(2000, "And after so many visits.")
    warc: str | None = _setting(None, "Also write every response to WARC files in this directory.")
    allow_loopback: bool = _setting(False, "Also fetch from this machine; for tests.")
    clock: Any = field(default=None, metadata={"told": "A function that tells the time, for tests with a made-up one."})

    def __post_init__(self) -> None:
        if not self.history:
            object.__setattr__(self, "history", os.environ.get("RECRAWL_HISTORY") or "./history")
        if self.goal not in ("links", "content", "both"):
            raise BadSetting("goal", self.goal, "links, content or both")
        if self.favour not in (None, "coverage", "freshness"):
            raise BadSetting("favour", self.favour, "coverage or freshness")
        if self.favour is not None and (self.policy or self.model or self.goal != "links"):
            raise BadSetting("favour", self.favour, "left out with a policy, a model, or a goal other than links")
        for name in ("min_gap", "hints_every"):
            _check_period(name, getattr(self, name), "a period such as 6h")
        _check_period("every", None if self.every == "crawl" else self.every, "crawl, or a period such as 1d")
        for name in ("per_host", "per_site"):
            if (getattr(self, name) or 0) < 0:
                raise BadSetting(name, getattr(self, name), "a number of pages, 0 or more")
        self._check_names()
        if not 0 <= self.full_fetches <= 1:
            raise BadSetting("full_fetches", self.full_fetches, "a share between 0 and 1")
        try:
            share_or_number(self.budget)
        except BadBudget:
            raise BadSetting(
                "budget", self.budget, "a number of pages or a share of them, such as 500 or 10%"
            ) from None
        if not 0 <= self.retry_wait < float("inf"):
            raise BadSetting("retry_wait", self.retry_wait, "a number of seconds, 0 or more")
        if not 0 < self.flush_seconds < float("inf"):
            raise BadSetting("flush_seconds", self.flush_seconds, "a number of seconds above 0")
        if self.flush_visits < 1:
            raise BadSetting("flush_visits", self.flush_visits, "a number of visits above 0")

    def _check_names(self) -> None:
        """What is asked for by name must be there, before a crawl begins that needs it."""
        try:
            notion_or_any(self.change)
        except (RecrawlError, ValueError) as error:
            raise BadSetting("change", self.change, f"a notion of change ({error})") from None
        if self.model is not None and not os.path.isfile(self.model):
            raise BadSetting("model", self.model, "a file that recrawl train made")
        if self.policy is not None:
            from recrawl.policies import named  # takes a moment to load

            try:
                named(self.policy)
            except (RecrawlError, ValueError) as error:
                raise BadSetting("policy", self.policy, f"the name of a policy ({error})") from None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Options:
        """The options that Scrapy's settings hold; texts, as the command line gives them, become what they stand for."""
        given = {}
        for one in fields(cls):
            value = settings.get(PREFIX + one.name.upper())
            if value is not None:
                given[one.name] = _read(one.name, value, one.default, str(one.type))
        unknown = [name for name in _names(settings) if name.removeprefix(PREFIX).lower() not in _KNOWN]
        if unknown:
            raise RecrawlError(
                f"No setting named {unknown[0]}. Known: {', '.join(PREFIX + name.upper() for name in _KNOWN)}"
            )
        return cls(**given)

    @staticmethod
    def table() -> list[tuple[str, str, str]]:
        """Name, default and meaning of every setting."""
        return [
            (
                PREFIX + one.name.upper(),
                "" if one.default in (None, "", ()) else repr(one.default),
                one.metadata["told"],
            )
            for one in fields(Options)
        ]


class BadSetting(RecrawlError):
    """A setting has a value that it cannot have."""

    def __init__(self, name: str, value: Any, expected: str) -> None:
        super().__init__(f"{PREFIX}{name.upper()} is {value!r}; it must be {expected}")


def _check_period(name: str, value: str | None, expected: str) -> None:
    try:
        if value:
            parse_period(value)
    except ValueError:
        raise BadSetting(name, value, expected) from None


_KNOWN = tuple(one.name for one in fields(Options))


def _names(settings: Mapping[str, Any]) -> list[str]:
    return [name for name in settings if isinstance(name, str) and name.startswith(PREFIX)]


def _read(name: str, value: Any, default: Any, kind: str) -> Any:
    assert default is not MISSING
    try:
        if kind == "bool":
            return _truth(value)
        if kind.startswith("int"):
            return int(value)
        if kind == "float":
            return float(value)
        if kind.startswith("tuple"):
            return tuple(value.split(",")) if isinstance(value, str) else tuple(value)
        return value if kind == "Any" else str(value)
    except (TypeError, ValueError):
        kinds = {"bool": "True or False", "int": "a whole number", "float": "a number", "tuple": "a list of texts"}
        expected = next(
            (told for begin, told in kinds.items() if kind.startswith(begin)), f"a value such as {default!r}"
        )
        raise BadSetting(name, value, expected) from None


def _truth(value: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in known:
        raise ValueError
    return known[str(value).lower()]
