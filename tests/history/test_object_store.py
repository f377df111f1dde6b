"""A history in an object store is the same history: the same commands, the same plans, nothing lost when writers race."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands import command, output
from recrawl.core import places
from recrawl.core.places import ObjectPath, place
from recrawl.crawl.unfinished import CrawlLock
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


def test_its_buckets_together_are_the_history(s3_url: str) -> None:
    history = History.create(s3_url)

    def add(day: int) -> None:
        history.add(replace(each, url=each.url.replace("e.org", f"e{i % 3}.org")) for i, each in enumerate(visits(day)))

    def seen(view: History) -> dict[tuple[int, int], tuple[int, int]]:
        timeline, new = view.timeline, view.novelty
        keys = zip(timeline.page.tolist(), timeline.at.tolist(), strict=True)
        return dict(
            zip(keys, zip(new.total("previous").tolist(), new.total("page").tolist(), strict=True), strict=True)
        )

    for buckets in (None, 4, None, 3, 0):
        for day in range(4):
            add(day)
        if buckets is not None:
            compacted = output("compact", "--buckets", str(buckets), "--history", s3_url, "--json")
            assert json.loads(compacted)["buckets"] == (buckets or None)
        for n in (1, 4):
            views = [history.bucket(number, n) for number in range(n)]
            assert sum(view.timeline.n_visits for view in views) == 24
            assert seen(history) == {key: what for view in views for key, what in seen(view).items()}


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
    for where in ("s3://nowhere-at-all/h", s3_url):
        done = command("info", "--history", where)
        assert done.code == 1
        assert f"no history at {where}" in done.message
        assert "Traceback" not in done.stderr
    done = command("compact", "--history", "s3://nowhere-at-all/h")
    assert (done.code, "Traceback" in done.stderr) == (1, False)
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


@pytest.mark.parametrize(
    "url", ["s3://b/a#1", "s3://b/a?x=1", "s3://b/a%41", "s3://b/x//y", "s3://b/../y", "s3://b/y ", "s3://b/ y/z"]
)
def test_a_url_that_stores_read_in_different_ways_is_refused(url: str) -> None:
    with pytest.raises(RecrawlError, match="cannot be the place of a history"):
        place(url)


def test_a_url_that_became_a_path_is_refused() -> None:
    with pytest.raises(RecrawlError, match="begins with s3://"):
        place(Path("s3://bucket/h"))


@pytest.mark.parametrize(
    "url", ["s3://b/h", "s3a://b/h", "gs://b/h", "az://c/h", "azure://c/h", "abfss://c@a.dfs.core.windows.net/h"]
)
def test_every_kind_of_store_that_is_known_can_be_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "aGVsbG8=")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    assert places._store.__wrapped__(str(place(url)))


def test_the_empty_object_that_tools_put_for_a_folder_is_nothing_in_it(s3_url: str) -> None:
    root = place(s3_url)
    assert isinstance(root, ObjectPath)
    places._store(root.root.rpartition("/")[0]).put(root.name + "/", b"")
    assert list(root.iterdir()) == []
    assert History.create(s3_url).add(visits(0)).added == 6


def test_data_files_of_a_commit_that_seems_to_have_failed_stay(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.create(s3_url)
    put = ObjectPath.create_bytes

    def late(entry: ObjectPath, data: bytes) -> bool:
        put(entry, data)  # arrives after all
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectPath, "create_bytes", late)
        with pytest.raises(HistoryError, match="no answer"):
            history.add(visits(0))
    assert History.open(s3_url).add(visits(0)).duplicates + History.open(s3_url).timeline.n_visits >= 6
    assert History.open(s3_url).timeline.n_visits == 6


def test_a_store_that_does_not_answer_is_not_an_empty_one(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.create(s3_url)
    monkeypatch.setattr(ObjectPath, "read_bytes", lambda path: (_ for _ in ()).throw(OSError("no answer")))
    with pytest.raises(HistoryError, match="no answer"):
        history.beside.read_bytes("tuned.json")


def test_a_crawl_into_a_store_leaves_the_notes_of_others_alone(s3_url: str) -> None:
    lock = CrawlLock(History.create(s3_url))
    assert (lock.is_ours, lock.is_alone) == (False, True)


def test_drafts_that_go_away_while_a_folder_is_listed_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stays").write_bytes(b"12")
    (tmp_path / ".draft").write_bytes(b"")
    listed = list(os.scandir(tmp_path))
    (tmp_path / ".draft").unlink()
    monkeypatch.setattr(os, "scandir", lambda folder: nullcontext(listed))
    assert [(each.name, each.size) for each in places.entries(tmp_path)] == [("stays", 2)]
