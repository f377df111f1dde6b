"""One self-contained HTML page from titled sections of text, tables and plotly figures.

Nothing is fetched when the page is read: plotly.js is embedded once and a content security policy forbids the rest.
Texts and cells are escaped: URLs come from the web and may hold anything.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from recrawl.errors import RecrawlError

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of texts and numbers; numbers are set to the right, None is shown as a dash."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    formats: Mapping[str, str] = field(default_factory=dict)  # column → format of its numbers, such as ".1%"
    bold: Collection[tuple[int, int]] = ()  # cells that stand out, by row and column

    def texts(self) -> list[list[str]]:
        """The rows as people read them."""
        formats = [self.formats.get(name, "") for name in self.header]
        return [[cell_text(cell, spec) for cell, spec in zip(row, formats, strict=True)] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, paragraphs of plain text parted by empty lines, and what is shown below them."""

    title: str
    text: str = ""
    items: Sequence[Any] = ()  # each a Table or a plotly.graph_objects.Figure


def write_page(path: str | os.PathLike[str], title: str, intro: Sequence[str], sections: Sequence[Section]) -> Path:
    """Write the page as one file; a reader never meets a half-written one.

    `intro` are the paragraphs before the table of contents.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        draft.write_text(render(title, intro, sections), encoding="utf-8")
        os.replace(draft, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise RecrawlError(f"cannot write the page {target}: {error.strerror or error}") from error
    return target


def render(title: str, intro: Sequence[str], sections: Sequence[Section]) -> str:
    """The page's HTML.

    >>> "<script>alert" in render("<script>alert(1)</script>", [], [])
    False
    """
    has_figures = any(not isinstance(item, Table) for section in sections for item in section.items)
    return _PAGE.format(
        title=escape(title),
        style=_STYLE,
        plotly=f"<script>{_plotly_js()}</script>" if has_figures else "",
        intro=_list(intro),
        contents="".join(f'<li><a href="#s{i}">{escape(s.title)}</a></li>' for i, s in enumerate(sections, 1)),
        sections="".join(_section(i, section) for i, section in enumerate(sections, 1)),
        theme=f"<script>{_THEME}</script>" if has_figures else "",
    )


def cell_text(cell: Cell, spec: str = "") -> str:
    """A cell as people read it, by `spec` if it is a number.

    >>> [cell_text(cell) for cell in (None, 384323, 2.71828, "a", float("nan"), 12345.6, 0.00004)]
    ['–', '384,323', '2.72', 'a', '–', '12,346', '4e-05']
    >>> cell_text(0.714, ".1%")
    '71.4%'
    """
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, str):
        return cell
    if not spec:
        spec = ",.0f" if isinstance(cell, int) or abs(cell) >= 1000 else ".3g"
    return format(cell, spec)


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
    is_text = [any(isinstance(row[i], str) for row in table.rows) for i in range(len(table.header))]
    head = "".join(f"<th{_side(text)}>{escape(name)}</th>" for name, text in zip(table.header, is_text, strict=True))
    rows = (
        "".join(
            f"<td{_side(text)}>{_bold(escape(cell), (i, j) in table.bold)}</td>"
            for j, (cell, text) in enumerate(zip(row, is_text, strict=True))
        )
        for i, row in enumerate(table.texts())
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _bold(html: str, is_bold: bool) -> str:
    return f"<strong>{html}</strong>" if is_bold else html


def _side(is_text: bool) -> str:
    return "" if is_text else ' class="n"'


def _figure(figure: Any, name: str) -> str:
    config = {"responsive": True, "displaylogo": False, "displayModeBar": False}
    # A figure's title is cut off on a narrow screen, a heading of the page wraps.
    title = f"<h3>{escape(figure.layout.title.text)}</h3>" if figure.layout.title.text else ""
    shown = type(figure)(figure).update_layout(title_text=None, margin_t=24)
    html = shown.to_html(full_html=False, include_plotlyjs=False, include_mathjax=False, div_id=name, config=config)
    return f'<div class="figure">{title}{html}</div>'


def _plotly_js() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title><style>{style}</style>{plotly}</head>
<body><main><h1>{title}</h1>{intro}<nav><h2>Contents</h2><ol>{contents}</ol></nav>
{sections}</main>{theme}</body></html>
"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --back: #ffffff; --band: #f6f8fa;
  --link: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --back: #0d1117;
  --band: #151b23; --link: #4493f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0 1rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .5rem; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1.5rem; }
section > p { color: var(--soft); margin: .4rem 0; max-width: 46rem; }
main > ul { padding-left: 1.2rem; max-width: 46rem; } main > ul li { margin: .35rem 0; }
nav { background: var(--band); border-radius: 8px; padding: 1rem 1.2rem; margin-top: 1.5rem; }
nav h2 { font-size: 1rem; } nav ol { margin: 0; padding-left: 1.4rem; columns: 18rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.figure { margin: 1.2rem 0; width: 100%; overflow: hidden; }
h3 { font-size: 1rem; font-weight: 600; margin: 0; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; min-width: 50%; }
th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td { min-width: 7.2rem; } td.n { min-width: 0; }
th { border-bottom-width: 2px; white-space: nowrap; } .n { text-align: right; white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--band); }
@media print { nav { display: none; } section { break-inside: avoid; } }
"""

#: Figures are drawn for a light page; on a dark one their texts take the page's colour, also when the reader switches.
_THEME = """
(function () {
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    var ink = dark.matches ? "#e6edf3" : "#1f2328";
    document.querySelectorAll(".plotly-graph-div").forEach(function (figure) {
      Plotly.relayout(figure, { "font.color": ink });
    });
  }
  if (dark.matches) paint();
  dark.addEventListener("change", paint);
})();
"""
