"""Nothing that a score rests on may stem from what is to be predicted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.history import History
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation, evaluate
from recrawl.papers.outlinks.evidence import gather_evidence
from recrawl.papers.outlinks.ladders import FEATURE_SETS
from recrawl.papers.outlinks.page import findings, outlink_tables
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.papers.outlinks.tables import apart, ranking_table, scope
from recrawl.web.visit import Visit
from recrawl.world import panel

START = datetime(2026, 1, 5, tzinfo=UTC)
WORDS = [f"w{i}" for i in range(200)]
N_PAGES = 200


def history_of(
    folder: Path, n_rounds: int, text: Callable[[int, int], str], links: Callable[[int, int], list[str]]
) -> History:
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://h{i % 7}.org/p{i}",
            at=START + timedelta(days=7 * r, minutes=i),
            text=text(i, r),
            links=links(i, r),
            content_bytes=1000 + 7 * (i * 7919 % 300),  # of no use but to recognise a page by
            text_bytes=round(
                random.Random(i).gauss(500 + 50 * (i % 2), 150)
            ),  # only the mean of many shows the odd ones
        )
        for r in range(n_rounds)
        for i in range(N_PAGES)
    )
    return history


def words(seed: int, among: list[str] = WORDS) -> str:
    return " ".join(random.Random(seed).choices(among, k=60))


@pytest.fixture(scope="module")
def later_text(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Every other page gains a link in every round, and its text says so from the second round on."""

    def text(i: int, r: int) -> str:
        return words(i * 100) if r == 0 else words(i * 100 + 1, WORDS[:100] if i % 2 else WORDS[100:])

    def links(i: int, r: int) -> list[str]:
        return [f"https://y.org/{i}/{r}"] if i % 2 else ["https://y.org/"]

    return history_of(tmp_path_factory.mktemp("later"), 6, text, links)


@pytest.fixture(scope="module")
def memorable(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Every page gains links at a rate of its own, which nothing shows; but every page can be recognised."""

    def links(i: int, r: int) -> list[str]:
        gains = random.Random(i * 1000 + r).random() < random.Random(i).random()
        return [f"https://y.org/{i}/{r}"] if gains else ["https://y.org/"]

    return history_of(tmp_path_factory.mktemp("memorable"), 9, lambda i, r: words(i), links)


QUICK = OutlinkSettings(links=("external",), seeds=(0,), quick=True, trees=20, history=1, n_jobs=1)


def settings(*parts: str, **more: Any) -> OutlinkSettings:
    return replace(QUICK, parts=parts, **more)


@pytest.fixture(scope="module")
def ladder(later_text: History) -> OutlinkEvaluation:
    return evaluate(later_text, panel.build(later_text), settings("features", "importance", "history"))


def test_text_of_later_rounds_does_not_leak_into_the_link_change_rate(ladder: OutlinkEvaluation) -> None:
    r2 = {(row["learner"], row["features"]): row["r2"] for row in ladder.rows["features"]}
    for learner in ("hist-gradient-boosting", "extra-trees"):
        for features in ("SPsem", "SP+SN", "SPsem+SN"):
            assert r2[learner, features] < max(r2[learner, "SP"], 0) + 0.1, (learner, features)


def test_related_pages_by_later_text_are_not_important_for_the_link_change_rate(ladder: OutlinkEvaluation) -> None:
    drops = {row["name"]: row["importance"] for row in ladder.rows["importance"] if row["target"] == "link-change-rate"}
    assert len(drops) >= len(FEATURE_SETS["SP+SN"])
    assert max(drops.values()) < 0.1


def test_text_before_the_predicted_round_helps_to_predict_it(ladder: OutlinkEvaluation) -> None:
    """The same text is fair for whether there are new links in the last round: related pages by it gain links, too."""
    scores = [row["balanced_accuracy"] for row in ladder.rows["history"] if row["learner"] == "extra-trees"]
    assert max(scores) == 1


def test_the_first_rounds_features_do_not_change_with_later_visits(later_text: History) -> None:
    whole = panel.build(later_text)

    def first(n_rounds: int) -> Any:
        known = gather_evidence(later_text, whole.window(0, n_rounds), settings("features"))
        return known.first.matrix(FEATURE_SETS["SPsem+SN"], 1)

    for n_rounds in (2, 4):
        np.testing.assert_array_equal(first(n_rounds), first(6))


@pytest.fixture(scope="module")
def ranked(memorable: History) -> OutlinkEvaluation:
    return evaluate(memorable, panel.build(memorable), settings("rankings", split="time"))


def test_no_page_gives_a_ranking_its_own_earlier_link_change_rate(ranked: OutlinkEvaluation) -> None:
    rho = {row["paper"]: row["spearman"] for row in ranked.rows["rankings"] if row["truth"] == "link-change-rate"}
    assert rho["LCR-ET"] < 0.4
    assert rho["LCR-ET_LBLA"] < 0.4
    assert rho["NNL-Av"] > 0.9, "who may look at the past of a page knows its rate"


def test_in_the_split_by_time_the_link_change_rate_is_tested_on_a_quarter_of_the_pages_and_says_so(
    ranked: OutlinkEvaluation,
) -> None:
    tested = {row["paper"]: (row["split"], row["n_test"]) for row in ranked.rows["rankings"]}
    assert tested["LCR-ET"] == ("pages", N_PAGES // 4)
    assert tested["NNL-ET"] == ("time", N_PAGES)
    assert apart(ranked) == {"link-change-rate trees", "link-change-rate trees, look-around only"}
    assert [str(row[0]).endswith("†") for row in ranking_table(ranked, ["external"]).rows[:3]] == [True, True, False]
    assert "†: tested on the quarter of the pages" in outlink_tables(ranked)[0].note
    assert "on a quarter of them" in scope(ranked)


def test_a_ranking_that_was_tested_on_other_pages_is_never_called_the_best(ranked: OutlinkEvaluation) -> None:
    best = dict(ranked.rows)
    best["rankings"] = [
        row | {"spearman": 2.0, "area": 2.0} if row["paper"] == "LCR-ET" else row for row in best["rankings"]
    ]
    assert "LCR-ET" not in " ".join(findings(OutlinkEvaluation(ranked.settings, 1, 1, "", "", rows=best)))
