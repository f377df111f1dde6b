import json
from dataclasses import replace
from pathlib import Path

import pytest

from commands import command, output
from made_focus import ON, made_visits
from recrawl.history import History


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("plan") / "history")
    output("synth", "--pages", "80", "--rounds", "16", "--history", folder)
    return folder


AS_OF = ("--as-of", "2020-10-01T00:00:00Z")


def test_a_plan_has_the_keys_that_others_rely_on_and_is_kept_and_scored(history: str) -> None:
    rows = [
        json.loads(line)
        for line in output("plan", "--budget", "8", "--json", "--history", history, *AS_OF).splitlines()
    ]
    keys = "rank url host expected_new_links expected_low expected_high probability due_at last_visit_at reason"
    assert all(set(keys.split()) <= set(row) for row in rows)
    assert [row["rank"] for row in rows] == list(range(1, 9))
    assert all(0 <= row["expected_low"] <= row["expected_high"] for row in rows)
    (score,) = (json.loads(line) for line in output("score", "--json", "--history", history).splitlines())
    assert (score["planned"], score["policy"]) == (8, "expected-harvest")
    assert score["visited"] > 0
    assert "plans and what their visits found" in output("score", "--history", history)


def test_the_plan_for_people_says_what_was_left_out(history: str) -> None:
    shown = output("plan", "--budget", "10%", "-p", "average-count", "--dry-run", "--history", history, *AS_OF)
    assert "8 of 80 known pages" in shown
    assert "not picked: " in shown
    assert "expected by budget: " in shown


@pytest.mark.parametrize("columns", [None, 40, 80, 200])
def test_a_plan_fits_the_terminal_and_shows_every_url_and_reason_whole(
    history: str, monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    options = ("plan", "-b", "6", "--dry-run", "--history", history, *AS_OF)
    rows = [json.loads(line) for line in output(*options, "--json").splitlines()]
    lines = output(*options).splitlines()
    assert [line for line in lines if line.startswith("http")] == [row["url"] for row in rows]
    # Only what has no space to break it at, such as a URL, may be longer than the line.
    assert all(len(line) <= (columns or 80) or " " not in line.strip() for line in lines)
    text = " ".join(" ".join(lines).split())
    for row in rows:
        assert f"why: {row['reason']}" in text


@pytest.mark.parametrize("name", ["urls", "jsonl", "csv", "scrapy", "urlfrontier", "heritrix", "nutch"])
def test_every_format_can_be_written_and_compressed(history: str, tmp_path: Path, name: str) -> None:
    import gzip

    out = tmp_path / "plan.gz"
    output("plan", "-b", "5", "--format", name, "--dry-run", "--out", str(out), "--history", history, *AS_OF)
    assert gzip.decompress(out.read_bytes()).count(b"http") >= 5


def test_explain_agrees_with_the_plan(history: str) -> None:
    plan = output(
        "plan", "-b", "5", "-p", "windowed-clique", "--format", "urls", "--dry-run", "--history", history, *AS_OF
    )
    first = plan.splitlines()[0]
    explained = json.loads(
        output("explain", first, "-b", "5", "-p", "windowed-clique", "--json", "--history", history, *AS_OF)
    )
    assert explained["is_picked"]
    assert explained["rank"] == 1
    assert explained["related"]
    assert "in the plan of 5 pages" in output(
        "explain", first, "-b", "5", "-p", "windowed-clique", "--history", history, *AS_OF
    )


def test_the_policy_that_was_tuned_plans(history: str) -> None:
    tune = ("tune", "--policies", "round-robin,average-count", "--history", history)
    tuned = json.loads(output(*tune, "--json"))
    assert set(tuned["coverage"]) == {"round-robin", "average-count", "expected-harvest"}  # the default always competes
    done = command("plan", "-b", "3", "--dry-run", "--history", history)
    assert f"planning by {tuned['policy']}, as recrawl tune recommended" in done.message
    earlier = command("plan", "-b", "3", "--dry-run", "--history", history, *AS_OF)
    assert ("as recrawl tune recommended" in earlier.message) == (tuned["until"] <= AS_OF[1])  # nothing sees the future
    assert "recommended: " in output(*tune, *AS_OF)
    done = command("plan", "-b", "3", "--dry-run", "--history", history, *AS_OF)
    assert "as recrawl tune recommended" in done.message


def test_relevance_is_learnt_from_labels(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    rows = [f"https://e.org/{topic}/{i},{int(topic == 'vote')}" for topic in ("vote", "goal") for i in range(9)]
    labels.write_text("url,label\n" + "\n".join(rows) + "\nhttps://e.org/,maybe\n")
    done = command("relevance", "--labels", str(labels), "--out", str(tmp_path / "r.json"), "--json")
    assert done.code == 0, done
    assert "1 rows without a label" in done.stdout + done.message
    assert (tmp_path / "r.json").exists()


def test_relevance_is_learnt_from_recorded_visits_and_used_by_every_command(tmp_path: Path) -> None:
    history, model = str(tmp_path / "h"), str(tmp_path / "r.json")
    visits = made_visits(1, n_days=12)
    made = History.create(history)
    made.add(
        [replace(visit, relevance=_of_url(visit.url)) if visit.relevance is not None else visit for visit in visits]
    )
    done = command("relevance", "--recorded", "--out", model, "--history", history, "--json")
    assert (done.code, json.loads(done.stdout)["balanced_accuracy"] > 0.9) == (0, True), done
    assert "nothing to learn from" in command("relevance", "--history", history).stderr
    focus = ("--relevance", model, "--history", history)
    at = ("--as-of", "2026-01-13T00:00:00Z")
    assert "new relevant links expected" in output("plan", "-b", "50%", *focus, *at)
    summary = json.loads(output("plan", "-b", "50%", "--summary", "--json", "--dry-run", *focus, *at))
    assert summary["expected_relevant_links"] == summary["expected_new_links"] > 0
    hub = next(visit.url for visit in visits if visit.url.startswith("https://h1"))
    assert "new relevant links expected" in output("explain", hub, "-b", "5", *focus, *at)
    assert "of all " in output("score", "--history", history)
    assert "relevant" in output("tune", "-b", "2", "--policies", "round-robin,average-count", *focus)
    (row,) = [
        json.loads(line) for line in output("replay", "-b", "2", "-p", "round-robin", "--json", *focus).splitlines()
    ]
    assert row["discoverable"] < row["discoverable_all"]
    page = tmp_path / "replay.html"
    output("replay", "-b", "2", "-p", "round-robin", "--out", str(page), *focus)
    assert "Relevant and all new links" in page.read_text()


def _of_url(url: str) -> float:
    return 0.9 if any(word in url for word in ON) else 0.1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["plan", "--budget", "0"], 2, "fetches nothing"),
        (["plan", "--budget", "-3"], 2, "fetches nothing"),
        (["plan", "--budget", "many"], 2, "a number of pages or a share"),
        (["plan", "--budget", "5", "--policy", "bandits"], 2, "Did you mean 'bandit'?"),
        (["plan", "--budget", "5", "--policy", "oracle"], 2, "knows the future"),
        (
            ["plan", "--budget", "5", "-p", "bandit", "--set", "bandit.windows=3"],
            2,
            "No setting named 'windows'. Did you mean 'window'?",
        ),
        (["plan", "--budget", "5", "--min-gap", "soon"], 2, "is not a period"),
        (["plan", "--budget", "5", "--as-of", "2001-01-01T00:00:00Z"], 1, "no visits"),
        (["explain", "https://e.org/never"], 1, "was never visited"),
        (["score", "no-such-plan"], 1, "no plan 'no-such-plan'"),
        (["tune", "--budget", "x"], 2, "budget: 'x': write a number of pages"),
        (["tune", "--budget", "5%,10%"], 2, "a policy is recommended for one budget"),
    ],
)
def test_wrong_input_is_a_sentence(history: str, arguments: list[str], code: int, message: str) -> None:
    done = command(*arguments, "--history", history)
    assert done.code == code, done
    assert message in done.message
    assert "Traceback" not in done.stderr


def test_a_budget_above_the_number_of_pages_is_capped_and_said(history: str) -> None:
    done = command("plan", "--budget", "5000", "--format", "urls", "--dry-run", "--history", history, *AS_OF)
    assert 0 < len([line for line in done.stdout.splitlines() if line.startswith("http")]) <= 80
    assert "budget 5000 is above the number of known pages: 80 are used" in done.message


def test_a_plan_can_favour_what_is_found_now(history: str) -> None:
    shown = output("plan", "-b", "5", "--favour", "freshness", "--dry-run", "--history", history, *AS_OF)
    assert "expected-harvest" in shown
    assert "unseen links" in shown


@pytest.mark.parametrize("other", [("--policy", "bandit"), ("--goal", "content"), ("--set", "bandit.window=3")])
def test_favour_and_what_it_contradicts_are_refused_together(history: str, other: tuple[str, str]) -> None:
    done = command("plan", "-b", "5", "--favour", "freshness", *other, "--history", history)
    assert done.code == 2
    assert done.message.startswith("error: favour freshness is for plans by expected-harvest")


def test_the_parts_of_a_policy_are_reported_to_people_and_scripts(history: str, tmp_path: Path) -> None:
    options = ("experiments", "harvest", "-b", "10%", "--parts", "calibration,hidden", "--history", history)
    page = tmp_path / "harvest.html"
    shown = " ".join(output(*options, "--out", str(page)).split())
    assert "Whether expectations and intervals hold" in shown
    assert f"plots: {page}" in shown
    assert "Expected and found" in page.read_text("utf-8")
    parts = json.loads(output(*options, "--json"))
    assert parts["hidden"]["n_pages"] > 0
    assert set(parts["calibrated"][0]["levels"]) == {"0.5", "0.8", "0.95"}


def test_a_page_that_cannot_be_written_is_refused_before_the_work(history: str, tmp_path: Path) -> None:
    out = str(tmp_path / "missing" / "page.html")
    done = command("experiments", "harvest", "--out", out, "--history", history)
    assert done.code == 2
    assert "Invalid value for --out: there is no directory" in done.message
