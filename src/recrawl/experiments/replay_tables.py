"""Replays as tables: neutral ones that a page can hold, and the same for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.experiments.findings import percent
from recrawl.experiments.outlinks_tables import is_known
from recrawl.experiments.page import Cell, Table
from recrawl.experiments.replays import BASELINES, Key, Replays
from recrawl.experiments.tables import rich_table
from recrawl.replay.compare import Comparison
from recrawl.replay.runs import Replayed

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_Columns = tuple[tuple[str, str, str], ...]  # name, metric, format
_FOUND: _Columns = (
    ("in 1h", "within_1h", ".3f"),
    ("in 4h", "within_4h", ".3f"),
    ("in 4 cycles", "within_4_cycles", ".3f"),
    ("fresh", "freshness", ".1%"),
)
_YIELD: _Columns = (
    ("links per fetch", "links_per_fetch", ".2f"),
    ("hits", "hit_rate", ".1%"),
    ("overlap", "overlap_wasted", ".1%"),
)
_TIME: _Columns = (("ms per cycle", "ms_per_cycle", ",.2f"),)
_ASKED: _Columns = (
    ("fetches", "fetches", ",.0f"),
    ("answered", "answered", ",.0f"),
    *_YIELD,
    ("most of a host", "most_of_host", ",.0f"),
    ("mean of a host", "mean_of_host", ".2f"),
    *_TIME,
)
_AGES: _Columns = (
    ("1 h, of discovered", "age_1h", ".1%"),
    ("4 h, of discovered", "age_4h", ".1%"),
    ("1 h, of all", "within_1h", ".1%"),
    ("4 h, of all", "within_4h", ".1%"),
)
#: Metrics of which the highest or the lowest stands out.
_BETTER: dict[str, Callable[[list[float]], float]] = {
    "coverage": max,
    "within_1h": max,
    "within_4h": max,
    "within_4_cycles": max,
    "links_per_fetch": max,
    "hit_rate": max,
    "overlap_wasted": min,
    "freshness": max,
}
FOUND = (
    "coverage: share of the discoverable links that were found; in 1h, in 4h, in 4 cycles: share found within that time of "
    "first being on any page; fresh: pages whose kept copy is current"
)
YIELD = "hits: fetches that showed a new link; overlap: new links that several pages of a cycle showed"
SIGNIFICANCE = "* more than chance (p < 0.05, paired bootstrap over days)"


def name_of(run: Replayed) -> str:
    """A policy's name, and whether it is something that others are measured by."""
    if run.sees_future:
        return f"{run.policy} (upper bound)"
    return f"{run.policy} (baseline)" if run.policy in BASELINES else run.policy


def summary_table(replays: Replays, budget: int, more: _Columns = ()) -> Table:
    """Every policy with one budget: what it found, and whether it is better than round-robin and than the best published."""
    runs, versus = replays.of_budget(budget), _versus_columns(replays, budget)
    columns = (("coverage", "coverage", ".3f"), *_FOUND, *more)
    header = ("policy", "coverage", *versus, *(name for name, *_ in columns[1:]))
    rows = [
        [
            name_of(run),
            _metric(replays, run, "coverage"),
            *(_difference(run, comparisons, reference) for reference, comparisons in versus.values()),
            *(_metric(replays, run, key) for _, key, _ in columns[1:]),
        ]
        for run in runs
    ]
    bold = _best_cells(replays, list(enumerate(runs)), columns, header)
    return Table(header, rows, {name: spec for name, _, spec in columns}, bold)


def _versus_columns(replays: Replays, budget: int) -> dict[str, tuple[Replayed, Mapping[Key, Comparison]]]:
    columns = {
        "vs round-robin": (replays.uniform(budget), replays.versus_uniform),
        "vs best published": (replays.best_published(budget), replays.versus_published),
    }
    others = len(replays.of_budget(budget)) > 1
    return {name: (run, found) for name, (run, found) in columns.items() if run is not None and others}


def _difference(run: Replayed, comparisons: Mapping[Key, Comparison], reference: Replayed) -> Cell:
    if run.policy == reference.policy:
        return "·"
    found = comparisons[run.policy, run.budget]
    if found.difference is None:
        return None
    return f"{found.difference:+.3f}".replace("-0.000", "±0.000") + "*" * found.is_significant


def _metric(replays: Replays, run: Replayed, key: str) -> Cell:
    summary = replays.summaries[run.policy, run.budget]
    if key == "ms_per_cycle":
        return None if summary.seconds_per_cycle is None else 1000 * summary.seconds_per_cycle
    value: Cell = getattr(summary, key)
    return value


def _best_cells(
    replays: Replays, runs: Sequence[tuple[int, Replayed]], columns: _Columns, header: Sequence[str]
) -> set[tuple[int, int]]:
    """The best of every column among the policies that could be run for real; runs come with the row that they are in."""
    real = [(i, run) for i, run in runs if not run.sees_future]
    cells: set[tuple[int, int]] = set()
    for name, key, spec in columns:
        values: list[tuple[int, Any]] = [(i, _metric(replays, run, key)) for i, run in real]
        known = [(i, value) for i, value in values if is_known(value)]
        if key not in _BETTER or len(known) < 2:
            continue
        best = format(_BETTER[key]([value for _, value in known]), spec)
        # What reads the same is equally good.
        cells |= {(i, header.index(name)) for i, value in known if format(value, spec) == best}
    return cells


def interval_table(replays: Replays, budget: int) -> Table:
    """The differences of coverage with their confidence intervals."""
    rows: list[list[Cell]] = []
    for reference, comparisons in _versus_columns(replays, budget).values():
        for run in replays.of_budget(budget):
            if run.policy == reference.policy:
                continue
            found = comparisons[run.policy, run.budget]
            interval = f"{found.low:+.3f} to {found.high:+.3f}" if is_known(found.low) else found.note
            rows.append([name_of(run), reference.policy, found.difference, interval, found.p_value])
    header = ("policy", "against", "difference of coverage", "95% interval", "p")
    return Table(header, rows, {"difference of coverage": "+.3f", "p": ".4f"})


def budget_table(replays: Replays) -> Table:
    """Coverage by policy and budget (Pham et al. Fig. 5)."""
    header = ("policy", *(f"{budget:,} ({_share(replays, budget)})" for budget in replays.budgets))
    by_budget = [replays.of_budget(budget) for budget in replays.budgets]
    rows: list[list[Cell]] = [
        [name_of(runs[0]), *(replays.coverage(run) for run in runs)] for runs in zip(*by_budget, strict=True)
    ]
    bold = {
        cell
        for name, runs in zip(header[1:], by_budget, strict=True)
        for cell in _best_cells(replays, list(enumerate(runs)), ((name, "coverage", ".3f"),), header)
    }
    return Table(header, rows, dict.fromkeys(header[1:], ".3f"), bold)


def cost_table(replays: Replays) -> Table:
    """What each policy asked of the hosts and of this machine, and what a fetch brought."""
    return _of_all(replays, _ASKED)


def age_table(replays: Replays) -> Table:
    """How soon links were found: of those discovered (Pham et al., section 5.4), and of all."""
    return _of_all(replays, _AGES)


def _of_all(replays: Replays, columns: _Columns) -> Table:
    """Some metrics of every run, by budget where there are several."""
    several = len(replays.budgets) > 1
    rows = [
        [*[run.budget] * several, name_of(run), *(_metric(replays, run, key) for _, key, _ in columns)]
        for run in replays.runs
    ]
    header = (*["budget"] * several, "policy", *(name for name, *_ in columns))
    bold: set[tuple[int, int]] = set()
    for budget in replays.budgets:
        numbered = [(i, run) for i, run in enumerate(replays.runs) if run.budget == budget]
        bold |= _best_cells(replays, numbered, columns, header)
    return Table(header, rows, {name: spec for name, _, spec in columns}, bold)


def settings_table(replays: Replays) -> Table:
    """What every policy was set to."""
    told = {
        run.policy: ", ".join(f"{name} {_setting(value)}" for name, value in run.settings.items())
        for run in replays.runs
    }
    rows: list[list[Cell]] = [[policy, settings or "none"] for policy, settings in told.items()]
    return Table(("policy", "settings"), rows)


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(map(_setting, value))
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


def budget_text(replays: Replays, budget: int) -> str:
    """A budget in words."""
    pages = "1 page" if budget == 1 else f"{budget:,} pages"
    return f"{pages} a cycle ({_share(replays, budget)})"


def _share(replays: Replays, budget: int) -> str:
    return percent(budget / replays.n_pages)


def tables(replays: Replays, narrow: bool = False) -> list[RichTable]:
    """One table a budget for the terminal; on a narrow one without the columns that matter least."""
    more = () if narrow else (*_YIELD, *_TIME)
    return [
        rich_table(
            f"Budget: {budget_text(replays, budget)}",
            summary_table(replays, budget, more),
            caption(replays, budget),
        )
        for budget in replays.budgets
    ]


def legend(narrow: bool = False) -> str:
    """What the columns of the terminal's tables mean."""
    return FOUND if narrow else f"{FOUND}; {YIELD}"


def caption(replays: Replays, budget: int) -> str:
    """What the marks of a table mean."""
    if not _versus_columns(replays, budget):
        return ""
    published = replays.best_published(budget)
    told = f"{SIGNIFICANCE}; best published: {published.policy}" if published else SIGNIFICANCE
    notes = {
        found.note for found in (*replays.versus_uniform.values(), *replays.versus_published.values()) if found.note
    }
    return "; ".join([told, *sorted(notes)])
