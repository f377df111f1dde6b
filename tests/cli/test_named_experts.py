"""Who the experts of a page are, as `recrawl show` and `recrawl explain` name them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.history import History
from recrawl.models.experts.naming import experts_of_page
from recrawl.models.experts.selection import choose
from recrawl.web.visit import Visit
from recrawl.world.contents import contents_of

runner = CliRunner()
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
LEADER, FOLLOWER, OTHER = (f"https://a.org/{name}" for name in ("leader", "follower", "other"))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page that says what another one said a day before, and one about something else."""
    mood = np.random.default_rng(0).random(41) < 0.5
    folder = tmp_path_factory.mktemp("named") / "history"
    visits = []
    for day in range(40):
        said = {LEADER: mood[day + 1], FOLLOWER: mood[day], OTHER: day % 2}
        for url, flag in said.items():
            words = "storm wind " * (9 if flag else 3) + "sea north harbour " * 4
            text = words if url != OTHER else f"garden rose tulip number{day} " * 5
            visits.append(Visit(url=url, at=START + timedelta(days=day), text=text, links=["https://a.org/x"]))
    History.create(folder).add(visits)
    return str(folder)


def run(*given: str) -> Any:
    result = runner.invoke(app, [*given], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return result


def test_show_names_the_experts_of_a_page(history: str) -> None:
    said = run("show", FOLLOWER, "--history", history, "--experts", "2").output
    assert "expert" in said
    assert LEADER in said
    reported = json.loads(run("show", FOLLOWER, "--history", history, "--experts", "2", "--json").stdout)
    assert reported["experts"][0]["url"] == LEADER
    assert 0 < reported["experts"][0]["weight"] <= 1
    assert "experts" not in json.loads(run("show", FOLLOWER, "--history", history, "--json").stdout)


def test_those_of_one_page_are_those_that_are_chosen_for_all(history: str) -> None:
    contents = contents_of(History.open(history), "1d")
    chosen, urls = choose(contents, 2), contents.url.to_pylist()
    for page, url in enumerate(urls):
        named = experts_of_page(History.open(history), url, 2)
        assert [each.url for each in named] == [urls[expert] for expert in chosen.of(page)[0]]
        assert [each.weight for each in named] == pytest.approx(chosen.of(page)[1].tolist())


def test_a_page_without_words_has_no_experts(tmp_path: Path) -> None:
    plain = History.create(tmp_path / "h")
    plain.add([Visit(url=LEADER, at=START, links=[])])
    assert "no experts" in run("show", LEADER, "--history", str(tmp_path / "h"), "--experts", "3").output


def test_explain_names_the_experts_that_the_policy_asks(history: str) -> None:
    given = ("explain", FOLLOWER, "--history", history, "--policy", "related-experts", "--budget", "1")
    settings = (
        "--set",
        "related-experts.n_train=10",
        "--set",
        "related-experts.k=2",
        "--set",
        "related-experts.vote=accuracy",
    )
    said = run(*given, *settings).output
    assert f"expert: {LEADER}" in said
    assert "of the votes" in said
    reported = json.loads(run(*given, *settings, "--json").stdout)
    assert LEADER in {each["url"] for each in reported["experts"]}
    assert {"url", "weight", "right", "is_lost"} == set(reported["experts"][0])
    assert reported["experts"][0]["right"] is not None
