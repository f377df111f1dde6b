"""What a command loads: nothing slow before it has refused what is wrong, and nothing that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patience

SLOW = ("pyarrow", "deltalake", "numba", "scipy", "sklearn")
#: Runs commands one after the other, and prints what each ended with and which of some packages are loaded by then.
DRIVER = """
import json, sys
from recrawl.cli import main

packages, commands = json.loads(sys.argv[1])
for arguments in commands:
    sys.argv = ["recrawl", *arguments]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    loaded = [name for name in packages if name in sys.modules]
    print("\\n" + json.dumps({"code": code, "loaded": loaded}), flush=True)
"""
AGENT = ("--user-agent", "Webwatch/1.0 (+https://example.org/bot)")
NO_FOLDER = "no/such/folder/file.csv"
REFUSED: dict[str, list[tuple[str, ...]]] = {
    "a bad period": [
        ("plan", "--every", "soon"),
        ("plan", "--min-gap", "soon"),
        ("explain", "https://e.org/", "--every", "2020-13-01T00:00Z,"),
        ("crawl", *AGENT, "--every", "soon"),
        ("replay", "--every", "soon"),
        ("tune", "--every", "soon"),
        ("train", "--every", "soon"),
        ("stats", "--every", "soon"),
        ("export", "panel", "--every", "soon"),
        ("score", "--horizon", "soon"),
    ],
    "a bad time": [("plan", "--as-of", "yesterday"), ("replay", "--from", "yesterday"), ("export", "visits", "--as-of", "?"),
                   ("info", "--as-of", "?")],
    "a file that cannot be written": [
        ("plan", "--out", NO_FOLDER),
        ("replay", "--out", NO_FOLDER),
        ("replay", "--rows", NO_FOLDER),
        ("export", "visits", "--out", NO_FOLDER),
        ("train", "--out", NO_FOLDER),
        ("stats", "--out", NO_FOLDER),
    ],
    "an unknown policy": [
        ("plan", "--policy", "bandits"),
        ("plan", "--policy", "oracle"),
        ("explain", "https://e.org/", "--policy", "bandits"),
        ("crawl", *AGENT, "--policy", "bandits"),
        ("replay", "--policies", "bandits"),
        ("tune", "--policies", "bandits"),
    ],
    "an unknown name": [
        ("plan", "--change", "words"),
        ("replay", "--change", "words"),
        ("train", "--learner", "forests"),
        ("train", "--features", "many"),
        ("train", "--links", "some"),
    ],
    "an unknown setting": [
        ("plan", "--policy", "bandit", "--set", "bandit.windw=3"),
        ("plan", "--policy", "expected-harvest", "--set", "expected-harvest.favor=freshness"),
        ("replay", "--policies", "bandit", "--set", "bandit.windw=3"),
    ],
    "a text that is not a URL": [("explain", "not a url"), ("show", "ftp://e.org/")],
    "an unknown format": [
        ("plan", "--format", "xml"),
        ("export", "visits", "--format", "xml"),
        ("import", "x", "--format", "warcs"),
    ],
    "options that contradict each other": [
        ("plan", "--goal", "both", "--policy", "round-robin"),
        ("plan", "--favour", "freshness", "--goal", "content"),
    ],
}  # fmt: skip


def run(packages: tuple[str, ...], commands: list[tuple[str, ...]], folder: Path) -> list[dict[str, object]]:
    """What each command ended with, and what was loaded by then."""
    given = json.dumps([packages, commands])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, given], capture_output=True, text=True, timeout=patience(300), cwd=folder
    )
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"code"')]
    assert len(ends) == len(commands), done.stderr
    return ends


def test_mistakes_are_refused_before_anything_slow_is_loaded(tmp_path: Path) -> None:
    """All in one process: what the first of them loads is loaded for the others, too."""
    commands = [(*command, "--history", "nowhere") for commands in REFUSED.values() for command in commands]
    for command, end in zip(commands, run(SLOW, commands, tmp_path), strict=True):
        assert (command, end) == (command, {"code": 2, "loaded": []})
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_was_never_visited_is_refused_before_the_past_is_read(tmp_path: Path) -> None:
    made = ("synth", "--pages", "5", "--rounds", "3", "--history", "history")
    asked = [(command, "https://nowhere.example/", "--history", "history") for command in ("explain", "show")]
    heavy = ("recrawl.plan.planner", "recrawl.world.recording", "sklearn")
    (end,) = run(heavy, [made], tmp_path)
    assert end["code"] == 0
    assert run(heavy, asked, tmp_path) == [{"code": 1, "loaded": []}] * 2


LEARNERS = ("lightgbm", "ngboost", "plotly")


@pytest.mark.parametrize(
    ("terms", "packages"),
    [
        ("--no-terms", ("sklearn", "faiss", *LEARNERS)),  # as the demo has it
        ("--terms", LEARNERS),  # related pages are found by their texts, which takes the other two
    ],
)
def test_a_plan_loads_nothing_that_it_does_not_use(terms: str, packages: tuple[str, ...], tmp_path: Path) -> None:
    commands = [
        ("synth", "--pages", "120", "--rounds", "12", terms, "--history", "history"),
        ("plan", "--budget", "5%", "--history", "history"),
        ("plan", "--budget", "5%", "--goal", "both", "--per-host", "3", "--json", "--history", "history"),
        ("plan", "--budget", "5%", "--policy", "bandit", "--history", "history"),
    ]
    assert run(packages, commands, tmp_path) == [{"code": 0, "loaded": []}] * len(commands)
