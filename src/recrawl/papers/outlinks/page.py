"""The page of `recrawl evaluate`: every part of the evaluation with its words, figures and table, and what it comes to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from recrawl.papers.outlinks import figures, tables
from recrawl.papers.outlinks import map_figures as outlinks_maps
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.tables import best
from recrawl.report.page import Section, is_known, write_page
from recrawl.report.stats.findings import percent

TIE = 0.005  #: scores that differ by less are called equal


def write_outlinks_page(
    path: str | os.PathLike[str], found: OutlinkEvaluation, title: str = "How well new links can be predicted"
) -> Path:
    """Write the whole evaluation as one HTML file."""
    return write_page(
        path, title, [f"{tables.scope(found)} {_rates_used(found)}", *found.notes, *findings(found)], sections(found)
    )


def sections(found: OutlinkEvaluation) -> list[Section]:
    """Every part that was run as a section; one that found nothing says so."""
    nothing = "Nothing to show: there was too little to learn from."
    return [
        make(found) if found.rows[part] else Section(title, nothing) for part, title, make in ALL if part in found.rows
    ]


def findings(found: OutlinkEvaluation) -> list[str]:
    """What the evaluation comes to, in up to six sentences; fewer where less was run."""
    parts = (_best_features, _worth_of_history, _strongest_feature, _best_ranking, _best_counts)
    return [sentence for part in parts for sentence in part(found)]


def _best_features(found: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.feature_rows(found)):
        top = best(rows, "r2")
        zero = next((row["r2"] for row in rows if row["learner"] == "always-zero"), None)
        if top:
            beside = f"; always saying zero: {zero:.2f}" if is_known(zero) else ""
            parts.append(f"for {links} links from {top['features']} by {top['learner']} (R² {top['r2']:.2f}{beside})")
    if parts:
        yield f"The link change rate is predicted best {_and(parts)}."


def _worth_of_history(found: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.history_rows(found)):
        f1 = {row["history"]: row["f1"] for row in rows if row["learner"] != tables.PREVIOUS and is_known(row["f1"])}
        if 0 not in f1 or 1 not in f1:
            continue
        longest = max(f1)
        beside = [f"{longest} rounds: {f1[longest]:.2f}"] * (longest > 1)
        beside += [
            f"the previous count alone{' is better' if row['f1'] > max(f1.values()) else ''}: {row['f1']:.2f}"
            for row in rows
            if row["learner"] == tables.PREVIOUS and is_known(row["f1"])
        ]
        more = f" ({'; '.join(beside)})" if beside else ""
        parts.append(f"from {f1[0]:.2f} to {f1[1]:.2f} for {links} links{more}")
    if parts:
        yield f"One round of history takes the F1 of whether a page will have new links {_and(parts)}."


def _strongest_feature(found: OutlinkEvaluation) -> Iterator[str]:
    parts: dict[str, list[str]] = {}
    for (target, links), (single, groups) in tables.importance_rows(found).items():
        top, together = (single[0], "") if single else (groups[0], " shuffled together")
        score = tables.SCORE_OF.get(target, "score")
        told = f"“{top['name']}”{together} ({links} links: {top['importance']:.3f} of {score})"
        parts.setdefault(tables.TARGETS.get(target, target), []).append(told)
    if parts:
        told = "; ".join(f"for the {target} {_and(features)}" for target, features in parts.items())
        yield f"The feature that costs most when it is shuffled is {told}."


def _best_ranking(found: OutlinkEvaluation) -> Iterator[str]:
    apart = tables.apart(found)
    rows = [
        row for row in tables.ranking_rows(found) if row["truth"] == "new-link-count" and row["ranking"] not in apart
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
    simple = "the simple baseline " * (top["ranking"] in tables.BASELINES)
    return f"The hottest pages (Precision@k%) are found best by {simple}{_named(top, 'area', 'area')}."


def _named(row: Row, what: str, score: str) -> str:
    ours = f"{row['ranking']}; " if row["paper"] else ""
    return f"{outlinks_maps.label(row)} ({ours}{what} {row[score]:.3f})"


def _best_counts(found: OutlinkEvaluation) -> Iterator[str]:
    parts = []
    for links, rows in _by_links(tables.count_rows(found)):
        if top := best(rows, "log_likelihood"):
            covered = top["covered_80"]
            inside = f"; {percent(covered)} of pages in its 80% interval" if is_known(covered) else ""
            parts.append(f"{top['learner']} for {links} links (log-likelihood {top['log_likelihood']:.2f}{inside})")
    if parts:
        yield f"The number of new links is most likely under {_and(parts)}."


def _rates_used(found: OutlinkEvaluation) -> str:
    if found.settings.papers_rate:
        return (
            "The link change rates of related pages include the predicted round, as in the papers: what is not yet known "
            "when predicting leaks into the features, and scores are better than a crawler can hope for."
        )
    return (
        "The link change rates of related pages end before the predicted round, so nothing leaks; in the papers they "
        "include it, which makes the papers' scores better (--papers-rate does the same)."
    )


def _by_links(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    kinds = dict.fromkeys(row["links"] for row in rows)
    return [(links, [row for row in rows if row["links"] == links]) for links in kinds]


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _features(found: OutlinkEvaluation) -> Section:
    text = (
        "How well the link change rate, the share of rounds in which a page gains links, is predicted from what the first "
        "round shows, set by set, as in LBLA Figs. 9 and 10: the higher R² and the lower the mean and the median absolute "
        "error (MAE, MedAE), the better.\n\n"
        "SP: sizes, text quality, depths and outlinks of the page; SPsem: with the semantic vector of its text; "
        "SN: with inlinks, TrustRank and the means over related pages. Always saying zero is the reference. "
        f"{tables.how_tested(found, 'features')}"
    )
    bars = [figures.feature_figure(found, links) for links in tables.kinds(found, "features")]
    return Section(FEATURES, text, [*bars, tables.feature_table(found)])


def _history(found: OutlinkEvaluation) -> Section:
    text = (
        "How well it is predicted whether a page will have new links, with more and more rounds of history in the "
        "features, as in LBLA Fig. 12; the dotted line is the F1 of saying what happened in the previous round. "
        f"{tables.how_tested(found, 'history')}"
    )
    lines = [figures.history_figure(found, links) for links in tables.kinds(found, "history")]
    return Section(HISTORY, text, [*lines, tables.history_table(found)])


def _importance(found: OutlinkEvaluation) -> Section:
    text = (
        "How much worse a model gets when a feature is shuffled among pages it has not learnt from, one dot for each "
        "shuffle, as in LBLA Figs. 11 and 13.\n\n"
        "Of two features that tell the same, a model needs only one, so alone neither looks important: features that go "
        "together are therefore also shuffled together. What changes nothing is left out."
    )
    boxes = [
        figures.importance_figure(target, links, rows, grouped=grouped)
        for (target, links), both in tables.importance_rows(found).items()
        for grouped, rows in zip((False, True), both, strict=True)
        if rows
    ]
    return Section(IMPORTANCE, text if boxes else f"{text}\n\nNo feature changes the scores.", boxes)


def _correlation(found: OutlinkEvaluation) -> Section:
    text = (
        "Spearman's rank correlation ρ of every two static features in the last round but one, as in LBLA Fig. 8: blue "
        "goes up together, orange goes opposite ways. The numbers in the cells are hundredths of ρ, those below the columns "
        "are those of the rows."
    )
    maps = [outlinks_maps.correlation_figure(found, row) for row in found.rows["correlation"]]
    return Section(CORRELATION, text, [*maps, tables.correlation_table(found)])


def _maps(found: OutlinkEvaluation) -> Section:
    text = (
        "The link change rate over two features at a time, as in the LBLA preprint's Fig. 13: on the left unseen pages and "
        "their true rate, on the right what a model predicts that knows nothing but the two. Axes whose values spread over "
        "orders of magnitude are logarithmic."
    )
    return Section(MAPS, text, [*map(outlinks_maps.map_figure, found.rows["maps"]), tables.map_table(found)])


def _rankings(found: OutlinkEvaluation) -> Section:
    text = (
        "How close each ranking of the pages comes to the true order: Spearman's ρ as in LBLA Fig. 14, where the darkest "
        "cell of each row is its best, and Precision@k% as in its Fig. 15 and the preprint's Figs. 17 to 19, which is the "
        "part of the true top k% that is in the ranking's top k%.\n\n"
        "Right of the orange line, and dotted in the curves, are simple baselines: a single number that no model has learnt "
        "from. The link change rate counts all rounds, so those who know a page's past already know most of it: only for "
        "the presence and the number of new links are they forecasts.\n\n"
        f"In the tables: {tables.ranking_note(found)}"
    )
    kinds = tables.kinds(found, "rankings")
    truths = dict.fromkeys(row["truth"] for row in found.rows["rankings"])
    scored = [
        item
        for links in kinds
        for item in (outlinks_maps.ranking_figure(found, links), tables.ranking_table(found, [links]))
    ]
    curves = [figures.precision_figure(found, links, truth) for truth in truths for links in kinds]
    return Section(RANKINGS, text, [*scored, *curves])


def _counts(found: OutlinkEvaluation) -> Section:
    text = (
        "Models that give the number of new links a distribution: the higher the log-likelihood of what came, the better; "
        "80% of pages or a little more should lie in the 80% interval, and a curve on the diagonal means that the "
        "probabilities can be believed. Of these models LBLA has only NGBoost (NNL-NGB), and no such figure. "
        f"{tables.how_tested(found, 'counts')}"
    )
    curves = [figures.calibration_figure(found, links) for links in tables.kinds(found, "counts")]
    return Section(COUNTS, text, [*curves, tables.count_table(found)])


FEATURES = "How often: the link change rate from what is known of a page"
HISTORY = "Whether: presence of new links by rounds of history"
IMPORTANCE = "Which features matter"
CORRELATION = "Which features go together"
MAPS = "The link change rate over two features"
RANKINGS = "Which ranking of the pages is best"
COUNTS = "How many: models of the number of new links"

#: Part of the evaluation, its title and its section, in the order of the page.
ALL: tuple[tuple[str, str, Callable[[OutlinkEvaluation], Section]], ...] = (
    ("features", FEATURES, _features),
    ("history", HISTORY, _history),
    ("importance", IMPORTANCE, _importance),
    ("correlation", CORRELATION, _correlation),
    ("maps", MAPS, _maps),
    ("rankings", RANKINGS, _rankings),
    ("counts", COUNTS, _counts),
)
