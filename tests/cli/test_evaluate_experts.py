"""`recrawl evaluate --method experts` as a command: what it prints and writes, its defaults, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.web.visit import Visit

runner = CliRunner()
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
N_DAYS = 36
SMALL = ("--train", "12", "--trains", "10,12", "--experts", "2", "--numbers", "1,2", "--models", "2")


def recorded(folder: Path, text: Callable[[int, int], str | None], n_pages: int = 6, n_days: int = N_DAYS) -> str:
    """Pages visited daily, with the text of each page and day."""
    History.create(folder).add(
        Visit(
            url=f"https://a.org/{i}",
            at=START + timedelta(days=day),
            text=text(i, day),
            links=[f"https://a.org/{i + 1}"],
        )
        for i in range(n_pages)
        for day in range(n_days)
    )
    return str(folder)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Five pages that say one thing or another, by the flip of a coin; the last is known in a fourth of the days only."""
    heads = np.random.default_rng(0).random((6, N_DAYS)) < 0.5
    seldom = [day % 4 == 0 for day in range(N_DAYS)]

    def text(i: int, day: int) -> str | None:
        return (
            " ".join((["north", "wind"] if heads[i, day] else ["south", "sea"]) * 20) if i < 5 or seldom[day] else None
        )

    return recorded(tmp_path_factory.mktemp("experts") / "history", text)


def evaluate(history: str, *options: object) -> Any:
    given = ["evaluate", "--method", "experts", "--history", history, *map(str, options)]
    return runner.invoke(app, given, env={"COLUMNS": "300", "NO_COLOR": "1"})


@pytest.mark.slow
def test_rows_come_as_json_with_their_part_after_what_they_are_about(history: str) -> None:
    result = evaluate(history, *SMALL, "--json", "--pages", 3, "--c", "0.1,1", "--seed", 7)
    assert result.exit_code == 0, result.output
    about, *rows = map(json.loads, result.stdout.splitlines())
    assert about["part"] == "about"
    assert (about["n_pages"], about["n_rounds"], about["n_predicted"]) == (5, N_DAYS, 3)
    asked = about["settings"]
    assert (asked["every"], asked["min_share"], asked["seed"], asked["cs"]) == ("1d", 0.5, 7, [0.1, 1.0])
    assert {row["part"] for row in rows} == {"settings", "combining", "selection", "history", "number"}
    assert {row["n_train"] for row in rows if row["part"] == "history"} == {10, 12}
    assert {row["k"] for row in rows if row["part"] == "number" and row["method"] == "related-experts"} == {1, 2}
    assert all(0 <= row["accuracy"] <= 1 and row["n_pages"] <= 3 for row in rows)


def test_tables_come_after_the_findings_and_the_page_holds_all_of_it(history: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = evaluate(history, *SMALL, "--parts", "settings,number", "--every", "crawl", "--out", page)
    assert result.exit_code == 0, result.output
    places = [
        result.stdout.index(text)
        for text in ("Related pages as experts (2 chosen by", "Table 1", "Fig. 7", "all of it")
    ]
    assert places == sorted(places)
    assert "Table 2" not in result.stdout
    assert "36 rounds (crawl)" in " ".join(result.stdout.split())
    assert "What helps to predict a change" in page.read_text()
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".html", ".js"]


def test_a_self_contained_page_is_one_file(history: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = evaluate(history, *SMALL, "--parts", "settings", "--out", page, "--self-contained")
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert page.stat().st_size > 4_000_000
    refused = evaluate(history, *SMALL, "--out", tmp_path / "none" / "page.html")
    assert refused.exit_code == 2
    assert "there is no directory" in _unframed(refused.stderr)


def test_options_reach_the_evaluation(history: str) -> None:
    options = (
        "--choose",
        "content",
        "--reselect",
        8,
        "--window",
        2,
        "--ahead-rounds",
        2,
        "--alpha",
        0.1,
        "--word-scale",
        0.5,
    )
    more = ("--change", "digest", "--min-share", 0, "--parts", "settings", "--json")
    result = evaluate(history, *SMALL, *options, *more)
    assert result.exit_code == 0, result.output
    about, *rows = map(json.loads, result.stdout.splitlines())
    asked, names = about["settings"], ("method", "reselect", "l", "sigma", "alpha", "word_scale", "notion", "min_share")
    assert [asked[name] for name in names] == ["content", 8, 2, 2, 0.1, 0.5, "digest", 0.0]
    assert about["n_pages"] == 6
    assert "content" in {row["experts"] for row in rows}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--change", "digests"), "Did you mean 'digest'?"),
        (("--choose", "magic"), "No value named 'magic'. Known: cross-correlation"),
        (("--parts", "features"), "No value named 'features'. Known: settings"),
        (("--trains", "thirty"), "--trains 'thirty': write whole numbers from 2"),
        (("--numbers", "0,5"), "--numbers '0,5': write whole numbers from 1"),
        (("--train", "3", "--ahead-rounds", "3"), "--train 3 leaves nothing to learn from 3 rounds ahead"),
        (("--c", "0"), "--c '0': write numbers above 0"),
        (("--every", "visits"), "--every visits is for --method history-aware; --method experts goes"),
        (("--links", "internal"), "--links belongs to --method outlinks"),
        (("--ahead", "7d"), "--ahead belongs to --method history-aware"),
    ],
)
def test_wrong_options_are_wrong_usage(history: str, options: tuple[str, ...], sentence: str) -> None:
    result = evaluate(history, *options)
    assert result.exit_code == 2
    assert sentence in _unframed(result.stderr)


@pytest.mark.parametrize(
    ("method", "option", "sentence"),
    [
        ("outlinks", "--train", "--train belongs to --method experts"),
        ("history-aware", "--choose", "--choose belongs to --method experts"),
        ("history-aware", "--min-share", "--min-share belongs to --method outlinks or experts"),
    ],
)
def test_options_of_experts_are_refused_elsewhere(history: str, method: str, option: str, sentence: str) -> None:
    value = "dtw" if option == "--choose" else "1" if option == "--min-share" else "30"
    result = runner.invoke(
        app, ["evaluate", "--method", method, "--history", history, option, value], env={"COLUMNS": "300"}
    )
    assert result.exit_code == 2
    assert sentence in _unframed(result.stderr)


def test_a_history_with_too_little_is_refused_with_a_sentence_and_a_way_out(history: str, tmp_path: Path) -> None:
    result = evaluate(history)
    assert isinstance(result.exception, NotEnoughData)
    assert "has 36 rounds of 1d; to learn from 50 of them" in str(result.exception)
    assert "--train" in str(result.exception)
    result = evaluate(recorded(tmp_path / "silent", lambda i, day: None), *SMALL)
    assert isinstance(result.exception, NotEnoughData)
    assert "import visits with text" in str(result.exception)
    result = evaluate(recorded(tmp_path / "still", lambda i, day: "always the same words"), *SMALL)
    assert isinstance(result.exception, NotEnoughData)
    assert "none of the 6 pages" in str(result.exception)
    assert "--alpha" in str(result.exception)


def _unframed(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_freshness_by_observed_rounds_is_drawn_and_listed(history: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ("--parts", "freshness", "--observed-rounds", "0,15,99", "--fetched", "0.3", "--out", page)
    result = evaluate(history, *SMALL, *given)
    assert result.exit_code == 0, result.output
    assert "rounds observed" in result.output
    assert "Fig. 8" in page.read_text()
    rows = [json.loads(line) for line in evaluate(history, *SMALL, *given[:-2], "--json").stdout.splitlines()]
    found = {(row["method"], row["observed"]): row for row in rows if row["part"] == "freshness"}
    assert set(found) == {(m, n) for m in ("change-frequency", "single-expert", "related-experts") for n in (0, 15)}
    assert all(0 < row["freshness"] <= 1 and row["fetches_per_round"] == 2 for row in found.values())


def test_experts_are_named_in_a_table_and_in_rows(history: str) -> None:
    result = evaluate(history, *SMALL, "--parts", "settings,experts")
    assert "Who the experts are" in result.output
    rows = [json.loads(line) for line in evaluate(history, *SMALL, "--parts", "experts", "--json").stdout.splitlines()]
    named = [row for row in rows if row["part"] == "experts"]
    assert all(row["url"] != row["expert"] for row in named)
    assert {"url", "rank", "expert", "weight", "right"} < set(named[0])


def test_other_outcomes_can_be_predicted_and_nonsense_is_refused(history: str) -> None:
    refused = evaluate(history, *SMALL, "--predict", "luck")
    assert refused.exit_code == 2
    assert "luck" in refused.output
    without = evaluate(history, *SMALL, "--predict", "relevance")
    assert isinstance(without.exception, NotEnoughData)
    links = evaluate(history, *SMALL, "--parts", "settings", "--predict", "new-links", "--alpha", "0")
    assert links.exit_code == 0, links.output
    assert "new-links" in links.output


def test_the_last_rounds_alone_can_be_predicted(history: str) -> None:
    result = evaluate(history, *SMALL, "--parts", "settings", "--last-rounds", "2", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["n_predictions"] for row in rows if row["part"] == "settings"} <= set(range(11))


def test_importance_selects_pages_and_leaves_the_papers_coin_alone(history: str, tmp_path: Path) -> None:
    shutil.copytree(history, tmp_path / "h")
    weighed = History.open(tmp_path / "h")
    weighed.add(Visit(url=f"https://a.org/{i}", at=START, importance=40.0 if i in (1, 3) else 0.0) for i in range(6))
    fresh = ("--parts", "freshness", "--observed-rounds", "0", "--fetched", "0.3", "--json", *SMALL)
    assert evaluate(history, *fresh).stdout == evaluate(str(tmp_path / "h"), *fresh).stdout
    named = ("--parts", "experts", "--pages", 2, "--json", *SMALL)
    result = evaluate(str(tmp_path / "h"), *named)
    assert result.exit_code == 0, result.output
    about, *rows = map(json.loads, result.stdout.splitlines())
    assert {row["url"] for row in rows} == {"https://a.org/1", "https://a.org/3"}
    assert "the pages to predict were drawn in proportion to their importance" in about["notes"]
