"""An import by an engine's workers leaves the history, and the report, of an import on one machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commands import command, output
from making import page_record
from processes import children
from recrawl.core.places import object_at
from recrawl.engine import Engine, inputs
from recrawl.engine.bulk_import import import_with
from recrawl.engine.inputs import groups, input_files
from recrawl.errors import BadOption, BadSource, EngineError, HistoryError
from recrawl.history import History
from recrawl.history.import_report import ImportReport
from recrawl.history.ingest import ImportOptions, import_files
from same_history import rows_of


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SMALLEST_GROUP", 400)


def line(page: int, day: int, **more: object) -> str:
    links = [f"https://e.org/{page}/{i}" for i in range(day, day + 3)]
    visit = {"url": f"https://e.org/{page}", "at": f"2026-01-{day + 1:02}T00:00:00Z", "links": links, **more}
    return json.dumps(visit)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of several types: visits that are there twice, records that cannot be used, a file that is none."""
    folder = tmp_path_factory.mktemp("crawled")
    for day in range(4):
        lines = [line(page, day, text=f"word{day}{page} and more words") for page in range(6)]
        (folder / f"day-{day}.jsonl").write_text("\n".join(lines))
    (folder / "again.jsonl").write_text(
        "\n".join([line(1, 1), "not JSON", line(2, 2, colour="red"), line(7, 1, status="x")])
    )
    (folder / "crawl.warc").write_bytes(b"".join(page_record(i) for i in range(5)))
    (folder / "requests.warc").write_bytes(page_record(1, kind="request"))
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    (folder / "_SUCCESS").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def of_one_machine(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[History, ImportReport]:
    history = History.create(tmp_path_factory.mktemp("one") / "history")
    files = sorted(str(path) for path in crawled.iterdir() if not path.name.startswith("_"))
    return history, import_files(history, files, workers=1)


def counted(report: ImportReport) -> dict[str, object]:
    """What a report says, without which of two equal visits came first."""
    told = report.as_dict()
    return {**told, "examples": set(told["examples"]), "notes": sorted(told["notes"]), "replaced": None}


def test_history_and_report_are_those_of_one_machine(
    sail: Engine, crawled: Path, of_one_machine: tuple[History, ImportReport], tmp_path: Path
) -> None:
    history = History.open(tmp_path / "history", missing_ok=True)
    read: list[str] = []
    report = import_with(sail, history, [str(crawled)], on_group=lambda files, part: read.extend(f.name for f in files))
    assert rows_of(history) == rows_of(of_one_machine[0])
    assert counted(report) == counted(of_one_machine[1])
    assert report.skipped == {"not JSON": 1, "status is not a whole number": 1}
    assert len(read) == 8
    assert len(report.failed_inputs) == 1
    again = import_with(sail, history, [str(crawled)])
    assert (again.added, again.duplicates, again.read) == (0, report.added + report.duplicates, report.read)
    assert rows_of(history) == rows_of(of_one_machine[0])


def test_a_worker_that_is_killed_leaves_nothing_that_another_import_does_not_complete(
    sail: Engine, crawled: Path, of_one_machine: tuple[History, ImportReport], tmp_path: Path
) -> None:
    history = History.open(tmp_path / "history", missing_ok=True)

    def kill(files: object, report: ImportReport) -> None:
        for server in children(os.getpid()):
            for worker in children(server):
                os.kill(worker, signal.SIGKILL)

    with pytest.raises(EngineError, match="a process of a worker was killed"):
        import_with(sail, history, [str(crawled)], n_parallel=1, on_group=kill)
    assert 0 < len(rows_of(history)["visits"]) < len(rows_of(of_one_machine[0])["visits"])
    import_with(sail, history, [str(crawled)])
    assert rows_of(history) == rows_of(of_one_machine[0])


def test_many_small_files_make_few_commits(sail: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SMALLEST_GROUP", 4 << 20)
    monkeypatch.setattr(inputs, "GROUP_FILES", 100)
    (tmp_path / "in").mkdir()
    for i in range(250):
        (tmp_path / "in" / f"{i:03}.jsonl").write_text(line(i, 0))
    history = History.open(tmp_path / "history", missing_ok=True)
    assert import_with(sail, history, [str(tmp_path / "in" / "*.jsonl")]).added == 250
    assert history.store.n_files()["visits"] == 3


def test_strict_and_unreadable_histories_are_refused(sail: Engine, crawled: Path, tmp_path: Path) -> None:
    history = History.open(tmp_path / "history", missing_ok=True)
    with pytest.raises(BadSource, match="--strict: not JSON"):
        import_with(sail, history, [str(crawled / "again.jsonl")], ImportOptions(strict=True))
    with pytest.raises(BadSource, match=r"picture\.png"):
        import_with(sail, history, [str(crawled / "picture.png")], ImportOptions(strict=True))


def test_a_worker_that_does_not_see_the_history_says_so(sail: Engine, crawled: Path, tmp_path: Path) -> None:
    away = replace(sail, name=replace(sail.name, kind="remote"))
    history = History.open(tmp_path / "history", missing_ok=True)
    assert import_with(away, history, [str(crawled / "day-0.jsonl")]).added == 6
    for path in (tmp_path / "history").iterdir():
        path.rename(tmp_path / path.name)
    with pytest.raises(HistoryError, match=r"a worker does not see the history .*: keep it where all workers do"):
        import_with(away, history, [str(crawled / "day-1.jsonl")])


@pytest.mark.usefixtures("s3")
def test_inputs_and_history_may_be_in_an_object_store(
    crawled: Path, of_one_machine: tuple[History, ImportReport], s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "SMALLEST_GROUP", 3000)
    for path in crawled.iterdir():
        stored = object_at(f"{s3_url}/in/{'deep/' if path.suffix == '.warc' else ''}{path.name}")
        assert stored is not None
        stored.write_bytes(path.read_bytes())
    names = [f"{s3_url}/in/*.jsonl", f"{s3_url}/in/deep", f"{s3_url}/in/picture.png"]
    done = command("import", *names, "--history", f"{s3_url}/history", "--engine", "sail", "--json", "--verbose")
    assert done.code == 1
    assert f"read: {s3_url}/in/deep/crawl.warc (5 records)" in done.stderr
    assert f"{s3_url}/in/picture.png" in done.stderr.splitlines()[-1]
    report = json.loads(done.stdout)
    assert (report["added"], report["read"]) == (of_one_machine[1].added, of_one_machine[1].read)
    assert rows_of(History.open(f"{s3_url}/history")) == rows_of(of_one_machine[0])
    single = json.loads(output("import", f"{s3_url}/in/deep/crawl.warc", "--history", f"{s3_url}/history", "--json"))
    assert (single["added"], single["duplicates"]) == (0, 5)


def test_inputs_are_files_folders_patterns_and_what_leads_nowhere(
    crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(*given: str, absolute: bool = False) -> Iterator[str]:
        return (file.name for file in input_files(given, absolute=absolute))

    monkeypatch.chdir(crawled)
    assert [*names("day-1.jsonl", "day-?.jsonl", "none", "no*ne")] == [
        "day-1.jsonl", "day-0.jsonl", "day-2.jsonl", "day-3.jsonl", "none", "no*ne",
    ]  # fmt: skip
    assert [*names(".")] == sorted(path.name for path in crawled.iterdir() if path.name != "_SUCCESS")
    assert [*names("day-1.jsonl", absolute=True)] == [str(crawled / "day-1.jsonl")]
    with pytest.raises(BadOption, match="standard input has no second reader"):
        input_files(["-"], absolute=False)
    assert [len(group) for group in groups(input_files(["."], absolute=False))] == [1, 1, 1, 1, 1, 1, 2]
