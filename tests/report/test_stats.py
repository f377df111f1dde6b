from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.report.stats.analysis import LinkStatistics, analyse, default_share, domains
from recrawl.report.stats.page import PARTS, sections, stats_tables, write_stats_page
from recrawl.report.stats.tables import mean_table
from recrawl.web.urls import top_level_domain
from recrawl.web.visit import Visit
from recrawl.world.panel import Panel, build

NAN = math.nan
Analysed = Callable[[Panel], LinkStatistics]
PanelOf = Callable[..., Panel]


def printed(statistics: LinkStatistics, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        for table in stats_tables(statistics):
            console.print(table)
    return capture.get()


def test_every_part_of_a_full_history_has_rows(skewed_statistics: LinkStatistics) -> None:
    assert skewed_statistics.notes == {}
    assert all(section.items for section in sections(skewed_statistics))


def test_the_analysis_is_the_same_for_the_same_seed(skewed: Panel, skewed_statistics: LinkStatistics) -> None:
    assert analyse(skewed, np.repeat(skewed.page, 6), skewed.at.reshape(-1), seed=0) == skewed_statistics


def test_rows_are_plain_json(skewed_statistics: LinkStatistics) -> None:
    rows = json.loads(json.dumps(skewed_statistics.as_dict(), allow_nan=False))
    assert rows["round_counts"][0].keys() >= {"links", "round", "n_pages", "mean", "deviation", "none_rate"}
    assert {fit["law"] for fit in rows["tails"][0]["parts"][0]["fits"]} >= {"power law", "log-normal"}


def test_the_findings_give_the_figures_of_the_rows(skewed_statistics: LinkStatistics) -> None:
    none = [row.none_rate for row in skewed_statistics.round_counts if row.links == "internal"]
    never = next(row for row in skewed_statistics.change_rates if row.links == "internal" and row.rate == 0)
    first = skewed_statistics.findings[0]
    assert first.startswith(f"In one round, {sum(none) / 5:.0%} of pages gained no internal link")
    assert f"{never.share:.0%} never did in 5 rounds" in first
    assert 3 <= len(skewed_statistics.findings) <= 6


def test_pages_are_counted_by_top_level_domain(panel_of: PanelOf) -> None:
    urls = [
        "https://a.org/",
        "https://b.co.uk/x?y=/z",
        "http://10.0.0.1/",
        "https://a.org/2",
        "https://[::1]/",
        "https://u.fr",
    ]
    panel = panel_of(np.full((6, 1), NAN), np.full((6, 1), NAN), urls)
    expected = Counter(top_level_domain(url) for url in urls)
    assert {row.domain.removeprefix("."): row.n_pages for row in domains(panel)} == expected
    assert [row.domain for row in domains(panel)][:2] == ["(address)", ".org"]
    assert sum(row.share for row in domains(panel)) == pytest.approx(1)
    assert len(domains(panel, n_domains=2)) == 2


def test_a_round_to_fit_that_was_not_compared_is_refused_by_name(panel_of: PanelOf) -> None:
    panel = panel_of([[NAN, 1], [NAN, 0]], [[NAN, 0], [NAN, 0]])
    with pytest.raises(NotEnoughData, match=r"round 7 .* rounds that have: 1"):
        analyse(panel, panel.page, panel.at[:, 0], fit_round=7)


EDGES = {
    "no pages": (np.zeros((0, 4)), "The history holds no pages."),
    "no rounds": (np.zeros((2, 0)), "fewer than two rounds"),
    "one round": (np.full((5, 1), NAN), "fewer than two rounds"),
    "no page seen twice": (np.full((5, 4), NAN), "nothing can be compared"),
    "nothing new": (np.array([[NAN, 0.0, 0.0]] * 20), "No page gained a link in any round."),
    "one page": (np.array([[NAN, 3.0, 0.0, 400.0]]), "No law was fitted"),
    "two rounds": (np.array([[NAN, 3.0], [NAN, 0.0]]), "new links are known in one only"),
}


@pytest.mark.parametrize("edge", EDGES)
def test_an_empty_part_says_why(edge: str, panel_of: PanelOf, analysed: Analysed, tmp_path: Path) -> None:
    counts, reason = EDGES[edge]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics = analysed(panel_of(counts, counts))
        page = write_stats_page(tmp_path / "stats.html", statistics).read_text()
        terminal = printed(statistics, width=200)
    assert reason in page
    assert reason in terminal
    json.dumps(statistics.as_dict(), allow_nan=False)
    for section in sections(statistics):
        assert section.items or section.text


def test_a_history_without_visits_says_so(panel_of: PanelOf) -> None:
    panel = panel_of(np.zeros((0, 0)), np.zeros((0, 0)))
    statistics = analyse(panel, panel.page, np.array([], dtype="datetime64[us]"), seed=0)
    assert statistics.notes["gaps"] == "No page was visited twice, so there is no gap between visits."
    assert statistics.notes["captured_pages"] == "The history holds no visits."
    assert statistics.findings == ()


def test_tables_fit_a_terminal_of_eighty_columns_without_losing_a_number(skewed_statistics: LinkStatistics) -> None:
    text = printed(skewed_statistics)
    assert max(map(len, text.splitlines())) <= 80
    first = next(row for row in skewed_statistics.round_counts if row.links == "external" and row.round == 1)
    assert f"{first.deviation:.1f}" in text
    assert all(part.title.split()[0] in text for part in PARTS if part.on_terminal)


def test_many_rounds_are_shown_as_a_few_periods(panel_of: PanelOf, analysed: Analysed) -> None:
    counts = np.full((4, 300), 2.0)
    counts[:, 0] = NAN
    counts[0, 150:] = 8.0  # in the second half of 300 weeks
    statistics = analysed(panel_of(counts, counts))
    table = mean_table(statistics)
    assert table.header[:3] == ("year", "rounds", "pages")
    assert sum(int(str(row[1])) for row in table.rows) == 299
    assert [row[3] for row in table.rows][:2] == [4.0, 4.0]
    assert table.rows[-1][3] == pytest.approx(7.0)
    assert all(len(table.rows) <= 21 for table in stats_tables(statistics))
    assert len(statistics.as_dict()["round_counts"]) == 3 * 299


def test_the_default_share_is_half_of_the_rounds_or_what_half_of_the_pages_have(tmp_path: Path) -> None:
    def history(name: str, days: list[int]) -> History:
        """Pages of which each is visited on the first of its number of days, of ten."""
        made = History.create(tmp_path / name)
        made.add(
            Visit(url=f"https://a.org/{i}", at=datetime(2026, 1, 1 + day, tzinfo=UTC), links=[])
            for i, n_days in enumerate([10, *days])
            for day in range(n_days)
        )
        return made

    assert default_share(history("daily", [10, 10, 9]), "1d") == 0.5
    assert default_share(history("archive", [2, 2, 1]), "1d") == 0.2
    assert build(history("archive again", [2, 2, 1]), "1d", 0.2).shape[0] == 3


def test_what_looks_like_markup_in_a_url_is_printed_as_it_is(panel_of: PanelOf, analysed: Analysed) -> None:
    url = "https://a.example/[bold]x[/]"
    text = printed(analysed(panel_of([[NAN, 5.0]], [[NAN, 0.0]], [url])))
    assert url in text
