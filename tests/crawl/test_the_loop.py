"""The whole loop on a living web: first crawl, history, training, plan, Scrapy, visits, score; servers that keep the log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from patience import patience, slowness
from recrawl.cli import app

ROOT = Path(__file__).resolve().parents[2]
N_CYCLES, DELAY = 9, 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, dict[str, Any]]:
    """Two days of cycles at a tenth of the pages, after a first crawl and five of everything."""
    weeks = str(N_CYCLES / 28)
    options = ["--pages", "100", "--full", "5", "--weeks", weeks, "--arms", "round-robin;unconditional;default"]
    command = [sys.executable, "-m", "benchmarks.results.living", *options, "--json", "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=patience(550))
    assert done.returncode == 0, done.stderr
    return {arm: parts[0] for arm, parts in json.loads(done.stdout).items()}


def total(part: dict[str, Any], name: str) -> float:
    return float(sum(cycle[name] for cycle in part["cycles"]))


def a_learned_plan_finds_half_as_many_links_again_as_round_robin(found: dict[str, Any]) -> None:
    assert all(len(part["cycles"]) == N_CYCLES for part in found.values())
    assert total(found["default"], "visits") <= 1.05 * total(found["round-robin"], "visits")
    assert total(found["default"], "new_links") >= 1.5 * total(found["round-robin"], "new_links")


def conditional_requests_save_what_did_not_change(found: dict[str, Any]) -> None:
    servers = {arm: part["servers"] for arm, part in found.items()}
    assert servers["round-robin"]["bytes"] < 0.6 * servers["unconditional"]["bytes"]
    assert "304" not in servers["unconditional"]["statuses"]
    assert total(found["round-robin"], "not_modified") == servers["round-robin"]["statuses"]["304"]
    # Lying servers and those that fail are few: nearly as much is found with validators as without.
    assert total(found["round-robin"], "new_links") >= 0.9 * total(found["unconditional"], "new_links")


def no_host_gets_more_than_its_rate_and_nothing_forbidden_is_fetched(found: dict[str, Any]) -> None:
    for part in found.values():
        assert part["servers"]["forbidden"] == 0
        assert (
            part["servers"]["most_in_a_second"] <= (1 + 0.1 * slowness()) / DELAY + 2
        )  # requests may arrive in a bunch


def every_visit_is_in_the_history(found: dict[str, Any]) -> None:
    for part in found.values():
        assert total(part, "written") == total(part, "visits") > 0
        assert {cycle["ended"] for cycle in part["cycles"]} == {"finished"}


def ask(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def the_plans_are_scored_and_the_next_one_can_be_learnt(found: dict[str, Any], folder: Path) -> None:
    history = str(folder / "default")
    scores = [json.loads(line) for line in ask("score", "--history", history, "--json").splitlines()]
    own = scores[-N_CYCLES:]
    assert sum(score["visited"] for score in own) >= 0.8 * sum(score["planned"] for score in own)
    assert sum(score["found"] for score in own) >= 0.8 * total(found["default"], "new_links")
    model = str(folder / "model")
    ask("train", "--history", history, "--out", model, "--learner", "average-count")
    planned = ask("plan", "--history", history, "--model", model, "--budget", "10%", "--json").splitlines()
    assert len(planned) == own[-1]["planned"]
    assert json.loads(planned[0])["expected_new_links"] >= json.loads(planned[-1])["expected_new_links"]


@pytest.mark.more
def test_the_loop_closes(found: dict[str, Any], folder: Path) -> None:
    """One test, because its cycles take a while and every test process would have to repeat them."""
    a_learned_plan_finds_half_as_many_links_again_as_round_robin(found)
    conditional_requests_save_what_did_not_change(found)
    no_host_gets_more_than_its_rate_and_nothing_forbidden_is_fetched(found)
    every_visit_is_in_the_history(found)
    the_plans_are_scored_and_the_next_one_can_be_learnt(found, folder)
