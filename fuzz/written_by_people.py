"""Parsers of what people write: times, notions of change, policies, budgets, roots, options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fuzz import seeds
from fuzz.seeds import words
from fuzz.target import NOW, PAGE, Target, json_of, text_of, written
from recrawl.core import times
from recrawl.core.options import record_of
from recrawl.crawl import feeds, sitemaps
from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import RecrawlError
from recrawl.plan.budgets import pages_of
from recrawl.plan.options import PlanOptions
from recrawl.policies import settings
from recrawl.sources.wayback import question
from recrawl.web import http
from recrawl.world import every, notions, roots

NOTIONS = (b"significant:0.01:5", b"digest", b"shingles:0.8", b"any")
POLICIES = (b"bandit bandit.window=28", b"expected-harvest", b"regression regression.retrain=none")
ROOTS = (b"/~*/", b"domain", b"/people/*/x*y*/", b"\0foo.edu/~bar/\n# x\nhttp://e.org/\n")
PLANS = (
    b'{"budget": "10%", "policy": "bandit", "settings": ["bandit.window=3"]}',
    b'{"goal": "both", "every": "1d", "change": "digest"}',
)
CRAWLS = (b'{"enabled": "no", "hints_every": "1d", "full_fetches": 0.1}',)


def all_targets() -> Iterator[Target]:
    """Every kind of text that an option takes."""
    odd = seeds.naughty()
    yield Target(name="times", run=_times, seeds=[*seeds.TIMES, *odd])
    yield Target(name="notion", run=_notion, seeds=[*NOTIONS, *odd])
    yield Target(name="policy", run=_policy, seeds=[*POLICIES, *odd])
    yield Target(name="budget", run=_budget, seeds=[b"500", b"12.5 %", b"10%", *odd])
    yield Target(name="roots", run=_roots, seeds=ROOTS, words=words("url"), errors=(RecrawlError, ValueError))
    yield Target(name="plan-options", run=_options(PlanOptions), seeds=PLANS, is_json=True)
    yield Target(name="crawl-options", run=_options(CrawlOptions), seeds=CRAWLS, is_json=True)
    asked = [*seeds.urls()[:60], b"e.org/~me/*", b"*.e.org"]
    yield Target(name="archive-question", run=_question, seeds=asked, words=words("url"))


def _times(data: bytes) -> None:
    """Every parser gets every text: whatever it says, it is a time, a period, or refused."""
    text = text_of(data)
    for parse in (times.parse_moment, times.parse_period, every.parse_rounds, sitemaps.w3c_time, feeds.feed_time):
        try:
            parse(text)  # type: ignore[operator]
        except ValueError:
            continue
    assert http.retry_after(text, NOW) >= 0


def _notion(data: bytes) -> None:
    notion = notions.notion_or_any(text_of(data))
    if notion is not None:
        assert notions.spelled(notions.notion_from(notions.spelled(notion))) == notions.spelled(notion)


def _policy(data: bytes) -> None:
    """The name of a policy, and one of its settings behind a space."""
    name, _, setting = text_of(data).partition(" ")
    if "/" not in name and ".py" not in name:  # would run a file
        repr(settings.made(name, [setting] if setting else []))


def _budget(data: bytes) -> None:
    assert pages_of(text_of(data), 1000) >= 1


def _roots(data: bytes) -> None:
    """A pattern, or behind a zero byte the lines of a list."""
    text = str(written("roots", data[1:])) if data[:1] == b"\0" else text_of(data).replace("/dev", "")
    found = roots.parse_roots(text)
    for url in (PAGE, "https://e.org/~me/x/~me/y/" + "a/" * 40):
        found.root_of(url)


def _options(kind: Any) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        given = json_of(data)
        if isinstance(given, dict) and not any("/" in str(value) or ".py" in str(value) for value in given.values()):
            record_of(kind, given)

    return run


def _question(data: bytes) -> None:
    asked = question.Question.of(text_of(data))
    assert asked.parts
    asked.holds(PAGE)
    asked.depth(PAGE)
