"""The report of ``recrawl evaluate --method history-aware``: findings, then one list of parts for its page and the terminal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import count, duration, percent
from recrawl.papers.updates import figures, tables
from recrawl.papers.updates.evaluation import Row, UpdateEvaluation, weeks_text
from recrawl.papers.updates.scores import AVERAGES
from recrawl.papers.updates.tables import TO_WHAT, rows_where, subject, update
from recrawl.report.page import Section, write_page
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.tables import Table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

N_WINDOWS = 2  #: windows whose curves are drawn, as in the paper


def write_updates_page(
    path: str | os.PathLike[str],
    *evaluations: UpdateEvaluation,
    title: str = "Can the next update be predicted from earlier ones?",
    self_contained: bool = False,
) -> Path:
    """Write the whole evaluation as an HTML page, one level after the other."""
    intro = [text for each in evaluations for text in (*findings(each), scope(each))]
    parts = [(each, section) for each in evaluations for section in sections(each)]
    if len(evaluations) > 1:
        parts = [(each, replace(part, title=f"{subject(each).capitalize()}: {part.title}")) for each, part in parts]
    return write_page(path, title, intro, [part for _, part in parts], self_contained=self_contained)


def sections(evaluation: UpdateEvaluation) -> list[Section]:
    """All parts, in the order of the page."""
    return page_sections(PARTS, evaluation)


def update_tables(evaluation: UpdateEvaluation) -> list[Table]:
    """All tables for the terminal; a part that found nothing says so."""
    return terminal_tables(PARTS, evaluation)


def scope(evaluation: UpdateEvaluation) -> str:
    """What was evaluated."""
    settings = evaluation.settings
    captures = "visits" if settings.every == "visits" else f"captures (one per round, {settings.every})"
    return (
        f"{evaluation.n_pages:,} {subject(evaluation)} with {evaluation.n_captures:,} {captures} from {evaluation.first[:10]} to "
        f"{evaluation.last[:10]}, of which {evaluation.n_updates:,} show {_shown(evaluation)}.{_outside(evaluation)} Rates by "
        f"{settings.estimator} from {settings.updates} updates; chosen are pages that have an update within "
        f"{duration(settings.ahead.total_seconds() / 3600)} with probability θ or more. "
        "Nothing chosen at a reference time depends on a later visit."
    )


def _shown(evaluation: UpdateEvaluation) -> str:
    """What an update shows."""
    if evaluation.settings.goal == "content":
        return "another checksum, text or links than the capture before"
    return f"links{TO_WHAT[evaluation.settings.pdf]} never before on the page"


def _outside(evaluation: UpdateEvaluation) -> str:
    """What is left out, and what sites are."""
    if evaluation.settings.level == "page":
        return ""
    left_out = f" ({count(evaluation.n_outside, 'page')} under none)" if evaluation.n_outside else ""
    return f" Sites are by --roots {evaluation.settings.roots.spec}{left_out}."


def findings(evaluation: UpdateEvaluation) -> list[str]:
    """What the evaluation shows, in a few sentences."""
    best = [
        row
        for row in rows_where(evaluation, "best", average="micro", policy="history-aware")
        if row["recall"] is not None
    ]
    if not best:
        return [
            f"No {subject(evaluation)[:-1]} {update(evaluation, 'gained')} in the evaluated time: there was nothing to predict."
        ]
    sentences = [_best(evaluation, max(best, key=lambda row: float(row["f1"])))]
    for row in evaluation.rows["rates"]:
        sentences.append(
            f"{row['n_never']:,} of {evaluation.n_pages:,} {subject(evaluation)} were never seen to {update(evaluation)}; half of "
            f"the others {update(evaluation)} every {duration(24 * row['median_days'])} or more often (mean of 1/λ: "
            f"{duration(24 * row['mean_days'])})."
        )
    return sentences


def _best(evaluation: UpdateEvaluation, ours: Row) -> str:
    random, brute = (
        rows_where(evaluation, "best", average="micro", policy=policy, weeks=ours["weeks"])[0]
        for policy in ("random", "brute-force")
    )
    return (
        f"With {weeks_text(ours['weeks'])} of history and θ {ours['theta']:g}, {percent(ours['recall'])} of the updates are found "
        f"with {percent(ours['chosen_rate'])} of the fetches; {percent(ours['precision'] or 0)} of these fetches find one (F1 "
        f"{ours['f1']:.3f}). As many fetches at random find {percent(random['recall'])} (F1 {random['f1']:.3f}), fetching "
        f"everything has F1 {brute['f1']:.3f}."
    )


def _poisson_text(evaluation: UpdateEvaluation) -> str:
    text = (
        f"Among {subject(evaluation)} with about the same 1/λ̃, how the times between two updates are distributed, beside the "
        "exponential law of a Poisson process (HACS Fig. 6). The paper looks at 35 and 70 days; where there are too few with such "
        "rates, the "
        "times are split into thirds. The dotted line is at 1/λ̃."
    )
    return text if evaluation.rows["poisson"] else f"{text}\n\nThere are too few updates to say."


def _threshold_figures(evaluation: UpdateEvaluation) -> list[Figure]:
    windows = list(dict.fromkeys(row["weeks"] for row in evaluation.rows["scores"]))[:N_WINDOWS]
    return [
        figures.theta_figure(evaluation, score, weeks) for weeks in windows for score in ("f1", "precision", "recall")
    ]


PARTS: tuple[ReportPart[UpdateEvaluation], ...] = (
    ReportPart(
        title="How much history, which threshold",
        text=lambda evaluation: (
            "For each number of weeks of history the threshold θ with the highest F1, as in HACS Table I. Random picks as many of "
            "the same pages (its expectation, without drawing); brute force takes all, so its recall is 1. Scored are the pages "
            "with two captures in the window and a later one that shows the outcome; one without an update in the window has "
            "probability 0.\n\n"
            "Micro counts all reference times together. Macro is a mean over reference times: of precision over those at which "
            "something was chosen, of recall over those at which something was updated, of F1 over those with either. The "
            "threshold is picked with the same outcomes that it is scored by, as in the paper, so the best F1 is a little high."
        ),
        figures=lambda evaluation: [figures.window_figure(evaluation)],
        tables=lambda evaluation: [tables.best_table(evaluation, average) for average in AVERAGES],
    ),
    ReportPart(
        title="What the threshold does",
        text=lambda evaluation: (
            "The higher the threshold, the fewer fetches: precision rises and recall falls (HACS Figs. 8 to 10). At θ = 0 "
            "everything is chosen."
        ),
        figures=_threshold_figures,
        tables=lambda evaluation: [tables.theta_table(evaluation, "micro")],
    ),
    ReportPart(
        title="Which pages are updated first",
        text=lambda evaluation: (
            "At each reference time these pages are ranked, and the ranking is compared with the order in which they are updated "
            "next (HACS Fig. 11): P@K is the share of the first K that is among the K updated first, averaged over all K with "
            "weight 1/log2(K + 1). History-aware ranks by probability, last-observed by the time without an update, longest first; "
            "equal pages are in random order. Since most pages are not updated again, and their order is random too, even a "
            "perfect prediction does not reach 1; and at large K any ranking is right."
        ),
        figures=lambda evaluation: [figures.ranking_figure(evaluation)],
        tables=lambda evaluation: [tables.ranking_table(evaluation)],
    ),
    ReportPart(
        title="How often pages are updated",
        text=lambda evaluation: (
            "λ is the estimated number of updates per day over the whole evaluated time, from updates dated when they were seen "
            "(HACS Fig. 4). The mean and the distribution of 1/λ, the time from one update to the next, are those of "
            f"{subject(evaluation)} with updates; the paper's means are 141.5 days for homepages and 75 for websites. λ̃ is the "
            "same as λ, with updates dated halfway to the visit before (Fig. 5). In a Poisson process the median time between "
            "updates is ln 2 = 0.69 of the mean; much less means that updates come in bursts."
        ),
        figures=lambda evaluation: [
            *(figures.rate_figure(evaluation, row) for row in evaluation.rows["rates"]),
            *(figures.interval_figure(evaluation, row) for row in evaluation.rows["intervals"]),
        ],
        tables=lambda evaluation: [tables.rate_table(evaluation), tables.rate_histogram_table(evaluation)],
    ),
    ReportPart(
        title="Do updates follow a Poisson process?",
        text=_poisson_text,
        figures=lambda evaluation: [figures.poisson_figure(row) for row in evaluation.rows["poisson"]],
        tables=lambda evaluation: [tables.poisson_table(evaluation)],
    ),
)
