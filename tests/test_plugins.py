"""The example package in examples/plugin_package, installed as a user installs it, and used by every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from patience import patience
from recrawl.history import History
from recrawl.web.visit import Visit

PACKAGE = Path(__file__).resolve().parents[1] / "examples" / "plugin_package"
POLICY = PACKAGE / "src" / "recrawl_example" / "policy.py"
START = datetime(2026, 1, 5, tzinfo=UTC)
LOG = b"""\
2026-01-05T10:00:00.100Z     1         51 dns:e.org P https://e.org/ text/dns #001 20260105100000000+50 sha1:DDDD - -
2026-01-05T10:00:00.600Z   404        169 https://e.org/robots.txt P - text/html #001 20260105100000500+80 sha1:RRRR - -
2026-01-05T10:00:01.250Z   200       5120 https://e.org/ - - text/html #007 20260105100001000+200 sha1:AAAA - 1t
2026-01-05T10:00:02.250Z    -2          - https://down.example/ L https://e.org/ no-type #007 - - - -
2026-01-06T10:00:01.250Z   200       5130 https://e.org/ - - text/html #007 20260106100001000+200 sha1:BBBB - -
half a line
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip installed the package, from a copy: a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "target", folder / "source"], check=True, timeout=patience(60))
    return folder / "target"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days of eight pages: those in /news/ gain three links per day, those in /about/ none."""
    folder = tmp_path_factory.mktemp("history") / "h"
    gained = {"news": 3, "about": 0}
    History.create(folder).add(
        Visit(
            url=(url := f"https://e.org/{section}/{page}"),
            at=START + timedelta(days=day),
            links=[f"{url}/{i}" for i in range(1 + n * day)],
        )
        for day in range(10)
        for section, n in gained.items()
        for page in range(4)
    )
    return folder


def run(installed: Path, *command: object) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")])),
    }
    given = [sys.executable, *map(str, command)]
    return subprocess.run(given, capture_output=True, text=True, env=environment, timeout=patience(120), check=False)


def recrawl(installed: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run(installed, "-m", "recrawl.cli", *arguments)


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- the policy -------------------------------------------------------------------------------------------------------


def test_an_error_suggests_the_policy_by_its_name(installed: Path, history: Path) -> None:
    done = recrawl(installed, "plan", "--policy", "section-rates", "--history", history)
    assert done.returncode == 2
    assert "Did you mean 'section-rate'?" in done.stderr


def test_a_plan_is_made_by_the_policy_with_its_settings_and_reasons(installed: Path, history: Path) -> None:
    options = ["--budget", "3", "--set", "section-rate.prior_days=7", "--history", history, "--json"]
    by_name = rows(recrawl(installed, "plan", "--policy", "section-rate", *options))
    assert [row["url"] for row in by_name] == [f"https://e.org/news/{page}" for page in range(3)]
    assert all("its section gains" in row["reason"] for row in by_name)


def test_a_plan_is_made_by_a_policy_in_a_file(installed: Path, history: Path) -> None:
    by_file = rows(
        recrawl(installed, "plan", "--policy", f"{POLICY}:SectionRate", "--budget", "3", "--history", history, "--json")
    )
    assert [row["url"] for row in by_file] == [f"https://e.org/news/{page}" for page in range(3)]


def test_all_policies_of_a_replay_include_it(installed: Path, history: Path) -> None:
    replayed = rows(
        recrawl(
            installed, "replay", "--policies", "all", "--every", "1d", "--budget", "3", "--history", history, "--json"
        )
    )
    found = {row["policy"]: row["discovered"] for row in replayed}
    assert found["section-rate"] > found["round-robin"]


def test_tuning_tries_it(installed: Path, history: Path) -> None:
    (tuned,) = rows(
        recrawl(installed, "tune", "--policies", "section-rate", "--every", "1d", "--history", history, "--json")
    )
    assert "section-rate" in json.dumps(tuned)


# -- the source -------------------------------------------------------------------------------------------------------


def test_the_help_of_import_names_the_format(installed: Path) -> None:
    done = recrawl(installed, "import", "--help")
    assert done.returncode == 0
    assert "heritrix-log" in done.stdout.replace("│", " ")


def test_the_format_is_detected_and_imported(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "crawl.log").write_bytes(LOG)
    (report,) = rows(recrawl(installed, "import", tmp_path / "crawl.log", "--history", tmp_path / "h", "--json"))
    assert (report["read"], report["added"], report["pages"]) == (6, 3, 2)
    assert report["skipped"] == {"not a page": 2, "too few columns": 1}
    timeline = History.open(tmp_path / "h").timeline
    assert sorted(timeline.status.tolist()) == [0, 200, 200]
    assert timeline.at.min() == int(datetime(2026, 1, 5, 10, 0, 1, tzinfo=UTC).timestamp() * 1e6)
    assert timeline.rows["note"].to_pylist().count("heritrix status -2") == 1


# -- the contracts ----------------------------------------------------------------------------------------------------

CHECKS = """
from recrawl.testing import check_policy, check_source
from recrawl_example.policy import SectionRate
from recrawl_example.source import HeritrixLog

check_policy(SectionRate)
check_source(HeritrixLog(), [LOG])

class Forgetful(SectionRate):
    def choose(self, pages, budget, now):
        self.links_ = self.links_ + 1  # a choice must not change anything
        return super().choose(pages, budget, now)

class Careless(HeritrixLog):
    def read(self, stream, context):
        for line in stream:
            yield int(line.split()[1])

for check in (lambda: check_policy(Forgetful), lambda: check_source(Careless(), [LOG])):
    try:
        check()
    except AssertionError as error:
        print(error)
"""


def test_the_checks_pass_and_say_what_is_wrong_with_a_broken_plug_in(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(f"LOG = {LOG!r}\n{CHECKS}")
    done = run(installed, tmp_path / "checks.py")
    assert done.returncode == 0, done.stderr
    policy, source = done.stdout.splitlines()
    assert policy.startswith("section-rate, an ordinary collection: `choose` is not pure")
    assert "yields 1 for sample 0, which is neither a Visit nor a BadRecord" in source
