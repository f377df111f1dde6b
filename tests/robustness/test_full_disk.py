"""A disk that fills up while importing: a clear error, nothing acknowledged lost, and the import can be completed."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from making import imported, jsonl, story
from patience import patience
from recrawl.history import History

IMPORTER = [sys.executable, str(Path(__file__).with_name("importer.py")), "300"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Visits whose links and texts take some megabytes."""
    records = (
        {
            "url": f"https://e.org/{i}",
            "at": 1767312000,
            "links": [f"https://e.org/{i}/{n * 7919 % 1000003:x}/{i * n:x}" for n in range(60)],
            "note": f"{i:x}" * 20,
        }
        for i in range(2000)
    )
    path = tmp_path / "visits.jsonl"
    path.write_bytes(jsonl(records))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
        )
        if shutil.which("mount")
        else None
    )
    if made is None or made.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def attempt(file: Path, history: Path, **more: object) -> tuple[int, str]:
    command = [*IMPORTER, str(file), "--history", str(history), "--verbose", "--workers", "1"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=patience(120), **more)  # type: ignore[call-overload]
    assert "Traceback" not in found.stderr, found.stderr
    return found.returncode, found.stderr


def check_interrupted_and_complete(tmp_path: Path, file: Path, torn: Path, code: int, messages: str) -> None:
    assert code == 1, messages
    assert "error: cannot write the history" in messages
    assert "what is there already is not added twice" in messages or "safe:" not in messages
    safe = [int(line.split()[1].replace(",", "")) for line in messages.splitlines() if line.startswith("safe: ")]
    n = History.open(torn).timeline.n_visits if (torn / "recrawl.json").exists() else 0
    assert n >= max(safe, default=0)
    _, expected = imported(tmp_path, file, into="expected")
    report, history = imported(tmp_path, file, into=str(torn))
    assert (report.added, report.duplicates) == (2000 - n, n)
    assert story(history) == story(expected)
    assert history.store.read("visits").num_rows == 2000


def test_a_full_disk_is_survived(tmp_path: Path, small_disk: Path, file: Path) -> None:
    code, messages = attempt(file, small_disk / "history")
    assert "safe: " in messages
    assert "No space left" in messages or "os error 28" in messages
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    check_interrupted_and_complete(tmp_path, file, small_disk / "history", code, messages)


@pytest.mark.parametrize("limit", [40_000])
def test_a_limit_on_file_sizes_is_survived(tmp_path: Path, file: Path, limit: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code, messages = attempt(file, tmp_path / "history", preexec_fn=limited)
    check_interrupted_and_complete(tmp_path, file, tmp_path / "history", code, messages)
