"""What the options of the evaluation do: leaks on request, the semantic vector's importance, inlinks, and the settings shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.history import History
from recrawl.insight.features import all_but_own_past
from recrawl.insight.targets import LinkChangeRate
from recrawl.papers.outlinks.chosen import history_settings_table, settings_table
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation, evaluate, imbalance_ratio
from recrawl.papers.outlinks.maps import WHOLE_VECTOR
from recrawl.papers.outlinks.page import outlink_tables, write_outlinks_page
from recrawl.papers.outlinks.rankings import RANKINGS, features_of
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.papers.outlinks.tables import imbalance_note, scope
from recrawl.web.visit import Visit
from recrawl.world import panel
from recrawl.world.panel import Panel

START = datetime(2026, 1, 5, tzinfo=UTC)
N_PAGES, N_ROUNDS, N_TOPICS = 120, 5, 20
QUICK = OutlinkSettings(links=("external",), seeds=(0,), quick=True, trees=20, history=1, n_jobs=1)


def history_of(folder: Path, links: Callable[[int, int], list[str]], **fields: Callable[[int], Any]) -> History:
    """Pages on topics with words of their own; `fields` are made from the number of the page."""
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://h{i % 7}.org/p{i}",
            at=START + timedelta(days=7 * r, minutes=i),
            text=" ".join(f"topic{i % N_TOPICS}word{n}" for n in range(12)),
            links=links(i, r),
            content_bytes=1000 + i,
            **{name: make(i) for name, make in fields.items()},
        )
        for r in range(N_ROUNDS)
        for i in range(N_PAGES)
    )
    return history


@pytest.fixture(scope="module")
def whims(tmp_path_factory: pytest.TempPathFactory) -> History:
    """All pages of a topic gain a link in the same rounds, which nothing in the past foretells."""
    gains = np.random.default_rng(4).random((N_TOPICS, N_ROUNDS)) < 0.5

    def links(i: int, r: int) -> list[str]:
        return [f"https://y.org/{i}/{r}"] if gains[i % N_TOPICS, r] else ["https://y.org/"]

    return history_of(tmp_path_factory.mktemp("whims"), links)


@pytest.fixture(scope="module")
def topical(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Only the topic, which only the text shows, decides whether a page gains links."""

    def links(i: int, r: int) -> list[str]:
        return [f"https://y.org/{i}/{r}"] if i % N_TOPICS < N_TOPICS // 2 else ["https://y.org/"]

    return history_of(tmp_path_factory.mktemp("topical"), links)


# -- leaks on request -------------------------------------------------------------------------------------------------


def test_what_the_authors_program_let_in_lifts_the_scores_and_is_off_by_default(whims: History) -> None:
    def accuracy(**more: Any) -> float:
        found = evaluate(whims, panel.build(whims), replace(QUICK, parts=("history",), **more))
        return max(row["balanced_accuracy"] for row in found.rows["history"] if row["learner"] == "extra-trees")

    assert accuracy() < 0.75
    assert accuracy(papers_leaks=True) > 0.85


def test_the_leaks_of_the_program_include_those_of_the_paper() -> None:
    assert OutlinkSettings().leaks == {"papers_rate": False, "papers_leaks": False}
    assert OutlinkSettings(papers_rate=True).leaks == {"papers_rate": True, "papers_leaks": False}
    assert OutlinkSettings(papers_leaks=True).leaks == {"papers_rate": True, "papers_leaks": True}


def test_the_trees_of_the_link_change_rate_know_all_but_the_pages_own_past() -> None:
    lcr_et = next(ranking for ranking in RANKINGS if ranking.paper == "LCR-ET")
    assert lcr_et.target is LinkChangeRate
    names = {str(feature) for feature in features_of(lcr_et, "internal", OutlinkSettings())}
    assert names == {str(feature) for feature in all_but_own_past(8)}
    assert {"n_inlinks_internal -8", "trustrank -3", "related new_external -2", "related trustrank"} <= names


# -- the semantic vector's importance ---------------------------------------------------------------------------------


@pytest.mark.parametrize("links", [pytest.param("internal", marks=pytest.mark.slow), "external"])
def test_importance_is_measured_with_the_semantic_vector_too(tmp_path: Path, topical: History, links: Any) -> None:
    settings = replace(QUICK, parts=("importance",), links=(links,), trees=40)
    rows = evaluate(topical, panel.build(topical), settings).rows["importance"]
    sets = {row["features"] for row in rows if row["target"] == "link-change-rate"}
    assert sets == {"SP+SN", "SPsem+SN"}
    with_vector = [row for row in rows if row["features"] == "SPsem+SN"]
    assert sum(row["name"].startswith("text dimension") and not row["grouped"] for row in with_vector) == 20
    assert not any(row["name"].startswith("text dimension") for row in rows if row["features"] == "SP+SN")
    whole = next(row for row in with_vector if row["name"] == WHOLE_VECTOR)
    if links == "external":
        assert whole["importance"] == max(row["importance"] for row in with_vector), "nothing else shows the topic"
        assert whole["importance"] > 0.3


# -- inlinks ----------------------------------------------------------------------------------------------------------


def test_inlinks_can_be_predicted_like_outlinks(tmp_path: Path) -> None:
    """Every third page gets a link from another one in every round; the others never do."""

    def links(i: int, r: int) -> list[str]:
        to = (i + 1 + 7 * r) % N_PAGES
        return [f"https://h{to % 7}.org/p{to}"] if to % 3 == 0 else ["https://y.org/"]

    history = history_of(tmp_path, links)
    settings = replace(QUICK, links=("all",), parts=("history", "rankings"), target="inlinks")
    found = evaluate(history, panel.build(history), settings)
    scores = [row["balanced_accuracy"] for row in found.rows["history"] if row["learner"] == "extra-trees"]
    assert scores[-1] > 0.95, "the past of the page decides"
    assert found.imbalance == {"all": pytest.approx(2.0)}
    assert found.about()["target"] == "inlinks"
    assert scope(found).startswith("New links are new inlinks")
    outlinks = evaluate(history, panel.build(history), replace(settings, target="outlinks", parts=("history",)))
    assert outlinks.imbalance != found.imbalance


# -- imbalance --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_without", "n_with", "ratio"), [(257, 100, 2.57), (1215, 100, 12.15), (5, 0, None)])
def test_the_imbalance_ratio_is_that_of_the_papers(n_without: int, n_with: int, ratio: float | None) -> None:
    """72% of pages without new internal and 92.4% without new external links, as in section 4, are 2.57 and 12.15."""
    counts = np.array([[np.nan, 0]] * n_without + [[np.nan, 3]] * n_with + [[np.nan, np.nan]] * 9, np.float32)
    days = np.array(["2020-09-07", "2020-09-14"], "datetime64[us]")
    shown = Panel(
        page=np.arange(len(counts)),
        url=None,
        rounds=days,
        at=np.tile(days, (len(counts), 1)),
        n_new_internal=counts,
        n_new_external=counts,
        content_changed=counts,
    )
    assert imbalance_ratio(shown, "internal") == (None if ratio is None else pytest.approx(ratio))


def test_the_history_table_names_the_imbalance() -> None:
    found = OutlinkEvaluation(QUICK, 1, 1, "", "", imbalance={"internal": 2.57, "external": 12.15, "all": None})
    said = "Pages without new links for every page with some: 2.57 (internal) and 12.15 (external)."
    assert imbalance_note(found) == said
    assert not imbalance_note(replace(found, imbalance={}))


# -- settings that tuning chose ---------------------------------------------------------------------------------------


def tuned_rows(part: str, **which: Any) -> list[dict[str, Any]]:
    """Two repetitions that chose different numbers of trees."""
    return [
        {"links": "internal", "seed": seed, "tuned": True, "settings": {"n_estimators": trees, "min_samples_leaf": 2}}
        | {"learner": "extra-trees", **which}
        for seed, trees in ((0, 300), (1, 500))
    ]


def test_the_settings_of_the_history_ladder_are_laid_out_as_in_table_3() -> None:
    found = OutlinkEvaluation(QUICK, 1, 1, "", "")
    trees = {"internal": (300, 500, 400), "external": (300, 300, 400)}
    found.rows["history"] = [
        {"links": links, "history": h, "seed": 0, "tuned": True, "learner": "extra-trees"}
        | {"settings": {"n_estimators": n, "min_samples_leaf": 2 if links == "internal" else 10}}
        for links, numbers in trees.items()
        for h, n in enumerate(numbers)
    ] + [{"links": "internal", "seed": 0, "tuned": False, "learner": "previous-count", "settings": {}}]
    table = history_settings_table(found)
    assert table.header == ("links", "rounds of history:", "0", "1", "2")
    assert [list(row) for row in table.rows] == [
        ["internal", "trees", "300", "500", "400"],
        ["internal", "minimum rows per leaf", "2", "2", "2"],
        ["external", "trees", "300", "300", "400"],
        ["external", "minimum rows per leaf", "10", "10", "10"],
    ]
    assert table.title == "Settings that cross-validation chose"
    assert table.note == "As in LBLA Table 3."


def test_repetitions_that_chose_differently_are_all_named() -> None:
    found = OutlinkEvaluation(QUICK, 1, 1, "", "")
    found.rows["features"] = tuned_rows("features", features="SP")
    table = settings_table(found, "features")
    assert table.header == ("links", "features", "learner", "trees", "minimum rows per leaf")
    assert [list(row) for row in table.rows] == [["internal", "SP", "extra-trees", "300, 500", "2"]]
    assert "one for each repetition" in table.note
    for row in found.rows["features"]:
        row["tuned"] = False
    assert settings_table(found, "features").title == "Settings of the models"
    assert "Not tuned" in settings_table(found, "features").note


def test_the_settings_that_tuning_chose_are_in_the_rows_on_the_terminal_and_on_the_page(
    topical: History, tmp_path: Path
) -> None:
    settings = replace(QUICK, parts=("history", "features"), quick=False, trees=3, folds=2)
    found = evaluate(topical, panel.build(topical), settings)
    models = [row for part in settings.parts for row in found.rows[part] if row["learner"] == "extra-trees"]
    assert all(row["tuned"] for row in models)
    assert all(row["settings"]["n_estimators"] == 3 for row in models), "the grid has no more than --trees"
    assert {row["settings"]["min_samples_leaf"] for row in models} <= {2, 5, 10, 15, 20, 25}
    baselines = [row for row in found.rows["history"] if row["learner"] == "previous-count"]
    assert [(row["settings"], row["tuned"]) for row in baselines] == [({}, False)]
    titles = [table.title for table in outlink_tables(found)]
    assert titles.count("Settings that cross-validation chose") == 2
    assert "Settings that cross-validation chose" in write_outlinks_page(tmp_path / "page.html", found).read_text()


# -- on the command line ----------------------------------------------------------------------------------------------


def command(history: History, *options: str) -> Any:
    given = ["--history", str(history.store.folder), "--quick", "--trees", "3", "--repeat", "1", "--parts", "history"]
    return CliRunner().invoke(app, ["evaluate", *given, "--links", "external", *options], env={"COLUMNS": "300"})


def test_a_learner_of_presence_inlinks_leaks_and_idf_are_options(whims: History) -> None:
    options = ("--learner", "lightgbm-unlimited", "--papers-leaks", "--idf", "ratio", "--target", "outlinks", "--json")
    rows = [json.loads(line) for line in command(whims, *options).stdout.splitlines()]
    assert rows[0]["part"] == "about"
    assert rows[0]["imbalance"]["external"] > 0
    learners = {row["learner"] for row in rows[1:]}
    assert learners == {"lightgbm-unlimited", "previous-count"}
    assert rows[1]["settings"] == {"n_estimators": 3, "min_child_samples": 25, "learning_rate": 0.04}
    inlinks = command(whims, "--target", "inlinks")
    assert inlinks.exit_code == 0, "though no page of it is linked from another"
    assert "New links are new inlinks" in inlinks.stdout


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--learner", "ngboost", "No learner of presence named 'ngboost'"),
        ("--learner", "previous-count", "No learner of presence named 'previous-count'"),
        ("--learner", "lightgbm-unlimted", "Did you mean 'lightgbm-unlimited'?"),
        ("--idf", "lag", "Did you mean 'log'?"),
        ("--target", "inlink", "Did you mean 'inlinks'?"),
    ],
)
def test_wrong_values_are_refused_before_anything_is_read(option: str, value: str, said: str, tmp_path: Path) -> None:
    given = ["evaluate", "--history", str(tmp_path / "none"), option, value]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert said in result.output


def test_an_idf_for_vectors_that_came_with_the_data_is_noted(tmp_path: Path) -> None:
    def links(i: int, r: int) -> list[str]:
        return [f"https://y.org/{i}/{r}"] if i % 2 else []

    rng = np.random.default_rng(0)
    given = history_of(tmp_path / "given", links, vector=lambda i: rng.normal(size=8).tolist())
    settings = replace(QUICK, parts=("history",), idf="ratio", trees=2)
    found = evaluate(given, panel.build(given), settings)
    assert found.notes == ("--idf has no effect: the semantic vectors came with the data",)
    worded = history_of(tmp_path / "worded", links)
    assert evaluate(worded, panel.build(worded), settings).notes == ()
