"""A history in an object store is the same history: the same commands, the same plans, nothing lost when writers race."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands import command, output
from recrawl.core.places import ObjectPath, place
from recrawl.errors import HistoryError, MissingPackage, RecrawlError
from recrawl.history import History
from recrawl.history.object_commits import table_in
from recrawl.history.schema import TABLES
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)


def visits(day: int, n_pages: int = 6) -> list[Visit]:
    """Pages of which the p-th gains p links per day."""
    return [
        Visit(
            url=f"https://e.org/{page}",
            at=START + timedelta(days=day, minutes=page),
            links=[f"https://e.org/{page}/{i}" for i in range(page * day, page * (day + 1))],
            text=f"day {day} of page {page}",
        )
        for page in range(n_pages)
    ]


def test_a_plan_is_that_of_the_same_visits_on_a_disk(s3_url: str, tmp_path: Path) -> None:
    plans = []
    for where in (s3_url, str(tmp_path / "h")):
        for day in range(4):
            history = History.create(where)
            assert history.add(visits(day)).added == 6
            assert history.add(visits(day)).duplicates == 6
            if day == 2:
                history.compact()
        made = output(
            "plan",
            "--history",
            where,
            "--budget",
            "3",
            "--as-of",
            "2026-01-06T00:00:00Z",
            "--format",
            "jsonl",
            "--dry-run",
        )
        plans.append(made)
    assert plans[0] == plans[1]
    assert len(plans[0].splitlines()) == 3


def test_every_command_that_reads_takes_a_url(s3_url: str, tmp_path: Path) -> None:
    file = tmp_path / "visits.jsonl"
    records = [
        {"url": each.url, "at": each.at.isoformat(), "links": each.links} for day in range(4) for each in visits(day)
    ]
    file.write_text("\n".join(map(json.dumps, records)))
    assert json.loads(output("import", str(file), "--history", s3_url, "--json"))["added"] == 24
    assert json.loads(output("import", str(file), "--history", s3_url, "--json"))["duplicates"] == 24
    assert json.loads(output("info", "--history", s3_url, "--json"))["visits"] == 24
    assert "https://e.org/5" in output("plan", "--history", s3_url, "--budget", "2", "--format", "urls")
    assert "4 visits" in output("show", "https://e.org/5", "--history", s3_url)
    assert "e.org/5" in output("explain", "https://e.org/5", "--history", s3_url)
    assert len(output("export", "visits", "--history", s3_url, "--format", "jsonl").splitlines()) == 24
    output("compact", "--history", s3_url)
    output("replay", "--history", s3_url, "--policies", "round-robin", "--budget", "2")
    assert json.loads(output("score", "--history", s3_url, "--json"))


def test_what_was_learnt_is_carried_in_the_store(s3_url: str) -> None:
    history = History.create(s3_url)
    for day in range(3):
        history.add(visits(day))
    output("plan", "--history", s3_url, "--budget", "2")
    assert any(each.name.endswith(".state") for each in (place(s3_url) / "states").entries())  # type: ignore[union-attr]
    history.add(visits(3))
    carried = output(
        "plan", "--history", s3_url, "--budget", "2", "--as-of", "2026-01-06T00:00:00Z", "--format", "jsonl"
    )
    again = output(
        "plan",
        "--history",
        s3_url,
        "--budget",
        "2",
        "--as-of",
        "2026-01-06T00:00:00Z",
        "--format",
        "jsonl",
        "--relearn",
    )
    assert carried == again


def test_of_writers_that_race_none_loses_a_visit(s3_url: str) -> None:
    History.create(s3_url)

    def write(writer: int) -> int:
        return sum(History.open(s3_url).add(visits(day, 3)).added for day in range(writer, writer + 4))

    with ThreadPoolExecutor(3) as writers:
        added = list(writers.map(write, (0, 2, 4)))
    history = History.open(s3_url)
    assert history.timeline.n_visits == sum(added) == 3 * 8
    assert history.store.read("visits").num_rows == 3 * 8


def test_a_put_whose_answer_was_lost_is_not_taken_for_another_writer(s3_url: str) -> None:
    table = table_in(place(s3_url) / "urls", TABLES["urls"])
    table.create()
    actions = [{"commitInfo": {"operation": "WRITE"}}]
    assert table._commit(1, actions)
    assert table._commit(1, actions)  # the same again
    assert not table._commit(1, [{"commitInfo": {"operation": "OTHER"}}])


def test_a_missing_bucket_and_a_silent_store_are_named_in_one_sentence(
    s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, said in (("s3://nowhere-at-all/h", "NoSuchBucket"), (s3_url, "no history at")):
        done = command("info", "--history", where)
        assert done.code == 1
        assert said in done.message or "no history" in done.message
        assert "Traceback" not in done.stderr
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(HistoryError, match="cannot open the history s3://silent/h"):
        History.open("s3://silent/h")


def test_a_url_of_no_store_or_without_a_bucket_is_refused() -> None:
    with pytest.raises(RecrawlError, match="no kind of store is named 'ftp'"):
        place("ftp://e.org/h")
    with pytest.raises(RecrawlError, match="names no bucket"):
        place("s3://")


def test_without_the_extra_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingPackage, match="pip install 'recrawl\\[store\\]'"):
        History.open("s3://another-bucket/h")


def test_repair_asks_for_a_copy(s3_url: str) -> None:
    History.create(s3_url)
    done = command("repair", "--history", s3_url)
    assert done.code == 1
    assert "copy it to a disk" in done.message


def test_places_below_a_prefix_are_listed_one_level_at_a_time(s3_url: str) -> None:
    root = place(s3_url)
    assert isinstance(root, ObjectPath)
    (root / "a" / "b.txt").write_bytes(b"1")
    (root / "c.txt").write_bytes(b"2")
    assert sorted(each.name for each in root.iterdir()) == ["a", "c.txt"]
    assert [each.name for each in root.entries()] == ["c.txt"]
    assert ((root / "a").is_dir(), (root / "a").is_file(), (root / "c.txt").is_file()) == (True, False, True)
    (root / "c.txt").unlink()
    (root / "c.txt").unlink()
    assert not (root / "c.txt").exists()
    with pytest.raises(FileNotFoundError):
        (root / "c.txt").read_bytes()
