from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from recrawl.errors import RecrawlError
from recrawl.report.page import Section, Table, render, write_page
from recrawl.report.stats.analysis import Empirical
from recrawl.report.stats.page import write_empirical_page
from recrawl.world.panel import Panel

HOSTILE = "https://evil.example/</script><script>alert(1)</script>?%{y}<img src=x onerror=alert(2)>&b=\"'"


class Tags(HTMLParser):
    """Counts the elements a browser would make."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def names(self) -> list[str]:
        return [tag for tag, _ in self.found]


def chart(label: str = "a") -> go.Figure:
    return go.Figure(go.Bar(x=[label], y=[1], hovertemplate=label), layout={"title": {"text": label}})


def test_hostile_text_stays_text_wherever_it_stands() -> None:
    def page(text: str) -> str:
        return render(text, [text], [Section(text, text, [Table((text,), [[text]]), chart(text)])])

    assert "<script>alert" not in page(HOSTILE)
    assert Tags(page(HOSTILE)).names() == Tags(page("harmless")).names()


def test_a_hostile_url_in_the_history_adds_no_element(
    panel_of: Callable[..., Panel], analysed: Callable[[Panel], Empirical], tmp_path: Path
) -> None:
    def names(url: str) -> list[str]:
        empirical = analysed(panel_of([[math.nan, 7.0, 1.0]], np.array([[math.nan, 0.0, 1.0]]), [url]))
        return Tags(write_empirical_page(tmp_path / "p.html", empirical).read_text()).names()

    assert names(HOSTILE) == names("https://good.example/")


def test_plotly_is_embedded_once_and_only_where_there_are_figures() -> None:
    figures = render("t", [], [Section("a", items=[chart(), chart()]), Section("b", items=[chart()])])
    assert 4_000_000 < len(figures) < 7_000_000
    assert len(re.findall(r'class="plotly-graph-div"', figures)) == 3
    assert len(render("t", [], [Section("a", "text", [Table(("x",), [[1]])])])) < 10_000


def test_nothing_is_fetched_when_the_page_is_read() -> None:
    page = render("t", ["intro"], [Section("a", "text", [chart()])])
    for tag, attributes in Tags(page).found:
        assert tag not in ("link", "iframe", "img")
        assert "src" not in attributes
    assert "default-src 'none'" in page


def test_the_contents_lead_to_every_section() -> None:
    page = render("t", [], [Section("First & last"), Section("Second")])
    assert '<a href="#s1">First &amp; last</a>' in page
    assert '<section id="s2"><h2>Second</h2>' in page


def test_numbers_are_set_to_the_right_and_in_their_columns_format() -> None:
    page = render(
        "t", [], [Section("s", items=[Table(("name", "share"), [["a", 0.5], ["b", None]], {"share": ".1%"})])]
    )
    assert '<td>a</td><td class="n">50.0%</td>' in page
    assert '<td>b</td><td class="n">–</td>' in page


def test_the_same_sections_make_the_same_bytes() -> None:
    assert render("t", [], [Section("a", items=[chart()])]) == render("t", [], [Section("a", items=[chart()])])


def test_drawing_the_page_leaves_the_figure_as_it_was() -> None:
    figure = chart("kept")
    render("t", [], [Section("a", items=[figure])])
    assert figure.layout.title.text == "kept"


def test_a_page_that_cannot_be_written_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_page(tmp_path / "page.html", "old", [], [])
    before = target.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RecrawlError, match=r"page\.html: No space left on device"):
        write_page(target, "new", [], [])
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecrawlError, match=r"none/page\.html: No such file or directory"):
        write_page(tmp_path / "none" / "page.html", "t", [], [])
