"""The report of `recrawl evaluate --method outlinks`: findings, then one list of parts for its page and the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import percent
from recrawl.papers.outlinks import drift_report, figures, map_figures, tables
from recrawl.papers.outlinks.chosen import history_settings_table, settings_table
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.tables import best
from recrawl.report.page import Section, write_page
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.tables import Table, is_known
from recrawl.report.words import joined

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TIE = 0.005  #: scores that differ by less are called equal


def write_outlinks_page(
    path: str | os.PathLike[str],
    evaluation: OutlinkEvaluation,
    title: str = "How well new links can be predicted",
    *,
    self_contained: bool = False,
) -> Path:
    """Write the whole evaluation as an HTML page."""
    intro = [*findings(evaluation), f"{tables.scope(evaluation)} {_rates_used(evaluation)}", *evaluation.notes]
    return write_page(path, title, intro, sections(evaluation), self_contained=self_contained)


def sections(evaluation: OutlinkEvaluation) -> list[Section]:
    """Every part that was run as a section; one that found nothing says so."""
    return page_sections(_run_parts(evaluation), evaluation)


def outlink_tables(evaluation: OutlinkEvaluation) -> list[Table]:
    """The tables of the parts that were run, for the terminal; a part that found nothing has none."""
    return [table for table in terminal_tables(_run_parts(evaluation), evaluation) if table.rows]


def _run_parts(evaluation: OutlinkEvaluation) -> list[ReportPart[OutlinkEvaluation]]:
    return [part for part in PARTS if not part.name or part.name in evaluation.rows]


def findings(evaluation: OutlinkEvaluation) -> list[str]:
    """What the evaluation shows, in up to seven sentences; fewer where less was run."""
    parts = (
        _best_features,
        _worth_of_history,
        _strongest_feature,
        _best_ranking,
        _best_counts,
        drift_report.drift_findings,
    )
    return [sentence for part in parts for sentence in part(evaluation)]


def _best_features(evaluation: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.feature_rows(evaluation)):
        top = best(rows, "r2")
        zero = next((row["r2"] for row in rows if row["learner"] == "always-zero"), None)
        if top:
            beside = f"; always predicting zero: {zero:.2f}" if is_known(zero) else ""
            parts.append(f"for {links} links from {top['features']} by {top['learner']} (R² {top['r2']:.2f}{beside})")
    if parts:
        yield f"The link change rate is predicted best {joined(parts)}."


def _worth_of_history(evaluation: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.history_rows(evaluation)):
        f1 = {row["history"]: row["f1"] for row in rows if row["learner"] != tables.PREVIOUS and is_known(row["f1"])}
        if 0 not in f1 or 1 not in f1:
            continue
        longest = max(f1)
        beside = [f"{longest} rounds: {f1[longest]:.2f}"] if longest > 1 else []
        beside += [
            f"the previous count alone{' is better' if row['f1'] > max(f1.values()) else ''}: {row['f1']:.2f}"
            for row in rows
            if row["learner"] == tables.PREVIOUS and is_known(row["f1"])
        ]
        more = f" ({'; '.join(beside)})" if beside else ""
        parts.append(f"from {f1[0]:.2f} to {f1[1]:.2f} for {links} links{more}")
    if parts:
        yield f"One round of history takes the F1 of whether a page will have new links {joined(parts)}."


def _strongest_feature(evaluation: OutlinkEvaluation) -> Iterator[str]:
    parts: dict[str, list[str]] = {}
    seen = set()
    for (target, links, _), (single, groups) in tables.importance_rows(evaluation).items():
        if (target, links) in seen:
            continue  # by the first feature set; the tables have the others
        seen.add((target, links))
        top, together = (single[0], "") if single else (groups[0], " shuffled together")
        score = tables.SCORE_OF.get(target, "score")
        feature = f"“{top['name']}”{together} ({links} links: {top['importance']:.3f} of {score})"
        parts.setdefault(tables.TARGETS.get(target, target), []).append(feature)
    if parts:
        strongest = "; ".join(f"for the {target} {joined(features)}" for target, features in parts.items())
        yield f"The feature whose shuffling costs most is {strongest}."


def _best_ranking(evaluation: OutlinkEvaluation) -> Iterator[str]:
    apart = tables.apart(evaluation)
    rows = [
        row
        for row in tables.ranking_rows(evaluation)
        if row["truth"] == "new-link-count" and row["ranking"] not in apart
    ]
    for links, of_links in _by_links(rows):
        model = best((row for row in of_links if row["ranking"] not in tables.BASELINES), "spearman")
        simple = best((row for row in of_links if row["ranking"] in tables.BASELINES), "spearman")
        if model and simple:
            yield f"{_compared(links, model, simple)} {_by_area(of_links)}".strip()
        elif top := model or simple:
            yield f"By the number of new {links} links, {_named(top, 'ρ', 'spearman')} ranks pages best."


def _compared(links: str, model: Row, simple: Row) -> str:
    gain = model["spearman"] - simple["spearman"]
    ours, theirs = (_named(row, "ρ", "spearman") for row in (model, simple))
    by = f"By the number of new {links} links"
    if gain > TIE:
        return f"{by}, {ours} ranks pages best; the best simple baseline is {theirs}."
    if gain < -TIE:
        return f"{by}, no model ranks pages as well as the simple baseline {theirs}; the best of them is {ours}."
    return f"{by}, the best model, {ours}, is no better than the simple baseline {theirs}."


def _by_area(rows: Sequence[Row]) -> str:
    top = best(rows, "area")
    if not top:
        return ""
    simple = "the simple baseline " if top["ranking"] in tables.BASELINES else ""
    return f"The top pages (Precision@k%) are found best by {simple}{_named(top, 'area', 'area')}."


def _named(row: Row, what: str, score: str) -> str:
    ours = f"{row['ranking']}; " if row["paper"] else ""
    return f"{map_figures.label(row)} ({ours}{what} {row[score]:.3f})"


def _best_counts(evaluation: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.count_rows(evaluation)):
        if top := best(rows, "log_likelihood"):
            covered = top["covered_80"]
            inside = f"; {percent(covered)} of pages in its 80% interval" if is_known(covered) else ""
            parts.append(f"{top['learner']} for {links} links (log-likelihood {top['log_likelihood']:.2f}{inside})")
    if parts:
        yield f"The number of new links is most likely under {joined(parts)}."


def _rates_used(evaluation: OutlinkEvaluation) -> str:
    if evaluation.settings.papers_leaks:
        return (
            "The link change rates of related pages include the predicted round, and so do their new links, as in the authors' "
            "program: the future leaks into the features, and scores are better than a crawler can expect."
        )
    if evaluation.settings.papers_rate:
        return (
            "The link change rates of related pages include the predicted round, as in the papers: the future leaks into the "
            "features, and scores are better than a crawler can expect."
        )
    return (
        "The link change rates of related pages end before the predicted round, so nothing leaks; in the papers they "
        "include it, which improves the papers' scores (--papers-rate does the same)."
    )


def _by_links(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    kinds = dict.fromkeys(row["links"] for row in rows)
    return [(links, [row for row in rows if row["links"] == links]) for links in kinds]


def _missing(part: str) -> Callable[[OutlinkEvaluation], str]:
    reason = "Nothing to show: there was too little to learn from."
    return lambda evaluation: "" if evaluation.rows[part] else reason


def _importance_text(evaluation: OutlinkEvaluation) -> str:
    text = (
        "How much worse a model gets when a feature is shuffled among pages it has not learnt from, one dot for each "
        "shuffle, as in LBLA Figs. 11 and 13; for the link change rate without (SP+SN) and with the semantic vector (SPsem+SN), "
        "which the papers describe in words only.\n\n"
        "Of two features with the same information, a model needs only one, so alone neither looks important: correlated "
        "features are therefore also shuffled together. Features that change nothing are left out."
    )
    return text if tables.importance_rows(evaluation) else f"{text}\n\nNo feature changes the scores."


def _ranking_figures(evaluation: OutlinkEvaluation) -> list[Figure]:
    kinds = tables.kinds(evaluation, "rankings")
    truths = dict.fromkeys(row["truth"] for row in evaluation.rows["rankings"])
    scored = [map_figures.ranking_figure(evaluation, links) for links in kinds]
    return [*scored, *(figures.precision_figure(evaluation, links, truth) for truth in truths for links in kinds)]


#: In the order of the page.
PARTS: tuple[ReportPart[OutlinkEvaluation], ...] = (
    ReportPart(
        title="How often: the link change rate, by what is known of a page",
        name="features",
        text=lambda _: (
            "How well the link change rate, the share of rounds in which a page gains links, is predicted from what the first "
            "round shows, set by set, as in LBLA Figs. 9 and 10: the higher R² and the lower the mean and the median absolute "
            "error (MAE, MedAE), the better.\n\n"
            "SP: sizes, text quality, depths and outlinks of the page; SPsem: with the semantic vector of its text; "
            "SN: with inlinks, TrustRank and the means over related pages. The reference always predicts zero."
        ),
        figures=lambda evaluation: [
            figures.feature_figure(evaluation, links) for links in tables.kinds(evaluation, "features")
        ],
        tables=lambda evaluation: [tables.feature_table(evaluation), settings_table(evaluation, "features")],
        missing=_missing("features"),
    ),
    ReportPart(
        title="Whether: presence of new links, by rounds of history",
        name="history",
        text=lambda _: (
            "How well it is predicted whether a page will have new links, with more and more rounds of history in the "
            "features, as in LBLA Fig. 12; the grey line is the F1 of repeating what happened in the previous round."
        ),
        figures=lambda evaluation: [
            figures.history_figure(evaluation, links) for links in tables.kinds(evaluation, "history")
        ],
        tables=lambda evaluation: [tables.history_table(evaluation), history_settings_table(evaluation)],
        missing=_missing("history"),
    ),
    ReportPart(
        title="Which features matter",
        name="importance",
        text=_importance_text,
        figures=lambda evaluation: [
            figures.importance_figure(target, links, features, rows, grouped=grouped)
            for (target, links, features), both in tables.importance_rows(evaluation).items()
            for grouped, rows in zip((False, True), both, strict=True)
            if rows
        ],
        tables=tables.importance_tables,
        missing=_missing("importance"),
    ),
    ReportPart(
        title="Which features correlate",
        name="correlation",
        text=lambda _: (
            "Spearman's rank correlation ρ of every two static features in the last round but one, as in LBLA Fig. 8: blue is "
            "positive, orange is negative. The numbers in the cells are hundredths of ρ, those below the columns are those of "
            "the rows."
        ),
        figures=lambda evaluation: [
            map_figures.correlation_figure(evaluation, row) for row in evaluation.rows["correlation"]
        ],
        tables=lambda evaluation: [tables.correlation_table(evaluation)],
        missing=_missing("correlation"),
    ),
    ReportPart(
        title="The link change rate over two features",
        name="maps",
        text=lambda _: (
            "The link change rate over two features at a time, as in the LBLA preprint's Fig. 13: on the left unseen pages and "
            "their true rate, on the right the prediction of a model that knows only these two features. Axes whose values "
            "spread over orders of magnitude are logarithmic."
        ),
        figures=lambda evaluation: list(map(map_figures.map_figure, evaluation.rows["maps"])),
        tables=lambda evaluation: [tables.map_table(evaluation)],
        missing=_missing("maps"),
    ),
    ReportPart(
        title="Which ranking of the pages is best",
        name="rankings",
        text=lambda _: (
            "How close each ranking of the pages is to the true order: Spearman's ρ as in LBLA Fig. 14, where the darkest "
            "cell of each row is its best, and Precision@k% as in its Fig. 15 and the preprint's Figs. 17 to 19: the "
            "share of the true top k% that is in the ranking's top k%.\n\n"
            "Right of the orange line, and dotted in the curves, are simple baselines: a single number that no model has learnt. "
            "The link change rate counts all rounds, so a method that knows a page's past already knows most of it: only for "
            "the presence and the number of new links are these predictions."
        ),
        figures=_ranking_figures,
        tables=lambda evaluation: [
            tables.ranking_table(evaluation, tables.kinds(evaluation, "rankings")),
            settings_table(evaluation, "rankings"),
        ],
        missing=_missing("rankings"),
    ),
    ReportPart(
        title="How many: models of the number of new links",
        name="counts",
        text=lambda _: (
            "Models that give the number of new links a distribution: the higher the log-likelihood of the true numbers, the "
            "better; 80% of pages or a little more should be in the 80% interval, and a curve on the diagonal means that the "
            "probabilities are right. Of these models LBLA has only NGBoost (NNL-NGB), and no such figure."
        ),
        figures=lambda evaluation: [
            figures.calibration_figure(evaluation, links) for links in tables.kinds(evaluation, "counts")
        ],
        tables=lambda evaluation: [tables.count_table(evaluation), settings_table(evaluation, "counts")],
        missing=_missing("counts"),
    ),
    ReportPart(
        title="How fast a model ages, and when to retrain it",
        name="drift",
        text=lambda _: drift_report.TEXT,
        figures=lambda evaluation: [
            drift_report.drift_figure(evaluation, links) for links in tables.kinds(evaluation, "drift")
        ],
        tables=drift_report.drift_tables,
        missing=_missing("drift"),
    ),
)
