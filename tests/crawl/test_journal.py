from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import command
from crawl.crawling import HttpResponse, Sites, crawled, outcome, page, start, visits
from making import imported
from recrawl.crawl import journal as journal_module
from recrawl.crawl.journal import Journal, record
from recrawl.history import BatchBuilder, History
from recrawl.web.visit import Visit, from_record

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def visit(number: int, **more: Any) -> Visit:
    given = {"links": [f"/next/{number}", "/"], "base": "https://e.org/", "text": f"page {number}", **more}
    return Visit(url=f"https://e.org/{number}", at=MONDAY + timedelta(seconds=number), **given)


def n_visits(folder: Path) -> int:
    return History.open(folder).timeline.n_visits


class Written:
    """Counts what a journal reports as written."""

    n_visits = n_new_links = 0

    def __call__(self, n_visits: int, n_new_links: int) -> None:
        self.n_visits += n_visits
        self.n_new_links += n_new_links


def broken(table: Path) -> Path:
    """Put a file where a table is, so that nothing can be written; the table is moved aside."""
    aside = table.with_name(f"{table.name}-aside")
    table.rename(aside)
    table.write_text("not a table")
    return aside


def repaired(table: Path, aside: Path) -> None:
    table.unlink()
    aside.rename(table)


# -- by itself --------------------------------------------------------------------------------------------------------


def test_visits_are_in_the_history_after_a_flush(tmp_path: Path) -> None:
    written = Written()
    journal = Journal(History.create(tmp_path / "h"), written)
    for number in range(5):
        assert journal.add(visit(number))
    journal.flush()
    journal._thread.submit(lambda: None).result()  # the thread does one thing after the other
    assert (written.n_visits, written.n_new_links) == (5, 6)
    assert n_visits(tmp_path / "h") == 5
    journal.close()
    assert written.n_visits == 5


def test_links_are_new_once(tmp_path: Path) -> None:
    for number, new in ((1, 2), (2, 1), (2, 0)):
        written = Written()
        journal = Journal(History.create(tmp_path / "h"), written)
        journal.add(visit(number, text=None))
        journal.close()
        assert written.n_new_links == new


def test_an_invalid_visit_is_counted_and_does_not_hold_up_the_others(tmp_path: Path) -> None:
    written = Written()
    journal = Journal(History.create(tmp_path / "h"), written)
    assert not journal.add(Visit(url="mailto:x@e.org", at=MONDAY))
    assert journal.add(visit(1))
    assert journal.add(visit(2, title="half a pair: \ud800"))  # no table takes it
    assert journal.add(visit(3))
    journal.close()
    assert written.n_visits == n_visits(tmp_path / "h") == 2
    assert dict(journal.skipped) == {"not an http or https URL": 1, "cannot be written": 1}


@pytest.mark.parametrize("table", ["visits", "urls", "link_sets"])
def test_visits_wait_while_the_history_cannot_be_written(tmp_path: Path, table: str) -> None:
    written = Written()
    journal = Journal(History.create(tmp_path / "h"), written)
    aside = broken(tmp_path / "h" / table)
    journal.add(visit(1))
    journal.flush()
    journal._thread.submit(lambda: None).result()
    assert written.n_visits == 0
    assert journal.failure
    repaired(tmp_path / "h" / table, aside)
    journal.add(visit(2))
    journal.close()
    assert (written.n_visits, journal.failure, journal.spilled) == (2, None, [])
    assert n_visits(tmp_path / "h") == 2


def test_a_repaired_history_lacks_nothing_that_went_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_WAITING", 0)
    written = Written()
    journal = Journal(History.create(tmp_path / "h"), written)
    aside = broken(tmp_path / "h" / "link_sets")
    journal.add(visit(1))
    journal.flush()
    journal._thread.submit(lambda: None).result()
    assert journal.n_spilled == 1
    repaired(tmp_path / "h" / "link_sets", aside)
    journal.add(visit(1))  # the same links and words once more
    journal.close()
    assert written.n_visits == 1
    links = History.open(tmp_path / "h").timeline.n_links()
    assert [int(numbers[0]) for numbers in links] == [2, 0]
    assert command("import", journal.spilled[0], "--history", tmp_path / "h").code == 0
    assert n_visits(tmp_path / "h") == 1


def test_if_one_folder_cannot_be_written_another_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "away" / "h"
    journal = Journal(History.create(folder))
    broken(tmp_path / "away")
    journal.add(visit(1))
    journal.close()
    assert [path.parent for path in journal.spilled] == [tmp_path]
    assert journal.n_lost == 0


def test_visits_that_cannot_be_written_anywhere_are_counted_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(History.create(tmp_path / "h"))
    broken(tmp_path / "h" / "visits")

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(journal_module, "_append_lines", full)
    journal.add(visit(1))
    journal.close()
    assert (journal.n_lost, journal.spilled) == (1, [])


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(links=st.lists(texts, max_size=5), text=texts, title=texts, note=st.none() | texts, status=st.integers(0, 599))
def test_a_record_read_again_is_the_same_visit(
    links: list[str], text: str, title: str, note: str | None, status: int
) -> None:
    seen = visit(1, links=links, text=text, title=title, note=note, status=status, etag='"é"', content_bytes=7)
    again = from_record(json.loads(json.dumps(record(seen), default=str)))
    assert rows(seen) == rows(again)


def rows(visit: Visit) -> dict[str, list[dict[str, Any]]]:
    """The rows that a history stores for a visit."""
    builder = BatchBuilder()
    builder.add(visit)
    tables = {name: table.to_pylist() for name, table in builder.take().items()}
    return {name: sorted(table, key=str) for name, table in tables.items()}


# -- in a crawl -------------------------------------------------------------------------------------------------------


def slow_site(n_pages: int) -> tuple[Sites, Sequence[str]]:
    return Sites({f"/{i}": page(f"page {i}", f"/to/{i}", "/") for i in range(n_pages)}), [
        f"/{i}" for i in range(n_pages)
    ]


def written(process: Any) -> int:
    """The number of visits that the crawl next reports as safe."""
    return int(json.loads(process.stdout.readline())["written"])


def test_after_kill_9_all_that_was_acknowledged_is_there_and_the_next_crawl_fetches_the_rest(tmp_path: Path) -> None:
    sites, paths = slow_site(60)
    with sites:
        urls = [sites.url(path) for path in paths]
        history = History.create(tmp_path / "h")
        old = datetime.now(UTC) - timedelta(days=9)
        history.add(
            Visit(url=url, at=old + timedelta(days=day), links=["/"], base=url) for url in urls for day in (0, 1)
        )
        slow = {"delay": 0.05, "host_concurrency": 1}
        process = start(tmp_path / "h", fetch=slow, RECRAWL_BUDGET="100%", RECRAWL_FLUSH_SECONDS=0.2)
        acknowledged = [written(process), written(process)][-1]
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close(), process.stderr.close()  # type: ignore[union-attr]
        here = {url for url, seen in visits(tmp_path / "h").items() if len(seen) == 3}
        assert 0 < acknowledged <= len(here) < 60
        before = len(sites.log)
        found = crawled(tmp_path / "h", RECRAWL_BUDGET="100%")
        fetched = {sites.url(got.path) for got in sites.log[before:] if got.path != "/robots.txt"}
    assert fetched == set(urls) - here
    assert found["summary"]["planned"] == found["summary"]["visits"] == found["summary"]["written"] == 60 - len(here)
    assert all(len(seen) == 3 for seen in visits(tmp_path / "h").values())
    assert not (tmp_path / "h" / "crawl.json").exists()


def test_after_kill_9_a_first_crawl_continues_and_requests_nothing_twice(tmp_path: Path) -> None:
    pages = {f"/{i}": page(f"page {i}", *(f"/{j}" for j in (2 * i + 1, 2 * i + 2) if j < 60)) for i in range(60)}
    moved = {"/60": HttpResponse(301, b"", {"Location": "/61"}), "/61": page("moved here")}
    with Sites(pages | moved | {"/": page("home", "/0", "/60")}) as sites:
        first = {"seeds": [sites.url("/")], "limits": {"pages": 50}}
        process = start(
            tmp_path / "h", **first, fetch={"delay": 0.05, "host_concurrency": 1}, RECRAWL_FLUSH_SECONDS=0.2
        )  # type: ignore[arg-type]
        written(process), written(process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close(), process.stderr.close()  # type: ignore[union-attr]
        here = set(visits(tmp_path / "h"))
        before = len(sites.log)
        found = crawled(tmp_path / "h", **first)
        fetched = [sites.url(got.path) for got in sites.log[before:] if got.path != "/robots.txt"]
        assert not here & set(fetched)
        assert 0 < len(here) < 50
        assert len(here) + len(fetched) == len(visits(tmp_path / "h")) == 50
        assert found["summary"]["notes"] == [
            f"continuing an interrupted first crawl: {len(here)} pages are already fetched"
        ]
        again = crawled(tmp_path / "h", **first)  # that one finished, so this one starts from the seeds
        assert (again["summary"]["visits"], again["summary"]["notes"]) == (50, [])


def test_a_history_that_breaks_during_a_crawl_neither_stops_it_nor_loses_a_visit(tmp_path: Path) -> None:
    sites, paths = slow_site(40)
    with sites:
        urls = [sites.url(path) for path in paths]
        slow = {"delay": 0.05, "host_concurrency": 1}
        process = start(tmp_path / "h", plan=urls, fetch=slow, RECRAWL_FLUSH_SECONDS=0.2)
        written(process)
        aside = broken(tmp_path / "h" / "visits")
        found = outcome(process)
    summary = found["summary"]
    assert (summary["visits"], summary["ended"]) == (40, "finished")
    assert 0 < summary["written"] < 40
    assert summary["written"] + summary["spilled"] == 40
    (file,) = tmp_path.glob("recrawl-visits-*.jsonl")
    repaired(tmp_path / "h" / "visits", aside)
    assert n_visits(tmp_path / "h") == summary["written"]
    report, history = imported(tmp_path, file, into="h")
    assert (report.added, sum(report.skipped.values())) == (summary["spilled"], 0)
    assert sorted(visits(tmp_path / "h")) == sorted(urls)
    assert history.timeline.n_links()[0].tolist() == [2] * 40


@pytest.mark.slow
def test_two_crawls_into_one_history_at_once_lose_nothing(tmp_path: Path) -> None:
    sites, paths = slow_site(40)
    with sites:
        urls = [sites.url(path) for path in paths]
        History.create(tmp_path / "h")
        halves = []
        for half in (urls[:25], urls[15:]):
            fetch = {"delay": 0.02, "host_concurrency": 1}
            halves.append(start(tmp_path / "h", plan=half, fetch=fetch, RECRAWL_FLUSH_SECONDS=0.1))
        summaries = [outcome(process)["summary"] for process in halves]
    assert [each["written"] for each in summaries] == [25, 25]
    assert {url: len(seen) for url, seen in visits(tmp_path / "h").items()} == {
        url: 2 if 15 <= number < 25 else 1 for number, url in enumerate(urls)
    }
