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
from recrawl.report.page import Section, plotly_name, render, write_page
from recrawl.report.stats.analysis import LinkStatistics
from recrawl.report.stats.page import write_stats_page
from recrawl.report.tables import Table
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


def test_hostile_text_stays_text_wherever_it_is() -> None:
    def page(text: str) -> str:
        return render(text, [text], [Section(text, text, [Table((text,), [[text]]), chart(text)])])

    assert "<script>alert" not in page(HOSTILE)
    assert Tags(page(HOSTILE)).names() == Tags(page("harmless")).names()


def test_a_hostile_url_in_the_history_adds_no_element(
    panel_of: Callable[..., Panel], analysed: Callable[[Panel], LinkStatistics], tmp_path: Path
) -> None:
    def names(url: str) -> list[str]:
        statistics = analysed(panel_of([[math.nan, 7.0, 1.0]], np.array([[math.nan, 0.0, 1.0]]), [url]))
        return Tags(write_stats_page(tmp_path / "p.html", statistics).read_text()).names()

    assert names(HOSTILE) == names("https://good.example/")


def with_figures() -> list[Section]:
    return [Section("a", "text", [chart(), chart()]), Section("b", items=[chart()])]


def test_a_self_contained_page_holds_plotly_once_and_only_where_there_are_figures() -> None:
    page = render("t", ["intro"], with_figures(), self_contained=True)
    assert 4_000_000 < len(page) < 7_000_000
    assert len(re.findall(r'class="plotly-graph-div"', page)) == 3
    assert len(render("t", [], [Section("a", "text", [Table(("x",), [[1]])])], self_contained=True)) < 10_000


def test_a_self_contained_page_fetches_nothing() -> None:
    page = render("t", ["intro"], with_figures(), self_contained=True)
    for tag, attributes in Tags(page).found:
        assert tag not in ("link", "iframe", "img")
        assert "src" not in attributes
    assert "default-src 'none'; script-src 'unsafe-inline';" in page


def test_a_page_refers_to_the_plot_library_in_its_own_folder_and_to_nothing_else() -> None:
    page = render("t", ["intro"], with_figures())
    assert len(page) < 50_000
    sources = [attributes["src"] for _, attributes in Tags(page).found if "src" in attributes]
    assert sources == [plotly_name()]
    assert re.fullmatch(r"plotly-[\d.]+\.min\.js", plotly_name())
    assert "default-src 'none'; script-src 'unsafe-inline' 'self' file:;" in page
    assert f"need the file {plotly_name()} beside this page" in page


def test_the_plot_library_is_written_once_beside_the_pages(tmp_path: Path) -> None:
    write_page(tmp_path / "a.html", "t", [], with_figures())
    library = tmp_path / plotly_name()
    first = library.stat()
    write_page(tmp_path / "b.html", "t", [], with_figures())
    assert library.stat().st_mtime_ns == first.st_mtime_ns
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html", library.name]
    library.write_text("cut off")
    write_page(tmp_path / "a.html", "t", [], with_figures())
    assert library.stat().st_size == first.st_size > 4_000_000


def test_pages_that_need_no_library_bring_none(tmp_path: Path) -> None:
    write_page(tmp_path / "alone.html", "t", [], with_figures(), self_contained=True)
    write_page(tmp_path / "plain.html", "t", [], [Section("a", "text", [Table(("x",), [[1]])])])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.html", "plain.html"]


def test_a_wide_table_scrolls_with_a_hint_and_long_texts_wrap() -> None:
    page = render("t", [], [Section("s", items=[Table(("page", "n"), [["https://a.example/long", 1]], note="A note")])])
    assert '<p class="hint">Scroll sideways for more columns →</p><div class="scroll" tabindex="0"><table>' in page
    assert '<td class="long">https://a.example/long</td>' in page
    assert "</div><p>A note</p></div>" in page
    empty = render("t", [], [Section("s", items=[Table((), (), title="Laws", note="Too few.")])])
    assert '<div class="table"><h3>Laws</h3><p>Too few.</p></div>' in empty


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
