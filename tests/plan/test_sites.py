"""Plans of websites under roots: the column that names the site, in every machine format, and none without roots."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import recrawl as rc
from commands import command, output
from recrawl.history import History
from recrawl.plan.formats import COLUMNS, writer_of
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
NOW = START + timedelta(days=7)
NAMES = {
    "https://foo.edu/~bar/": "foo.edu/~bar",
    "https://www.foo.edu/~bar/papers/2026": "foo.edu/~bar",
    "https://foo.edu/~baz/index.html": "foo.edu/~baz",
    "https://foo.edu/news": None,
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    made = History.create(tmp_path_factory.mktemp("sites") / "history")
    for url in NAMES:
        links = [f"https://foo.edu/{i}" for i in range(9)]
        made.add([Visit(url=url, at=START + timedelta(days=n), links=links[: n + 1]) for n in range(6)])
    return made


def test_every_machine_format_names_the_site_of_a_page_after_all_other_columns(history: History) -> None:
    plan = rc.plan(history, budget=4, policy="round-robin", roots="/~*/")
    written = {name: b"".join(writer_of(name)(plan)).decode() for name in ("jsonl", "csv", "scrapy")}
    rows = [json.loads(line) for line in written["jsonl"].splitlines()]
    assert {row["url"]: row["site"] for row in rows} == NAMES
    assert list(rows[0]) == [*COLUMNS, "site"]
    table = list(csv.DictReader(io.StringIO(written["csv"])))
    assert {row["url"]: row["site"] or None for row in table} == NAMES
    assert list(table[0]) == [*COLUMNS, "site"]
    requests = [json.loads(line) for line in written["scrapy"].splitlines()]
    assert {row["url"]: row["meta"]["recrawl"]["site"] for row in requests} == NAMES
    arrow = plan.to_arrow()
    assert arrow.column_names == [*COLUMNS, "site"]
    assert dict(zip(arrow["url"].to_pylist(), arrow["site"].to_pylist(), strict=True)) == NAMES


def test_without_roots_plans_are_as_they_were(history: History) -> None:
    plan = rc.plan(history, budget=4, policy="round-robin", now=NOW)
    with_hosts = rc.plan(history, budget=4, policy="round-robin", roots="host", now=NOW)
    assert plan.to_arrow().column_names == list(COLUMNS)
    assert [list(row) for row in plan.records()] == [list(COLUMNS)] * 4
    assert b"site" not in b"".join(writer_of("csv")(plan))
    assert with_hosts.to_arrow().drop_columns(["site"]).equals(plan.to_arrow())
    assert set(with_hosts.site or ()) == {"foo.edu", "www.foo.edu"}


def test_the_terminal_names_the_site_below_the_page(history: History) -> None:
    folder = str(history.store.folder)
    shown = output("plan", "-b", "4", "-p", "round-robin", "--dry-run", "--history", folder, "--roots", "/~*/")
    assert shown.count("site: foo.edu/~bar\n") == 2
    assert "site: none, it is under no root" in shown
    assert "site: " not in output("plan", "-b", "4", "-p", "round-robin", "--dry-run", "--history", folder)


def test_stats_show_websites_only_where_roots_are_given(history: History, tmp_path: Path) -> None:
    folder = ("--history", str(history.store.folder))
    rows = json.loads(output("stats", *folder, "--roots", "/~*/", "--json"))
    assert [(row["site"], row["n_pages"], row["n_new"]) for row in rows["websites"]["sites"]] == [
        ("foo.edu/~bar", 2, 10),
        ("foo.edu/~baz", 1, 5),
    ]
    assert rows["websites"]["n_outside"] == 1
    assert "Websites as a whole" in output("stats", *folder, "--roots", "/~*/", "--out", str(tmp_path / "s.html"))
    assert "foo.edu/~bar" in (tmp_path / "s.html").read_text()
    assert "websites" not in json.loads(output("stats", *folder, "--json"))
    assert "No page is under a root by --roots /+*/." in output("stats", *folder, "--roots", "/+*/")
    assert command("stats", *folder, "--roots", "no.txt").stderr.startswith("error: roots: there is no file 'no.txt'")
