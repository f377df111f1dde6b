"""The skeleton, style sheet and script of every HTML page."""

from __future__ import annotations

#: Nothing is fetched from anywhere but the page's own folder, which a browser calls `self` or, without a server, `file:`.
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'{sources}; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title><style>{style}</style>{plotly}</head>
<body><main><h1>{title}</h1>{intro}<nav><h2>Contents</h2><ol>{contents}</ol></nav>
{sections}</main><script>{script}</script></body></html>
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --back: #ffffff;
  --band: rgba(110,119,129,.08); --panel: #f6f8fa; --link: #0969da; --shadow: rgba(31,35,40,.28); }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --back: #0d1117;
  --band: rgba(145,152,161,.10); --panel: #151b23; --link: #4493f8; --shadow: rgba(145,152,161,.55); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0 1rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .5rem; }
h3 { font-size: 1rem; line-height: 1.35; font-weight: 600; margin: 0; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1.5rem; }
section > p { color: var(--soft); margin: .4rem 0; max-width: 46rem; }
main > ul { padding-left: 1.2rem; max-width: 46rem; } main > ul li { margin: .35rem 0; }
nav { background: var(--panel); border-radius: 8px; padding: 1rem 1.2rem; margin-top: 1.5rem; }
nav h2 { font-size: 1rem; } nav ol { margin: 0; padding-left: 1.4rem; columns: 18rem; column-gap: 2.5rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.missing { border: 1px solid var(--line); border-left: 4px solid #d55e00; padding: .6rem .9rem; }
.figure { margin: 1.4rem 0; width: 100%; overflow: hidden; }
.table { margin: 1.2rem 0; } .table > p { color: var(--soft); font-size: .85rem; margin: .3rem 0 0; max-width: 46rem; }
.hint { display: none; } .scrolls > .hint { display: block; }
.scroll { overflow-x: auto; margin-top: .4rem; }
.scrolls > .scroll { border-right: 1px solid var(--line); }
.more > .scroll { box-shadow: inset -14px 0 12px -10px var(--shadow); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; min-width: 50%; }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { border-bottom-width: 2px; vertical-align: bottom; line-height: 1.3; } th span { white-space: nowrap; }
td { white-space: nowrap; } .n { text-align: right; }
td.long { min-width: 9rem; white-space: normal; overflow-wrap: anywhere; }
tbody tr:nth-child(even) { background: var(--band); } tr.rule > td { border-bottom: 2px solid var(--line); }
.scrolls th:first-child, .scrolls td:first-child { position: sticky; left: 0; background: var(--back); max-width: 44vw;
  border-right: 1px solid var(--line); }
@media (max-width: 40rem) { th, td { padding: .3rem .5rem; } h1 { font-size: 1.5rem; } }
@media print { nav, .hint { display: none; } section { break-inside: avoid; } }
"""

#: Figures are drawn for a light page; on a dark one their texts take the page's colour, also when the reader switches. A table
#: that is wider than the screen says so, and has a shadow at its right edge until its last column is in sight.
SCRIPT = """
(function () {
  var figures = document.querySelectorAll(".plotly-graph-div");
  if (figures.length && !window.Plotly) {
    document.querySelectorAll(".missing").forEach(function (note) { note.hidden = false; });
  } else if (figures.length) {
    var dark = window.matchMedia("(prefers-color-scheme: dark)");
    var paint = function () {
      var ink = dark.matches ? "#e6edf3" : "#1f2328";
      figures.forEach(function (figure) { Plotly.relayout(figure, { "font.color": ink }); });
    };
    if (dark.matches) paint();
    dark.addEventListener("change", paint);
  }
  document.querySelectorAll(".scroll").forEach(function (scroll) {
    var table = scroll.parentElement;
    var look = function () {
      var hidden = scroll.scrollWidth - scroll.clientWidth;
      table.classList.toggle("scrolls", hidden > 1);
      table.classList.toggle("more", hidden - scroll.scrollLeft > 1);
    };
    scroll.addEventListener("scroll", look);
    window.addEventListener("resize", look);
    look();
  });
})();
"""
