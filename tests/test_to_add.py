"""ARCHITECTURE.md's "to add X, touch Y" is true: toys are added by touching only what it says.

Sources, learners, notions of change and report tables have their toys beside their own tests.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import recrawl as rc
from recrawl import policies
from recrawl.cli import app
from recrawl.plan.formats import FORMATS
from recrawl.policies.select import take
from recrawl.testing import check_policy, tiny_history

ROOT = Path(__file__).resolve().parents[1]


class Alphabetical(rc.Policy):
    """Visit pages in the order of their URLs."""

    name = "alphabetical"

    def choose(self, pages, budget, now):
        order = -1.0 * pages.site - 0.0 * pages.age_hours(now).clip(max=0)
        return take(order, pages, budget, reason="next in the alphabet")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in policies/ and one line in the table of `policies/__init__.py`."""
    module = ModuleType("recrawl.policies.alphabetical")
    module.Alphabetical = Alphabetical  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(policies.PLACES, "alphabetical", "alphabetical:Alphabetical")
    return "alphabetical"


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_policy_is_one_file_and_one_line(toy: str) -> None:
    check_policy(Alphabetical)
    assert toy in policies.known()
    with tiny_history() as history:
        folder = str(history.store.folder)
        assert "next in the alphabet" in run("plan", "--policy", toy, "--budget", "1", "--history", folder, "--json")
        replayed = run("replay", "--policies", f"{toy},round-robin", "--budget", "1", "--history", folder, "--json")
        assert f'"policy":"{toy}"' in replayed
        assert toy in run("tune", "--policies", toy, "--budget", "1", "--history", folder, "--json", "--dry-run")
    with pytest.raises(rc.errors.UnknownPolicy, match="Did you mean 'alphabetical'"):  # type: ignore[attr-defined]
        policies.named("alphabetica")


def test_a_plan_format_is_one_function_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "shout", lambda plan: (f"{url}!\n".encode() for url in plan.url.to_pylist()))
    with tiny_history() as history:
        plan = rc.plan(history, budget=1, policy="average-count")
        target = Path(history.store.folder) / "plan.txt"
        plan.write(target, format="shout")
        assert target.read_text() == "https://e.org/news!\n"
        assert run("plan", "--budget", "1", "--format", "shout", "--history", str(history.store.folder)).endswith("!\n")


def test_every_toy_that_the_architecture_marks_has_a_test() -> None:
    marked = re.findall(r"^\| (.+?) ✓ \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert marked == [
        "a policy",
        "a source (file type)",
        "a learner",
        "a plan format",
        "a notion of change",
        "a report table",
    ]
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for words in ("toy source", "toy learner", "toy notion", "toy table"):
        assert words in tests.lower().replace("_", " "), f"no test adds a {words}"


def test_every_path_in_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", text)
    missing = [
        path for path in paths if not any((base / path).exists() for base in (ROOT / "src/recrawl", ROOT / "src", ROOT))
    ]
    assert missing == []
