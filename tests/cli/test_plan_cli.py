import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recrawl.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("plan") / "history")
    made = runner.invoke(app, ["synth", "--pages", "80", "--rounds", "16", "--history", folder])
    assert made.exit_code == 0, made.output
    return folder


def ask(*arguments: str) -> str:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


AS_OF = ("--as-of", "2020-10-01T00:00:00Z")


def test_a_plan_has_the_keys_that_others_rely_on_and_is_kept_and_scored(history: str) -> None:
    rows = [
        json.loads(line) for line in ask("plan", "--budget", "8", "--json", "--history", history, *AS_OF).splitlines()
    ]
    keys = "rank url host expected_new_links expected_low expected_high probability due_at last_visit_at reason"
    assert all(set(keys.split()) <= set(row) for row in rows)
    assert [row["rank"] for row in rows] == list(range(1, 9))
    assert all(0 <= row["expected_low"] <= row["expected_high"] for row in rows)
    (told,) = (json.loads(line) for line in ask("score", "--json", "--history", history).splitlines())
    assert (told["planned"], told["policy"]) == (8, "expected-harvest")
    assert told["visited"] > 0
    assert "what came of the plans" in ask("score", "--history", history)


def test_the_plan_for_people_tells_what_was_left_out(history: str) -> None:
    told = ask("plan", "--budget", "10%", "-p", "average-count", "--dry-run", "--history", history, *AS_OF)
    assert "8 of 80 known pages" in told
    assert "not picked: " in told
    assert "expected by budget: " in told


@pytest.mark.parametrize("name", ["urls", "jsonl", "csv", "scrapy", "urlfrontier", "heritrix", "nutch"])
def test_every_format_can_be_written_and_compressed(history: str, tmp_path: Path, name: str) -> None:
    import gzip

    out = tmp_path / "plan.gz"
    ask("plan", "-b", "5", "--format", name, "--dry-run", "--out", str(out), "--history", history, *AS_OF)
    assert gzip.decompress(out.read_bytes()).count(b"http") >= 5


def test_explain_agrees_with_the_plan(history: str) -> None:
    plan = ask(
        "plan", "-b", "5", "-p", "windowed-clique", "--format", "urls", "--dry-run", "--history", history, *AS_OF
    )
    first = plan.splitlines()[0]
    told = json.loads(ask("explain", first, "-b", "5", "-p", "windowed-clique", "--json", "--history", history, *AS_OF))
    assert told["is_picked"]
    assert told["rank"] == 1
    assert told["related"]
    assert "in the plan of 5 pages" in ask(
        "explain", first, "-b", "5", "-p", "windowed-clique", "--history", history, *AS_OF
    )


def test_the_policy_that_was_tuned_plans(history: str) -> None:
    tune = ("tune", "--policies", "round-robin,average-count", "--history", history)
    told = json.loads(ask(*tune, "--json"))
    assert set(told["coverage"]) == {"round-robin", "average-count", "expected-harvest"}  # the default always competes
    result = runner.invoke(app, ["plan", "-b", "3", "--dry-run", "--history", history])
    assert f"by {told['policy']}, as recrawl tune recommended" in result.output
    earlier = runner.invoke(app, ["plan", "-b", "3", "--dry-run", "--history", history, *AS_OF])
    assert ("as recrawl tune recommended" in earlier.output) == (told["until"] <= AS_OF[1])  # nothing sees the future
    assert "recommended: " in ask(*tune, *AS_OF)
    result = runner.invoke(app, ["plan", "-b", "3", "--dry-run", "--history", history, *AS_OF])
    assert "as recrawl tune recommended" in result.output


def test_relevance_is_learnt_from_labels(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    rows = [f"https://e.org/{topic}/{i},{int(topic == 'vote')}" for topic in ("vote", "goal") for i in range(9)]
    labels.write_text("url,label\n" + "\n".join(rows) + "\nhttps://e.org/,maybe\n")
    result = runner.invoke(app, ["relevance", "--labels", str(labels), "--out", str(tmp_path / "r.json"), "--json"])
    assert result.exit_code == 0, result.output
    assert "1 rows without a label" in result.output
    assert (tmp_path / "r.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["plan", "--budget", "0"], 2, "fetches nothing"),
        (["plan", "--budget", "-3"], 2, "fetches nothing"),
        (["plan", "--budget", "many"], 2, "a number of pages or a share"),
        (["plan", "--budget", "5", "--policy", "bandits"], 2, "Did you mean 'bandit'?"),
        (["plan", "--budget", "5", "--policy", "oracle"], 2, "knows the future"),
        (["plan", "--budget", "5", "-p", "bandit", "--set", "bandit.windows=3"], 2, "no setting 'windows'"),
        (["plan", "--budget", "5", "--min-gap", "soon"], 2, "is not a period"),
        (["plan", "--budget", "5", "--as-of", "2001-01-01T00:00:00Z"], 1, "no visits"),
        (["explain", "https://e.org/never"], 1, "was never visited"),
        (["score", "no-such-plan"], 1, "no plan 'no-such-plan'"),
        (["tune", "--budget", "x"], 2, "--budget"),
    ],
)
def test_wrong_input_is_a_sentence(history: str, arguments: list[str], code: int, message: str) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "recrawl.cli", *arguments, "--history", history],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_budget_above_the_number_of_pages_is_capped_and_said(history: str) -> None:
    result = runner.invoke(
        app, ["plan", "--budget", "5000", "--format", "urls", "--dry-run", "--history", history, *AS_OF]
    )
    assert len([line for line in result.stdout.splitlines() if line.startswith("http")]) <= 80
    assert "above the number of pages" in result.output


def test_a_plan_can_favour_what_is_found_now(history: str) -> None:
    told = ask("plan", "-b", "5", "--favour", "freshness", "--dry-run", "--history", history, *AS_OF)
    assert "expected-harvest" in told
    assert "unseen links" in told


@pytest.mark.parametrize("other", [("--policy", "bandit"), ("--goal", "content"), ("--set", "bandit.window=3")])
def test_favour_and_what_it_contradicts_are_refused_together(history: str, other: tuple[str, str]) -> None:
    asked = ["plan", "-b", "5", "--favour", "freshness", *other, "--history", history]
    result = runner.invoke(app, asked)
    assert result.exit_code == 2
    assert "--favour freshness" in " ".join(result.output.split())


def test_the_parts_of_a_policy_are_told_for_people_and_scripts(history: str, tmp_path: Path) -> None:
    asked = ("experiments", "harvest", "-b", "10%", "--parts", "calibration,hidden", "--history", history)
    page = tmp_path / "harvest.html"
    assert "expected / found" in " ".join(ask(*asked, "--out", str(page)).split())
    assert "Expected and found" in page.read_text("utf-8")
    told = json.loads(ask(*asked, "--json"))
    assert told["hidden"]["n_pages"] > 0
    assert set(told["calibrated"][0]["levels"]) == {"0.5", "0.8", "0.95"}


def test_a_page_that_cannot_be_written_is_told_before_the_work(history: str, tmp_path: Path) -> None:
    out = str(tmp_path / "missing" / "page.html")
    result = runner.invoke(app, ["experiments", "harvest", "--out", out, "--history", history])
    assert result.exit_code == 2
    assert "there is no folder" in " ".join(result.output.split())
