import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from making import imported, jsonl
from recrawl.cli import app
from recrawl.cli.policy_options import budget_pages, typed
from recrawl.replay import Replayed
from recrawl.report.replays.comparison import Replays
from recrawl.report.replays.page import drawn_budgets, findings, sections
from recrawl.report.replays.tables import budget_table, interval_table, summary_table

runner = CliRunner()
QUICK = "round-robin,windowed-outdegree,oracle"


def visit(day: int, page: int, links: list[int], status: int = 200) -> dict[str, Any]:
    told = {"url": f"https://h{page % 3}.example.org/{page}", "at": f"2026-01-{day:02d}T10:{page:02d}:00Z"}
    return told | ({"links": [f"https://e.org/{link}" for link in links]} if status == 200 else {"status": status})


def visits(n_days: int = 14, n_pages: int = 9) -> list[dict[str, Any]]:
    """A daily crawl: page p shows p links, all of them new every day."""
    return [
        visit(day, page, [1000 * page + page * day + i for i in range(page)])
        for day in range(1, n_days + 1)
        for page in range(n_pages)
    ]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("replay_cli")
    imported(folder, jsonl(visits()))
    return str(folder / "history")


def ask(*arguments: str) -> str:
    result = runner.invoke(app, ["replay", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def refused(*arguments: str) -> str:
    """What is said of wrong usage, on one line."""
    result = runner.invoke(app, ["replay", *arguments])
    assert result.exit_code == 2, (result.output, result.exception)
    return re.sub(r"[\s│╭╮╰╯─]+", " ", result.output)


def failed(*arguments: str) -> str:
    """What is said of a job that cannot be done."""
    result = runner.invoke(app, ["replay", *arguments])
    assert result.exit_code == 1, (result.output, result.exception)
    return str(result.exception)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_has_the_keys_that_others_rely_on(history: str) -> None:
    found = lines(ask("--history", history, "--policies", QUICK, "--budget", "3", "--json"))
    keys = "policy budget cycles fetches discovered discoverable coverage age_1h age_4h freshness seconds"
    assert all(set(keys.split()) <= set(row) for row in found)
    assert [row["policy"] for row in found] == QUICK.split(",")
    assert {(row["budget"], row["cycles"], row["fetches"]) for row in found} == {(3, 13, 39)}
    # 13 cycles in which page p shows p new links
    assert {row["discoverable"] for row in found} == {13 * 36}
    assert found[2]["discovered"] == 13 * (6 + 7 + 8)
    assert found[2]["vs_round_robin"]["difference"] == pytest.approx(found[2]["coverage"] - found[0]["coverage"])
    assert found[0]["vs_round_robin"] is None


def test_all_pages_in_every_cycle_find_everything(history: str) -> None:
    (found,) = lines(ask("--history", history, "--policies", "round-robin", "--budget", "100%", "--json"))
    assert found["coverage"] == found["age_1h"] == found["freshness"] == 1.0
    assert found["vs_best_published"] is None


def test_the_table_says_what_was_replayed(history: str, tmp_path: Path) -> None:
    out, rows = tmp_path / "page.html", tmp_path / "rows.jsonl"
    options = ("--policies", QUICK, "--budget", "2,50%", "-o", str(out), "--rows", str(rows))
    shown = ask("--history", history, *options)
    assert "9 pages of 3 hosts in 13 cycles as crawled, from 2026-01-01 10:08 to 2026-01-14 10:08 UTC" in shown
    assert "468 links to discover" in shown
    assert "Budget: 2 pages a cycle (22%)" in shown
    assert "Budget: 5 pages a cycle (56%)" in shown
    assert "round-robin (baseline)" in shown
    assert "oracle (upper bound)" in shown
    assert "best published: windowed-outdegree" in shown
    assert str(out) in shown.replace("\n", "")
    page = out.read_text()
    for title in ("Coverage over time", "Coverage by budget", "How soon links are found", "Copies kept current"):
        assert title in page
    written = lines(rows.read_text())
    assert len(written) == 3 * 2 * 13
    assert "seconds" not in written[0]
    assert [row["cycle"] for row in written[:13]] == list(range(1, 14))


def test_the_rows_are_the_same_every_time_and_after_a_resume(history: str, tmp_path: Path) -> None:
    told = []
    for name, more in (
        ("a", ()),
        ("b", ("--resume", str(tmp_path / "runs"))),
        ("c", ("--resume", str(tmp_path / "runs"))),
    ):
        ask("--history", history, "--policies", QUICK, "--rows", str(tmp_path / name), *more)
        told.append((tmp_path / name).read_bytes())
    assert told[0] == told[1] == told[2]
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_rows_go_to_standard_output_alone(history: str) -> None:
    rows = lines(ask("--history", history, "--policies", "round-robin", "--rows", "-"))
    assert {row["policy"] for row in rows} == {"round-robin"}


def test_settings_are_given_to_their_policy(history: str) -> None:
    few = ("--history", history, "--budget", "2", "--json")
    usual = lines(ask(*few, "--policies", "windowed-outdegree", "--window", "1"))
    special = lines(ask(*few, "--policies", "windowed-outdegree", "--set", "windowed-outdegree.window=1"))
    assert usual[0]["discovered"] == special[0]["discovered"]
    (capped,) = lines(ask(*few, "--policies", "windowed-outdegree", "--per-host", "1"))
    assert capped["most_of_host"] == 1
    (by_site,) = lines(ask(*few, "--policies", "oracle", "--per-site", "1"))
    assert by_site["fetches"] == 13


def test_the_past_can_be_cut_at_both_ends(history: str) -> None:
    few = ("--history", history, "--policies", "round-robin", "--budget", "9", "--json")
    (cut,) = lines(ask(*few, "--from", "2026-01-05T00:00:00Z", "--until", "2026-01-09T00:00:00Z"))
    assert (cut["cycles"], cut["discoverable"]) == (3, 3 * 36)
    (by_clock,) = lines(ask(*few, "--every", "2d"))
    assert by_clock["cycles"] == 6


def test_an_unknown_policy_is_told_with_the_nearest(history: str) -> None:
    assert "Did you mean 'round-robin'?" in refused("--history", history, "--policies", "round-robbin")
    assert "names nothing" in refused("--history", history, "--policies", " , ")


@pytest.mark.parametrize("budget", ["0", "-5", "0%", "-1%", "ten", "1.5", "", "nan", "1e3", "10%%"])
def test_a_bad_budget_is_wrong_usage(history: str, budget: str) -> None:
    assert "--budget" in refused("--history", history, f"--budget={budget}")


def test_a_budget_above_all_pages_is_told_and_capped(history: str) -> None:
    result = runner.invoke(
        app, ["replay", "--history", history, "--policies", "round-robin", "--budget", "10,500,200%", "--json"]
    )
    assert result.exit_code == 0
    assert "budget 500 is above the number of pages: 9 are used" in result.stderr
    assert [row["budget"] for row in lines(result.stdout)] == [9]


def test_shares_are_rounded_to_whole_pages() -> None:
    assert budget_pages("10%,20%", 117) == [12, 23]
    assert budget_pages("10%,20%", 132) == [13, 26]
    assert budget_pages("0.01%", 50) == [1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bandit.window=x", "no whole number"),
        ("bandit.windw=3", "bandit has no setting 'windw'. It has: shares, exploration, window"),
        ("bandit.exploration=nan", "no number"),
        ("bandit.fill=perhaps", "neither yes nor no"),
        ("bandit=3", "policy.setting=value"),
        ("oracle.window=3", "oracle has no setting 'window'. It has none"),
        ("regression.window=3", "'regression' is not among the policies"),
    ],
)
def test_a_bad_setting_is_wrong_usage(history: str, given: str, said: str) -> None:
    assert said in refused("--history", history, "--policies", "bandit,oracle", "--set", given)


def test_settings_take_the_kind_of_their_default() -> None:
    assert typed("3", 1) == 3
    assert isinstance(typed("3", 1.0), float)
    assert typed("0.5, 1", (0.6, 0.7)) == (0.5, 1.0)
    assert [typed(text, None) for text in ("none", "12", "0.5", "mean")] == [None, 12, 0.5, "mean"]
    with pytest.raises(ValueError, match="cannot be told"):
        typed("x", object())


def test_a_history_that_is_too_short_is_told_in_one_sentence(tmp_path: Path) -> None:
    imported(tmp_path, jsonl(visits(2)), into="short")
    assert "only one cycle follows the first crawl that holds most pages; a replay needs at least 2" in failed(
        "--history", str(tmp_path / "short")
    )
    imported(tmp_path, jsonl([visit(1, 1, [1])]), into="once")
    assert "no cycle follows" in failed("--history", str(tmp_path / "once"))
    imported(tmp_path, jsonl([visit(1, 1, [1])]), into="empty")
    assert "holds no visits from 2026-02-01" in failed(
        "--history", str(tmp_path / "empty"), "--from", "2026-02-01T00:00:00Z"
    )
    imported(tmp_path, jsonl([]), into="nothing")
    assert "holds no visits, so there is nothing to replay" in failed("--history", str(tmp_path / "nothing"))
    imported(tmp_path, jsonl(visit(day, 1, [], 500) for day in (1, 2, 3)), into="failed")
    assert "nothing to replay" in failed("--history", str(tmp_path / "failed"))


def test_cycles_too_many_to_hold_are_told(history: str) -> None:
    assert "choose" in failed("--history", history, "--every", "1s")


def test_nothing_new_is_no_reason_to_fail(tmp_path: Path) -> None:
    imported(tmp_path, jsonl(visit(day, page, [1, 2]) for day in (1, 2, 3, 4) for page in range(3)))
    few = ("--history", str(tmp_path / "history"), "--policies", "round-robin,bandit", "--budget", "1")
    assert {row["coverage"] for row in lines(ask(*few, "--json"))} == {None}
    assert "0 links to discover" in ask(*few, "-o", str(tmp_path / "page.html"))


def test_a_folder_that_cannot_be_used_is_told_before_the_replay(history: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot keep finished runs in" in failed("--history", history, "--resume", str(tmp_path / "file"))


def run(policy: str, budget: int, found: int, **more: Any) -> Replayed:
    row = {
        "published": 10,
        "found": found,
        "fetches": budget,
        "answered": budget,
        "shown_new": found,
        "hits": 1,
        "soon": 1,
        "hosts": 1,
        "most_of_host": budget,
        "current": 0.5,
        "seconds": 0.001,
        "ages": [found] + [0] * 14,
    }
    rows = [{"cycle": i, "at": f"2026-01-{i:02d}T00:00:00+00:00", **row} for i in range(1, 13)]
    return Replayed(policy, more.get("paper", "P"), more.get("sees_future", False), {}, budget, rows)


@pytest.fixture
def sweep() -> Replays:
    gains = {"round-robin": 3, "bandit": 6, "regression": 5, "mine": 7, "oracle": 9}
    runs = [
        run(name, k, gain + k // 50, sees_future=name == "oracle", paper=None if name == "mine" else "P")
        for k in (10, 20, 50, 100)
        for name, gain in gains.items()
    ]
    return Replays(runs, 1000, 5, 12, 120, "2026-01-01 00:00", "2026-01-13 00:00")


def test_the_best_is_bold_and_the_upper_bound_takes_no_part(sweep: Replays) -> None:
    table = summary_table(sweep, 10)
    assert table.header[:4] == ("policy", "coverage", "vs round-robin", "vs best published")
    coverage = [row[1] for row in table.rows]
    assert coverage == [0.3, 0.6, 0.5, 0.7, 0.9]
    assert (3, 1) in table.bold
    assert (4, 1) not in table.bold
    assert [row[3] for row in table.rows] == ["-0.300*", "·", "-0.100*", "+0.100*", "+0.300*"]
    bold = {cell for cell in budget_table(sweep).bold if cell[0] == 3}
    assert bold == {(3, 1), (3, 2), (3, 3), (3, 4)}
    assert len(interval_table(sweep, 10).rows) == 8


def test_the_page_draws_three_of_many_budgets_and_tells_the_gain(sweep: Replays) -> None:
    assert drawn_budgets(sweep) == [10, 50, 100]
    told = " ".join(findings(sweep))
    assert "mine finds 70% of the links, round-robin 30% (the difference is more than chance)" in told
    assert "From 10 to 100 pages a cycle the best coverage goes from 70% to 90%" in told
    assert [len(section.items) for section in sections(sweep)] == [2, 2, 2, 2, 3, 2, 4, 3, 3, 1, 1]


def test_wrong_usage_is_a_typer_error() -> None:
    with pytest.raises(typer.BadParameter):
        budget_pages("x", 5)
