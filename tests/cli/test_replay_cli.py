import json
from pathlib import Path
from typing import Any

import pytest

import recrawl as rc
from commands import command, output
from making import imported, jsonl
from recrawl.errors import BadBudget, BadOption
from recrawl.history import History
from recrawl.policies.settings import typed
from recrawl.replay import Replayed
from recrawl.report.replays.comparison import Replays
from recrawl.report.replays.options import ReplayOptions, budget_pages
from recrawl.report.replays.page import drawn_budgets, findings, sections
from recrawl.report.replays.tables import budget_table, interval_table, summary_table

QUICK = "round-robin,windowed-outdegree,oracle"


def visit(day: int, page: int, links: list[int], status: int = 200) -> dict[str, Any]:
    fetched = {"url": f"https://h{page % 3}.example.org/{page}", "at": f"2026-01-{day:02d}T10:{page:02d}:00Z"}
    return fetched | ({"links": [f"https://e.org/{link}" for link in links]} if status == 200 else {"status": status})


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


def replayed(*arguments: str) -> str:
    """What the command prints."""
    return output("replay", *arguments)


def refused(*arguments: str) -> str:
    """The message about wrong usage."""
    done = command("replay", *arguments)
    assert done.code == 2, done
    return done.message


def failed(*arguments: str) -> str:
    """The message about a job that cannot be done."""
    done = command("replay", *arguments)
    assert done.code == 1, done
    return done.message


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_has_the_keys_that_others_rely_on(history: str) -> None:
    found = lines(replayed("--history", history, "--policies", QUICK, "--budget", "3", "--json"))
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
    (found,) = lines(replayed("--history", history, "--policies", "round-robin", "--budget", "100%", "--json"))
    assert found["coverage"] == found["age_1h"] == found["freshness"] == 1.0
    assert found["vs_best_published"] is None


def test_the_table_says_what_was_replayed(history: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out, rows = tmp_path / "page.html", tmp_path / "rows.jsonl"
    options = ("--policies", QUICK, "--budget", "2,50%", "-o", str(out), "--rows", str(rows))
    shown = " ".join(replayed("--history", history, *options).split())
    assert (
        "9 pages of 3 hosts in 13 cycles by the times of visits, from 2026-01-01 10:08 to 2026-01-14 10:08 UTC" in shown
    )
    assert "468 links to discover" in shown
    assert "Budget: 2 pages per cycle (22%)" in shown
    assert "Budget: 5 pages per cycle (56%)" in shown
    assert "round-robin (baseline)" in shown
    assert "oracle (upper bound)" in shown
    assert "best published: windowed-outdegree" in shown
    assert str(out) in shown
    page = out.read_text()
    for title in ("Coverage over time", "Coverage by budget", "How soon links are found", "Copies kept current"):
        assert title in page
    written = lines(rows.read_text())
    assert len(written) == 3 * 2 * 13
    assert "seconds" not in written[0]
    assert [row["cycle"] for row in written[:13]] == list(range(1, 14))


def test_the_rows_are_the_same_every_time_and_after_a_resume(history: str, tmp_path: Path) -> None:
    written = []
    for name, more in (
        ("a", ()),
        ("b", ("--resume", str(tmp_path / "runs"))),
        ("c", ("--resume", str(tmp_path / "runs"))),
    ):
        replayed("--history", history, "--policies", QUICK, "--rows", str(tmp_path / name), *more)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1] == written[2]
    assert len(list((tmp_path / "runs").iterdir())) == 3


def test_rows_go_to_standard_output_alone(history: str) -> None:
    rows = lines(replayed("--history", history, "--policies", "round-robin", "--rows", "-"))
    assert {row["policy"] for row in rows} == {"round-robin"}


def test_settings_are_given_to_their_policy(history: str) -> None:
    few = ("--history", history, "--budget", "2", "--json")
    usual = lines(replayed(*few, "--policies", "windowed-outdegree", "--window", "1"))
    special = lines(replayed(*few, "--policies", "windowed-outdegree", "--set", "windowed-outdegree.window=1"))
    assert usual[0]["discovered"] == special[0]["discovered"]
    (capped,) = lines(replayed(*few, "--policies", "windowed-outdegree", "--per-host", "1"))
    assert capped["most_of_host"] == 1
    (by_site,) = lines(replayed(*few, "--policies", "oracle", "--per-site", "1"))
    assert by_site["fetches"] == 13


def test_the_past_can_be_cut_at_both_ends(history: str) -> None:
    few = ("--history", history, "--policies", "round-robin", "--budget", "9", "--json")
    (cut,) = lines(replayed(*few, "--from", "2026-01-05T00:00:00Z", "--until", "2026-01-09T00:00:00Z"))
    assert (cut["cycles"], cut["discoverable"]) == (3, 3 * 36)
    (by_clock,) = lines(replayed(*few, "--every", "2d"))
    assert by_clock["cycles"] == 6


def test_an_unknown_policy_is_refused_with_the_nearest(history: str) -> None:
    assert "Did you mean 'round-robin'?" in refused("--history", history, "--policies", "round-robbin")
    assert "names nothing" in refused("--history", history, "--policies", " , ")


@pytest.mark.parametrize("budget", ["0", "-5", "0%", "-1%", "ten", "1.5", "", "nan", "1e3", "10%%"])
def test_a_bad_budget_is_wrong_usage(history: str, budget: str) -> None:
    assert refused("--history", history, f"--budget={budget}").startswith(f"error: budget: '{budget}'")


def test_a_budget_above_all_pages_is_noted_and_capped(history: str) -> None:
    done = command("replay", "--history", history, "--policies", "round-robin", "--budget", "10,500,200%", "--json")
    assert done.code == 0
    assert "budget 500 is above the number of pages: 9 are used" in done.stderr
    assert [row["budget"] for row in lines(done.stdout)] == [9]


def test_shares_are_rounded_to_whole_pages() -> None:
    assert budget_pages("10%,20%", 117) == [12, 23]
    assert budget_pages("10%,20%", 132) == [13, 26]
    assert budget_pages("0.01%", 50) == [1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bandit.window=x", "'x' is not a whole number"),
        ("bandit.windw=3", "No setting named 'windw'. Did you mean 'window'? Known: "),
        ("bandit.exploration=nan", "'nan' is not a number"),
        ("bandit.fill=perhaps", "neither yes nor no"),
        ("bandit=3", "policy.setting=value"),
        ("oracle.window=3", "oracle has no settings"),
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
    with pytest.raises(ValueError, match="can only be given from Python"):
        typed("x", object())


def test_a_history_that_is_too_short_is_refused_in_one_sentence(tmp_path: Path) -> None:
    imported(tmp_path, jsonl(visits(2)), into="short")
    assert "only one cycle follows the first crawl; a replay needs at least 2" in failed(
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


def test_too_many_cycles_to_hold_are_refused(history: str) -> None:
    assert "choose" in failed("--history", history, "--every", "1s")


def test_a_past_without_new_links_can_be_replayed(tmp_path: Path) -> None:
    imported(tmp_path, jsonl(visit(day, page, [1, 2]) for day in (1, 2, 3, 4) for page in range(3)))
    few = ("--history", str(tmp_path / "history"), "--policies", "round-robin,bandit", "--budget", "1")
    assert {row["coverage"] for row in lines(replayed(*few, "--json"))} == {None}
    assert "0 links to discover" in replayed(*few, "-o", str(tmp_path / "page.html"))


def test_a_folder_that_cannot_be_used_is_refused_before_the_replay(history: str, tmp_path: Path) -> None:
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
        "changes": 1,
        "soon": 1,
        "after": [[0, found]],
        "hosts": 1,
        "most_of_host": budget,
        "current": 0.5,
        "seconds": 0.001,
        "ages": [found] + [0] * 14,
    }
    rows = [{"cycle": i, "at": f"2026-01-{i:02d}T00:00:00+00:00", **row} for i in range(1, 13)]
    return Replayed(
        policy=policy,
        paper=more.get("paper", "P"),
        sees_future=more.get("sees_future", False),
        settings={},
        budget=budget,
        rows=rows,
    )


@pytest.fixture
def sweep() -> Replays:
    gains = {"round-robin": 3, "bandit": 6, "regression": 5, "mine": 7, "oracle": 9}
    runs = [
        run(name, k, gain + k // 50, sees_future=name == "oracle", paper=None if name == "mine" else "P")
        for k in (10, 20, 50, 100)
        for name, gain in gains.items()
    ]
    return Replays(
        runs=runs,
        n_pages=1000,
        n_hosts=5,
        n_cycles=12,
        discoverable=120,
        first_at="2026-01-01 00:00",
        last_at="2026-01-13 00:00",
    )


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


def test_the_page_draws_three_of_many_budgets_and_states_the_gain(sweep: Replays) -> None:
    assert drawn_budgets(sweep) == [10, 50, 100]
    text = " ".join(findings(sweep))
    assert "mine finds 70% of the links, round-robin 30% (the difference is more than chance)" in text
    assert "From 10 to 100 pages per cycle, the best coverage goes from 70% to 90%" in text
    assert [len(section.items) for section in sections(sweep)] == [8, 3, 2, 4, 3, 3, 3, 1, 1]


def test_a_text_that_is_not_a_budget_is_a_bad_option() -> None:
    with pytest.raises(BadBudget):
        budget_pages("x", 5)
    with pytest.raises(BadOption, match=r"^budget: 'x'"):
        ReplayOptions(budget="x")


def test_a_file_that_cannot_be_written_is_refused_before_the_history_is_opened(tmp_path: Path) -> None:
    for option in ("--out", "--rows"):
        message = refused("--history", "nowhere", option, str(tmp_path / "missing" / "file"))
        assert f"Invalid value for {option}: there is no directory" in message


# -- the same from Python ---------------------------------------------------------------------------------------------


def test_the_records_are_what_the_command_prints(history: str) -> None:
    result = rc.replay(History.open(history), QUICK.split(","), budget=3)
    printed = lines(replayed("--history", history, "--policies", QUICK, "--budget", "3", "--json"))
    timings = {"seconds": None, "seconds_per_cycle": None}
    assert [row | timings for row in json.loads(json.dumps(result.records()))] == [row | timings for row in printed]
    rows = lines(replayed("--history", history, "--policies", QUICK, "--budget", "3", "--rows", "-"))
    assert list(result.cycle_records()) == rows


def test_a_result_reads_well_and_has_a_row_per_policy_and_budget(history: str, tmp_path: Path) -> None:
    result = rc.replay(History.open(history), ["round-robin", rc.policies.WindowedOutdegree(window=5)], budget="2,50%")
    assert repr(result) == (
        "Replays(2 policies on 9 pages in 13 cycles, 2 or 5 pages per cycle; windowed-outdegree found "
        f"{result.coverage(result.runs[3]):.0%} of 468 new links)"
    )
    frame = result.to_pandas()
    assert frame[["policy", "budget"]].to_numpy().tolist() == [
        ["round-robin", 2], ["windowed-outdegree", 2], ["round-robin", 5], ["windowed-outdegree", 5],
    ]  # fmt: skip
    (first, second, *_) = result.records()
    assert frame["vs_round_robin"][1] == pytest.approx(second["coverage"] - first["coverage"])
    assert frame["vs_round_robin_low"][1] <= frame["vs_round_robin"][1] <= frame["vs_round_robin_high"][1]
    assert frame["vs_round_robin"].isna().tolist() == [True, False, True, False]
    assert result.to_arrow().num_rows == 4
    page = result.write(tmp_path / "replay.html")
    assert "Coverage over time" in page.read_text()


def test_a_replay_changes_neither_the_history_nor_the_policies(history: str) -> None:
    opened, policy = History.open(history), rc.policies.Bandit(window=5)
    timeline, novelty = opened.timeline, opened.novelty
    before, files = dict(vars(policy)), sorted(map(str, Path(history).rglob("*")))
    rc.replay(opened, policy, budget=2)
    rc.tune(opened, budget=2, policies="round-robin")
    assert opened.timeline is timeline
    assert opened.novelty is novelty
    assert vars(policy) == before
    assert sorted(map(str, Path(history).rglob("*"))) == files


def test_a_tuning_is_the_one_of_the_command_and_is_stored_only_when_asked(tmp_path: Path) -> None:
    imported(tmp_path, jsonl(visits()))
    folder = str(tmp_path / "history")
    history = History.open(folder)
    tuning = rc.tune(history, budget=3, policies=["round-robin", "average-count"])
    assert repr(tuning).startswith("Tuning(expected-harvest of 3 candidates, ")
    assert tuning.to_pandas()["recommended"].sum() == 1
    assert not (tmp_path / "history" / "tuned.json").exists()
    options = ("--policies", "round-robin,average-count", "-b", "3", "--dry-run", "--history", folder)
    printed = json.loads(output("tune", *options, "--json"))
    assert json.loads(json.dumps(tuning.record("auto"))) | {"made_at": ""} == printed | {"made_at": ""}
    rc.tune(history, budget=3, policies=["round-robin", "average-count"], keep=True)
    assert json.loads((tmp_path / "history" / "tuned.json").read_text())["policy"] == tuning.best.policy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": "bandits"}, "No policy named 'bandits'. Did you mean 'bandit'?"),
        ({"policies": []}, "policies: an empty list names nothing"),
        ({"policies": [3]}, "policies: 3 is neither the name of a policy nor a recrawl.Policy"),
        ({"budget": "0"}, "budget: '0' fetches nothing"),
        ({"every": "soon"}, "every: 'soon' is not a period"),
        ({"since": "yesterday"}, "since: "),
        ({"observed": -1}, "observed is -1; it must be 0 or more"),
        ({"workers": "few"}, "workers is 'few'; it must be a whole number"),
        ({"relevance": "missing.json"}, "relevance: there is no file missing.json"),
        ({"change": "moods"}, "change: "),
        ({"budgets": 3}, "No option named 'budgets'. Did you mean 'budget'?"),
    ],
)
def test_a_bad_option_is_refused_before_the_history_is_read(options: dict[str, Any], message: str) -> None:
    unreadable: Any = None
    with pytest.raises(BadOption) as error:
        rc.replay(unreadable, **options)
    assert str(error.value).startswith(message)
