"""``recrawl archive`` from the command line to the history, against an archive on loopback."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recrawl.history import History

PAGE = "http://example.org/"


@pytest.fixture
def server() -> Iterator[Any]:
    path = Path(__file__).resolve().parents[1] / "sources" / "archive_server.py"
    spec = importlib.util.spec_from_file_location("archive_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["archive_server"] = module
    spec.loader.exec_module(module)
    with module.ArchiveServer() as remote:
        for day, digest, link in ((1, "A" * 32, "a"), (2, "A" * 32, "a"), (3, "B" * 32, "b")):
            body = f"<a href='/{link}'>x</a><a href='/always'>y</a>".encode()
            remote.capture(f"2020010{day}000000", PAGE, digest, body=body)
        yield remote


def archive(server: Any, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recrawl.cli", "archive", *(more or (PAGE,)), "--contact", "me@e.org", "--json"]
    command += ["--server", server.base_url, "--history", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_captures_become_visits_and_a_second_run_asks_for_nothing(server: Any, tmp_path: Path) -> None:
    done = archive(server, tmp_path / "h")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["visits"], report["mementos"], report["failed"]) == (3, 2, {})
    history = History.open(tmp_path / "h")
    assert history.timeline.n_links()[0].tolist() == [2, 2, 2]
    assert history.novelty.total("previous").tolist() == [-1, 0, 1]
    asked = len(server.log)
    assert json.loads(archive(server, tmp_path / "h").stdout)["visits"] == 0
    assert len(server.log) == asked
    assert "me@e.org" in next(iter(server.agents))


def test_urls_may_come_from_a_file(server: Any, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(f"# my pages\n{PAGE}\n\n")
    assert json.loads(archive(server, tmp_path / "h", str(tmp_path / "urls.txt")).stdout)["urls"] == 1


def test_a_url_that_fails_is_named_and_the_command_exits_with_1(server: Any, tmp_path: Path) -> None:
    done = archive(server, tmp_path / "h", PAGE, "ftp://nonsense/")
    assert done.returncode == 1
    assert "error: ftp://nonsense/" in done.stderr
    assert History.open(tmp_path / "h").timeline.n_visits == 3
