"""Replays as plotly figures, one function each, drawn from the runs alone.

References: Pham, Santos and Freire (2018), Figs. 3 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.words import number, percent
from recrawl.replay.run import AGE_HOURS, Row
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import age_counts, column, coverage_over_time
from recrawl.report.figures import DASHES, DATE_HOVER, GREY, SYMBOLS, blank_figure, curve_style, plotly_text
from recrawl.report.replays.comparison import BASELINES, UNIFORM, Replays
from recrawl.report.replays.tables import budget_text, name_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_POINTS = 750  #: of a curve over time; more make the file larger, not the curve clearer
MAX_DRAWN = 8  #: curves that a reader can follow; the others appear on a click in the legend
SMOOTHED_FROM = 120  #: cycles; from here on discoveries are drawn as means per day
CYCLE_END = "time (UTC)"


def coverage_figure(replays: Replays, budget: int) -> Figure:
    """The share of the links published so far that each policy has found so far."""
    best = replays.best(budget)
    title = "Coverage over time"
    if best is not None:
        title = f"{best.policy} has found {percent(replays.coverage(best))} in the end"
    figure = blank_figure(
        f"{title}, with {budget_text(replays, budget)}", CYCLE_END, "found, of the links so far", height(replays)
    )
    for run, style in drawn(replays, budget):
        add_coverage(figure, run, run.rows, f"{plotly_text(name_of(run))}: {replays.coverage(run):.3f}", style)
    return figure.update_yaxes(tickformat=".0%", rangemode="tozero")


def add_coverage(figure: Figure, run: Replayed, rows: Sequence[Row], name: str, style: dict[str, Any]) -> None:
    """Draw the share of the links published so far that rows of a run have found so far."""
    values = coverage_over_time(rows)
    kept = thinned(len(values))
    hover = f"{DATE_HOVER}: %{{y:.1%}}<extra>%{{fullData.name}}</extra>"
    figure.add_scatter(x=times(run)[kept], y=values[kept], name=name, hovertemplate=hover, **style)


def budget_figure(replays: Replays) -> Figure:
    """Coverage against the budget (Fig. 5)."""
    figure = blank_figure("Coverage by budget", "pages per cycle", "coverage", height(replays))
    top = max(replays.budgets)
    for run, style in drawn(replays, top):
        points = sorted((other.budget, replays.coverage(other)) for other in replays.runs if other.policy == run.policy)
        figure.add_scatter(
            x=[budget for budget, _ in points],
            y=[coverage for _, coverage in points],
            customdata=[percent(budget / replays.n_pages) for budget, _ in points],
            name=plotly_text(name_of(run)),
            hovertemplate="%{x:,} pages per cycle (%{customdata}): %{y:.1%}<extra>%{fullData.name}</extra>",
            **style,
        )
    return figure.update_yaxes(tickformat=".0%").update_xaxes(tickformat=",d", tickvals=sorted(replays.budgets))


def age_figure(replays: Replays, budget: int) -> Figure:
    """How soon after first being on any page links are found (Fig. 4), of all that could be."""
    figure = blank_figure(
        f"Share of the links found in time, with {budget_text(replays, budget)}",
        "time since the link first appeared, at most",
        "links found, of all",
        height(replays),
    )
    labels = ["same cycle", *(_hours(hours) for hours in AGE_HOURS[1:]), "later"]
    shown = _needed_classes(replays, budget)
    for run, style in drawn(replays, budget):
        counts = age_counts(run.rows)
        figure.add_scatter(
            x=labels[:shown],
            y=(counts / max(replays.discoverable, 1))[:shown],
            customdata=(counts / max(counts[-1], 1))[:shown],
            name=plotly_text(name_of(run)),
            hovertemplate="%{x}: %{y:.1%} of all, %{customdata:.1%} of those it found<extra>%{fullData.name}</extra>",
            **style,
        )
    return figure.update_yaxes(tickformat=".0%", rangemode="tozero").update_xaxes(type="category")


def _hours(hours: float) -> str:
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"


def _needed_classes(replays: Replays, budget: int) -> int:
    """Up to the class that holds the oldest link that any policy found."""
    counts = [age_counts(run.rows) for run in replays.of_budget(budget)]
    return max((int(np.argmax(count == count[-1])) + 1 for count in counts), default=1)


def discovery_figure(replays: Replays, budget: int) -> Figure:
    """New links found in each cycle, beside what was published; many cycles as means per day."""
    smooth = replays.n_cycles >= SMOOTHED_FROM
    first = replays.of_budget(budget)[0]
    published = column(first.rows, "published")
    title = f"{number(float(published.mean()))} links are published per cycle"
    best = replays.best(budget)
    if best is not None:
        usual = number(float(column(best.rows, "found").mean()))
        title += f"; {best.policy} finds {usual}, with {budget_text(replays, budget)}"
    figure = blank_figure(title, CYCLE_END, "new links per cycle", height(replays))
    x, y = _per_day(first, published) if smooth else (times(first), published)
    figure.add_scatter(
        x=x,
        y=y,
        name="published",
        mode="lines",
        fill="tozeroy",
        fillcolor="rgba(128,128,128,0.15)",
        line={"color": GREY, "width": 1},
        hovertemplate=f"{DATE_HOVER}: %{{y:.1f}}<extra>published</extra>",
    )
    for run, style in drawn(replays, budget):
        discovered = column(run.rows, "found")
        x, y = _per_day(run, discovered) if smooth else (times(run), discovered)
        figure.add_scatter(
            x=x,
            y=y,
            name=plotly_text(name_of(run)),
            hovertemplate=f"{DATE_HOVER}: %{{y:.1f}}<extra>%{{fullData.name}}</extra>",
            **style,
        )
    return figure.update_yaxes(rangemode="tozero")


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def clock_figure(replays: Replays, budget: int) -> Figure:
    """New links found by hour of the day or, where cycles are a day or longer, by day of the week: valleys and peaks.

    References: Pham, Santos and Freire (2018), Fig. 4.
    """
    first = replays.of_budget(budget)[0]
    place, labels, of, when = _clock(times(first))
    n_cycles = np.maximum(np.bincount(place, minlength=len(labels)), 1)
    published = np.bincount(place, column(first.rows, "published"), len(labels)) / n_cycles
    peak, valley = (when.format(labels[int(best)]) for best in (np.argmax(published), np.argmin(published)))
    title = f"Most links are published {peak}, fewest {valley}; with {budget_text(replays, budget)}"
    figure = blank_figure(title, of, "new links per cycle", height(replays))
    figure.add_bar(x=labels, y=published, name="published", marker={"color": "rgba(128,128,128,0.3)"})
    for run, style in drawn(replays, budget):
        found = np.bincount(place, column(run.rows, "found"), len(labels)) / n_cycles
        figure.add_scatter(x=labels, y=found, name=plotly_text(name_of(run)), **style)
    return figure.update_yaxes(rangemode="tozero").update_xaxes(type="category")


def _clock(times: Any) -> tuple[Any, list[str], str, str]:
    """The hour of the day of each time, or the day of the week where there is at most one time per day.

    Its place among the labels, the labels, what they are of, and how to say when one is.
    """
    days = times.astype("datetime64[D]")
    if len(np.unique(days)) < len(days):
        hour = (times.astype("datetime64[h]") - days.astype("datetime64[h]")).astype(np.int64)
        return hour, [f"{each:02}" for each in range(24)], "hour of the day (UTC)", "at {}:00"
    return (days.astype(np.int64) + 3) % 7, list(DAYS), "day of the week (UTC)", "on {}"


def freshness_figure(replays: Replays, budget: int) -> Figure:
    """The share of pages whose kept copy is what the page shows now; many cycles as means per day."""
    smooth = replays.n_cycles >= SMOOTHED_FROM
    real = [run for run in replays.of_budget(budget) if not run.sees_future]
    fresh = {run.policy: replays.summaries[run.policy, budget].freshness or 0.0 for run in real}
    best = max(fresh, key=lambda policy: fresh[policy], default="")
    title = (
        f"{best} keeps most copies current, {percent(fresh[best])} on average" if best else "Copies that are current"
    )
    figure = blank_figure(
        f"{title}, with {budget_text(replays, budget)}", CYCLE_END, "pages with a current copy", height(replays)
    )
    for run, style in drawn(replays, budget):
        current = column(run.rows, "current")
        x, y = _per_day(run, current) if smooth else (times(run), current)
        figure.add_scatter(
            x=x,
            y=y,
            name=plotly_text(name_of(run)),
            hovertemplate=f"{DATE_HOVER}: %{{y:.1%}}<extra>%{{fullData.name}}</extra>",
            **style,
        )
    return figure.update_yaxes(tickformat=".0%", rangemode="tozero")


def height(replays: Replays) -> int:
    """Room for the curves and, below them, for a legend of two columns."""
    return 400 + 20 * math.ceil(len(replays.policies) / 2)


def drawn(replays: Replays, budget: int) -> Iterator[tuple[Replayed, dict[str, Any]]]:
    """The runs with a budget, the best first, each with its style; those that would be too many are hidden at first."""
    runs = sorted(replays.of_budget(budget), key=lambda run: -replays.score(run))
    shown = [run.policy for run in runs if not _is_measure(run)][:MAX_DRAWN]
    shown += [run.policy for run in runs if run.sees_future or run.policy == UNIFORM or len(runs) <= MAX_DRAWN]
    styles = _styles(replays)
    for run in runs:
        yield run, {**styles[run.policy], "visible": True if run.policy in shown else "legendonly"}


def _is_measure(run: Replayed) -> bool:
    return run.sees_future or run.policy in BASELINES


def _styles(replays: Replays) -> dict[str, dict[str, Any]]:
    """Grey for what the others are measured against; else a colour, the clearest for the best, the same in all figures."""
    runs = sorted(replays.of_budget(replays.budgets[0]), key=lambda run: -replays.score(run))
    bounds = [run.policy for run in runs if run.sees_future]
    baselines = sorted((run.policy for run in runs if _is_measure(run) and not run.sees_future), key=UNIFORM.__ne__)
    others = [run.policy for run in runs if not _is_measure(run)]
    # The greys take their marks and dashes from the other end of the lists, to differ from the best policies in these, too.
    greys = {
        name: curve_style(i, colour=GREY, dash=DASHES[-1 - i % len(DASHES)], symbol=SYMBOLS[-1 - i % len(SYMBOLS)])
        for i, name in enumerate([*bounds, *baselines])
    }
    return greys | {name: curve_style(i) for i, name in enumerate(others)}


def times(run: Replayed) -> Any:
    """The end of each cycle."""
    return np.array([row["at"][:19] for row in run.rows], "datetime64[s]")


def thinned(n: int) -> Any:
    """Indices of evenly spread points, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).round().astype(np.int64))


def _per_day(run: Replayed, values: Floats) -> tuple[Any, Floats]:
    """Means of calendar days (UTC), at noon; of longer spans where there are too many days."""
    days, index = np.unique(times(run).astype("datetime64[D]"), return_inverse=True)
    means: Floats = np.bincount(index, values) / np.bincount(index)
    kept = thinned(len(days))
    return days[kept] + np.timedelta64(12, "h"), means[kept]
