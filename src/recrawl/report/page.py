"""An HTML page from titled sections of text, tables and plotly figures.

Pages work offline: plotly.js is written once beside them, or into a page that is to be a single file. A content security policy
forbids to fetch anything else. Texts and cells are escaped, since URLs come from the web and may hold anything.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from recrawl.core.files import write_text
from recrawl.errors import RecrawlError
from recrawl.report.style import PAGE, SCRIPT, STYLE
from recrawl.report.tables import Table

LONG_TEXT = 16  #: characters of a cell that is wrapped where there is little room


@dataclass(frozen=True, slots=True)
class Section:
    """A title, paragraphs of plain text separated by empty lines, and what is shown below them."""

    title: str
    text: str = ""
    items: Sequence[Any] = ()  # each a Table or a plotly.graph_objects.Figure


def write_page(
    path: str | os.PathLike[str],
    title: str,
    intro: Sequence[str],
    sections: Sequence[Section],
    *,
    self_contained: bool = False,
) -> Path:
    """Write the page, and plotly.js beside it unless the page is to hold it; no reader meets a half-written file.

    `intro` holds the sentences before the table of contents.
    """
    target = Path(path)
    if _has_figures(sections) and not self_contained:
        _write_once(target.with_name(plotly_name()), _plotly_js())
    _write(target, render(title, intro, sections, self_contained=self_contained))
    return target


def render(title: str, intro: Sequence[str], sections: Sequence[Section], *, self_contained: bool = False) -> str:
    """The page's HTML.

    >>> "<script>alert" in render("<script>alert(1)</script>", [], [])
    False
    """
    beside = _has_figures(sections) and not self_contained
    return PAGE.format(
        title=escape(title),
        style=STYLE,
        script=SCRIPT,
        sources=" 'self' file:" if beside else "",
        plotly=_plotly_element(self_contained) if _has_figures(sections) else "",
        intro=(_missing_note() if beside else "") + _list(intro),
        contents="".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(sections, 1)),
        sections="".join(_section(i, section) for i, section in enumerate(sections, 1)),
    )


def plotly_name() -> str:
    """The name of the plot library's file, with its version: pages of several versions can share a folder."""
    from plotly.offline import get_plotlyjs_version

    return f"plotly-{get_plotlyjs_version()}.min.js"


def _has_figures(sections: Iterable[Section]) -> bool:
    return any(not isinstance(item, Table) for section in sections for item in section.items)


def _plotly_element(self_contained: bool) -> str:
    return f"<script>{_plotly_js()}</script>" if self_contained else f'<script src="{plotly_name()}"></script>'


def _missing_note() -> str:
    return (
        f'<p class="missing" hidden>The figures need the file {plotly_name()} beside this page. Copy it along, or write the page '
        "again with --self-contained.</p>"
    )


def _plotly_js() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


def _write_once(path: Path, text: str) -> None:
    """Write a file unless it is there already."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == text.encode():
            return
    _write(path, text)


def _write(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise RecrawlError(f"cannot write the page {path}: {error.strerror or error}") from error


def _section(number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{escape(section.title)}</h2>', _paragraphs(section.text.split("\n\n"))]
    for i, item in enumerate(section.items, 1):
        parts.append(_table(item) if isinstance(item, Table) else _figure(item, f"figure{number}-{i}"))
    return "".join([*parts, "</section>"])


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text.strip())


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _table(table: Table) -> str:
    title = _heading(table.title)
    note = _paragraphs([table.note])
    if not table.rows:
        return f'<div class="table">{title}{note}</div>'
    kinds = _kinds(table)
    head = "".join(f"<th{kind}>{_unbroken(name)}</th>" for name, kind in zip(table.header, kinds, strict=True))
    rows = (
        "".join(
            f"<td{kind}>{_bold(escape(cell), (i, j) in table.bold)}</td>"
            for j, (cell, kind) in enumerate(zip(row, kinds, strict=True))
        )
        for i, row in enumerate(table.texts())
    )
    body = "".join(f"<tr{_rule(i in table.rules)}>{row}</tr>" for i, row in enumerate(rows))
    return (
        f'<div class="table">{title}<p class="hint">Scroll sideways for more columns →</p>'
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}</div>'
    )


def _unbroken(name: str) -> str:
    """A heading that wraps between words only: browsers would also break it at hyphens."""
    return " ".join(f"<span>{escape(word)}</span>" if "-" in word else escape(word) for word in name.split(" "))


def _heading(title: str) -> str:
    return f"<h3>{escape(title)}</h3>" if title else ""


def _bold(html: str, is_bold: bool) -> str:
    return f"<strong>{html}</strong>" if is_bold else html


def _kinds(table: Table) -> list[str]:
    """For each column its class: numbers are aligned to the right, long texts are given room on a narrow screen."""
    texts = table.texts()
    longest = [max(len(row[i]) for row in texts) for i in range(len(table.header))]
    return [
        ' class="n"' if not text else ' class="long"' if length > LONG_TEXT else ""
        for text, length in zip(table.is_text(), longest, strict=True)
    ]


def _rule(is_last: bool) -> str:
    return ' class="rule"' if is_last else ""


def _figure(figure: Any, name: str) -> str:
    config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    # A figure's title is cut off on a narrow screen, a heading of the page wraps.
    title = _heading(figure.layout.title.text or "")
    shown = type(figure)(figure).update_layout(title_text=None, margin_t=24)
    html = shown.to_html(full_html=False, include_plotlyjs=False, include_mathjax=False, div_id=name, config=config)
    return f'<div class="figure">{title}{html}</div>'
