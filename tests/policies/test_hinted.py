"""Hints of sitemaps in plans: a truthful host's are used, a lying one's are not, and none before they are proven."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from made_hints import DAY, N_DAYS, N_PAGES, NOW, START, hint_row, hinted_history, url
from planning import explain, make, request, surveyed
from recrawl.cli import app
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.plan.score import scores, store
from recrawl.policies import named


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return hinted_history(tmp_path_factory.mktemp("hinted") / "history")


def test_a_proven_hint_comes_first_and_says_why(history: History) -> None:
    plan = make(history, named("round-robin"), request(2), NOW)
    assert plan.url[0].as_py() == url("honest", 4)
    assert plan.reason[0].startswith("its sitemap says it changed 2026-01-25")
    assert "right" in plan.reason[0]
    assert plan.probability_changed[0] > 0.9
    assert plan.expected[0] > 1.5  # its changes brought two links each
    assert url("liar", 4) not in plan.url.to_pylist()


def test_a_lying_host_is_not_believed(history: History) -> None:
    situation = surveyed(history.as_of(NOW), named("round-robin"))
    assert situation.hints is not None
    by_url = dict(zip(situation.url.to_pylist(), situation.hints.probability, strict=True))
    assert by_url[url("honest", 4)] > 0.9
    assert np.isnan([value for name, value in by_url.items() if "liar" in name]).all()


def test_what_a_complete_source_does_not_name_is_left_out_but_for_a_few(history: History) -> None:
    situation = surveyed(history.as_of(NOW), named("round-robin"))
    assert situation.hints is not None
    by_url = dict(zip(situation.url.to_pylist(), situation.hints.probability, strict=True))
    assert all(by_url[url("honest", page)] < 0.1 for page in range(N_PAGES) if page != 4)
    plans = [make(history, named("round-robin"), request(12), NOW + day * DAY) for day in range(10)]
    unnamed = [sum("honest" in each and each != url("honest", 4) for each in plan.url.to_pylist()) for plan in plans]
    assert sum(unnamed) == N_PAGES - 1  # each of them once in ten days
    assert plans[0].left_out["unpromising"] >= N_PAGES - 3


def test_hints_are_not_believed_before_they_are_proven(history: History) -> None:
    early = START + 2.5 * DAY
    situation = surveyed(history.as_of(early), named("round-robin"))
    assert situation.hints is not None
    assert not situation.hints
    assert "sitemap" not in " ".join(make(history, named("round-robin"), request(12), early).reason)


def test_what_is_read_later_counts_for_nothing(history: History) -> None:
    before = START + (N_DAYS + 0.35) * DAY  # the last reading is at 0.4
    hints = surveyed(history.as_of(before), named("round-robin")).hints
    assert hints is not None
    assert set(hints.reason) == {""}
    assert not (hints.probability > 0.1).any()


def test_hints_take_at_most_half_of_the_budget_and_keep_to_the_caps(history: History, tmp_path: Path) -> None:
    rows = [hint_row("honest", page, NOW - timedelta(hours=1), NOW - timedelta(hours=2)) for page in range(N_PAGES)]
    other = History.open(shutil.copytree(history.store.folder, tmp_path / "h"))
    HINTS.append(other.beside, pa.Table.from_pylist(rows, schema=HINTS.schema))
    hinted = [reason.startswith("its sitemap") for reason in make(other, named("round-robin"), request(6), NOW).reason]
    assert hinted == [True] * 3 + [False] * 3
    capped = make(other, named("round-robin"), request(6, per_host=1), NOW)
    assert sorted(capped.host) == ["honest.org", "liar.org"]


def test_explain_names_the_hint(history: History) -> None:
    situation = surveyed(history.as_of(NOW), named("round-robin"))
    explanation = explain(situation, request(2), url("honest", 4), NOW)
    assert explanation.is_picked
    assert explanation.reason.startswith("its sitemap says")
    assert explanation.probability_changed is not None
    assert explanation.probability_changed > 0.9


def test_round_robin_is_measured_without_hints(history: History) -> None:
    store(history, make(history, named("round-robin"), request(2), START + 18.7 * DAY))
    (score,) = scores(history)
    assert score.visited == 2
    assert score.round_robin_visited == 2


def test_for_content_a_hint_counts_by_its_probability(history: History) -> None:
    plan = make(history, named("round-robin"), request(2, goal="content"), NOW)
    assert plan.url[0].as_py() == url("honest", 4)
    assert plan.gain[0] > 0.9


def test_info_shows_how_often_hints_were_right(history: History) -> None:
    result = CliRunner().invoke(app, ["info", "--history", str(history.store.folder), "--json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)["hints"]["sitemap"]
    assert (shown["judged_hosts"], shown["proven_hosts"]) == (2, 1)
    assert (
        0.3 * shown["hinted"] < shown["right"] < 0.6 * shown["hinted"]
    )  # a third of the liar's, all of the honest one's
    assert "sitemaps: 2 hosts" in CliRunner().invoke(app, ["info", "--history", str(history.store.folder)]).stdout
