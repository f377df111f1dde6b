"""``recrawl archive`` from the command line to the history, against an archive on loopback."""

import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Done, command
from recrawl.cli.archive import archive as archive_command
from recrawl.core.times import parse_period
from recrawl.history import History
from recrawl.sources.wayback import INTERFACES, PATIENCE
from recrawl.web.pdf import PDF_CHOICES

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


def archive(server: Any, folder: Path, *more: str) -> Done:
    asked = ["archive", *(more or (PAGE,)), "--contact", "me@e.org", "--json"]
    return command(*asked, "--server", server.base_url, "--history", folder)


def test_captures_become_visits_and_a_second_run_asks_for_nothing(server: Any, tmp_path: Path) -> None:
    done = archive(server, tmp_path / "h")
    assert done.code == 0, done.stderr
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
    assert done.code == 1
    assert "error: ftp://nonsense/" in done.stderr
    assert History.open(tmp_path / "h").timeline.n_visits == 3


def test_a_prefix_is_asked_for_with_its_depth(server: Any, tmp_path: Path) -> None:
    server.capture("20200104000000", f"{PAGE}a/b/c", "C" * 32, body=b"deep")
    done = archive(server, tmp_path / "h", "example.org/*", "--depth", "2", "--interface", "internet-archive")
    report = json.loads(done.stdout)
    assert (done.code, report["visits"], report["skipped"]) == (0, 3, {"deeper than 2": 1})


def test_an_archive_that_asks_to_come_back_tomorrow_ends_the_command_with_one_sentence(
    server: Any, tmp_path: Path
) -> None:
    too_late = sys.modules["archive_server"].status(429, b"", Retry_After="86400")
    server.trouble("20200103000000id_", too_late)
    done = archive(server, tmp_path / "h", PAGE, "http://other.example/", "--interface", "internet-archive")
    assert done.code == 1
    assert done.stderr.splitlines() == [
        "error: the archive answers 429 and asks to come back in 24 h. "
        "What was fetched is kept: run the same command again to continue."
    ]
    assert History.open(tmp_path / "h").timeline.n_visits == 2
    again = archive(server, tmp_path / "h", PAGE, "--interface", "internet-archive")
    assert (again.code, json.loads(again.stdout)["visits"]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--interface", "pyvb"], "Did you mean 'pywb'"),
        (["--pdf", "some"], "Known: with, only, without"),
        (["--depth", "2"], "only prefixes"),
        (["--depth", "-1"], "Invalid value for '--depth'"),
        (["--patience", "long"], "is not a period"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(options: list[str], why: str, tmp_path: Path) -> None:
    done = command("archive", PAGE, "--contact", "me@e.org", "--history", str(tmp_path / "h"), *options)
    assert done.code == 2
    assert why in done.message
    assert not (tmp_path / "h").exists()


def test_the_help_names_every_interface_and_every_choice() -> None:
    text = " ".join(command("archive", "--help").stdout.split())
    for name in (*INTERFACES, *PDF_CHOICES):
        assert name in text


def test_the_command_is_as_patient_as_the_client() -> None:
    default = inspect.signature(archive_command).parameters["patience"].default
    assert parse_period(default).total_seconds() == PATIENCE
