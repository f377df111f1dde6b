"""The look of all figures: curves that differ in colour, mark and dash, and axes that name their unit.

Plotly is imported by the functions that draw, since it takes a second to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: The colours of Okabe and Ito (2008), which readers with any kind of colour vision can distinguish; without black and
#: yellow, which are hardly visible on a dark and on a light page.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#6c5fc7")
BLUE, ORANGE, GREEN = PALETTE[:3]
GREY, LIGHT_GREY = "#6e7781", "#a9b4c0"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "pentagon", "hourglass", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MAX_MARKS = 12  #: on a curve; on a long one they are spread out
GRID = "rgba(128,128,128,0.22)"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif'
DATE_HOVER = "%{x|%Y-%m-%d %H:%M}"  #: a moment on the x-axis, in the label that appears under the pointer


def blank_figure(title: str, x: str, y: str, height: int = 400) -> Figure:
    """A figure in the style of all pages, with named axes and nothing drawn yet."""
    from plotly.graph_objects import Figure

    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "ticks": "outside", "tickcolor": GRID}
    return Figure(
        layout={
            "title": {"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
            "template": "none",
            "height": height,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 13, "color": "#1f2328"},
            "colorway": PALETTE,
            "margin": {"l": 64, "r": 16, "t": 48, "b": 56},
            "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
            "xaxis": {**axis, "title": {"text": x}, "automargin": True},
            "yaxis": {**axis, "title": {"text": y}, "automargin": True},
            "hoverlabel": {"align": "left"},
        }
    )


def curve_style(i: int, *, colour: str = "", dash: str = "", symbol: str = "", width: float = 2.0) -> dict[str, Any]:
    """Colour, mark and dash of curve number `i`; what is given replaces what its number would choose.

    >>> curve_style(1)["line"]
    {'color': '#d55e00', 'dash': 'dash', 'width': 2.0}
    """
    colour = colour or PALETTE[i % len(PALETTE)]
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "dash": dash or DASHES[i % len(DASHES)], "width": width},
        "marker": {
            "color": colour,
            "symbol": symbol or SYMBOLS[i % len(SYMBOLS)],
            "size": 7,
            "maxdisplayed": MAX_MARKS,
        },
    }


def time_unit(days: Sequence[float]) -> tuple[str, float]:
    """The unit in which these lengths of time are read most easily, by their median, and how many of it make a day.

    >>> time_unit([0.04, 0.05, 30]), time_unit([1.0, 7.0, 9.0]), time_unit([0.001])
    (('hours', 24.0), ('days', 1.0), ('minutes', 1440.0))
    """
    median = sorted(days)[len(days) // 2] if days else 1.0
    if median < 1 / 24:
        return ("minutes", 1440.0)
    if median < 2:
        return ("hours", 24.0)
    return ("days", 1.0) if median < 100 else ("weeks", 1 / 7)


def plotly_text(text: str) -> str:
    """A text from the web that Plotly shows as it is: it would read some HTML in it, and fill in %{…}."""
    short = text if len(text) <= 90 else text[:60] + "…" + text[-29:]
    return escape(short).replace("%{", "%&#123;")
