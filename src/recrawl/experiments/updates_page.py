"""The page of ``recrawl evaluate --method history-aware``: each part with its words, figures and table."""

from __future__ import annotations

import os
from pathlib import Path

from recrawl.experiments import updates_figures as figures
from recrawl.experiments import updates_tables as tables
from recrawl.experiments.findings import percent
from recrawl.experiments.page import Section, write_page
from recrawl.experiments.updates import Row, UpdateEvaluation
from recrawl.experiments.updates_scores import AVERAGES
from recrawl.experiments.updates_tables import rows_where, subject

N_WINDOWS = 2  #: windows whose curves are drawn, as in the paper


def write_updates_page(
    path: str | os.PathLike[str], found: UpdateEvaluation, title: str = "Can the next update be told from those before?"
) -> Path:
    """Write the whole evaluation as one HTML file."""
    return write_page(path, title, [scope(found), *findings(found)], sections(found))


def sections(found: UpdateEvaluation) -> list[Section]:
    """All parts, in the order of the page."""
    return [_windows(found), _thresholds(found), _rankings(found), _rates(found), _poisson(found)]


def scope(found: UpdateEvaluation) -> str:
    """What was evaluated."""
    settings = found.settings
    captures = "visits" if settings.every == "visits" else f"captures (one a round, {settings.every})"
    return (
        f"{found.n_pages:,} {subject(found)} with {found.n_captures:,} {captures} from {found.first[:10]} to {found.last[:10]}, "
        f"of which {found.n_updates:,} show links never before on the page. Rates by {settings.estimator} from "
        f"{settings.updates} updates; chosen is what has an update within {settings.ahead.days or settings.ahead} days with "
        f"probability θ or more. Nothing chosen at a reference time depends on a later visit."
    )


def findings(found: UpdateEvaluation) -> list[str]:
    """What it comes to, in a few sentences."""
    best = [
        row for row in rows_where(found, "best", average="micro", policy="history-aware") if row["recall"] is not None
    ]
    if not best:
        return [f"No {subject(found)[:-1]} gained a link in the evaluated time: there was nothing to tell."]
    said = [_best(found, max(best, key=lambda row: float(row["f1"])))]
    for row in found.rows["rates"]:
        said.append(
            f"{row['n_never']:,} of {found.n_pages:,} {subject(found)} were never seen to gain a link; of the others half gain "
            f"one in {row['median_days']:,.0f} days or more often."
        )
    return said


def _best(found: UpdateEvaluation, ours: Row) -> str:
    random, brute = (
        rows_where(found, "best", average="micro", policy=policy, weeks=ours["weeks"])[0]
        for policy in ("random", "brute-force")
    )
    return (
        f"With {ours['weeks']:g} weeks of history and θ {ours['theta']:g}, {percent(ours['recall'])} of the updates are found with "
        f"{percent(ours['chosen_rate'])} of the fetches; {percent(ours['precision'] or 0)} of the fetches find one (F1 "
        f"{ours['f1']:.3f}). As many fetches at random find {percent(random['recall'])} (F1 {random['f1']:.3f}), fetching "
        f"everything has F1 {brute['f1']:.3f}."
    )


def _windows(found: UpdateEvaluation) -> Section:
    text = (
        "For each number of weeks of history the threshold θ with the highest F1, as in HACS Table I. Random picks as many of the "
        "same pages (what it can expect, without drawing); brute force takes all, so its recall is 1. Scored are the pages "
        "with two captures in the window and a later one that tells what came; one without an update in the window has "
        "probability 0.\n\n"
        "Micro counts all reference times together. Macro is a mean over reference times: of precision over those at which "
        "something was chosen, of recall over those at which something was updated, of F1 over those with either. The threshold is "
        "picked with the same outcomes that it is scored by, as in the paper, so the best F1 is a little flattered."
    )
    return Section(
        "How much history, which threshold",
        text,
        [figures.window_figure(found), *(tables.best_table(found, average) for average in AVERAGES)],
    )


def _thresholds(found: UpdateEvaluation) -> Section:
    text = (
        "The higher the threshold, the fewer fetches: precision rises and recall falls (HACS Figs. 8 to 10). Below, F1 (micro) for "
        "each number of weeks. At θ = 0 everything is chosen."
    )
    windows = list(dict.fromkeys(row["weeks"] for row in found.rows["scores"]))[:N_WINDOWS]
    curves = [figures.theta_figure(found, score, weeks) for weeks in windows for score in ("f1", "precision", "recall")]
    return Section("What the threshold does", text, [*curves, tables.theta_table(found, "micro")])


def _rankings(found: UpdateEvaluation) -> Section:
    text = (
        "At each reference time these pages are ranked, and the ranking is compared with the order in which they are updated next "
        "(HACS Fig. 11): P@K is the part of the first K that is among the K updated first, averaged over all K with weight "
        "1/log2(K + 1). History-aware ranks by probability, last-observed by the time without an update, longest first; pages "
        "that are equal come in random order. Since most pages are not updated again, and their order is random too, even a "
        "perfect forecast does not reach 1; and at large K any ranking is right."
    )
    return Section("Which pages are updated first", text, [figures.ranking_figure(found), tables.ranking_table(found)])


def _rates(found: UpdateEvaluation) -> Section:
    text = (
        "λ is the estimated number of updates per day over the whole evaluated time, from updates dated when they were seen (HACS "
        "Fig. 4); λ̃ the same with updates dated halfway to the visit before (Fig. 5). In a Poisson process the median time between "
        "updates is ln 2 = 0.69 of the mean; much less means that updates come in bursts."
    )
    drawn = [figures.rate_figure(found, row) for row in found.rows["rates"]]
    drawn += [figures.interval_figure(found, row) for row in found.rows["intervals"]]
    return Section("How often updates come", text, [*drawn, tables.rate_table(found)])


def _poisson(found: UpdateEvaluation) -> Section:
    text = (
        "Among those with about the same 1/λ̃, how the times between two updates are distributed, beside the exponential law that a "
        "Poisson process would follow (HACS Fig. 6). The paper looks at 35 and 70 days; where there are too few like that, the "
        "times are parted into thirds. The dotted line is at 1/λ̃."
    )
    drawn = [figures.poisson_figure(row) for row in found.rows["poisson"]]
    if not drawn:
        return Section("Do updates come like a Poisson process?", f"{text}\n\nThere are too few updates to tell.")
    return Section("Do updates come like a Poisson process?", text, [*drawn, tables.poisson_table(found)])
