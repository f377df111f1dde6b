"""Several ``recrawl crawl`` into one history at once: no visit is lost or doubled, and those that are not alone say so."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawl.crawling import Sites, visits
from crawl.held import Crawl, Gate, gates, plan_file
from recrawl.crawl.unfinished import FILE, NOT_ALONE, PLAN
from recrawl.history import History
from recrawl.history.repair import repair
from recrawl.web.visit import Visit


def is_warned(summary: dict[str, Any]) -> bool:
    return any(text.startswith(NOT_ALONE) for text in summary["notes"])


def n_visits(history: Path) -> Counter[str]:
    assert repair(history) == []
    return Counter({url: len(seen) for url, seen in visits(history).items()})


def archived(folder: Path) -> Counter[str]:
    """How often each page is in the WARC files of a folder, which are all whole."""
    found: Counter[str] = Counter()
    for path in folder.iterdir():
        assert path.name.endswith(".warc.gz")
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                record.content_stream().read()
                url = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == "response" and not url.endswith("/robots.txt"):
                    found[url] += 1
    return found


def test_two_crawls_at_once_lose_and_double_nothing_and_the_second_says_that_it_is_not_alone(tmp_path: Path) -> None:
    history, warc = tmp_path / "history", ["--warc", str(tmp_path / "warc")]
    History.create(history)
    with Sites({}) as shared, gates(1) as (gate,):
        pages = [shared.url(f"/{i}") for i in range(12)]
        one = Crawl(history, "--plan", plan_file(tmp_path / "one.plan", [*gate.urls(), *pages[:8]]), *warc)
        one.hold(gate)
        noted = (history / FILE).read_bytes()
        two = Crawl(history, "--plan", plan_file(tmp_path / "two.plan", pages[4:]), *warc).end()
        assert (history / FILE).read_bytes() == noted
        gate.open()
        first = one.end()
        requests = Counter(shared.url(path) for path in shared.asked() if path != "/robots.txt")
    assert (is_warned(first), is_warned(two)) == (False, True)
    planned = Counter([*gate.urls(), *pages[:8], *pages[4:]])
    assert n_visits(history) == archived(tmp_path / "warc") == planned
    assert requests == planned - Counter(gate.urls())
    assert not (history / FILE).exists()


def known(history: Path, urls: list[str]) -> None:
    """A history in which each page was visited twice."""
    days_ago = datetime.now(UTC) - timedelta(days=9)
    History.create(history).add(
        Visit(url=url, at=days_ago + timedelta(days=day), links=["/"], base=url) for url in urls for day in (0, 1)
    )


def site_of(gate: Gate) -> str:
    return gate.sites.url("/*")


@pytest.mark.slow
def test_if_one_of_two_is_killed_the_other_goes_on_and_the_next_continues_the_plan_of_the_killed_one(
    tmp_path: Path,
) -> None:
    history, everything = tmp_path / "history", ["--budget", "100%"]
    with Sites({}) as shared, gates(2) as (of_one, of_two):
        pages = [shared.url(f"/{i}") for i in range(12)]
        known(history, [*pages, *of_one.urls(), *of_two.urls()])
        one = Crawl(history, *everything, "--exclude", site_of(of_two))
        one.hold(of_one)
        noted = (history / PLAN).read_bytes()
        two = Crawl(history, *everything, "--exclude", site_of(of_one), "--exclude", shared.url("/1*"))
        two.hold(of_two)
        one.kill()
        of_two.open()
        assert is_warned(two.end())
        assert (history / PLAN).read_bytes() == noted
        of_one.open()
        there = {url for url, n in n_visits(history).items() if n > 2}
        before = len(shared.log)
        three = Crawl(history, *everything, "--exclude", site_of(of_two)).end()
        fetched = Counter(shared.url(got.path) for got in shared.log[before:] if got.path != "/robots.txt")
    left = {*pages, *of_one.urls()} - there
    assert of_one.urls()[0] in left
    assert fetched == Counter(left - set(of_one.urls()))
    assert three["planned"] == three["visits"] == len(left)
    assert not is_warned(three)
    assert any(text.startswith("continuing plan") for text in three["notes"])
    assert all(n >= 3 for n in n_visits(history).values())
    assert not (history / PLAN).exists()


@pytest.mark.slow
def test_a_crawl_is_told_of_one_that_was_not_alone_either(tmp_path: Path) -> None:
    history = tmp_path / "history"
    History.create(history)
    with gates(2) as (of_one, of_two):
        one = Crawl(history, "--plan", plan_file(tmp_path / "one.plan", of_one.urls()))
        one.hold(of_one)
        two = Crawl(history, "--plan", plan_file(tmp_path / "two.plan", of_two.urls()))
        two.hold(of_two)
        of_one.open()
        assert not is_warned(one.end())
        assert is_warned(Crawl(history, "--plan", str(tmp_path / "one.plan")).end())
        of_two.open()
        assert is_warned(two.end())
        assert not is_warned(Crawl(history, "--plan", str(tmp_path / "one.plan")).end())
    assert n_visits(history) == Counter(dict.fromkeys(of_one.urls(), 3) | dict.fromkeys(of_two.urls(), 1))
