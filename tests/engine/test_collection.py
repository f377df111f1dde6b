"""Totals and exports by an engine are those of one machine, to the byte, in whatever parts the work is cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from commands import command, output
from recrawl.engine import Engine, collection, export
from recrawl.engine.collection import Collection
from recrawl.engine.export import EngineTable, exported
from recrawl.engine.info import info_of
from recrawl.engine.new_links import find_earliest, sight, visits_digest
from recrawl.errors import HistoryError
from recrawl.history import History, summary
from recrawl.history.hints import HINTS
from recrawl.history.plans import PLANS_TABLE, keep
from recrawl.history.watching import Decision, decide
from recrawl.insight.hints.of_pages import hint_counts
from recrawl.plan.readiness import readiness
from recrawl.report import export as tables
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
N_PAGES, N_DAYS = 24, 6


def url(page: int) -> str:
    return f"https://www.s{page % 7}.example/p{page}"


def visits() -> list[Visit]:
    """Pages of seven sites that show links of each other, many of them first at one moment; every kind of visit."""
    chance = np.random.default_rng(5)
    made = []
    for day in range(N_DAYS):
        news = [f"https://news.example/{day}/{i}" for i in range(5)]
        trap = "https://www.s1.example/a/a/a/a/a/a/a/a" if day == 3 else "https://www.s1.example/plain"
        for page in range(N_PAGES):
            fresh = [f"https://www.s{page % 7}.example/{day}/{i}" for i in range(int(chance.poisson(1.5)))]
            shared = [link for link in news if chance.random() < 0.3]
            status = int(chance.choice([200, 200, 200, 200, 200, 304, 404, 503]))
            made.append(
                Visit(
                    url=url(page),
                    at=START + timedelta(days=day, hours=int(chance.integers(0, 3))),
                    status=status,
                    links=[*fresh, *shared, trap, url(page + 1)] if status == 200 else None,
                    text=f"day {day}" if status == 200 else None,
                    title=f"page {page}" if page % 3 else None,
                    baseline=bool(chance.random() < 0.05),
                    importance=float(page) if page % 5 == 0 else None,
                )
            )
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = History.create(tmp_path_factory.mktemp("whole") / "history")
    history.add(visits())
    decide(history, [Decision(page=page_id(url(page)), at=START, is_watched=False) for page in (1, 2, 99)])
    made_at = START + timedelta(days=N_DAYS - 2, hours=12)
    planned = [{"plan": "a plan", "made_at": made_at, "page": page_id(url(page)), "rank": page} for page in (3, 4, 77)]
    keep(history.beside, pa.Table.from_pylist(planned, schema=PLANS_TABLE.schema))
    of_page = [{"host": f"www.s{page % 7}.example", "page": page_id(url(page))} for page in range(N_PAGES)]
    hinted = [*of_page, *({"host": f"www.s{site}.example", "page": None} for site in (1, 2, 3))]
    read = [
        {
            "kind": "sitemap",
            "read_at": START + timedelta(days=day, hours=3),
            "changed_at": START + timedelta(days=day, hours=2),
            **each,
        }
        for day in range(N_DAYS)
        for each in hinted
    ]
    HINTS.append(history.beside, pa.Table.from_pylist(read, schema=HINTS.schema))
    return history


@pytest.fixture(params=["one part", "many parts"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Parts of the links and ranges of pages that cut through everything, or nothing."""
    if request.param == "many parts":
        monkeypatch.setattr(collection, "PART_LINKS", 40)
        monkeypatch.setattr(collection, "BUCKETS", 5)
        monkeypatch.setattr(export, "RANGE_VISITS", {"visits": 9, "links": 9})
        monkeypatch.setattr(export, "ROWS_AT_ONCE", {"visits": 7, "links": 7})
    else:
        monkeypatch.setattr(collection, "BUCKETS", 1)
    return str(request.param)


def views(history: History, cut: str) -> Iterator[History]:
    yield history.detached()
    if cut == "one part":
        return
    yield history.as_of(START + timedelta(days=2, hours=1))
    yield history.as_of(START - timedelta(days=1))


def test_totals_are_those_of_one_machine(sail: Engine, whole: History, cut: str) -> None:
    for history in views(whole, cut):
        with collection.collection(sail, history) as opened:
            assert (opened.n_parts > 3) is (cut == "many parts")
            found = info_of(opened)
        expected = summary(history)
        assert found.summary == expected
        assert [*found.summary.top_hosts] == [*expected.top_hosts]
        assert [*found.summary.visits_per_day] == [*expected.visits_per_day]
        assert found.hints == hint_counts(history)
        assert found.ready == (readiness(history) if expected.visits else None)
        assert found.n_unwatched == (2 if expected.visits else 0)
    whole_summary = summary(whole)
    assert whole_summary.traps == 1
    assert whole_summary.new_links["anywhere"] > 0
    assert whole_summary.pages_with_importance == 5
    assert hint_counts(whole)["sitemap"]["hinted"] > 0


@pytest.mark.parametrize("what", ["visits", "links"])
def test_exported_rows_and_their_order_are_those_of_one_machine(
    sail: Engine, whole: History, cut: str, what: EngineTable
) -> None:
    for history in views(whole, cut):
        with collection.collection(sail, history) as opened:
            parts = list(exported(opened, what))
        expected = pa.concat_tables({"visits": tables.visits, "links": tables.links}[what](history))
        assert pa.concat_tables(parts).equals(expected)
        assert cut == "one part" or all(len(part) == 7 for part in parts[:-1])


def test_a_history_that_is_laid_out_is_read_bucket_by_bucket(sail: Engine, whole: History, tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add(visits()[:100])
    history.compact(buckets=3)
    history.add(visits()[100:])
    with collection.collection(sail, history) as opened:
        assert opened.n_buckets == 3
        found = pa.concat_tables(exported(opened, "visits"))
        totals = info_of(opened).summary
    assert found.equals(pa.concat_tables(tables.visits(whole)))
    assert totals == summary(whole)
    assert list((tmp_path / "history" / "engine").iterdir()) == []


def test_visits_that_come_while_a_history_is_exported_are_reported(
    sail: Engine, whole: History, tmp_path: Path
) -> None:
    history = History.create(tmp_path / "history")
    history.add(visits()[:20])
    with collection.collection(sail, history) as opened:
        late = Late(**vars(opened))
        with pytest.raises(
            HistoryError, match=r"visits were added while the history was read; run the same again.*--as-of"
        ):
            list(exported(late, "visits"))
        links = list(exported(opened, "links"))
    assert len(links) == 1


class Late(Collection):
    """A collection to which visits are added in the middle."""

    def each_part(self, function: object, **more: object) -> list[object]:
        History.open(str(self.history.folder)).add(visits()[20:])
        return super().each_part(function, **more)  # type: ignore[arg-type]


def test_commands_print_the_same(sail: Engine, whole: History) -> None:
    folder, server = str(whole.folder), f"sc://{sail.spark.client._builder.endpoint}"
    whole.compact(buckets=2)
    for arguments in (["info"], ["info", "--json"], ["export", "visits", "--format", "csv"], ["export", "links"]):
        here = output(*arguments, "--history", folder)
        assert output(*arguments, "--history", folder, "--engine", server) == here
        assert len(here) > 500


def test_what_no_engine_can_do_is_refused(whole: History) -> None:
    folder = str(whole.folder)
    done = command("export", "panel", "--history", folder, "--engine", "sail")
    assert (done.code, "panel need all pages at once" in done.message) == (2, True)
    done = command("stats", "--history", folder, "--engine", "sail")
    assert (done.code, "no engine can do this: medians" in done.message) == (2, True)
    done = command("info", "--history", folder, "--engine", "spork")
    assert (done.code, "Did you mean 'spark'?" in done.message) == (2, True)


def test_a_page_that_is_never_compared_makes_links_old_for_others(sail: Engine, tmp_path: Path) -> None:
    """By hand: a link that a first visit shows is not new where another page shows it later, and is where that is at one moment."""
    history = History.create(tmp_path / "history")
    day = timedelta(days=1)
    old, tie, fresh = (f"https://x.example/{name}" for name in ("old", "tie", "fresh"))
    history.add(
        [
            Visit(url="https://a.example/", at=START, links=[]),
            Visit(url="https://a.example/", at=START + 2 * day, links=[old, tie, fresh]),
            Visit(url="https://b.example/", at=START + day, links=[old]),
            Visit(url="https://c.example/", at=START + 2 * day, links=[tie]),
        ]
    )
    with collection.collection(sail, history) as opened:
        rows = pa.concat_tables(exported(opened, "visits")).to_pylist()
        digests = opened.each_bucket(sight)
        joins = opened.each_part(find_earliest)
    new = {(row["url"], row["at"] - START): row["n_new_anywhere"] for row in rows}
    assert new[("https://a.example/", 2 * day)] == 2
    assert new[("https://b.example/", day)] is None
    assert [(each["n_links"], each["n_new"]) for each in joins] == [(3, 2)]
    assert digests[0] == visits_digest(history.bucket(0, opened.n_buckets).slim_timeline)
