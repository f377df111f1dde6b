"""Replays as tables: what each policy found with each budget, how sure the differences are, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recrawl.core.words import count, percent
from recrawl.replay.compare import Comparison
from recrawl.replay.runs import Replayed
from recrawl.report.replays.comparison import BASELINES, Key, Replays
from recrawl.report.tables import Cell, Choose, Table, is_known, with_best

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
#: Where content counts.
_KEPT: _Columns = (
    ("fresh", "freshness", ".1%"),
    ("changes found", "changes", ",.0f"),
    ("per fetch", "change_rate", ".3f"),
    ("fetches", "fetches", ",.0f"),
)
_COSTS: _Columns = (
    ("fetches", "fetches", ",.0f"),
    ("answered", "answered", ",.0f"),
    *_YIELD,
    ("most per host", "most_of_host", ",.0f"),
    ("mean per host", "mean_of_host", ".2f"),
    *_TIME,
)
_AGES: _Columns = (
    ("1 h, of discovered", "age_1h", ".1%"),
    ("4 h, of discovered", "age_4h", ".1%"),
    ("1 h, of all", "within_1h", ".1%"),
    ("4 h, of all", "within_4h", ".1%"),
)
#: Beside the plain ones, where pages differ in importance.
_WEIGHTED: _Columns = (("weighted", "weighted_coverage", ".3f"), ("fresh, weighted", "weighted_freshness", ".1%"))
#: Metrics whose best value is emphasised: the highest or the lowest.
_BEST: dict[str, Choose] = {
    "coverage": max,
    "within_1h": max,
    "within_4h": max,
    "within_4_cycles": max,
    "links_per_fetch": max,
    "hit_rate": max,
    "overlap_wasted": min,
    "freshness": max,
    "weighted_coverage": max,
    "weighted_freshness": max,
    "changes": max,
    "change_rate": max,
}
FOUND = (
    "coverage: share of the discoverable links that were found; in 1h, in 4h, in 4 cycles: share found within that time after "
    "the link first appeared on any page; fresh: share of the pages whose stored copy is current"
)
YIELD = "hits: fetches that showed a new link; overlap: new links that several pages of the same cycle showed"
KEPT = (
    "fresh: share of the pages whose stored copy is current, mean over the cycles; changes found: fetches that found the page "
    "changed"
)
WEIGHTED = (
    "weighted: coverage with every link counted by the importance of the most important page that showed it; "
    "fresh, weighted: copies counted by the importance of their pages"
)
SIGNIFICANCE = "* more than chance (p < 0.05, paired bootstrap over days)"


def name_of(run: Replayed) -> str:
    """A policy's name, with its role where it is one that others are measured against."""
    if run.sees_future:
        return f"{run.policy} (upper bound)"
    return f"{run.policy} (baseline)" if run.policy in BASELINES else run.policy


def summary_table(replays: Replays, budget: int, more: _Columns = ()) -> Table:
    """Every policy with one budget: what it found, and whether it is better than round-robin and than the best published."""
    if replays.goal == "content":
        return _kept_table(replays, budget)
    runs, versus = replays.of_budget(budget), _versus_columns(replays, budget)
    weighted = _WEIGHTED if replays.is_weighted else ()
    columns = (("coverage", "coverage", ".3f"), *weighted, *_FOUND, *more)
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
    table = Table(header, rows, _formats(columns), title=f"Budget: {budget_text(replays, budget)}")
    return replace(with_best(table, _wanted(columns), _competing(runs)), note=caption(replays, budget))


def _kept_table(replays: Replays, budget: int) -> Table:
    """Every policy with one budget: how many copies it kept current, and how many changes it found."""
    runs = replays.of_budget(budget)
    columns = (*_KEPT[:1], *(_WEIGHTED[1:] if replays.is_weighted else ()), *_KEPT[1:], *_TIME)
    rows = [[name_of(run), *(_metric(replays, run, key) for _, key, _ in columns)] for run in runs]
    header = ("policy", *(name for name, *_ in columns))
    table = Table(header, rows, _formats(columns), title=f"Budget: {budget_text(replays, budget)}")
    return with_best(table, _wanted(columns), _competing(runs))


def _versus_columns(replays: Replays, budget: int) -> dict[str, tuple[Replayed, Mapping[Key, Comparison]]]:
    columns = {
        "vs round-robin": (replays.uniform(budget), replays.versus_uniform),
        "vs best published": (replays.best_published(budget), replays.versus_published),
    }
    others = len(replays.of_budget(budget)) > 1
    return {name: (run, comparisons) for name, (run, comparisons) in columns.items() if run is not None and others}


def _difference(run: Replayed, comparisons: Mapping[Key, Comparison], reference: Replayed) -> Cell:
    if run.policy == reference.policy:
        return "·"
    comparison = comparisons[run.policy, run.budget]
    if comparison.difference is None:
        return None
    text = f"{comparison.difference:+.3f}".replace("-0.000", "±0.000")
    return f"{text}*" if comparison.is_significant else text


def _metric(replays: Replays, run: Replayed, key: str) -> Cell:
    summary = replays.summaries[run.policy, run.budget]
    if key == "ms_per_cycle":
        return None if summary.seconds_per_cycle is None else 1000 * summary.seconds_per_cycle
    value: Cell = getattr(summary, key)
    return value


def _formats(columns: _Columns) -> dict[str, str]:
    return {name: spec for name, _, spec in columns}


def _wanted(columns: _Columns) -> dict[str, Choose]:
    """The columns whose best value is emphasised."""
    return {name: _BEST[key] for name, key, _ in columns if key in _BEST}


def _competing(runs: Sequence[Replayed]) -> list[int]:
    """The rows of the policies that could be run for real."""
    return [i for i, run in enumerate(runs) if not run.sees_future]


def interval_table(replays: Replays, budget: int) -> Table:
    """The differences of coverage with their confidence intervals."""
    rows: list[list[Cell]] = []
    for reference, comparisons in _versus_columns(replays, budget).values():
        for run in replays.of_budget(budget):
            if run.policy == reference.policy:
                continue
            comparison = comparisons[run.policy, run.budget]
            interval = (
                f"{comparison.low:+.3f} to {comparison.high:+.3f}" if is_known(comparison.low) else comparison.note
            )
            rows.append([name_of(run), reference.policy, comparison.difference, interval, comparison.p_value])
    header = ("policy", "against", "difference of coverage", "95% interval", "p")
    title = f"How sure the differences are, with {budget_text(replays, budget)}"
    return Table(header, rows, {"difference of coverage": "+.3f", "p": ".4f"}, title=title)


def budget_table(replays: Replays) -> Table:
    """Coverage by policy and budget (Pham, Santos and Freire, 2018, Fig. 5)."""
    header = ("policy", *(f"{budget:,} ({_share(replays, budget)})" for budget in replays.budgets))
    by_budget = [replays.of_budget(budget) for budget in replays.budgets]
    rows: list[list[Cell]] = [
        [name_of(runs[0]), *(replays.coverage(run) for run in runs)] for runs in zip(*by_budget, strict=True)
    ]
    table = Table(header, rows, dict.fromkeys(header[1:], ".3f"))
    return with_best(table, dict.fromkeys(header[1:], max), _competing(by_budget[0]))


def cost_table(replays: Replays) -> Table:
    """What each policy cost the hosts and this machine, and what a fetch brought."""
    return _of_all(replays, _COSTS)


def age_table(replays: Replays) -> Table:
    """How soon links were found: of those discovered (Pham, Santos and Freire, 2018, section 5.4), and of all."""
    return _of_all(replays, _AGES)


def _of_all(replays: Replays, columns: _Columns) -> Table:
    """Some metrics of every run, by budget where there are several."""
    several = len(replays.budgets) > 1
    rows = [
        [*([run.budget] if several else []), name_of(run), *(_metric(replays, run, key) for _, key, _ in columns)]
        for run in replays.runs
    ]
    header = (*(["budget"] if several else []), "policy", *(name for name, *_ in columns))
    table = Table(header, rows, _formats(columns))
    for budget in replays.budgets:
        competing = [i for i, run in enumerate(replays.runs) if run.budget == budget and not run.sees_future]
        table = with_best(table, _wanted(columns), competing)
    return table


def settings_table(replays: Replays) -> Table:
    """The settings of every policy."""
    settings = {
        run.policy: ", ".join(f"{name} {_setting(value)}" for name, value in run.settings.items())
        for run in replays.runs
    }
    rows: list[list[Cell]] = [[policy, text or "none"] for policy, text in settings.items()]
    return Table(("policy", "settings"), rows)


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(map(_setting, value))
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


def budget_text(replays: Replays, budget: int) -> str:
    """A budget in words."""
    return f"{count(budget, 'page')} per cycle ({_share(replays, budget)})"


def _share(replays: Replays, budget: int) -> str:
    return percent(budget / replays.n_pages)


def tables(replays: Replays, narrow: bool = False) -> list[Table]:
    """One table per budget for the terminal; on a narrow one without the columns that matter least."""
    more = () if narrow else (*_YIELD, *_TIME)
    return [summary_table(replays, budget, more) for budget in replays.budgets]


def legend(narrow: bool = False, goal: str = "links", is_weighted: bool = False) -> str:
    """What the columns of the tables on the terminal mean."""
    usual = KEPT if goal == "content" else FOUND if narrow else f"{FOUND}; {YIELD}"
    return f"{usual}; {WEIGHTED}" if is_weighted else usual


def caption(replays: Replays, budget: int) -> str:
    """What the marks of a table mean."""
    if not _versus_columns(replays, budget):
        return ""
    published = replays.best_published(budget)
    marks = f"{SIGNIFICANCE}; best published: {published.policy}" if published else SIGNIFICANCE
    compared = (*replays.versus_uniform.values(), *replays.versus_published.values())
    return "; ".join([marks, *sorted({comparison.note for comparison in compared if comparison.note})])
