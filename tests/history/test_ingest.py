"""Files of any kind into a history: what is counted, what is refused, and that order and repetition do not matter."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import command
from making import http, imported, jsonl, last_parts, links, packed, page_record, record, run, story, urls
from patience import growth
from recrawl.cli import main
from recrawl.errors import BadSource
from recrawl.history import History
from recrawl.sources import streams

TIME = "2026-01-02T03:04:05Z"
GOOD = jsonl({"url": f"https://e.org/{i}", "at": TIME, "links": [f"https://e.org/to/{i}"]} for i in range(3))

NEWER = b'{"format": 99, "written_by": "recrawl 9"}'
CSV = b"url,at\n" + b"".join(b"https://e.org/%d,%s\n" % (i, TIME.encode()) for i in range(3))
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recrawl(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process: exit code, output, messages."""

    def command(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["recrawl", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        found = capfd.readouterr()
        assert "Traceback" not in found.err
        return code, found.out, found.err

    return command


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# -- counting ---------------------------------------------------------------------------------------------------------


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    first, _ = imported(tmp_path, GOOD)
    again, history = imported(tmp_path, GOOD, GOOD)
    assert (first.added, first.duplicates, first.pages) == (3, 0, 3)
    assert (again.added, again.duplicates, again.replaced, again.pages) == (0, 6, 0, 3)
    assert history.timeline.n_visits == 3


def test_the_report_is_printed_as_json(tmp_path: Path, recrawl: Command) -> None:
    file = written(
        tmp_path / "x",
        GOOD + b"broken\n" + jsonl([{"url": "https://e.org/0", "at": TIME, "odd": 1, "links": ["mailto:x"]}]),
    )
    code, out, _ = recrawl("import", file, "--history", tmp_path / "h", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["read"], found["added"], found["duplicates"], found["pages"]) == (5, 3, 1, 3)
    assert found["skipped"] == {"not JSON": 1}
    assert found["examples"]["not JSON"].startswith(f"{file} line 4")
    assert found["unknown_fields"] == {"odd": 1}
    assert found["dropped_links"] == {"not an http or https URL": 1}
    assert found["failed_inputs"] == []


def test_the_report_is_printed_for_people(tmp_path: Path, recrawl: Command) -> None:
    file = written(tmp_path / "x", GOOD + b"broken\n[red]{}[/red]\n")
    code, out, _ = recrawl("import", file, "--history", tmp_path / "h")
    assert code == 0
    assert "3 visits added of 5 read, on 3 pages" in out
    assert "not JSON" in out


def test_commits_are_reported_as_they_happen(tmp_path: Path, recrawl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.ingest.COMMIT_VISITS", 1)
    _, _, messages = recrawl("import", written(tmp_path / "x", GOOD), "--history", tmp_path / "h", "--verbose")
    assert [line.split(" (")[0] for line in messages.splitlines() if "safe" in line][:3] == [
        f"safe: {n} visits" for n in (1, 2, 3)
    ]


def test_a_file_of_bad_records_only_adds_nothing(tmp_path: Path) -> None:
    report, history = imported(tmp_path, b"{\n{\n")
    assert (report.added, dict(report.skipped), report.pages) == (0, {"not JSON": 2}, 0)
    assert history.timeline.n_visits == 0


# -- inputs that cannot be read ---------------------------------------------------------------------------------------


def bad_inputs(folder: Path) -> dict[str, tuple[Path, str]]:
    (folder / "folder").mkdir()
    return {
        "an empty file": (written(folder / "empty", b""), "is empty"),
        "an empty gzip file": (written(folder / "empty.gz", gzip.compress(b"")), "is empty"),
        "a folder": (folder / "folder", "is a folder; name the files in it"),
        "a missing file": (folder / "missing", "No such file"),
        "nothing": (Path("/dev/null"), "is empty"),
        "random bytes": (written(folder / "random", random.Random(7).randbytes(5000)), "is not recognised"),
        "an HTML page": (written(folder / "page.html", b"<!doctype html>"), "an HTML page"),
        "half a gzip file": (
            written(folder / "half.gz", gzip.compress(random.Random(1).randbytes(999) + GOOD)[:500]),
            "is not recognised",
        ),
        "a truncated stream": (written(folder / "cut.jsonl.gz", gzip.compress(GOOD)[:-9]), "ends too early"),
    }


def test_an_input_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path, recrawl: Command) -> None:
    inputs = bad_inputs(tmp_path)
    good = written(tmp_path / "good", GOOD)
    code, out, messages = recrawl(
        "import", *(path for path, _ in inputs.values()), good, "--history", tmp_path / "h", "--json"
    )
    assert code == 1
    found = json.loads(out)
    assert found["added"] == 3
    assert len(found["failed_inputs"]) == len(inputs)
    for failure, (path, reason) in zip(found["failed_inputs"], inputs.values(), strict=True):
        assert str(path) in failure
        assert reason in failure
        assert f"error: {failure}" in messages


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    secret = written(tmp_path / "secret", GOOD)
    secret.chmod(0)
    os.seteuid(65534)
    try:
        with pytest.raises(BadSource, match="Permission denied"):
            streams.open_input(str(secret))
    finally:
        os.seteuid(0)


def test_the_part_before_damage_is_kept(tmp_path: Path) -> None:
    lines = jsonl(
        {"url": f"https://e.org/{i}", "at": TIME, "note": str(random.Random(i).random())} for i in range(5000)
    )
    cut = gzip.compress(lines)
    report, history = imported(tmp_path, cut[: len(cut) // 2])
    assert 2000 < report.added == history.timeline.n_visits < 3000
    assert "ends too early" in report.failed_inputs[0]
    table = b"url,at\n" + b"".join(b"https://e.org/%d,%s\n" % (i, TIME.encode()) for i in range(100_000))
    cut = gzip.compress(table)
    report, _ = imported(tmp_path, cut[: len(cut) // 2], into="other")
    assert report.added > 30_000
    assert "ends too early" in report.failed_inputs[0]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda folder: written(folder, b"x"), "is a file; a history is a directory"),
        (lambda folder: (folder.mkdir(), written(folder / "thesis.txt", b"x")), "holds other files and is not a history"),
        (lambda folder: (History.create(folder), written(folder / "recrawl.json", NEWER)), "Upgrade with: pip install -U recrawl"),
        (lambda folder: (History.create(folder), written(folder / "recrawl.json", b'{"format"')), "is damaged"),
        (lambda folder: (History.create(folder), written(folder / "recrawl.json", b"\xff\xfe\0")), "is damaged"),
        (lambda folder: (History.create(folder), written(folder / "recrawl.json", b"[]")), "is damaged"),
    ],
)  # fmt: skip
def test_a_history_that_cannot_be_written_is_refused(
    tmp_path: Path, recrawl: Command, made: Callable[[Path], Any], message: str
) -> None:
    made(tmp_path / "h")
    code, _, messages = recrawl("import", written(tmp_path / "x", GOOD), "--history", tmp_path / "h")
    assert (code, messages.startswith("error: ")) == (1, True)
    assert message in messages


def test_wrong_usage_exits_2(recrawl: Command, tmp_path: Path) -> None:
    assert recrawl("import")[0] == 2
    assert recrawl("import", "x", "--no-such-option")[0] == 2
    assert recrawl("import", "x", "--workers", "0", "--history", tmp_path)[0] == 2


def test_an_unknown_format_names_the_known_ones(recrawl: Command, tmp_path: Path) -> None:
    code, _, messages = recrawl(
        "import", written(tmp_path / "x", GOOD), "--format", "jsnol", "--history", tmp_path / "h"
    )
    assert code in (1, 2)
    assert "Did you mean 'jsonl'?" in messages


# -- strict -----------------------------------------------------------------------------------------------------------


def test_strict_fails_with_the_reason(tmp_path: Path, recrawl: Command) -> None:
    bad = written(tmp_path / "bad", GOOD + b"broken\n")
    code, _, messages = recrawl(
        "import", written(tmp_path / "good", GOOD), bad, "--strict", "--history", tmp_path / "h"
    )
    assert code == 1
    assert "not JSON" in messages
    assert f"{bad} line 4" in messages
    code, _, messages = recrawl("import", tmp_path / "missing", "--strict", "--history", tmp_path / "h")
    assert (code, "No such file" in messages) == (1, True)
    assert recrawl("import", tmp_path / "good", "--strict", "--history", tmp_path / "h")[0] == 0


# -- standard input and pipes -----------------------------------------------------------------------------------------

WARC = [page_record(i) for i in range(3)]


@pytest.mark.parametrize(
    "data",
    [GOOD, gzip.compress(GOOD), packed(WARC, "gz"), CSV],
    ids=["JSON lines", "JSON lines, gzip", "WARC", "CSV"],
)  # fmt: skip
def test_standard_input_is_read(tmp_path: Path, data: bytes) -> None:
    found = command("import", "-", "--history", tmp_path / "h", "--json", "--workers", "1", stdin=data)
    assert (found.code, json.loads(found.stdout)["added"]) == (0, 3), found.stderr
    assert urls(History.open(tmp_path / "h")) == [f"https://e.org/{i}" for i in range(3)]


def test_an_empty_standard_input_of_a_process_is_an_error(tmp_path: Path) -> None:
    found = run("import", "-", "--history", tmp_path / "h", "--json", stdin=b"")
    assert (found.returncode, found.stderr) == (1, b"error: standard input is empty\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("data", [GOOD, packed(WARC, "plain")], ids=["JSON lines", "WARC"])
def test_a_pipe_that_gives_little_at_a_time_is_read(tmp_path: Path, data: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed() -> None:
        with pipe.open("wb", buffering=0) as out:
            for part in (data[:3], data[3:50], data[50:]):
                out.write(part)
                time.sleep(0.05)

    feeder = threading.Thread(target=feed)
    feeder.start()
    report, history = imported(tmp_path, pipe)
    feeder.join()
    assert (report.added, report.failed_inputs) == (3, [])
    assert last_parts(history) == "012"


# -- other kinds ------------------------------------------------------------------------------------------------------


def test_timemaps_are_imported(tmp_path: Path) -> None:
    link = b"""<https://e.org/>; rel="original",
    <https://a.org/web/20260102000000/https://e.org/>; rel="memento"; datetime="Fri, 02 Jan 2026 00:00:00 GMT",
    <https://a.org/web/x>; rel="memento"; datetime="never" """
    rows = [
        ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest"],
        ["x", "20260103000000", "https://e.org/", "text/html", "200", "D"],
    ]
    report, history = imported(tmp_path, link, gzip.compress(json.dumps(rows).encode()))
    assert (report.added, dict(report.skipped)) == (2, {"unreadable time": 1})
    assert urls(history) == ["https://e.org/"]


def test_a_timemap_over_the_limit_is_named(tmp_path: Path) -> None:
    data = b'<https://e.org/>; rel="original",\n' + b" " * 3_000_000
    report, _ = imported(tmp_path, data, max_body=1 << 20)
    assert "larger than 1 MiB; --max-body" in report.failed_inputs[0]


# -- large pages ------------------------------------------------------------------------------------------------------


def test_a_page_of_50_mb_is_skipped_unless_allowed(tmp_path: Path) -> None:
    data = packed(
        [record("https://e.org/1", http(b"<p>" + b"word " * 10_000_000 + b"<a href=/x>x</a>")), page_record(2)], "gz"
    )
    report, history = imported(tmp_path, data)
    assert (dict(report.skipped), last_parts(history)) == ({"body over 32 MiB": 1}, "2")
    report, history = imported(tmp_path, data, into="other", max_body=64 << 20)
    assert (report.added, links(history)["https://e.org/1"]) == (2, ["https://e.org/x"])


@pytest.mark.slow
def test_a_page_with_a_million_links_is_imported_in_time_proportional_to_them(tmp_path: Path) -> None:
    def import_page(n: int) -> None:
        (folder := tmp_path / str(next(numbers))).mkdir()
        body = b"".join(b"<a href=/%d>%d</a>" % (i, i) for i in range(n))
        report, history = imported(folder, packed([record("https://e.org/", http(body))], "gz"))
        assert report.added == 1
        assert history.timeline.n_links()[0].tolist() == [n]

    numbers = itertools.count()
    assert growth(import_page, 100_000, 1_000_000) < 4


# -- order and repetition ---------------------------------------------------------------------------------------------

MOMENTS = ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-03T00:00:01Z", "2026-01-05T00:00:00+01:00"]
RECORDS = st.fixed_dictionaries(
    {"url": st.sampled_from(["https://e.org/", "https://e.org/a", "https://f.org/"]), "at": st.sampled_from(MOMENTS)},
    optional={
        "status": st.sampled_from([200, 301, 304, 404, 503]),
        "links": st.lists(st.sampled_from([f"https://e.org/{c}" for c in "abcdef"] + ["https://g.org/"]), max_size=4),
        "text": st.sampled_from(["one two three", "four five six"]),
        "payload_digest": st.sampled_from(["sha1:A", "sha1:B"]),
    },
)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RECORDS, min_size=1, max_size=12), st.randoms(use_true_random=False), st.integers(1, 4))
def test_neither_order_nor_batches_nor_repetition_change_the_history(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], rng: random.Random, n_batches: int
) -> None:
    folder = tmp_path_factory.mktemp("order")
    _, expected = imported(folder, jsonl(records), into="expected")
    shuffled = [*records, *rng.sample(records, rng.randint(0, len(records)))]
    rng.shuffle(shuffled)
    history = expected
    for i in range(n_batches):
        _, history = imported(folder, jsonl(shuffled[i::n_batches]), into="shuffled")
    assert story(history) == story(expected)
    history.compact()
    assert story(History.open(folder / "shuffled")) == story(expected)


@pytest.mark.parametrize(
    "column", [{"title": "A"}, {"baseline": True}, {"relevance": 0.5}, {"etag": "x"}, {"content_type": "a/b"}]
)
def test_rows_that_differ_in_one_column_only_have_the_same_winner_in_any_order(
    tmp_path: Path, column: dict[str, Any]
) -> None:
    plain = {"url": "https://e.org/", "at": TIME, "links": []}
    rows = [jsonl([plain]), jsonl([{**plain, **column}])]
    stories = [story(imported(tmp_path, *order, into=name)[1]) for name, order in (("one", rows), ("two", rows[::-1]))]
    assert stories[0] == stories[1]


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_visits_in_the_same_second_the_one_that_holds_more_counts(tmp_path: Path, swapped: bool) -> None:
    full = {"url": "https://e.org/", "at": TIME, "links": ["https://e.org/a"], "text": "words"}
    bare = {"url": "https://e.org/", "at": TIME, "status": 304}
    batches = [jsonl([bare]), jsonl([full])] if swapped else [jsonl([full]), jsonl([bare])]
    for batch in batches:
        report, history = imported(tmp_path, batch)
    assert links(history) == {"https://e.org/": ["https://e.org/a"]}
    assert history.timeline.n_visits == 1
    assert (report.added, report.duplicates, report.replaced) == (0, 1, int(swapped))


def test_visits_out_of_order_are_compared_in_order(tmp_path: Path) -> None:
    days = [
        {"url": "https://e.org/", "at": f"2026-01-0{d}T00:00:00Z", "links": [f"https://e.org/{i}" for i in range(d)]}
        for d in (3, 1, 4, 2)
    ]
    _, history = imported(tmp_path, *(jsonl([day]) for day in days))
    assert history.novelty.total("previous").tolist() == [-1, 1, 1, 1]


def test_several_workers_make_the_same_history_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.sources.chunks.LARGEST", 20_000)
    monkeypatch.setattr("recrawl.sources.streams.BLOCK", 20_000)
    rng = random.Random(1)
    pages = [f"https://e.org/{rng.randrange(40)}" for _ in range(400)]
    bodies = [
        "".join(f"<p>word{rng.randrange(50)} <a href='/{rng.randrange(90)}'>x</a>" for _ in range(5)).encode()
        for _ in pages
    ]
    times = [f"2026-01-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00Z" for _ in pages]
    archive = packed(
        [record(page, http(body), at=at) for page, body, at in zip(pages, bodies, times, strict=True)], "gz"
    )
    lines = jsonl(
        {"url": page, "at": at, "html": body.decode(), "odd": 1}
        for page, body, at in zip(pages, bodies, reversed(times), strict=True)
    )
    one, alone = imported(tmp_path, archive, lines + b"broken\n", into="one", workers=1)
    two, together = imported(tmp_path, archive, lines + b"broken\n", into="two", workers=2)
    assert story(alone) == story(together)
    for name in ("read", "added", "duplicates", "skipped", "unknown_fields", "pages", "examples"):
        assert getattr(one, name) == getattr(two, name)
