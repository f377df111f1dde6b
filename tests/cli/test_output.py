"""What reaches a terminal: no control character of foreign text, in any alphabet, in pipes that close, after Ctrl-C."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path

import pytest

from commands import command, output
from shared_data import DATA

TITLE = "\x1b]0;owned\x07"  # renames the window of a terminal
HOSTILE = [
    TITLE, "\x1b[2J\x1b[1;1H", "\x9b31m", "\x9d0;owned\x9c", "\u202etxt.exe", "\u2066hidden\u2069", "a\rb", "a\x08b", "\x00",
    "\x7f", "\x85next", "[/bold]", "[link=file:///etc/passwd]x[/link]", "{0}", "%s", "\U000e0041", "tab\there",
    "line\nerror: not ours", "\udc9b",
]  # fmt: skip
BIDI = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def unsafe(text: str) -> set[str]:
    """The characters that a terminal would obey."""
    return {each for each in text if (unicodedata.category(each) in ("Cc", "Cs") and each != "\n") or each in BIDI}


@pytest.fixture(scope="module")
def hostile() -> list[str]:
    """Hostile texts, and where it is present the list of strings that have broken programs before."""
    path = DATA / "conformance" / "naughty_strings.json"
    return HOSTILE + (json.loads(path.read_text()) if path.exists() else [])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, hostile: list[str]) -> Path:
    """A history in which every free text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    with (folder / "in.jsonl").open("w") as file:
        for i, text in enumerate(hostile):
            clean = text.encode("utf-8", "replace").decode()
            for day in (1, 2, 3):
                record = {
                    "url": f"https://e{i % 7}.org/{i % 40}", "at": f"2026-01-{day + 3 * (i // 40):02}T00:00:00Z", "title": clean,
                    "note": clean, "text": clean * day, "links": [f"https://e.org/{clean}/{day}"], clean: 1,
                }  # fmt: skip
                file.write(json.dumps(record) + "\n")
    return folder


def test_no_command_prints_a_control_character(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")  # notes are shown where there is room
    history, page = ("--history", str(folder / "h")), "https://e0.org/0"
    shown = 0
    for arguments in [
        ("import", str(folder / "in.jsonl"), *history),
        ("info", *history),
        ("show", page, "--links", *history),
        ("show", page, "--links", "--experts", "3", *history),
        ("plan", "--budget", "20", *history),
        ("explain", page, *history),
        ("seeds", *history),
        ("stats", *history),
        ("score", *history),
        ("watch", "--stop", "https://e1.org/*", *history),
        ("watch", *history),
        ("compact", *history),
    ]:
        done = command(*arguments)
        assert done.code in (0, 1), (arguments, done)
        assert unsafe(done.stdout + done.stderr) == set(), arguments
        shown += (done.stdout + done.stderr).count("\\x1b")
    assert shown > 3  # field names of the import, notes of a page


def test_quoted_input_has_no_control_character(tmp_path: Path) -> None:
    bad = "\x1b]0;owned\x07\x9b31m\u202e"
    table = tmp_path / "columns.csv"
    table.write_text(f"url,at,{bad}\nhttps://e.org/,2026-01-02T00:00:00Z,1\nhttps://e.org/,{bad},1\n")
    lines = tmp_path / f"{bad}.jsonl"
    lines.write_text('{"url": "\\u001b]0;owned\\u0007", "at": 1}\n{"url": "https://e.org/", "at": "\\u001b[2J"}\n')
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as archive:
        archive.writestr(f"archive/../{bad}.warc.gz", gzip.compress(b""))
    newer = tmp_path / "newer"
    output("synth", "--pages", "2", "--rounds", "2", "--history", str(newer))
    (marker,) = [path for path in newer.iterdir() if path.is_file() and "written_by" in path.read_text()]
    marker.write_text(json.dumps({"format": 999, "written_by": bad}))
    history = ("--history", str(tmp_path / "h"))
    for arguments in [
        ("import", str(table), *history),
        ("import", str(lines), *history),
        ("import", str(tmp_path / "a.wacz"), *history),
        ("import", str(tmp_path / f"{bad}missing"), *history),
        ("info", "--history", str(newer)),
        ("info", "--history", bad),
        ("plan", "--as-of", bad, *history),
        ("plan", "--policy", bad, *history),
        ("plan", "--format", bad, *history),
        ("plan", "--model", bad, *history),
        ("plan", f"--{bad}", *history),
        ("show", bad, *history),
        (bad,),
        (f"--{bad}",),
        ("relevance", "--labels", bad, *history),
    ]:
        done = command(*arguments)
        assert unsafe(done.stdout + done.stderr) == set(), arguments
        assert "\\x1b" in done.stdout + done.stderr, (arguments, done)


def test_json_stays_exact(folder: Path) -> None:
    output("import", str(folder / "in.jsonl"), "--history", str(folder / "exact"))
    visits = json.loads(output("show", "https://e0.org/0", "--json", "--history", str(folder / "exact")))["visits"]
    assert visits[0]["note"] == TITLE


def on_a_terminal(*arguments: str, columns: str = "250") -> str:
    """What a command writes to a terminal, colours and all."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl.cli", *arguments], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": columns, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    process.wait(timeout=60)
    os.close(ours)
    return b"".join(parts).decode()


def test_colours_are_ours_and_control_characters_of_texts_are_not_obeyed(folder: Path) -> None:
    output("import", str(folder / "in.jsonl"), "--history", str(folder / "tty"))
    # The colours, the cursor and the line of a spinner are rich's; no command of ours renames windows.
    for arguments in [
        ("show", "https://e0.org/0", "--links", "--history", str(folder / "tty")),
        ("import", str(folder / "in.jsonl"), "--history", str(folder / "tty")),
        ("plan", "--policy", TITLE, "--history", str(folder / "tty")),
        ("show", TITLE),
    ]:
        text = on_a_terminal(*arguments)
        assert "\x1b[" in text or arguments[0] == "plan", arguments  # an error is one line without colours
        assert re.search("\x1b\\]|\x07|\x9b|\u202e|\x1b\\[2J", text) is None, arguments
        assert "\\x1b]0;owned\\x07" in text, arguments


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.slow)])
def test_a_terminal_without_our_letters_gets_others(folder: Path, encoding: str, tmp_path: Path) -> None:
    history = str(tmp_path / "h")
    output("import", str(folder / "in.jsonl"), "--history", history)
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C", "COLUMNS": "200"}
    for arguments in [("info",), ("plan", "--budget", "3", "--dry-run")]:
        done = subprocess.run(
            [sys.executable, "-m", "recrawl.cli", *arguments, "--history", history],
            capture_output=True, env=environment, timeout=120,
        )  # fmt: skip
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
        assert unsafe(done.stdout.decode(encoding)) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "export links --format csv",
        *(
            pytest.param(each, marks=pytest.mark.more)
            for each in ("info", "plan --budget 5", "export links --format parquet", "seeds")
        ),
    ],
)
def test_a_reader_that_has_seen_enough_is_a_good_end(arguments: str, tmp_path: Path) -> None:
    history = tmp_path / "h"
    if arguments != "--help":
        output("synth", "--pages", "20", "--rounds", "4", "--history", str(history))
        arguments += f" --history {history}"
    # A reader that is gone before anything is written.
    line = f"{sys.executable} -m recrawl.cli {arguments} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search("Traceback|Exception|roken pipe", done.stderr) is None, done.stderr


INTERRUPTED = """
import signal, sys
from recrawl.cli import main
module, sys.argv = sys.argv[1], ["recrawl", *sys.argv[2:]]
class Slow:
    def find_spec(self, name, *rest):
        if name == module:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Slow())
main()
"""


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "numba",
        "recrawl.policies.harvest.pick",
        *(pytest.param(each, marks=pytest.mark.more) for each in ("rich", "deltalake", "recrawl.plan.planner")),
    ],
)
def test_ctrl_c_is_one_line_wherever_the_program_is(module: str, tmp_path: Path) -> None:
    history = str(tmp_path / "h")
    output("synth", "--pages", "20", "--rounds", "4", "--history", history)
    command = [sys.executable, "-c", INTERRUPTED, module, "plan", "--budget", "5", "--history", history]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("stopped\n")
    assert done.returncode in (130, -signal.SIGINT)  # a process that dies by the signal is 130 for a shell as well


def test_sigterm_leaves_nothing_half_written(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from recrawl.cli.running import end_in_order
from recrawl.core.files import writing
end_in_order()
with writing(sys.argv[1]) as stream:
    stream.write(b"half")
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "table.csv")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")
    assert list(tmp_path.iterdir()) == []
