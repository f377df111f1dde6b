"""The evaluation of new-outlink prediction as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from recrawl.core.words import count
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.rankings import RANKINGS
from recrawl.report.tables import Cell, Choose, Table, is_known, with_best
from recrawl.report.words import joined

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
SCORE_OF = {"link-change-rate": "R²", "has-new-links": "balanced accuracy"}  #: whose drop is the importance
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
BASELINE = " (baseline)"  #: of a ranking that no model has learnt
MARKED = "†: tested on the quarter of the pages that it has not learnt from; compare with care"
_CLASSIFIED = {"precision": "precision", "recall": "recall", "f1": "F1", "balanced_accuracy": "balanced accuracy"}


def scope(evaluation: OutlinkEvaluation) -> str:
    """What the evaluation was measured on, and how."""
    split = (
        "models learn from the rounds before it and are tested on all pages (for the link change rate: on a quarter of them, "
        "which they have not learnt from)"
        if evaluation.settings.split == "time"
        else "models learn from three quarters of the pages and are tested on the others"
    )
    inlinks = "New links are new inlinks: links to a page that appear on other pages. "
    return (inlinks if evaluation.settings.target == "inlinks" else "") + (
        f"{count(evaluation.n_pages, 'page')} in {count(evaluation.n_rounds, 'round')}; predicted is the round that ends at "
        f"{evaluation.predicted.replace('T', ' ')} UTC, and {split}. Related pages: {evaluation.related}."
    )


def best(rows: Iterable[Row], score: str) -> Row | None:
    """The row with the highest known score."""
    return max((row for row in rows if is_known(row.get(score))), key=lambda row: float(row[score]), default=None)


def feature_rows(evaluation: OutlinkEvaluation) -> list[Row]:
    """The feature ladder, averaged over the repetitions."""
    return evaluation.mean("features", ("links", "features", "learner"), ("r2", "mae", "medae"))


def history_rows(evaluation: OutlinkEvaluation) -> list[Row]:
    """The history ladder, averaged over the repetitions."""
    return evaluation.mean("history", ("links", "history", "n_columns", "learner"), _CLASSIFIED)


def ranking_rows(evaluation: OutlinkEvaluation) -> list[Row]:
    """The rankings, averaged over the repetitions; the baselines last."""
    rows = evaluation.mean("rankings", ("links", "ranking", "paper", "truth"), ("spearman", "area"))
    return sorted(rows, key=lambda row: row["ranking"] in BASELINES)


def apart(evaluation: OutlinkEvaluation) -> frozenset[str]:
    """Rankings that were not tested on the pages of all others: those that learn the link change rate, in the split by time."""
    split = evaluation.settings.split
    return frozenset(row["ranking"] for row in evaluation.rows.get("rankings", []) if row.get("split", split) != split)


def count_rows(evaluation: OutlinkEvaluation) -> list[Row]:
    """The models of counts, averaged over the repetitions."""
    scores = ("log_likelihood", "covered_80", "calibration_error", "mae", "spearman")
    return evaluation.mean("counts", ("links", "learner"), scores)


def importance_rows(evaluation: OutlinkEvaluation) -> dict[tuple[str, str, str], tuple[list[Row], list[Row]]]:
    """(target, links, feature set) → the most important features, and the most important groups; none that changes nothing."""
    by_target: dict[tuple[str, str, str], tuple[list[Row], list[Row]]] = {}
    for row in evaluation.rows.get("importance", []):
        if is_known(row["importance"]) and row["importance"] > NEGLIGIBLE:
            single, groups = by_target.setdefault((row["target"], row["links"], row["features"]), ([], []))
            (groups if row["grouped"] else single).append(row)
    return {key: (_most(single), _most(groups)) for key, (single, groups) in by_target.items()}


def _most(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["importance"])[:TOP]


def correlated_pairs(evaluation: OutlinkEvaluation) -> list[tuple[str, str, float]]:
    """Every two features and their correlation, the strongest first, whatever the sign."""
    pairs = [
        (names[j], names[i], rho)
        for row in evaluation.rows.get("correlation", [])
        for names in [row["names"]]
        for i, line in enumerate(row["spearman"])
        for j, rho in enumerate(line[:i])
        if is_known(rho)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def feature_table(evaluation: OutlinkEvaluation) -> Table:
    """How well the link change rate is predicted from each feature set (LBLA Figs. 9 and 10)."""
    header = ("links", "features", "learner", "R²", "MAE", "MedAE")
    keys = ("links", "features", "learner", "r2", "mae", "medae")
    table = Table(header, _cells(feature_rows(evaluation), keys), dict.fromkeys(header[3:], ".3f"))
    return replace(_best_by_block(table, {"R²": max, "MAE": min}), note=how_tested(evaluation, "features"))


def history_table(evaluation: OutlinkEvaluation) -> Table:
    """How well presence is predicted with more and more history, the previous count last (LBLA Fig. 12)."""
    header = ("links", "history", "columns", *_CLASSIFIED.values())
    rows: list[list[Cell]] = [
        [row["links"], _past(row), row["n_columns"], *(row[score] for score in _CLASSIFIED)]
        for row in history_rows(evaluation)
    ]
    table = Table(header, rows, dict.fromkeys(header[3:], ".3f"))
    best = dict.fromkeys(_CLASSIFIED.values(), max)
    note = " ".join(filter(None, (how_tested(evaluation, "history"), imbalance_note(evaluation))))
    return replace(_best_by_block(table, best), note=note)


def imbalance_note(evaluation: OutlinkEvaluation) -> str:
    """The imbalance ratios of the predicted round."""
    known = [f"{ratio:.2f} ({links})" for links, ratio in evaluation.imbalance.items() if ratio is not None]
    return f"Pages without new links for every page with some: {joined(known)}." if known else ""


def _past(row: Row) -> str:
    if row["learner"] == PREVIOUS:
        return PREVIOUS
    return count(row["history"], "round") if row["history"] else "none"


def importance_tables(evaluation: OutlinkEvaluation) -> list[Table]:
    """For each target and kind of links, the most important features and groups of features that correlate."""
    return [
        _importance_table(target, links, features, single, groups)
        for (target, links, features), (single, groups) in importance_rows(evaluation).items()
    ]


def _importance_table(target: str, links: str, features: str, single: Sequence[Row], groups: Sequence[Row]) -> Table:
    rows: list[list[Cell]] = [
        [how, row["name"], row["importance"], row["spread"]]
        for how, of_kind in (("alone", single), ("together", groups))
        for row in of_kind
    ]
    title = f"Most important features for the {TARGETS.get(target, target)} ({links} links; {features})"
    note = (
        f"Drop: {SCORE_OF.get(target, 'score')} lost when the feature is shuffled among unseen pages, alone or "
        "together with those that it correlates with."
    )
    header, formats = ("shuffled", "feature", "drop", "spread"), {"drop": ".4f", "spread": ".4f"}
    rules = {len(single) - 1} if single and groups else ()
    return Table(header, rows, formats, title=title, note=note, rules=rules)


def ranking_table(evaluation: OutlinkEvaluation, kinds: Sequence[str]) -> Table:
    """Every ranking against every truth (LBLA Fig. 14), and its area under Precision@k% for the number (Fig. 15).

    The best of every column is bold; rankings with a `MARK` do not compete.
    """
    rows = ranking_rows(evaluation)
    known = {(row["ranking"], row["links"], row["truth"]): row for row in rows}
    columns = {
        f"{_SHORT.get(links, links)} {name}": (links, truth, score) for links in kinds for name, truth, score in _RANKED
    }
    marked = apart(evaluation)
    cells: list[list[Cell]] = [
        [
            _ranking_name(name, name in marked),
            paper or "",
            *(_score(known, name, *key) for key in columns.values()),
        ]
        for name, paper in dict.fromkeys((row["ranking"], row["paper"]) for row in rows)
    ]
    table = Table(("ranking", "paper", *columns), cells, dict.fromkeys(columns, ".3f"))
    competing = [i for i, row in enumerate(cells) if not str(row[0]).endswith(MARK)]
    n_models = sum(not str(row[0]).endswith(BASELINE) for row in cells)
    return replace(
        with_best(table, dict.fromkeys(columns, max), competing),
        note=f"{ranking_note(evaluation)} Best in bold.",
        rules={n_models - 1} if 0 < n_models < len(cells) else (),
    )


def _ranking_name(name: str, is_marked: bool) -> str:
    return name + (BASELINE if name in BASELINES else "") + (MARK if is_marked else "")


def _score(known: Mapping[tuple[str, str, str], Row], name: str, links: str, truth: str, score: str) -> Cell:
    value: Cell = known.get((name, links, truth), {}).get(score)
    return value


def count_table(evaluation: OutlinkEvaluation) -> Table:
    """How well each model knows the distribution of the number of new links."""
    header = ("links", "learner", "log-likelihood", "in 80% interval", "calibration error", "MAE", "Spearman")
    keys = ("links", "learner", "log_likelihood", "covered_80", "calibration_error", "mae", "spearman")
    formats = dict.fromkeys(header[2:], ".3f") | {"in 80% interval": ".1%"}
    best: dict[str, Choose] = {"log-likelihood": max, "calibration error": min, "MAE": min, "Spearman": max}
    table = _best_by_block(Table(header, _cells(count_rows(evaluation), keys), formats), best)
    return replace(table, note=how_tested(evaluation, "counts"))


def correlation_table(evaluation: OutlinkEvaluation) -> Table:
    """The features that correlate most (LBLA Fig. 8)."""
    rows: list[list[Cell]] = [[*pair] for pair in correlated_pairs(evaluation)[:TOP]]
    return Table(("feature", "correlates with", "ρ"), rows, {"ρ": "+.2f"})


def map_table(evaluation: OutlinkEvaluation) -> Table:
    """How well two features alone predict the link change rate (LBLA preprint Fig. 13)."""
    rows = [[row["links"], *row["features"], row["mae"]] for row in evaluation.rows.get("maps", [])]
    return _best_by_block(Table(("links", "feature", "and", "MAE"), rows, {"MAE": ".3f"}), {"MAE": min})


def _cells(rows: Iterable[Row], keys: Sequence[str]) -> list[list[Cell]]:
    return [[row[key] for key in keys] for row in rows]


def kinds(evaluation: OutlinkEvaluation, part: str) -> list[str]:
    """The kinds of links that a part was run for."""
    return list(dict.fromkeys(row["links"] for row in evaluation.rows.get(part, [])))


def how_tested(evaluation: OutlinkEvaluation, part: str) -> str:
    """How many pages the scores of a part are measured on, and how often."""
    rows = evaluation.rows.get(part, [])
    n_test = max((row.get("n_test") or 0 for row in rows), default=0)
    n_seeds = len({row.get("seed") for row in rows})
    of = f"Mean of {n_seeds} repetitions, tested" if n_seeds > 1 else "Tested"
    return f"{of} on {n_test:,} pages{' each' if n_seeds > 1 else ''}." if n_test else ""


def ranking_note(evaluation: OutlinkEvaluation) -> str:
    """What the columns of the rankings are, and what they were measured on."""
    return " ".join(
        filter(None, (f"{RANKED}.", how_tested(evaluation, "rankings"), f"{MARKED}." if apart(evaluation) else ""))
    )


def _best_by_block(table: Table, best: Mapping[str, Choose]) -> Table:
    """The table with a line after every block of rows with the same first cell, and the best of each block in bold."""
    n = len(table.rows)
    starts = [i for i in range(n) if i == 0 or table.rows[i][0] != table.rows[i - 1][0]]
    for start, end in zip(starts, [*starts[1:], n], strict=True):
        table = with_best(table, best, range(start, end))
    return replace(table, rules={start - 1 for start in starts[1:]})
