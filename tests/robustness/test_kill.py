"""A process killed at any moment loses no visit that it reported as safe, and none is ever there twice."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from making import http, imported, jsonl, packed, record, story
from patience import wait_for
from processes import children, running
from recrawl.history import History

IMPORTER = [sys.executable, str(Path(__file__).with_name("importer.py")), "20"]
N_VISITS = 900


def visits() -> list[dict[str, object]]:
    return [
        {
            "url": f"https://e.org/{i % 300}",
            "at": 1767312000 + 3600 * (i // 300),
            "links": [f"https://e.org/{i % 300}/{n}" for n in range(i // 300, i // 300 + 5)],
            "text": f"word{i} and more words",
        }
        for i in range(N_VISITS)
    ]


def kill_while_importing(arguments: list[str], n_commits: int, share: float) -> tuple[int, bool]:
    """Start an import, kill it after some commits and a share of the next; visits it reported as safe, and whether it had ended."""
    process = subprocess.Popen([*IMPORTER, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    messages, began = process.stderr.readline(), time.monotonic()
    for _ in range(n_commits):
        messages += process.stderr.readline()
    time.sleep(share * (time.monotonic() - began) / n_commits)  # by this machine's own pace
    process.send_signal(signal.SIGKILL)
    messages = (messages + process.stderr.read()).decode()
    ended = process.wait() == 0
    assert "Traceback" not in messages
    return max((int(n.replace(",", "")) for n in re.findall(r"safe: ([\d,]+) visits", messages)), default=0), ended


def standing_rows(folder: Path) -> Counter[tuple[int, int]]:
    rows = History.open(folder).store.read("visits", ["page", "at"]).to_pylist()
    return Counter((row["page"], row["at"].timestamp()) for row in rows)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing kills so here")
@pytest.mark.parametrize("n_kills", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_no_acknowledged_visit_is_lost_and_none_is_doubled(tmp_path: Path, n_kills: int) -> None:
    file = tmp_path / "visits.jsonl"
    file.write_bytes(jsonl(visits()))
    _, expected = imported(tmp_path, file, into="expected")
    everything = story(expected)
    rng = random.Random(11)
    folder, interrupted = tmp_path / "history", 0
    for i in range(n_kills):
        folder = tmp_path / f"history-{i // 3}"  # each is torn several times before it is completed
        safe, ended = kill_while_importing(
            [str(file), "--history", str(folder), "--verbose", "--workers", "1"], rng.randint(1, 4), rng.random()
        )
        interrupted += not ended
        rows = standing_rows(folder)
        assert max(rows.values()) == 1
        assert sum(rows.values()) >= safe > 0
        timeline = History.open(folder).timeline
        assert timeline.n_visits == sum(rows.values())
        assert (timeline.links >= 0).all()  # what a visit points at is there
        if i % 3 == 2:
            report, history = imported(tmp_path, file, into=folder.name)
            assert (report.added, report.duplicates) == (N_VISITS - sum(rows.values()), sum(rows.values()))
            assert story(history) == everything
            assert set(standing_rows(folder).values()) == {1}
    assert interrupted >= n_kills // 2


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a list of processes")
def test_worker_processes_leave_when_the_import_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pages.warc.gz"
    body = b"<p>words <a href=/x>x</a>" * 2000
    file.write_bytes(packed([record(f"https://e.org/{i}", http(body)) for i in range(3000)], "gz"))
    mark = str(tmp_path / "killed")
    process = subprocess.Popen(
        [*IMPORTER, str(file), "--history", mark, "--workers", "2", "--verbose"], stderr=subprocess.PIPE
    )
    try:
        started = wait_for(lambda: children(process.pid) if len(children(process.pid)) >= 3 else [])
        assert started
    finally:
        process.kill()
        process.communicate()
    assert wait_for(lambda: not any(map(running, started)))
