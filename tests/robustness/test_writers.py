"""Several processes that import at once make the same history as one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from making import http, imported, jsonl, packed, record, story
from patience import patience
from recrawl.history import History

IMPORTER = [sys.executable, str(Path(__file__).with_name("importer.py")), "120"]


def made_up_files(folder: Path) -> list[Path]:
    rng = random.Random(5)
    records = [
        {
            "url": f"https://e.org/{rng.randrange(60)}",
            "at": 1767312000 + 3600 * rng.randrange(20),
            "links": [f"https://e.org/{rng.randrange(200)}" for _ in range(6)],
            "text": " ".join(f"word{rng.randrange(300)}" for _ in range(10)),
        }
        for _ in range(900)
    ]
    files = []
    for i in range(3):
        files.append(folder / f"{i}.jsonl")
        files[-1].write_bytes(jsonl(records[i * 250 : i * 250 + 400]))  # neighbours overlap
    files.append(folder / "pages.warc.gz")
    pages = [
        record(f"https://e.org/{i % 60}", http(b"<a href=/%d>x</a>" % i), at=f"2026-01-02T{i % 24:02}:00:00Z")
        for i in range(200)
    ]
    files[-1].write_bytes(packed(pages, "gz"))
    return files


def test_four_processes_make_the_same_history_as_one(tmp_path: Path) -> None:
    files = made_up_files(tmp_path)
    _, expected = imported(tmp_path, *files, into="expected")
    folder = tmp_path / "history"
    processes = []
    for i in range(4):
        mine = [str(files[(i + n) % 4]) for n in range(3)]  # every file is read by three of them, in another order
        command = [*IMPORTER, *mine, "--history", str(folder), "--json", "--workers", "1"]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    while not (folder / "recrawl.json").exists():
        assert processes[0].poll() is None
    History.open(folder).compact()  # while they write
    reports = []
    for process in processes:
        out, messages = process.communicate(timeout=patience(120))
        assert (process.returncode, messages.decode()) == (0, "")
        reports.append(json.loads(out))
    history = History.open(folder)
    assert story(history) == story(expected)
    for report in reports:
        assert report["read"] == report["added"] + report["duplicates"]
    assert sum(report["added"] for report in reports) == history.timeline.n_visits  # also where they race
    history.compact()
    assert story(History.open(folder)) == story(expected)
    assert History.open(folder).store.read("visits").num_rows == expected.timeline.n_visits
