from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from recrawl.crawl.planned import Planned, finished, planned, read_plan
from recrawl.crawl.settings import CrawlOptions
from recrawl.crawl.unfinished import PLAN
from recrawl.errors import BadOption, BadSource
from recrawl.history import History
from recrawl.web.visit import Visit

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
NOW = MONDAY + timedelta(days=10)
URLS = [f"https://e.org/{i}" for i in range(20)]


def made(folder: Path, status: int = 200) -> History:
    """A history of 20 pages, seen three times; some gain links."""
    history = History.create(folder / "h")
    history.add(
        Visit(url=url, at=MONDAY + timedelta(days=day), status=200 if day < 2 else status,
              links=[f"https://e.org/{number}/{k}" for k in range(1 + day * (number % 4))])
        for number, url in enumerate(URLS)
        for day in range(3)
    )  # fmt: skip
    return history


def options(**given: Any) -> CrawlOptions:
    return CrawlOptions(history="h", hints=False, **{"budget": "50%", **given})


def plan(history: History, notes: list[str] | None = None, **given: Any) -> Planned:
    """As a crawl makes it, which opens the history again."""
    note = (lambda text: None) if notes is None else notes.append
    return planned(History.open(history.store.folder), options(**given), NOW, note)


def continues(history: History, **given: Any) -> bool:
    """Whether a crawl would continue an earlier plan instead of making one."""
    notes: list[str] = []
    plan(history, notes, **given)
    return any(note.startswith("continuing ") for note in notes)


# -- plans made now ---------------------------------------------------------------------------------------------------


def test_a_plan_has_as_many_pages_as_the_budget_says_each_once(tmp_path: Path) -> None:
    first = plan(made(tmp_path))
    assert len(first.urls) == len(set(first.urls)) == len(first.rows) == 10
    assert set(first.urls) <= set(URLS)
    assert first.expected > 0
    assert [row["rank"] for row in first.rows] == list(range(1, 11))
    assert [row["url"] for row in first.rows] == first.urls


def test_of_an_empty_history_nothing_is_planned_and_a_note_says_why(tmp_path: Path) -> None:
    notes: list[str] = []
    assert plan(History.create(tmp_path / "h"), notes) == Planned()
    assert notes[-1].startswith("nothing is planned: ")


def test_of_pages_that_are_all_gone_nothing_is_planned(tmp_path: Path) -> None:
    assert plan(made(tmp_path, status=404)).urls == []
    assert plan(made(tmp_path, status=410)).urls == []


def test_nothing_is_planned_from_visits_that_lie_ahead(tmp_path: Path) -> None:
    history = made(tmp_path)
    before = planned(history, options(), MONDAY - timedelta(days=1))
    assert before.urls == []


def test_no_plan_is_made_where_none_is_wanted(tmp_path: Path) -> None:
    history = made(tmp_path)
    assert plan(history, plan="none") == Planned()
    assert not (tmp_path / "h" / PLAN).exists()


def test_a_history_that_takes_no_plan_still_gives_one(tmp_path: Path) -> None:
    history = made(tmp_path)
    (tmp_path / "h" / "plans").write_text("not a table")
    notes: list[str] = []
    kept = plan(history, notes)
    assert (len(kept.urls), kept.id) == (10, None)
    assert "cannot be kept" in notes[-1]


# -- continuing -------------------------------------------------------------------------------------------------------


def test_an_interrupted_crawl_continues_with_what_was_not_visited(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = plan(history)
    seen = first.urls[:3]
    history.add(
        Visit(url=url, at=NOW + timedelta(seconds=1), status=status)
        for url, status in zip(seen, (200, 404, 0), strict=True)
    )
    notes: list[str] = []
    rest = plan(history, notes)
    assert (rest.urls, rest.id) == (first.urls[3:], first.id)
    assert [row["rank"] for row in rest.rows] == list(range(4, 11))
    of_seen = sum(row["expected_new_links"] for row in first.rows[:3])  # rounded to four digits
    assert rest.expected == pytest.approx(first.expected - of_seen, abs=3e-4)
    assert notes == [f"continuing plan {first.id}: 7 of its pages were not fetched"]


def test_a_crawl_that_was_not_interrupted_leaves_nothing_to_continue(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = plan(history)
    assert continues(history)
    finished(history, first)
    assert not continues(history)


def test_another_crawl_that_ends_does_not_end_this_one(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = plan(history)
    finished(history, Planned("another"))
    finished(history, Planned())
    assert plan(history).id == first.id


def test_a_plan_whose_pages_were_all_visited_is_not_continued(tmp_path: Path) -> None:
    history = made(tmp_path)
    history.add(Visit(url=url, at=NOW, links=[]) for url in plan(history).urls)
    assert not continues(history)


def test_a_new_plan_is_made_where_resume_is_off(tmp_path: Path) -> None:
    history = made(tmp_path)
    plan(history)
    assert not continues(history, resume=False)
    assert continues(history)


@pytest.mark.parametrize("state", [b"", b"{", b"[]", b'{"plan": 7}', b'{"plan": "unknown"}', b"\xff\xfe"])
def test_a_damaged_note_of_where_a_crawl_was_is_no_obstacle(tmp_path: Path, state: bytes) -> None:
    history = made(tmp_path)
    (tmp_path / "h" / PLAN).write_bytes(state)
    assert not continues(history)
    (tmp_path / "h" / PLAN).write_bytes(state)
    assert len(plan(history).urls) == 10


# -- plans from files -------------------------------------------------------------------------------------------------


def test_a_plan_that_is_named_comes_before_one_that_was_interrupted(tmp_path: Path) -> None:
    history = made(tmp_path)
    plan(history)
    file = tmp_path / "plan"
    file.write_text("https://e.org/x\n")
    assert plan(history, plan=str(file)).urls == ["https://e.org/x"]


def test_an_interrupted_plan_from_a_file_is_continued_until_it_is_finished(tmp_path: Path) -> None:
    history, file, notes = made(tmp_path), tmp_path / "plan", list[str]()
    urls = [f"https://e.org/{i}" for i in range(4)]
    file.write_text("\n".join(urls))
    begun = plan(history, plan=str(file))
    assert begun.urls == urls
    history.add([Visit(url=url, at=NOW + timedelta(minutes=1), links=[]) for url in urls[:3]])
    history = History.open(tmp_path / "h")
    left = plan(history, notes, plan=str(file))
    assert left.urls == urls[3:]
    assert notes == [f"continuing the plan {file}: 1 of its pages were not fetched"]
    assert plan(history, plan=str(file), resume=False).urls == urls
    history.add([Visit(url=url, at=NOW + timedelta(minutes=2), links=[]) for url in urls[:3]])
    finished(history, plan(history, plan=str(file)))
    assert plan(history, plan=str(file)).urls == urls  # it is asked for again
    file.write_text("\n".join(urls[:2]))
    assert plan(history, plan=str(file)).urls == urls[:2]  # another plan


def test_a_plan_from_a_file_does_not_replace_one_that_was_interrupted(tmp_path: Path) -> None:
    history, file = made(tmp_path), tmp_path / "urgent"
    begun = plan(history)
    file.write_text("https://e.org/0")
    finished(history, plan(history, plan=str(file)))
    assert continues(history)
    assert plan(history).id == begun.id


def test_beside_another_crawl_nothing_is_continued_and_its_note_stays(tmp_path: Path) -> None:
    history, notes = made(tmp_path), list[str]()
    begun = plan(history)
    later = NOW + timedelta(hours=1)
    other = planned(History.open(history.store.folder), options(), later, notes.append, is_alone=False)
    assert not any(note.startswith("continuing ") for note in notes)
    assert other.id != begun.id
    finished(history, other)
    assert plan(history).id == begun.id


def test_urls_one_per_line_are_a_plan(tmp_path: Path) -> None:
    file = tmp_path / "urls"
    file.write_text("\ufeffhttps://E.org/a#top\r\n\n  https://e.org/b?utm_source=x \nhttps://e.org/a\n")
    listed = read_plan(file)
    assert listed.urls == ["https://e.org/a", "https://e.org/b"]
    assert (len(listed.rows), listed.id, listed.expected) == (2, None, 0.0)


def test_a_plan_as_recrawl_plan_writes_it_keeps_what_is_expected(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = plan(history)
    file = tmp_path / "plan.jsonl"
    file.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in first.rows))
    again = read_plan(file)
    assert again.urls == first.urls
    assert again.expected == pytest.approx(first.expected)


def test_what_is_expected_need_not_be_a_number(tmp_path: Path) -> None:
    file = tmp_path / "plan.jsonl"
    file.write_text('{"url": "https://e.org/", "expected_new_links": "many"}\n{"url": "https://e.org/a"}\n')
    assert read_plan(file).expected == 0.0


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"https://e.org/\nmailto:x@e.org\n", "line 2"), (b'{"page": 1}\n', "line 1"), (b'{"url": 7}\n', "line 1"),
     (b'{"url":\n', "line 1"), (b"\xff\xfe\x00", "cannot read the plan")],
)  # fmt: skip
def test_a_file_that_is_not_a_plan_is_refused_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "plan"
    file.write_bytes(content)
    with pytest.raises(BadSource, match=message):
        read_plan(file)


def test_a_plan_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="missing"):
        read_plan(tmp_path / "missing")


@pytest.mark.parametrize("budget", ["0", "0%", "-5", "1.5", "ten", "", "%", "10%%", "1e3", "٣", "10 pages", "nan"])
def test_a_budget_that_is_not_one_is_refused(budget: str) -> None:
    with pytest.raises(BadOption, match=f"^budget: {re.escape(repr(budget))}"):
        CrawlOptions(budget=budget)
