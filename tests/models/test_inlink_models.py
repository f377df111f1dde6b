"""Models and statistics of new inlinks, against counts worked out by plain loops."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import recrawl as rc
from commands import command, output
from recrawl.history import History
from recrawl.models.trained import Model
from recrawl.report.stats.analysis import analyse
from recrawl.web.visit import Visit
from recrawl.world.panel import build

START, N_DAYS, N_PAGES = datetime(2026, 1, 5, tzinfo=UTC), 24, 15
DAY = timedelta(days=1)


def url(i: int) -> str:
    return f"https://{'ab'[i % 2]}.org/{i}"


def shown(random: np.random.Generator) -> list[list[set[int]]]:
    """Which pages each page links to, day by day: pages of a low number gain links most often."""
    popular = np.linspace(0.25, 0.0, N_PAGES)
    links = [{(i + 1) % N_PAGES} for i in range(N_PAGES)]
    days = []
    for _ in range(N_DAYS):
        for i in range(N_PAGES):
            links[i] = {j for j in links[i] if random.random() < 0.1}
            links[i] |= set(np.flatnonzero(random.random(N_PAGES) < popular).tolist())
        days.append([set(each) for each in links])
    return days


def plain_inlinks(days: list[list[set[int]]]) -> dict[tuple[str, int], list[int]]:
    """Kind of links and page → how many other pages newly link to it, on every day but the first."""
    counts = defaultdict(list)
    for before, after in pairwise(days):
        for target in range(N_PAGES):
            new = [i for i in range(N_PAGES) if i != target and target in after[i] and target not in before[i]]
            counts["all", target].append(len(new))
            counts["internal", target].append(sum((i - target) % 2 == 0 for i in new))
    return counts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[History, dict[tuple[str, int], list[int]]]:
    days = shown(np.random.default_rng(4))
    history = History.create(tmp_path_factory.mktemp("inlinks") / "history")
    history.add(
        Visit(url=url(i), at=START + day * DAY, links=[url(j) for j in sorted(links)], text=f"page {i} of some words")
        for day, pages in enumerate(days)
        for i, links in enumerate(pages)
    )
    return history, plain_inlinks(days)


def test_the_mean_of_a_page_is_that_of_a_plain_count(made: tuple[History, dict[tuple[str, int], list[int]]]) -> None:
    history, plain = made
    model = rc.train(history, every="1d", target="inlinks", learner="average-count", links="internal,all")
    assert repr(model).startswith("Model(average-count for internal, all inlinks")
    predictions = model.predict(history)
    assert "new inlinks expected" in repr(predictions)
    rows = {row["url"]: row for row in predictions.records()}
    for i in range(N_PAGES):
        for kind in ("internal", "all"):
            expected = sum(plain[kind, i]) / len(plain[kind, i])
            assert rows[url(i)][f"expected_new_{kind}"] == pytest.approx(expected, abs=1e-3)
        assert rows[url(i)]["target"] == "inlinks"
    by_out = rc.train(history, every="1d", learner="average-count", links="all").predict(history)
    assert [row["url"] for row in by_out.records()] != [row["url"] for row in predictions.records()]
    assert "target" not in next(by_out.records())


def test_a_learner_ranks_pages_by_the_inlinks_that_they_will_gain(
    made: tuple[History, dict[tuple[str, int], list[int]]], tmp_path: Path
) -> None:
    history, plain = made
    before = history.as_of(START + (N_DAYS - 4) * DAY)  # the last three days are not known yet
    model = rc.train(before, every="crawl", target="inlinks", links="all", features="summaries")
    model.save(tmp_path / "m.recrawl")
    again = Model.load(tmp_path / "m.recrawl").predict(before)
    rows = {row["url"]: row for row in again.records()}
    expected = [rows[url(i)]["expected_new_all"] for i in range(N_PAGES)]
    later = [sum(plain["all", i][-3:]) for i in range(N_PAGES)]
    assert np.corrcoef(expected, later)[0, 1] > 0.7
    assert any("new inlinks" in reason for row in rows.values() for reason in row["reasons"])
    assert not any("new links" in reason for row in rows.values() for reason in row["reasons"])


def test_a_page_that_is_gone_can_still_be_linked_to(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(
        Visit(url="https://e.org/hub", at=START + day * DAY, links=["https://e.org/x"] * (day % 2)) for day in range(12)
    )
    history.add(
        Visit(url="https://e.org/x", at=START + day * DAY, status=200 if day < 3 else 404, links=[])
        for day in range(12)
    )
    rows = list(
        rc.train(history, every="1d", target="inlinks", learner="average-count", links="all").predict(history).records()
    )
    assert rows[0]["url"] == "https://e.org/x"
    assert rows[0]["expected_new_all"] == pytest.approx(6 / 11, abs=1e-3)
    assert not any("gone" in reason for reason in rows[0]["reasons"])


def test_the_commands_know_inlinks(
    made: tuple[History, dict[tuple[str, int], list[int]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, _ = made
    monkeypatch.setenv("COLUMNS", "200")
    folder, model = ("--history", str(history.store.folder)), str(tmp_path / "m")
    shown = output("train", *folder, "--target", "inlinks", "--learner", "poisson", "--links", "all", "--out", model)
    assert "new inlinks" in shown
    assert "new inlinks expected in the round after" in output("predict", *folder, "--model", model)
    assert "all inlinks: " in output("predict", *folder, "--model", model, "--explain", url(1))
    assert output("train", *folder, "--check", model).startswith("not due: 0 rounds since it was trained")
    refused = command("plan", *folder, "--model", model)
    assert refused.code == 2
    assert "predicts inlinks, which a visit to the page does not find: plan by a model of outlinks" in refused.stderr
    unknown = command("train", *folder, "--target", "inlink", "--out", model)
    assert unknown.stderr == "error: No target named 'inlink'. Did you mean 'inlinks'? Known: outlinks, inlinks\n"


def test_stats_show_how_new_inlinks_are_distributed(
    made: tuple[History, dict[tuple[str, int], list[int]]], tmp_path: Path
) -> None:
    history, plain = made
    folder = ("stats", "--history", str(history.store.folder))
    found = json.loads(output(*folder, "--target", "inlinks", "--json"))
    assert found["target"] == "inlinks"
    rows = {(row["round"], row["links"]): row for row in found["round_counts"]}
    for kind in ("internal", "all"):
        for day in range(N_DAYS - 1):
            counts = [plain[kind, i][day] for i in range(N_PAGES)]
            assert rows[day + 1, kind]["mean"] == pytest.approx(np.mean(counts), abs=1e-6)
            assert rows[day + 1, kind]["none_rate"] == pytest.approx(counts.count(0) / N_PAGES)
    curve = next(each for each in found["ccdfs"] if each["round"] == 5 and each["links"] == "internal")
    for least, share in zip(curve["at_least"], curve["share"], strict=True):
        assert share == pytest.approx(np.mean([plain["internal", i][4] >= least for i in range(N_PAGES)]))
    text = output(*folder, "--target", "inlinks", "--out", str(tmp_path / "s.html"))
    assert "New links are new inlinks: links to a page that appear on other pages." in " ".join(text.split())
    assert "gained no internal inlink" in " ".join(text.split())
    assert "How new inlinks arrive" in (tmp_path / "s.html").read_text()
    usual = json.loads(output(*folder, "--json"))
    assert "target" not in usual
    panel = build(history, "crawl", 0.0)
    visits = history.timeline
    same = analyse(panel, visits.page, visits.at.view("datetime64[us]"))
    assert json.loads(json.dumps(same.as_dict()))["round_counts"] == usual["round_counts"]
