"""``recrawl crawl`` as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from patience import patience, slowness, wait_for
from recrawl.cli import app
from recrawl.crawl.unfinished import CrawlLock
from recrawl.errors import BadOption
from recrawl.history import History
from recrawl.synth.living.web import Faults, Living, LivingWeb
from recrawl.web.visit import Outcome

pytestmark = pytest.mark.slow  # each crawl is a process

AGENT = "Test/1.0 (+https://example.org/bot)"


@pytest.fixture(scope="module")
def web() -> Iterator[LivingWeb]:
    with LivingWeb(Living(sites=3, pages=60, steps=40, faults=Faults(), crawl_delay=0.0)) as living:
        yield living


def command(*arguments: str) -> list[str]:
    shared = ["--allow-loopback", "--user-agent", AGENT, "--host-concurrency", "4"]
    return [sys.executable, "-m", "recrawl.cli", "crawl", *shared, *arguments]


def ask(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        command(*arguments, "--json"), capture_output=True, text=True, timeout=patience(120), check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def begun(web: LivingWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first crawl from one seed over all sites, with WARC files."""
    folder = tmp_path_factory.mktemp("command")
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.seeds))
    limits = ["--pages", "50", "--depth", "2", "--delay", "0", "--warc", str(folder / "warc")]
    (summary,) = ask("--seeds", str(seeds), "--history", str(folder / "history"), *limits)
    assert summary["fetched"] > 40
    assert summary["visits"] == summary["written"] <= 50 + summary["redirects"]
    return folder


def test_a_first_crawl_is_a_history_and_warc_files_that_others_read(begun: Path) -> None:
    timeline = History.open(begun / "history").timeline
    assert timeline.n_visits == len(timeline.pages) > 40
    files = list((begun / "warc").iterdir())
    assert [path.name.endswith(".warc.gz") for path in files] == [True]
    with files[0].open("rb") as stream:
        archived = {
            record.rec_headers.get_header("WARC-Target-URI")
            for record in ArchiveIterator(stream, check_digests="raise")
            if record.rec_type == "response" and record.content_stream().read() is not None
        }
    answered = timeline.page[timeline.outcome == Outcome.OK]
    assert set(History.open(begun / "history").urls_of(answered).to_pylist()) <= archived


def test_cycles_follow_each_other(begun: Path) -> None:
    summary = ask(
        "--budget", "5", "--delay", "0", "--cycles", "2", "--every", "1s", "--history", str(begun / "history")
    )
    assert [cycle["planned"] for cycle in summary] == [5, 5]
    assert [cycle["ended"] for cycle in summary] == ["finished"] * 2
    assert summary[1]["not_modified"] > 0
    assert [cycle["hints_read"] > 0 for cycle in summary] == [True, False]  # once a day


def test_the_summary_is_readable(begun: Path) -> None:
    plain = command("--budget", "5", "--delay", "0", "--no-hints", "--history", str(begun / "history"))
    done = subprocess.run(plain, capture_output=True, text=True, timeout=patience(120), check=False)
    assert done.returncode == 0, done.stderr
    assert "5 visits in" in done.stdout
    assert "new links" in done.stdout


def slowly() -> list[str]:
    """Options for a crawl that can be interrupted before it has fetched all of its 30 pages."""
    return ["--budget", "30", "--delay", str(0.5 * slowness()), "--host-concurrency", "1", "--no-hints"]


def test_ctrl_c_keeps_what_was_fetched_and_the_next_crawl_continues(begun: Path) -> None:
    history = begun / "history"
    slow = command(*slowly(), "--history", str(history))
    before = History.open(history).timeline.n_visits
    process = subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: History.open(history).timeline.n_visits > before, every=0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=patience(60))
    assert process.returncode == 0, err
    assert "ended early" in out
    fetched = History.open(history).timeline.n_visits - before
    assert 0 < fetched < 30
    (summary,) = ask("--budget", "30", "--delay", "0", "--no-hints", "--history", str(history))
    assert summary["planned"] == 30 - fetched
    assert summary["ended"] == "finished"


def test_a_second_ctrl_c_ends_at_once_and_keeps_and_reports_what_was_fetched(begun: Path) -> None:
    history = begun / "history"
    before = History.open(history).timeline.n_visits
    slow = command(*slowly(), "--no-resume", "--json", "--history", str(history))
    process = subprocess.Popen(slow, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: History.open(history).timeline.n_visits > before)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=patience(60))
    summary = json.loads(out.splitlines()[-1])
    assert summary["ended"] in ("killed", "shutdown")  # it may have ended before the second one came
    # The second may also come when all is done, and end Python as it leaves.
    assert process.returncode in ((130,) if summary["ended"] == "killed" else (0, -signal.SIGINT))
    assert summary["visits"] == summary["written"] == History.open(history).timeline.n_visits - before > 0


def test_a_crawl_ends_in_time_and_one_that_gets_nothing_has_failed(begun: Path, tmp_path: Path) -> None:
    (summary,) = ask(
        "--budget", "30", "--delay", "3", "--max-time", "2s", "--no-hints", "--history", str(begun / "history")
    )
    assert summary["ended"] == "closespider_timeout"
    for arguments, why in (
        (["--seeds", "http://127.0.0.1:9/"], "connection refused"),
        (["--plan", str(begun / "gone.txt")], "connection refused"),
    ):
        (begun / "gone.txt").write_text("http://127.0.0.1:9/a")
        done = subprocess.run(
            command(*arguments, "--no-hints", "--history", str(tmp_path / "h")),
            capture_output=True,
            text=True,
            timeout=patience(60),
            check=False,
        )
        assert done.returncode == 1
        assert why in " ".join(done.stdout.split())
        assert "no page could be fetched" in done.stderr


def test_a_crawl_says_if_another_is_using_the_same_history(begun: Path) -> None:
    history = History.open(begun / "history")
    lock = CrawlLock(history)
    assert lock.is_ours
    (summary,) = ask("--budget", "2", "--delay", "0", "--no-hints", "--history", str(begun / "history"))
    assert any("another crawl is using this history" in text for text in summary["notes"])
    lock.release()
    (summary,) = ask("--budget", "2", "--delay", "0", "--no-hints", "--history", str(begun / "history"))
    assert not any("another crawl" in text for text in summary["notes"])


def test_only_a_first_crawl_creates_a_missing_history(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--history", str(tmp_path / "no")), capture_output=True, text=True, timeout=patience(60), check=False
    )
    assert done.returncode == 1
    assert "no history at" in done.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--budget", "5"], "Missing option '--user-agent'"),
        (["--user-agent", "bot"], "how site owners can reach you"),
        (["--user-agent", AGENT, "--seeds", "nowhere.txt"], "neither a URL"),
        (["--user-agent", AGENT, "--every", "soon"], "is not a period"),
        (["--user-agent", AGENT, "--max-time", "soon"], "is not a period"),
        (["--user-agent", AGENT, "--seeds", "https://e.org/", "--plan", "plan.txt"], "give one of them"),
        (["--user-agent", AGENT, "--warc", __file__], "that is a file"),
        (["--user-agent", AGENT, "--seeds", "https://e.org/", "--follow", "new"], "follows links by itself"),
        (["--user-agent", AGENT, "--adopt", "3"], "needs follow new"),
        (["--user-agent", AGENT, "--classifier", "none.json"], "there is no such file"),
        (["--user-agent", AGENT, "--as-of", "2026-01-01T00:00Z"], "No such option"),
    ],
)
def test_contradicting_options_are_wrong_usage(arguments: list[str], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECRAWL_USER_AGENT", raising=False)
    result = CliRunner().invoke(app, ["crawl", *arguments])
    is_bad_option = isinstance(result.exception, BadOption)  # which `main` turns into exit code 2
    assert is_bad_option or result.exit_code == 2
    output = str(result.exception) if is_bad_option else result.output
    assert why in " ".join(output.replace("│", " ").split())


def test_without_scrapy_one_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "scrapy.py").write_text("raise ModuleNotFoundError('no', name='scrapy')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "recrawl.cli", "crawl", "--user-agent", AGENT],
        capture_output=True, text=True, env=environment, timeout=patience(60), check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "recrawl[crawl]" in done.stderr
    assert "Traceback" not in done.stderr
