"""The page and the tables of the experts' evaluation: what they say of rows worked out by hand; nothing in them is code."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from recrawl.papers.experts.figures import history_figure, method_figure, number_figure
from recrawl.papers.experts.page import expert_tables, findings, sections, write_experts_page
from recrawl.papers.experts.settings import (
    BAGGING,
    BOOSTING,
    COIN,
    MAJORITY,
    PARTS,
    RELATED,
    SINGLE,
    THRESHOLD,
    UNION,
    ExpertEvaluation,
    ExpertSettings,
)
from recrawl.papers.experts.tables import (
    combining_table,
    half_interval,
    history_table,
    label,
    number_table,
    scope,
    selection_table,
    settings_table,
)

HOSTILE = "</script><script>alert(1)</script>?%{y}<img src=x onerror=alert(2)>&b=\"'"
CORRELATION = "cross-correlation"


def row(
    method: str, accuracy: float, p: float | None = None, experts: str = "", k: int = 0, n: int = 50
) -> dict[str, Any]:
    return {
        "method": method,
        "experts": experts,
        "k": k,
        "n_train": n,
        "accuracy": accuracy,
        "balanced_accuracy": accuracy - 0.1,
        "deviation": 0.12,
        "n_pages": 9,
        "n_predictions": 1234,
        "p_value": p,
    }


def simple(n: int = 50) -> list[dict[str, Any]]:
    return [row(MAJORITY, 0.66, 0.8, n=n), row(COIN, 0.55, 0.0001, n=n), row(THRESHOLD, 0.64, 0.04, n=n)]


def made_up(**settings: Any) -> ExpertEvaluation:
    """Related experts beat the page alone and the threshold, but neither random pages nor the majority class."""
    found = ExpertEvaluation(
        ExpertSettings(**settings), 102, 200, "2025-01-01 00:00", "2025-07-19 00:00", 9, 0.31, 0.48, ["a note"]
    )
    related = row(RELATED, 0.67, None, CORRELATION, 20)
    single, random = row(SINGLE, 0.62, 0.03), row(RELATED, 0.665, 0.7, "random", 20)
    ways = [row(name, 0.6 + i / 100, 0.2, CORRELATION, 20) for i, name in enumerate((UNION, BOOSTING, BAGGING))]
    choices = [row(RELATED, 0.68, 0.01, "dtw", 20), row(RELATED, 0.6, 0.5, "graph", 20), random]
    found.rows["settings"] = [*simple(), single, related, random]
    found.rows["combining"] = [*simple(), single, *ways, related]
    found.rows["selection"] = [*simple(), related, *choices]
    found.rows["history"] = [
        scored
        for n in (30, 50)
        for scored in (*simple(n), row(SINGLE, 0.6, 0.5, n=n), row(RELATED, 0.6 + n / 1000, None, CORRELATION, 20, n))
    ]
    found.rows["number"] = [*simple(), single, *(row(RELATED, 0.6 + k / 1000, 0.5, CORRELATION, k) for k in (1, 5, 20))]
    return found


def test_findings_say_what_related_experts_beat_and_that_the_rest_is_not_proven() -> None:
    first, *others = findings(made_up())
    assert "right about 67.0% of the rounds, as a mean over 9 pages; balanced accuracy 57.0%" in first
    assert (
        "They beat the page as its only expert (62.0%, p = 0.030) and the threshold on its past changes (64.0%, p = 0.040)."
        in first
    )
    assert (
        "They do not differ significantly from random pages as experts (66.5%, p = 0.70) and each page's majority class "
        "(66.0%, p = 0.80)." in first
    )
    assert "So it is not proven here that related pages help" in first
    assert "nothing shows that it is because they are related" in first
    assert "is not a result" in first
    assert any(
        "dtw 68.0%, cross-correlation 67.0%, random 66.5% and graph 60.0%; dtw differs" in text for text in others
    )
    assert any("none differs significantly from related-experts" in text for text in others)


def test_findings_say_so_when_related_experts_win_or_lose() -> None:
    found = made_up()
    for scored in found.rows["settings"]:
        scored["p_value"] = None if scored["experts"] == CORRELATION else 0.001
    found.rows = {"settings": found.rows["settings"]}
    assert findings(found)[0].endswith("So related pages say something about the next change that other pages do not.")
    found.rows["settings"][0]["accuracy"] = 0.8
    assert "They are beaten by each page's majority class (80.0%, p = 0.001)." in findings(found)[0]
    assert "not proven" in findings(found)[0]


def test_findings_do_without_a_test_and_without_parts() -> None:
    found = made_up()
    for scored in found.rows["settings"]:
        scored |= {"p_value": None, "deviation": None, "n_pages": 1, "balanced_accuracy": None}
    found.rows = {"settings": found.rows["settings"]}
    assert "a mean over 1 page." in findings(found)[0]
    assert "no test possible" in findings(found)[0]
    found.rows["settings"][0]["accuracy"] = 0.67
    assert "each page's majority class (67.0%, the same)" in findings(found)[0]
    for part in PARTS:
        assert len(sections(replace(found, rows={part: made_up().rows[part]}))) == 1
        assert all(findings(replace(found, rows={part: made_up().rows[part]})))


def test_random_experts_are_not_compared_with_themselves() -> None:
    found = made_up(method="random")
    found.rows = {"settings": [*simple(), row(SINGLE, 0.6, 0.01), row(RELATED, 0.66, None, "random", 20)]}
    assert "chosen by random" in findings(found)[0]
    assert "random pages as experts" not in findings(found)[0]


def test_tables_hold_the_scores_the_tests_and_the_papers_numbers() -> None:
    found = made_up()
    table = settings_table(found)
    texts = {texts[0]: texts[1:] for texts in table.texts()}
    half = 2.306 * 0.12 / 3  # Student's t with 8 degrees of freedom
    assert half_interval(found.rows["settings"][0]) == pytest.approx(half, abs=1e-4)
    assert texts[MAJORITY] == ["66.0%", f"{half:.1%}", "56.0%", "9", "1,234", "0.8", "–"]
    assert texts[COIN][-2:] == ["0.0001", "54.8%"]
    assert texts["related-experts, by cross-correlation"][-2:] == ["–", "72.7%"]
    assert texts["experts that are random pages"][-2:] == ["0.7", "–"]
    assert table.bold == {(4, 1)}
    paper = {row[0]: row[-1] for row in combining_table(found).rows}
    assert [paper[name] for name in (UNION, BOOSTING, BAGGING)] == [0.6291, 0.6344, 0.6358]
    paper = {row[0]: row[-1] for row in selection_table(found).rows}
    assert [paper[name] for name in (CORRELATION, "dtw", "graph", "random")] == [0.7272, 0.7033, 0.6440, None]


def test_tables_of_the_figures_go_by_training_and_by_number_of_experts() -> None:
    found = made_up()
    assert [row[0] for row in history_table(found).rows] == [30, 50]
    assert history_table(found).rows[1][1:6] == [0.66, 0.55, 0.64, 0.6, 0.65]
    assert [row[:2] for row in number_table(found).rows][-3:] == [[RELATED, 1], [RELATED, 5], [RELATED, 20]]
    assert number_table(found).header[-1] == "p-value"


def test_figures_show_the_rows_and_lines_across() -> None:
    found = made_up()
    bars = method_figure("title", found.rows["settings"], label).data[0]
    assert list(bars.x) == [row["accuracy"] for row in found.rows["settings"]]
    assert math.isclose(bars.error_x.array[0], half_interval(found.rows["settings"][0]) or 0)
    lines = {line.name: line for line in history_figure(found, "title").data}
    assert list(lines[RELATED].x) == [30, 50]
    assert {MAJORITY, THRESHOLD} < set(lines)
    lines = {line.name: line for line in number_figure(found, "title").data}
    assert list(lines[RELATED].x) == [1, 5, 20]
    assert list(lines[MAJORITY].y) == [0.66, 0.66]


class Code(HTMLParser):
    """Collects what a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name in ("src", "href")]


def test_nothing_that_a_user_or_a_page_wrote_becomes_code(tmp_path: Path) -> None:
    found = replace(made_up(notion=HOSTILE, every=HOSTILE, method=HOSTILE), notes=[HOSTILE])
    for scored in (scored for rows in found.rows.values() for scored in rows if scored["experts"] == CORRELATION):
        scored["experts"] = HOSTILE
    html = write_experts_page(tmp_path / "page.html", found).read_text()
    assert "<script>alert(1)" not in html
    reader = Code()
    reader.feed(html)
    assert set(reader.found) == {"a href", "script src"}
    assert reader.found.count("script src") == 1  # the plot library
    assert not [line for line in html.splitlines() if "%{y}<img" in line]


def test_page_and_terminal_show_every_part(tmp_path: Path) -> None:
    found = made_up()
    html = write_experts_page(tmp_path / "page.html", found).read_text()
    assert [section.title in html for section in sections(found)] == [True] * len(PARTS)
    assert html.index("are right about 67.0%") < html.index("102 pages with known words in 200 rounds (1d)")
    assert "a note" in html
    screen = Console(width=140, file=io.StringIO())
    for table in expert_tables(found):
        screen.print(table)
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert [text.count(title) for title in ("Table 1", "Table 2", "Table 3", "Fig. 6", "Fig. 7")] == [1] * 5
    assert "nan" not in text


def test_the_scope_names_a_sample() -> None:
    assert "Predicted are 9 of them: those that switch" in scope(made_up())
    assert "Predicted are 9 of them, at random: those that switch" in scope(made_up(most_pages=9))
