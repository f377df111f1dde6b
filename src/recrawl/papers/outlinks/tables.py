"""The evaluation of new-outlink prediction as tables: neutral ones that a page can hold, and the same for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.rankings import RANKINGS
from recrawl.report.page import Cell, Table, is_known
from recrawl.report.stats.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TOP = 10  #: features and pairs that are shown
NEGLIGIBLE = 5e-5  #: a drop that reads as 0
#: Rankings by a single column, which no model has learnt from.
BASELINES = frozenset(ranking.name for ranking in RANKINGS if ranking.features == "baseline")
PREVIOUS = "previous-count"
TARGETS = {
    "link-change-rate": "link change rate",
    "has-new-links": "presence of new links",
    "new-link-count": "number of new links",
}
SCORE_OF = {"link-change-rate": "R²", "has-new-links": "balanced accuracy"}  #: what an importance is a drop of
_SHORT = {"internal": "int.", "external": "ext.", "all": "all"}
#: The columns of the rankings: name, truth and score.
_RANKED = (
    ("rate", "link-change-rate", "spearman"),
    ("any", "has-new-links", "spearman"),
    ("number", "new-link-count", "spearman"),
    ("area", "new-link-count", "area"),
)
RANKED = (
    "Spearman's ρ with the link change rate, with whether there are any new links, and with their number; area under "
    "Precision@k% for the number"
)
MARK = " †"  #: of a ranking that was tested on other pages
MARKED = "†: on the quarter of the pages that it has not learnt from; not to be compared to the last digit"
_CLASSIFIED = {"precision": "precision", "recall": "recall", "f1": "F1", "balanced_accuracy": "balanced accuracy"}


def scope(found: OutlinkEvaluation) -> str:
    """What the evaluation was measured on, and how."""
    split = (
        "models learn from the rounds before it and are tested on all pages (the link change rate: on a quarter of them, "
        "which it has not learnt from)"
        if found.settings.split == "time"
        else "models learn from three quarters of the pages and are tested on the others"
    )
    return (
        f"{found.n_pages:,} pages in {found.n_rounds} rounds; predicted is the round that ends "
        f"{found.predicted.replace('T', ' ')} UTC, and {split}. Related pages: {found.related}."
    )


def best(rows: Iterable[Row], score: str) -> Row | None:
    """The row with the highest known score."""
    return max((row for row in rows if is_known(row.get(score))), key=lambda row: float(row[score]), default=None)


def feature_rows(found: OutlinkEvaluation) -> list[Row]:
    """The feature ladder, averaged over the repetitions."""
    return found.mean("features", ("links", "features", "learner"), ("r2", "mae", "medae"))


def history_rows(found: OutlinkEvaluation) -> list[Row]:
    """The history ladder, averaged over the repetitions."""
    return found.mean("history", ("links", "history", "n_columns", "learner"), _CLASSIFIED)


def ranking_rows(found: OutlinkEvaluation) -> list[Row]:
    """The rankings, averaged over the repetitions; the baselines last."""
    rows = found.mean("rankings", ("links", "ranking", "paper", "truth"), ("spearman", "area"))
    return sorted(rows, key=lambda row: row["ranking"] in BASELINES)


def apart(found: OutlinkEvaluation) -> frozenset[str]:
    """Rankings that were not tested on the pages of all others: those that learn the link change rate, in the split by time."""
    asked = found.settings.split
    return frozenset(row["ranking"] for row in found.rows.get("rankings", []) if row.get("split", asked) != asked)


def count_rows(found: OutlinkEvaluation) -> list[Row]:
    """The models of counts, averaged over the repetitions."""
    scores = ("log_likelihood", "covered_80", "calibration_error", "mae", "spearman")
    return found.mean("counts", ("links", "learner"), scores)


def importance_rows(found: OutlinkEvaluation) -> dict[tuple[str, str], tuple[list[Row], list[Row]]]:
    """(target, links) → the most important features, and the most important groups; none that changes nothing."""
    parted: dict[tuple[str, str], tuple[list[Row], list[Row]]] = {}
    for row in found.rows.get("importance", []):
        if is_known(row["importance"]) and row["importance"] > NEGLIGIBLE:
            parted.setdefault((row["target"], row["links"]), ([], []))[bool(row["grouped"])].append(row)
    return {key: (_most(single), _most(groups)) for key, (single, groups) in parted.items()}


def _most(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["importance"])[:TOP]


def correlated_pairs(found: OutlinkEvaluation) -> list[tuple[str, str, float]]:
    """Every two features and how they go together, the strongest first, whatever the sign."""
    pairs = [
        (names[j], names[i], rho)
        for row in found.rows.get("correlation", [])
        for names in [row["names"]]
        for i, line in enumerate(row["spearman"])
        for j, rho in enumerate(line[:i])
        if is_known(rho)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def feature_table(found: OutlinkEvaluation) -> Table:
    """How well the link change rate is predicted from each feature set (LBLA Figs. 9 and 10)."""
    header = ("links", "features", "learner", "R²", "MAE", "MedAE")
    keys = ("links", "features", "learner", "r2", "mae", "medae")
    return Table(header, _cells(feature_rows(found), keys), dict.fromkeys(header[3:], ".3f"))


def history_table(found: OutlinkEvaluation) -> Table:
    """How well presence is predicted with more and more history, the previous count last (LBLA Fig. 12)."""
    header = ("links", "history", "columns", *_CLASSIFIED.values())
    rows: list[list[Cell]] = [
        [row["links"], _past(row), row["n_columns"], *(row[score] for score in _CLASSIFIED)]
        for row in history_rows(found)
    ]
    return Table(header, rows, dict.fromkeys(header[3:], ".3f"))


def _past(row: Row) -> str:
    if row["learner"] == PREVIOUS:
        return PREVIOUS
    return f"{row['history']} round{'s' * (row['history'] != 1)}" if row["history"] else "none"


def importance_table(single: Sequence[Row], groups: Sequence[Row]) -> Table:
    """The most important features of a target, and the most important groups of features that go together."""
    rows = [
        [how, row["name"], row["importance"], row["spread"]]
        for how, found in (("alone", single), ("together", groups))
        for row in found
    ]
    return Table(("shuffled", "feature", "drop", "spread"), rows, {"drop": ".4f", "spread": ".4f"})


def ranking_table(found: OutlinkEvaluation, kinds: Sequence[str]) -> Table:
    """Every ranking against every truth (LBLA Fig. 14), and its area under Precision@k% for the number (Fig. 15)."""
    rows = ranking_rows(found)
    known = {(row["ranking"], row["links"], row["truth"]): row for row in rows}
    columns = {
        f"{_SHORT.get(links, links)} {name}": (links, truth, score) for links in kinds for name, truth, score in _RANKED
    }
    marked = apart(found)
    cells: list[list[Cell]] = [
        [
            name + " (baseline)" * (name in BASELINES) + MARK * (name in marked),
            paper or "",
            *(_score(known, name, *key) for key in columns.values()),
        ]
        for name, paper in dict.fromkeys((row["ranking"], row["paper"]) for row in rows)
    ]
    return Table(("ranking", "paper", *columns), cells, dict.fromkeys(columns, ".3f"))


def _score(known: Mapping[tuple[str, str, str], Row], name: str, links: str, truth: str, score: str) -> Cell:
    value: Cell = known.get((name, links, truth), {}).get(score)
    return value


def count_table(found: OutlinkEvaluation) -> Table:
    """How well each model knows the distribution of the number of new links."""
    header = ("links", "learner", "log-likelihood", "in 80% interval", "calibration error", "MAE", "Spearman")
    keys = ("links", "learner", "log_likelihood", "covered_80", "calibration_error", "mae", "spearman")
    formats = dict.fromkeys(header[2:], ".3f") | {"in 80% interval": ".1%"}
    return Table(header, _cells(count_rows(found), keys), formats)


def correlation_table(found: OutlinkEvaluation) -> Table:
    """The features that go together most (LBLA Fig. 8)."""
    rows: list[list[Cell]] = [[*pair] for pair in correlated_pairs(found)[:TOP]]
    return Table(("feature", "goes with", "ρ"), rows, {"ρ": "+.2f"})


def map_table(found: OutlinkEvaluation) -> Table:
    """How far the link change rate is told by two features alone (LBLA preprint Fig. 13)."""
    rows = [[row["links"], *row["features"], row["mae"]] for row in found.rows.get("maps", [])]
    return Table(("links", "feature", "and", "MAE"), rows, {"MAE": ".3f"})


def _cells(rows: Iterable[Row], keys: Sequence[str]) -> list[list[Cell]]:
    return [[row[key] for key in keys] for row in rows]


def kinds(found: OutlinkEvaluation, part: str) -> list[str]:
    """The kinds of links that a part was run for."""
    return list(dict.fromkeys(row["links"] for row in found.rows.get(part, [])))


def how_tested(found: OutlinkEvaluation, part: str) -> str:
    """How many pages stand behind the scores of a part, and how often they were measured."""
    rows = found.rows.get(part, [])
    n_test = max((row.get("n_test") or 0 for row in rows), default=0)
    n_seeds = len({row.get("seed") for row in rows})
    of = f"Mean of {n_seeds} repetitions, tested" if n_seeds > 1 else "Tested"
    return f"{of} on {n_test:,} pages{' each' if n_seeds > 1 else ''}." if n_test else ""


def tables(found: OutlinkEvaluation) -> list[RichTable]:
    """All tables for the terminal; a part that was not run, or found nothing, has none."""
    shown = (table for part, make in ALL if found.rows.get(part) for table in make(found))
    return [table for table in shown if table.row_count]


def _features(found: OutlinkEvaluation) -> list[RichTable]:
    title, note = "The link change rate, by what is known of a page", how_tested(found, "features")
    return [_marked(title, feature_table(found), note, {"R²": max, "MAE": min})]


def _history(found: OutlinkEvaluation) -> list[RichTable]:
    title, note = "Whether a page will have new links, by rounds of history", how_tested(found, "history")
    return [_marked(title, history_table(found), note, dict.fromkeys(_CLASSIFIED.values(), max))]


def _importances(found: OutlinkEvaluation) -> list[RichTable]:
    return [
        _marked(
            f"What tells the {TARGETS.get(target, target)} ({links} links)",
            importance_table(single, groups),
            f"Drop: {SCORE_OF.get(target, 'score')} lost when the feature is shuffled among unseen pages, alone or "
            "together with those it correlates with.",
            {},
        )
        for (target, links), (single, groups) in importance_rows(found).items()
    ]


def _rankings(found: OutlinkEvaluation) -> list[RichTable]:
    table = ranking_table(found, kinds(found, "rankings"))
    n_models = sum(not str(row[0]).endswith(" (baseline)") for row in table.rows)
    wanted = dict.fromkeys(table.header[2:], max)
    return [_marked("Rankings of the pages", table, f"{ranking_note(found)} Best in bold.", wanted, parted_at=n_models)]


def ranking_note(found: OutlinkEvaluation) -> str:
    """What the columns of the rankings are, and what they were measured on."""
    return " ".join(filter(None, (f"{RANKED}.", how_tested(found, "rankings"), f"{MARKED}." if apart(found) else "")))


def _counts(found: OutlinkEvaluation) -> list[RichTable]:
    title, note = "Models of the number of new links", how_tested(found, "counts")
    wanted = {"log-likelihood": max, "calibration error": min, "MAE": min, "Spearman": max}
    return [_marked(title, count_table(found), note, wanted)]


def _correlations(found: OutlinkEvaluation) -> list[RichTable]:
    return [rich_table("Features that go together (Spearman's ρ, the strongest)", correlation_table(found), "")]


def _maps(found: OutlinkEvaluation) -> list[RichTable]:
    return [_marked("The link change rate from two features alone", map_table(found), "", {"MAE": min})]


#: Part of the evaluation and its tables, in the order they are shown.
ALL: tuple[tuple[str, Callable[[OutlinkEvaluation], list[RichTable]]], ...] = (
    ("features", _features),
    ("history", _history),
    ("importance", _importances),
    ("rankings", _rankings),
    ("counts", _counts),
    ("correlation", _correlations),
    ("maps", _maps),
)


def _marked(
    title: str,
    table: Table,
    note: str,
    wanted: Mapping[str, Callable[[Iterable[float]], float]],
    parted_at: int | None = None,
) -> RichTable:
    """The table for the terminal with a line between its blocks and the best of every wanted column in bold.

    A block is what has the same first cell, in which the best is sought; or `parted_at` parts the table after so many rows, and
    the best is sought in all of it. What has a `MARK` does not compete.
    """
    shown, n = rich_table(title, table, note), len(table.rows)
    starts = [i for i in range(n) if i == 0 or (parted_at is None and table.rows[i][0] != table.rows[i - 1][0])]
    blocks = [range(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]
    for end in [*starts[1:], parted_at or 0]:
        if 0 < end < n:
            shown.rows[end - 1].end_section = True
    for column, choose in wanted.items():
        for block in blocks:
            _embolden(shown, table, table.header.index(column), block, choose)
    return shown


def _embolden(
    shown: RichTable, table: Table, column: int, rows: range, choose: Callable[[Iterable[float]], float]
) -> None:
    """Set the best in bold, and whatever reads the same."""
    values: dict[int, Any] = {i: table.rows[i][column] for i in rows if is_known(table.rows[i][column])}
    values = {i: value for i, value in values.items() if not str(table.rows[i][0]).endswith(MARK)}
    if len(values) < 2:
        return
    texts, cells = table.texts(), list(shown.columns[column].cells)
    top = next(i for i in values if values[i] == choose(values.values()))
    for i in values:
        if texts[i][column] == texts[top][column]:
            cells[i].stylize("bold")  # type: ignore[union-attr]
