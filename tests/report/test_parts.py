"""A table is added to a report by one entry of its list of parts: the page and the terminal both show it."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recrawl.papers.experts import page as experts
from recrawl.papers.experts.settings import ExpertEvaluation, ExpertSettings
from recrawl.papers.outlinks import page as outlinks
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.papers.updates import page as updates
from recrawl.report.harvest import page as harvest
from recrawl.report.harvest.experiment import HarvestResult
from recrawl.report.page import Section
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.replays import page as replays
from recrawl.report.stats import page as stats
from recrawl.report.tables import Table

TOY = ReportPart[Any](title="A toy", tables=lambda result: [Table(("n",), [[1]])])
HARVEST = HarvestResult(1, 1, 1, (1,))
OUTLINKS = OutlinkEvaluation(OutlinkSettings(), 1, 1, "", "")
EXPERTS = ExpertEvaluation(ExpertSettings(), *(1, 1, "", ""), n_predicted=1, change_rate=0.5, predicted_change_rate=0.5)
OTHER: Any = SimpleNamespace(budgets=[1], goal="links", is_focused=False, websites=None)
#: Report, a result, and how its sections and its tables on the terminal are made.
REPORTS: dict[str, tuple[ModuleType, Any, str, str]] = {
    "stats": (stats, OTHER, "sections", "stats_tables"),
    "replays": (replays, OTHER, "sections", ""),
    "harvest": (harvest, HARVEST, "", "harvest_tables"),
    "outlinks": (outlinks, OUTLINKS, "sections", "outlink_tables"),
    "experts": (experts, EXPERTS, "sections", "expert_tables"),
    "updates": (updates, OTHER, "sections", "update_tables"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_one_entry_of_the_list_adds_a_table_to_page_and_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, result, sections, tables = REPORTS[name]
    assert all(isinstance(part, ReportPart) for part in module.PARTS)
    monkeypatch.setattr(module, "PARTS", (TOY,))
    if sections:
        shown = getattr(module, sections)(result)
        assert [(section.title, section.items[0].rows) for section in shown] == [("A toy", [[1]])]
    if tables:
        assert [(table.title, table.rows) for table in getattr(module, tables)(result)] == [("A toy", [[1]])]


def test_a_part_without_anything_to_show_says_why() -> None:
    part = ReportPart[int](title="Empty", missing=lambda n: "no pages", tables=lambda n: [Table(("n",), [[n]])])
    assert page_sections([part], 0) == [Section("Empty", "no pages")]
    (table,) = terminal_tables([part], 0)
    assert (table.title, table.note, list(table.rows)) == ("Empty", "no pages", [])


def test_figures_come_before_tables_and_empty_tables_are_left_out() -> None:
    part = ReportPart[int](
        title="Both",
        text=lambda n: "words",
        figures=lambda n: ["figure"],
        tables=lambda n: [Table(("n",), [[n]], title="own title"), Table(("n",), [])],
    )
    (section,) = page_sections([part], 3)
    assert (section.text, section.items[0], len(section.items)) == ("words", "figure", 2)
    assert [table.title for table in terminal_tables([part], 3)] == ["own title"]
    assert terminal_tables([part], 3)[0].rows == [[3]]
