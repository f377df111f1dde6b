"""A history seen bucket by bucket: all buckets together are the history, laid out or not."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recrawl.core.hashing import hash64
from recrawl.errors import BadOption, HistoryError
from recrawl.history import History
from recrawl.history.buckets import MOST, bucket_in, bucket_of, file_prefix
from recrawl.history.importance import statements
from recrawl.web.urls import canonical, host, site
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)


def bucket_by_hand(url: str, n: int) -> int:
    return (hash64(site(host(url))) % 2**64) % n


def visits(days: range, sites: range) -> list[Visit]:
    """Pages of some sites, which share links and texts with pages of other sites."""
    return [
        Visit(
            url=f"https://{'www.' if page else ''}site{number}.org/{page or ''}",
            at=START + timedelta(days=day, minutes=number),
            links=[f"https://site{number % 3}.org/{i}" for i in range(day + page)],
            text=f"the words of day {day // 2} on page {page}",
            vector=[float(day), float(page)] if page == 2 else None,
            importance=float(number) if day == 1 else None,
        )
        for day in days
        for number in sites
        for page in range(3)
    ]


def rows_of(history: History) -> dict[str, dict[tuple[int, int], tuple[Any, ...]]]:
    """By page and time: all that a history says of each visit, with the content of what the visit points at."""
    timeline, new = history.timeline, history.novelty
    keys = list(zip(timeline.page.tolist(), timeline.at.tolist(), strict=True))
    sets = timeline.sets
    links = [tuple(sets.links[sets.start[i] : sets.start[i + 1]]) if i >= 0 else None for i in timeline.links.tolist()]
    said = statements(history)
    what = {
        "visits": timeline.rows.to_pylist(),
        "links": list(zip(links, *(n.tolist() for n in timeline.n_links()), strict=True)),
        "previous": list(zip(new.previous_internal.tolist(), new.previous_external.tolist(), strict=True)),
        "page": list(zip(new.page_internal.tolist(), new.page_external.tolist(), strict=True)),
        "importance": [] if said is None else said.stated_at(timeline.page, timeline.at).tolist(),
        "url": history.page_urls(timeline.page).to_pylist(),
    }
    for name in ("texts", "short_terms", "vectors", "sketches"):
        table = {row["digest"]: row for row in history.store.read(name).to_pylist()}
        what[name] = [table.get(digest) for digest in timeline.rows["terms"].to_pylist()]
    return {name: {key: str(row) for key, row in zip(keys, rows, strict=bool(rows))} for name, rows in what.items()}


def together(history: History, n: int) -> dict[str, dict[tuple[int, int], tuple[Any, ...]]]:
    """The same from all buckets of a history, no visit of which is in two."""
    whole: dict[str, dict[tuple[int, int], tuple[Any, ...]]] = defaultdict(dict)
    for number in range(n):
        view = history.bucket(number, n)
        check_itself(view, number, n)
        for name, rows in rows_of(view).items():
            assert not whole[name].keys() & rows.keys()
            whole[name] |= rows
    return dict(whole)


def check_itself(view: History, number: int, n: int) -> None:
    """All ways to read a bucket agree, and it has only pages of its own."""
    timeline = view.timeline
    urls = view.page_urls(timeline.pages).to_pylist()
    assert {bucket_by_hand(url, n) for url in urls} <= {number}
    page, at = view.page_times()
    assert (page == timeline.page).all()
    assert (at == timeline.at).all()
    assert (view.slim_timeline.page == timeline.page).all()
    assert view.n_rows() == view.store.read("visits").num_rows >= timeline.n_visits
    assert view.n_visits_of(timeline.pages) == view.n_rows()
    assert (view.timeline_after(START + timedelta(days=1)).n_visits > 0) == bool(
        (timeline.at > 1_767_312_000_000_000).any()
    )
    assert len(view.visits()) == timeline.n_visits
    seen = view.store.scan("visits", lambda groups: [group.read(["page"])["page"].to_pylist() for group in groups])
    assert {each for part in seen for each in part} == set(timeline.pages.tolist())


def same(history: History, n: int) -> None:
    expected = rows_of(history)
    found = together(History.open(history.folder) if history.until is None else history, n)
    for name, rows in expected.items():
        assert found[name] == rows, name


@pytest.fixture
def made(tmp_path: Path) -> History:
    history = History.create(tmp_path / "h")
    for day in range(0, 4, 2):
        history.add(visits(range(day, day + 2), range(12)))
    return history


def test_the_bucket_of_a_page_is_that_of_its_site() -> None:
    urls = [
        "https://e.org/",
        "http://www.e.org:8080/a?b=http://x.org/",
        "https://news.bbc.co.uk/1",
        "http://[::1]:80/x",
        "http://127.0.0.1:8000/",
        "https://xn--bcher-kva.example/%40",
        "https://co.uk/",
    ]
    spelt = [canonical(url) for url in urls]
    for n in (1, 2, 7, 64, MOST):
        assert bucket_of(pa.array(spelt), n).tolist() == [bucket_by_hand(url, n) for url in spelt]
    long = pa.chunked_array([pa.array(spelt[2:], pa.large_string()), pa.array([], pa.large_string())])
    assert bucket_of(long, 64).tolist() == [bucket_by_hand(url, 64) for url in spelt[2:]]
    assert bucket_of(pa.array(spelt).slice(3), 64).tolist() == [bucket_by_hand(url, 64) for url in spelt[3:]]
    assert bucket_of(pa.array([], pa.string()), 3).tolist() == []


def test_the_name_of_a_file_says_what_it_holds() -> None:
    assert bucket_in(f"s3://b/h/visits/{file_prefix(MOST - 1, MOST)}-00000-x.parquet") == (MOST - 1, MOST)
    assert bucket_in("h/visits/part-00000-x.parquet") is None


def test_buckets_of_a_history_that_is_not_laid_out(made: History) -> None:
    assert made.layout() is None
    for n in (1, 3, 8):
        same(made, n)
    same(made.as_of(START + timedelta(days=1, minutes=5)), 3)


def test_a_view_sees_what_is_added_later(made: History) -> None:
    views = [made.bucket(number, 4) for number in range(4)]
    before = sum(view.timeline.n_visits for view in views)
    made.add(visits(range(4, 6), range(20)))
    for view in views:
        view.release()
    assert sum(view.timeline.n_visits for view in views) == before + 2 * 20 * 3
    assert made.n_rows() == before + 2 * 20 * 3


def test_a_view_is_only_read(made: History) -> None:
    view = made.bucket(1, 3)
    for work in (lambda: view.add(visits(range(9, 10), range(2))), view.compact, view.store.make):
        with pytest.raises(HistoryError, match=r"bucket 1 of 3 of .* is only to be read"):
            work()
    with pytest.raises(HistoryError, match="bucket 1 of 3 is a bucket already"):
        view.bucket(0, 3)


@pytest.mark.parametrize(("number", "n"), [(0, 0), (0, -3), (3, 3), (-1, 3), (0, MOST + 1)])
def test_there_are_only_so_many_buckets(made: History, number: int, n: int) -> None:
    with pytest.raises(BadOption, match=r"1 to 65,536 buckets|there is no bucket"):
        made.bucket(number, n)


def test_buckets_of_a_history_without_visits(tmp_path: Path) -> None:
    for history in (History.open(tmp_path / "none", missing_ok=True), History.create(tmp_path / "empty")):
        assert history.bucket(1, 2).timeline.n_visits == 0
        assert history.layout() is None
