"""Goals and notions of change on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import command, output
from made_goals import DAY, NOW, START, goal_history, page, two_wordy_pages
from recrawl.core.options import options_of
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.plan.options import GOALS, PlanOptions


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return goal_history(tmp_path_factory.mktemp("goals") / "history")


def test_the_command_knows_every_goal() -> None:
    (info,) = (info for field, info in options_of(PlanOptions) if field.name == "goal")
    assert info.known() == GOALS
    assert all(goal in output("plan", "--help") for goal in GOALS)


def printed(history: History, *arguments: str) -> str:
    return output(*arguments, "--history", str(history.store.folder), "--as-of", NOW.isoformat())


def test_the_commands_take_a_goal(history: History) -> None:
    plan = ("plan", "--budget", "1", "--dry-run")
    for_content = " ".join(printed(history, *plan, "--goal", "content").split())
    assert "by freshness-value" in for_content
    assert "changed pages expected" in for_content
    assert "one page more would bring" in for_content
    for_both = printed(history, *plan, "--goal", "both", "--weight", "0.5")
    (row,) = (json.loads(line) for line in printed(history, *plan, "--goal", "both", "--json").splitlines())
    assert row["url"] == page("mixed")
    sentence = f"1 of 4 known pages, 1.2 new links and {row['probability_changed']:.2g} changed pages expected"
    assert sentence in " ".join(for_both.split())
    said = " ".join(printed(history, "explain", page("mixed"), "--goal", "both", "--budget", "1").split())
    assert f"{row['probability_changed']:.0%} likely to have changed" in said
    assert "changed at 12 of 20 compared" in said
    (row,) = (json.loads(line) for line in printed(history, *plan, "-p", "average-count", "--json").splitlines())
    assert 0 < row["probability_changed"] < 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--goal", "both", "--policy", "bandit"],
            "goal both weighs links and changes itself: leave policy and settings out",
        ),
        (["--goal", "both", "--set", "bandit.window=3"], "goal both weighs links and changes itself: leave policy"),
        (["--goal", "content", "--model", "m"], "model predicts new links only: leave model out, or goal content"),
        (["--policy", "bandit", "--model", "m"], "model plans by its own predictions: leave policy and settings out"),
        (["--weight", "0.5"], "weight 0.5 weighs links against content: it needs goal both"),
        (["--goal", "both", "--weight", "2"], "weight is 2.0; it must be between 0 and 1"),
        (["--goal", "all"], "'all'"),
    ],
)
@pytest.mark.parametrize("name", [["plan", "--budget", "1"], ["explain", "https://e.org/mixed"]])
def test_goals_that_contradict_other_options_are_refused(
    history: History, name: list[str], options: list[str], message: str
) -> None:
    done = command(*name, *options, "--history", str(history.store.folder))
    assert done.code == 2
    assert message in done.message


def test_the_command_takes_a_notion_of_change(tmp_path: Path) -> None:
    two_pages = two_wordy_pages(tmp_path / "h")
    folder = str(two_pages.store.folder)
    base = ["plan", "--history", folder, "--budget", "1", "--goal", "both", "--weight", "0"]
    base += ["--as-of", (START + 19.5 * DAY).isoformat()]
    assert json.loads(output(*base, "--change", "significant", "--json").splitlines()[-1])["url"] == page("turns")
    assert stored(two_pages.beside)["change"].to_pylist() == ["significant"]
    wrong = command(*base, "--change", "significent")
    assert wrong.code == 2
    assert "Did you mean 'significant'?" in wrong.message
    model = command("plan", "--history", folder, "--budget", "1", "--model", "m", "--change", "digest")
    assert model.code == 2
    assert "model predicts new links only: leave model out, or change digest" in model.message
