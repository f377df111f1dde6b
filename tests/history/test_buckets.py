"""A history seen bucket by bucket: all buckets together are the history, laid out or not."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from patience import patience
from recrawl.core.hashing import hash64
from recrawl.errors import BadOption, HistoryError
from recrawl.history import History
from recrawl.history.buckets import MOST, bucket_in, bucket_of, file_prefix
from recrawl.history.commits import DurableTable
from recrawl.history.importance import statements
from recrawl.history.layout import Layout
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.synth.settings import SynthSettings
from recrawl.synth.tables import batches
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
        "importance": [float("nan")] * len(keys)
        if said is None
        else said.stated_at(timeline.page, timeline.at).tolist(),
        "url": history.page_urls(timeline.page).to_pylist(),
    }
    for name in ("texts", "short_terms", "vectors", "sketches"):
        table = {row["digest"]: row for row in history.store.read(name).to_pylist()}
        what[name] = [table.get(digest) for digest in timeline.rows["terms"].to_pylist()]
    return {name: {key: str(row) for key, row in zip(keys, rows, strict=True)} for name, rows in what.items()}


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
    assert (view.timeline_after(START + timedelta(days=1)).n_visits > 0) == bool(
        (timeline.at > 1_767_312_000_000_000).any()
    )
    assert len(view.visits()) == timeline.n_visits
    if view.until is None:  # which these do not ask
        assert view.n_visits_of(timeline.pages) == view.n_rows()
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


def files_of(history: History, name: str) -> list[tuple[int, int] | None]:
    return [bucket_in(file) for file in history.store.files(name)]


def test_a_history_is_laid_out_in_buckets(made: History) -> None:
    expected = rows_of(made)
    made.compact(buckets=5)
    history = History.open(made.folder)
    assert history.layout() == 5
    assert rows_of(history) == expected
    same(history, 5)
    used = {bucket_by_hand(f"https://site{i}.org/", 5) for i in range(12)}
    for name in ("urls", "link_sets", "texts", "short_terms", "sketches", "importance", "visits"):
        assert files_of(history, name) == [(i, 5) for i in sorted(used)], name
    assert files_of(history, "terms") == [None]
    for number in used:
        view = history.bucket(number, 5)
        assert files_of(view, "visits") == [(number, 5)]
        (visits_file,) = view.store.files("visits")
        pages = pq.read_table(visits_file)["page"].to_numpy()
        assert (np.diff(pages) >= 0).all()
        assert {bucket_by_hand(url, 5) for url in history.page_urls(pages).to_pylist()} == {number}


def test_every_set_is_in_the_bucket_of_every_page_that_shows_it(made: History) -> None:
    made.compact(buckets=3)
    for name, column in (("link_sets", "links"), ("texts", "terms"), ("sketches", "terms"), ("short_terms", "terms")):
        in_two = 0
        for number in range(3):
            view = made.bucket(number, 3)
            shown = set(view.store.read("visits")[column].drop_null().to_pylist())
            held = view.store.read(name)["digest"].to_pylist()
            assert shown == set(held)
            assert len(held) == len(set(held))
            in_two += len(held)
        assert in_two > len(set(made.store.read(name)["digest"].to_pylist())), "none was shared"


def test_what_comes_later_is_in_no_bucket_until_the_next_compaction(made: History) -> None:
    made.compact(buckets=4)
    made.add(visits(range(4, 6), range(15)))
    expected = rows_of(made)
    assert (made.layout(), made.store.n_unlaid()) == (4, 1)
    same(made, 4)
    same(made, 3)
    same(made.as_of(START + timedelta(days=4, minutes=3)), 4)
    made.compact()
    assert (made.layout(), made.store.n_unlaid()) == (4, 0)
    assert rows_of(made) == expected
    same(made, 4)
    made.compact(buckets=7)
    assert (made.layout(), rows_of(made)) == (7, expected)
    same(made, 7)
    made.compact(buckets=0)
    assert made.layout() is None
    assert files_of(made, "visits") == [None]
    assert rows_of(made) == expected
    same(made, 4)


def test_a_new_visit_finds_what_only_another_bucket_has(tmp_path: Path) -> None:
    """An import does not write a link set again that any bucket holds."""
    history = History.create(tmp_path / "h")
    links, text = ["https://far.org/a", "https://far.org/b"], "the same words everywhere"
    history.add([Visit(url="https://one.org/", at=START, links=links, text=text)])
    history.compact(buckets=MOST)
    history.add([Visit(url="https://two.net/", at=START, links=links, text=text)])
    number = bucket_by_hand("https://two.net/", MOST)
    view = history.bucket(number, MOST)
    assert number != bucket_by_hand("https://one.org/", MOST)
    assert view.timeline.n_links()[1].tolist() == [2]
    assert view.store.read("texts")["digest"].to_pylist() == view.timeline.rows["terms"].to_pylist()
    assert view.urls_of(view.timeline.sets.links).to_pylist() == history.urls_of(view.timeline.sets.links).to_pylist()
    assert None not in view.urls_of(view.timeline.sets.links).to_pylist()


def test_a_bucket_is_read_without_the_files_of_others(made: History, monkeypatch: pytest.MonkeyPatch) -> None:
    made.compact(buckets=5)
    made.add(visits(range(4, 5), range(4)))
    view = History.open(made.folder).bucket(bucket_by_hand("https://site1.org/", 5), 5)
    expected = rows_of(made.bucket(bucket_by_hand("https://site1.org/", 5), 5))
    for name in ("visits", "urls", "importance"):
        for file in set(made.store.files(name)) - set(view.store.files(name)):
            Path(file).write_bytes(b"not to be read")
    assert rows_of(view) == expected


def test_more_rows_than_fit_are_laid_out_as_well(made: History, monkeypatch: pytest.MonkeyPatch) -> None:
    made.add(visits(range(4, 6), range(30)))
    expected = rows_of(made)
    for at_once in (100, 40, 7):
        monkeypatch.setattr("recrawl.history.store.ROWS_AT_ONCE", at_once)
        made.compact(buckets=6)
        assert rows_of(made) == expected
        same(made, 6)
    parts = [
        [pq.read_table(file)["page"].to_numpy() for file in made.bucket(i, 6).store.files("visits")] for i in range(6)
    ]
    assert max(map(len, parts)) > 2, "no bucket is in several files"
    assert all((np.diff(np.concatenate(pages)) >= 0).all() for pages in parts if pages)
    assert not list(made.folder.rglob("*.scratch"))


@pytest.mark.parametrize("buckets", [-1, MOST + 1])
def test_so_many_buckets_are_refused(made: History, buckets: int) -> None:
    with pytest.raises(BadOption, match=f"a history can have 1 to 65,536 buckets, not {buckets:,}"):
        made.compact(buckets=buckets)
    assert made.layout() is None


def test_a_history_without_visits_has_nothing_to_lay_out(tmp_path: Path) -> None:
    for history in (History.open(tmp_path / "none", missing_ok=True), History.create(tmp_path / "empty")):
        history.compact(buckets=4)
        assert history.layout() is None


def test_a_synthetic_history_is_that_of_its_buckets(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for batch in batches(SynthSettings(pages=300, rounds=6, vectors=True)):
        history.append(batch)
    expected = rows_of(history)
    history.compact(buckets=8)
    assert rows_of(history) == expected
    same(history, 8)
    same(history, 3)


def test_what_was_learnt_of_a_bucket_is_not_taken_for_what_was_learnt_of_all(tmp_path: Path) -> None:
    whole, now = History.create(tmp_path / "whole"), START + timedelta(days=9)
    for day in range(6):
        whole.add(visits(range(day, day + 1), range(12)))
    planned = {}
    for name in ("whole", "bucket", "bucket again", "whole again"):
        history = whole.bucket(1, 3) if name.startswith("bucket") else whole
        made = Planner(history, PlanOptions(budget="50%"), now, carry=True).plan()
        planned[name] = made.to_pandas().drop(columns="plan", errors="ignore").to_dict("records")
    part = History.create(tmp_path / "part")
    for day in range(6):
        part.add(each for each in visits(range(day, day + 1), range(12)) if bucket_by_hand(canonical(each.url), 3) == 1)
    made = Planner(part, PlanOptions(budget="50%"), now).plan()
    assert planned["bucket"] == planned["bucket again"] == made.to_pandas().to_dict("records")
    assert planned["whole"] == planned["whole again"] != planned["bucket"]


def test_a_real_history_is_that_of_its_buckets(shared_data: Path, tmp_path: Path) -> None:
    python, folder = sys.executable, tmp_path / "h"
    corpus = "author_homepages --every 30d --from 2021-01-01 --to 2022-01-01"
    command = f"{python} {shared_data / 'visits.py'} {corpus} | {python} -m recrawl.cli import - --workers 1 --history {folder}"
    subprocess.run(command, shell=True, check=True, capture_output=True, timeout=patience(400))
    history = History.open(folder)
    expected = rows_of(history)
    assert len(expected["visits"]) > 2_000
    history.compact(buckets=6)
    assert rows_of(history) == expected
    same(history, 6)
    same(history.as_of("2021-06-01"), 4)


def test_compactions_at_once_leave_every_set_where_it_is_used(made: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that looked at the uses of sets before visits were added comes after one that has laid out these visits."""
    really = Layout._uses
    made.compact(buckets=4)

    def and_meanwhile(layout: Layout, *arguments: Any) -> Any:
        uses = really(layout, *arguments)
        monkeypatch.setattr(Layout, "_uses", really)
        made.add(visits(range(4, 6), range(20)))
        made.compact()
        monkeypatch.setattr(DurableTable, "rewrite", but_not_visits)
        return uses

    rewrite = DurableTable.rewrite

    def but_not_visits(table: DurableTable, *arguments: Any) -> None:
        if table.folder.name == "visits":
            raise Killed
        rewrite(table, *arguments)

    monkeypatch.setattr(Layout, "_uses", and_meanwhile)
    with pytest.raises(Killed):
        made.compact()
    assert made.store.n_unlaid() == 0
    same(made, 4)


class Killed(BaseException):
    """The end of a compaction, before it ends."""


@pytest.mark.parametrize("last", ["urls", "terms", "link_sets", "sketches", "importance", "visits"])
def test_a_layout_that_is_killed_leaves_the_one_before(
    made: History, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables are laid out one after the other; `last` is the one at which it ends."""
    made.compact(buckets=3)
    made.add(visits(range(4, 6), range(15)))
    expected = rows_of(made)
    rewrite = DurableTable.rewrite

    def killed(table: DurableTable, *arguments: Any) -> None:
        if table.folder.name == last:
            raise Killed
        rewrite(table, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DurableTable, "rewrite", killed)
        with pytest.raises(Killed):
            made.compact(buckets=5)
    history = History.open(made.folder)
    assert (history.layout(), history.store.n_unlaid()) == (3, 1)
    assert rows_of(history) == expected
    for n in (3, 5, 2):
        same(history, n)
    history.compact()
    assert (history.layout(), rows_of(history)) == (3, expected)
    same(history, 3)
