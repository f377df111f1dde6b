from __future__ import annotations

import io
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from recrawl import synth
from recrawl.history import History
from recrawl.papers.outlinks import figures, map_figures
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation, evaluate
from recrawl.papers.outlinks.page import findings, outlink_tables, sections, write_outlinks_page
from recrawl.papers.outlinks.rankings import RANKINGS
from recrawl.papers.outlinks.settings import PARTS, OutlinkSettings
from recrawl.papers.outlinks.tables import correlated_pairs, importance_rows, ranking_table
from recrawl.report.tables import Table
from recrawl.world import panel

HOSTILE = "</script><script>alert(1)</script>?%{y}<img src=x onerror=alert(2)>&b=\"'"
TRUTHS = ("link-change-rate", "has-new-links", "new-link-count")


def made_up(name: str = "page text size", rho: dict[str, float] | None = None, **settings: Any) -> OutlinkEvaluation:
    """Every part with rows worked out by hand, two repetitions; `rho` are the rankings' scores."""
    found = OutlinkEvaluation(
        OutlinkSettings(seeds=(0, 1), **settings), 400, 10, "2020-09-14T00:00:00", f"exact {name}"
    )
    for links in ("internal", "external"):
        for seed in (0, 1):
            common = {"links": links, "seed": seed, "n_test": 100}
            add(found, "features", _feature_rows(common, name))
            add(found, "history", _history_rows(common))
            add(found, "rankings", _ranking_rows(common, rho or {}))
            add(found, "counts", _count_rows(common, name))
            add(found, "drift", _drift_rows(common))
        add(found, "importance", _importance_rows(links, name))
        add(found, "maps", [_map_row(links, name)])
    names = [f"{name} {i}" for i in range(6)]
    matrix = [[1.0 if i == j else (-1) ** i * (i + j) / 10 if j < i else None for j in range(6)] for i in range(6)]
    add(found, "correlation", [{"names": names, "spearman": matrix}])
    return found


def add(found: OutlinkEvaluation, part: str, rows: list[dict[str, Any]]) -> None:
    found.rows.setdefault(part, []).extend(rows)


def _feature_rows(common: dict[str, Any], name: str) -> list[dict[str, Any]]:
    known = (("SP", name, 0.2), ("SP+SN", "extra-trees", 0.4), ("none", "always-zero", -0.3))
    return [
        common | {"features": s, "learner": learner, "r2": r2 + common["seed"] / 10, "mae": 0.2, "medae": 0.1}
        for s, learner, r2 in known
    ]


def _history_rows(common: dict[str, Any]) -> list[dict[str, Any]]:
    scores = {"precision": 0.5, "recall": 0.7, "balanced_accuracy": 0.8}
    steps = [
        common | scores | {"learner": "extra-trees", "history": h, "n_columns": 17 + 12 * h, "f1": 0.5 + h / 10}
        for h in range(3)
    ]
    return [*steps, common | scores | {"learner": "previous-count", "f1": 0.55}]


def _ranking_rows(common: dict[str, Any], rho: dict[str, float]) -> list[dict[str, Any]]:
    return [
        common
        | {"ranking": r.name, "paper": r.paper, "truth": truth, "spearman": rho.get(r.name, 0.3)}
        | {"area": 0.6 + i / 1000, "curve": [0.1, 0.5, 1.0]}
        for i, r in enumerate(RANKINGS)
        for truth in TRUTHS
    ]


def _count_rows(common: dict[str, Any], name: str) -> list[dict[str, Any]]:
    scores = {"covered_80": 0.85, "calibration_error": 0.05, "mae": 1.5, "spearman": 0.4}
    bins = [(0.1, 0.15, 50), (0.6, 0.5, 50)]
    return [
        common | scores | {"learner": learner, "log_likelihood": value, "calibration": bins}
        for learner, value in ((name, -2.5), ("hurdle", -0.9))
    ]


def _drift_rows(common: dict[str, Any]) -> list[dict[str, Any]]:
    scores = {"area": 0.6, "log_loss": 0.2}
    models = [
        common
        | scores
        | {"model": "forecast", "origin": o, "round": t, "age": t - o + 1, "spearman": 0.5 - (t - o) / 10}
        for o in range(5, 8)
        for t in range(o, 8)
    ]
    average = [common | scores | {"model": "average-count", "round": t, "spearman": 0.4} for t in range(5, 8)]
    return [*models, *average, common | scores | {"way": "never", "trainings": 1, "rounds": 2, "spearman": 0.4}]


def _importance_rows(links: str, name: str) -> list[dict[str, Any]]:
    return [
        {"target": target, "links": links, "features": "all", "grouped": grouped, "name": f"{name} {i}"}
        | {"importance": i / 100, "spread": 0.001, "drops": [i / 100 - 0.001, i / 100 + 0.001]}
        for target in TRUTHS[:2]
        for grouped in (False, True)
        for i in range(14)
    ]


def _map_row(links: str, name: str) -> dict[str, Any]:
    sizes, qualities = np.expm1(np.linspace(0, 9, 4)).tolist(), [0.2, 0.4, 0.6, 0.8]
    rate = [[0.1 * i + 0.01 * j for j in range(4)] for i in range(4)]
    pages = [[0.0, 0.5, 0.0], [5000.0, 0.7, 0.9]]
    return {"links": links, "features": [name, "quality"], "mae": 0.2} | {
        "x": sizes, "y": qualities, "rate": rate, "pages": pages,
    }  # fmt: skip


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> OutlinkEvaluation:
    history = History.create(tmp_path_factory.mktemp("made-up") / "history")
    for batch in synth.batches(synth.SynthSettings(pages=40, rounds=3)):
        history.append(batch)
    settings = OutlinkSettings(links=("internal",), quick=True, trees=1, seeds=(0,), history=1, n_jobs=1)
    return evaluate(history, panel.build(history), settings)


def printed(found: OutlinkEvaluation, width: int = 100, styled: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, force_terminal=styled, color_system="standard" if styled else None, highlight=False
    )
    for table in outlink_tables(found):
        console.print(table)
    return stream.getvalue()


class Tags(HTMLParser):
    """The elements that a browser would make."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


def n_figures(found: OutlinkEvaluation) -> dict[str, int]:
    """Part → how many figures its section has."""
    known = [sum(not isinstance(item, Table) for item in section.items) for section in sections(found)]
    return dict(zip([part for part in SHOWN if part in found.rows], known, strict=True))


SHOWN = ("features", "history", "importance", "correlation", "maps", "rankings", "counts", "drift")


def test_every_part_has_its_figures() -> None:
    assert set(SHOWN) == set(PARTS)
    assert n_figures(made_up()) == {
        "features": 2,  # one for each kind of links
        "history": 2,
        "importance": 8,  # two targets, alone and together
        "correlation": 1,
        "maps": 2,
        "rankings": 2 + 6,  # and a curve for each of three truths
        "counts": 2,
        "drift": 2,
    }


def test_every_part_has_its_table() -> None:
    found = made_up()
    n_tables = {part: len(outlink_tables(replace(found, rows={part: found.rows[part]}))) for part in PARTS}
    assert n_tables == dict.fromkeys(PARTS, 1) | {"importance": 4, "drift": 4}


def test_the_rows_of_a_real_evaluation_are_shown(real: OutlinkEvaluation, tmp_path: Path) -> None:
    assert set(real.rows) == set(PARTS)
    assert all(real.rows.values())
    page = write_outlinks_page(tmp_path / "page.html", real).read_text()
    assert page.count('class="plotly-graph-div"') == sum(n_figures(real).values())
    assert all(n_figures(real)[part] for part in PARTS if part != "importance")
    assert "40 pages in 3 rounds" in page
    assert "NNL-ET_LBLA" in printed(real)


def test_a_part_that_was_not_run_is_not_shown() -> None:
    found = replace(made_up(), rows={})
    assert not outlink_tables(found)
    assert not sections(found)
    assert not findings(found)


def test_a_part_that_found_nothing_says_so(tmp_path: Path) -> None:
    found = replace(made_up(), rows={part: [] for part in PARTS})
    assert not outlink_tables(found)
    assert {section.text for section in sections(found)} == {"Nothing to show: there was too little to learn from."}
    assert write_outlinks_page(tmp_path / "page.html", found).stat().st_size < 20_000


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    def page(name: str) -> str:
        return write_outlinks_page(tmp_path / "page.html", made_up(name)).read_text()

    hostile = page(HOSTILE)
    assert "<script>alert" not in hostile
    assert Tags(hostile).names == Tags(page("harmless")).names
    assert "[bold]x[/bold]" in printed(made_up("[bold]x[/bold]"), width=200)


@pytest.mark.parametrize("unknown", [None, math.nan, -math.inf])
def test_scores_that_are_not_known_break_nothing(unknown: float | None, tmp_path: Path) -> None:
    def without_numbers(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [without_numbers(part) for part in value]
        return unknown if isinstance(value, float) else value

    found = made_up()
    for rows in found.rows.values():
        rows[:] = [{key: without_numbers(value) for key, value in row.items()} for row in rows]
    printed(found)
    page = write_outlinks_page(tmp_path / "page.html", found).read_text()
    assert not findings(found)
    assert page.count("<section") == len(PARTS)


def test_a_single_unknown_score_is_a_dash_and_is_never_the_best() -> None:
    found = made_up()
    for row in found.rows["features"]:
        if row["learner"] == "extra-trees":
            row["r2"] = math.nan
    assert "predicted best for internal links from SP by" in findings(found)[0]
    assert any("extra-trees" in line and "–" in line for line in printed(found).splitlines())


def test_scores_are_means_over_the_repetitions() -> None:
    line = next(line for line in printed(made_up()).splitlines() if "SP+SN" in line)
    assert line.split() == ["internal", "SP+SN", "extra-trees", "0.450", "0.200", "0.100"]


def test_the_tables_fit_a_hundred_columns_with_their_numbers_whole() -> None:
    names = "new external links, mean of the last 8 rounds, on related pages and 3 more"
    shown = printed(made_up(names))
    assert max(map(len, shown.splitlines())) <= 100
    forecast = next(line for line in shown.splitlines() if line.strip().startswith("forecast"))
    assert forecast.split() == ["forecast", *["0.300", "0.300", "0.300", "0.608"] * 2]


def test_the_previous_count_closes_the_history_of_each_kind_of_links() -> None:
    lines = printed(made_up()).splitlines()
    steps = [line.split()[1] for line in lines if line.split()[-1:] == ["0.800"]]
    assert steps == ["none", "1", "2", "previous-count"] * 2


def test_the_best_ranking_is_bold_and_the_baselines_come_last() -> None:
    found = made_up(rho={"average-count": 0.71, "previous-count": 0.2})
    table = ranking_table(found, ["internal"])
    assert [str(row[0]).endswith("(baseline)") for row in table.rows] == [False] * 10 + [True] * 3
    shown = printed(replace(found, rows={"rankings": found.rows["rankings"]}), styled=True)
    assert "\x1b[1m0.710" in shown
    assert "\x1b[1m0.300" not in shown


def test_the_ten_most_important_features_are_shown_and_none_that_changes_nothing() -> None:
    single, together = importance_rows(made_up("f"))["has-new-links", "external", "all"]
    assert [row["name"] for row in single] == [f"f {i}" for i in range(13, 3, -1)]
    assert len(together) == 10
    found = made_up()
    for row in found.rows["importance"]:
        row["importance"] = 0.0
    assert not importance_rows(found)


def test_the_strongest_correlations_come_first_whatever_their_sign() -> None:
    pairs = correlated_pairs(made_up("f"))
    assert pairs[:2] == [("f 4", "f 5", -0.9), ("f 3", "f 5", -0.8)]
    assert {pair[2] for pair in pairs[2:4]} == {-0.7, 0.7}
    assert len(pairs) == 15


def test_a_baseline_that_beats_the_models_is_named_plainly() -> None:
    text = " ".join(findings(made_up(rho={"average-count": 0.8})))
    assert "no model ranks pages as well as the simple baseline NNL-Av (average-count; ρ 0.800)" in text
    text = " ".join(findings(made_up(rho={"forecast": 0.8})))
    assert "By the number of new internal links, forecast (ρ 0.800) ranks pages best" in text
    assert "is no better than the simple baseline" in " ".join(findings(made_up()))


def test_the_findings_say_what_history_adds_and_which_counts_are_likeliest() -> None:
    found = findings(made_up("text size"))
    assert 4 <= len(found) <= 7
    assert "from 0.50 to 0.60 for internal links (2 rounds: 0.70; the previous count alone: 0.55)" in found[1]
    assert "“text size 13” (internal links: 0.130 of R²)" in found[2]
    assert "under hurdle for internal links (log-likelihood -0.90; 85% of pages in its 80% interval)" in found[-2]


@pytest.mark.parametrize(("papers_rate", "said"), [(True, "leaks into the features"), (False, "so nothing leaks")])
def test_the_page_says_whether_the_predicted_round_was_used(papers_rate: bool, said: str, tmp_path: Path) -> None:
    assert said in write_outlinks_page(tmp_path / "page.html", made_up(papers_rate=papers_rate)).read_text()


def test_a_logarithmic_axis_keeps_zeros_in_sight_and_names_round_values() -> None:
    axis = map_figures.Axis(np.expm1(np.linspace(0, np.log1p(20_000), 24)).tolist())
    assert axis.is_log
    assert axis.placed(np.array([0.0]))[0] == 0
    assert axis.ticks()["ticktext"] == ["0", "1", "10", "100", "1k", "10k"]
    assert not map_figures.Axis([0.1, 0.2, 0.3]).is_log


def test_colours_of_a_ranking_are_scaled_by_row() -> None:
    found = made_up(rho={"average-count": 0.8, "forecast": 0.1})
    cells = map_figures.ranking_figure(found, "internal").data[0]
    at = {row["ranking"]: i for i, row in enumerate(found.rows["rankings"][:36:3])}
    assert [line[at["average-count"]] for line in cells.z] == [1, 1, 1]
    assert [line[at["forecast"]] for line in cells.z] == [0, 0, 0]
    assert cells.text[0][at["average-count"]] == "0.80"


def test_curves_are_named_by_area_the_largest_first() -> None:
    names = [trace.name for trace in figures.precision_figure(made_up(), "internal", "new-link-count").data]
    assert names[0] == "CCR: 0.612"
    assert names[-2:] == ["LCR-ET_LBLA: 0.600", "random: 0.500"]


def test_calibration_pools_the_repetitions() -> None:
    hurdle = figures.calibration_figure(made_up(), "internal").data[1]
    assert sorted(zip(hurdle.x, hurdle.y, hurdle.customdata, strict=True)) == [
        (0.1, 0.15, 50), (0.1, 0.15, 50), (0.6, 0.5, 50), (0.6, 0.5, 50),
    ]  # fmt: skip


def test_the_names_of_correlated_features_leave_the_cells_the_whole_width() -> None:
    found = made_up("number of external outlinks, on related pages")
    figure = map_figures.correlation_figure(found, found.rows["correlation"][0])
    assert figure.layout.yaxis.ticklabelposition == "inside"
    assert figure.layout.margin.l < 20
    assert list(figure.layout.xaxis.range) == [-0.5, 5.5], "room for names would be taken from the cells"
    assert list(figure.data[0].text[3]) == ["-30", "-40", "-50", "", "", ""], "hundredths below the diagonal"
