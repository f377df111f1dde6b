"""The report of ``recrawl evaluate --method experts``: findings, then one list of parts for its page and the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import count
from recrawl.papers.experts import figures, tables
from recrawl.papers.experts.settings import (
    EXPERTS,
    FRESHNESS,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    ExpertEvaluation,
    Row,
)
from recrawl.papers.experts.tables import RANDOM, scope
from recrawl.report.page import Section, write_page
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.tables import Table
from recrawl.report.words import joined

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LEVEL = 0.05  #: of the tests, as in the paper
BETTER, WORSE, NO_DIFFERENCE = "They beat", "They are beaten by", "They do not differ significantly from"
#: What related experts have to beat, in words.
OPPONENTS = {
    (RELATED, RANDOM): "random pages as experts",
    (SINGLE, ""): "the page as its only expert",
    (MAJORITY, ""): "each page's majority class",
    (THRESHOLD, ""): "the threshold on its past changes",
}


def write_experts_page(
    path: str | os.PathLike[str],
    evaluation: ExpertEvaluation,
    title: str = "Do related pages show when a page will change?",
    *,
    self_contained: bool = False,
) -> Path:
    """Write the whole evaluation as an HTML page."""
    intro = [*findings(evaluation), scope(evaluation), *evaluation.notes]
    return write_page(path, title, intro, sections(evaluation), self_contained=self_contained)


def sections(evaluation: ExpertEvaluation) -> list[Section]:
    """The parts that were run, in the order of the page."""
    return page_sections(_run_parts(evaluation), evaluation)


def expert_tables(evaluation: ExpertEvaluation) -> list[Table]:
    """The tables of the parts that were run, for the terminal."""
    return terminal_tables(_run_parts(evaluation), evaluation)


def _run_parts(evaluation: ExpertEvaluation) -> list[ReportPart[ExpertEvaluation]]:
    return [part for part in PARTS if not part.name or evaluation.rows.get(part.name)]


# -- findings ---------------------------------------------------------------------------------------------------------


def findings(evaluation: ExpertEvaluation) -> list[str]:
    """First whether related pages help, then a sentence for each other part."""
    sentences = [" ".join(_verdict(evaluation))]
    if evaluation.rows.get("combining"):
        sentences.append(_ranked("Ways to combine experts", evaluation.rows["combining"], "method"))
    if evaluation.rows.get("selection"):
        sentences.append(_ranked("Ways to choose experts", evaluation.rows["selection"], "experts"))
    sentences += [*_over_history(evaluation), *_over_number(evaluation)]
    return [sentence for sentence in sentences if sentence]


def _verdict(evaluation: ExpertEvaluation) -> Iterator[str]:
    """Whether related experts beat those that know less, and what follows."""
    known = {(row["method"], row["experts"]): row for row in _against_related(evaluation)}
    ours = known.get((RELATED, evaluation.settings.method))
    if ours is None:
        return
    balanced = f"; balanced accuracy {ours['balanced_accuracy']:.1%}" if ours["balanced_accuracy"] is not None else ""
    yield (
        f"Related pages as experts ({ours['k']} chosen by {evaluation.settings.method}) are right about {ours['accuracy']:.1%} of "
        f"the rounds, as a mean over {count(ours['n_pages'], 'page')}{balanced}."
    )
    others = {key: known[key] for key in OPPONENTS if key in known and known[key] is not ours}
    outcomes: dict[str, list[str]] = {BETTER: [], WORSE: [], NO_DIFFERENCE: []}
    for key, other in others.items():
        outcomes[_outcome(ours, other)].append(f"{OPPONENTS[key]} ({other['accuracy']:.1%}, {_tested(ours, other)})")
    yield from (f"{outcome} {joined(names)}." for outcome, names in outcomes.items() if names)
    yield _conclusion({key for key, other in others.items() if _outcome(ours, other) == BETTER}, set(others))


def _against_related(evaluation: ExpertEvaluation) -> Iterator[Row]:
    """The rows that are tested against related experts with the chosen settings, on the same rounds."""
    for part in ("settings", "combining", "selection"):
        yield from evaluation.rows.get(part, [])


def _outcome(ours: Row, other: Row) -> str:
    if other["p_value"] is None or other["p_value"] >= LEVEL:
        return NO_DIFFERENCE
    return BETTER if ours["accuracy"] > other["accuracy"] else WORSE


def _tested(ours: Row, other: Row) -> str:
    if other["p_value"] is not None:
        return p_text(other["p_value"])
    return "the same" if ours["accuracy"] == other["accuracy"] else "no test possible"


def p_text(p: float) -> str:
    """A p-value as people read it.

    >>> p_text(0.0312), p_text(0.5), p_text(0.00001)
    ('p = 0.031', 'p = 0.50', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _conclusion(beaten: set[tuple[str, str]], others: set[tuple[str, str]]) -> str:
    unbeaten = others - beaten
    if not others:
        return ""
    if not unbeaten:
        than_others = " that other pages do not" if (RELATED, RANDOM) in others else ""
        return f"So related pages say something about the next change{than_others}."
    reasons = []
    if unbeaten & {(MAJORITY, ""), (THRESHOLD, "")}:
        reasons.append("what does not beat the majority class or a threshold on the past is not a result")
    if (RELATED, RANDOM) in unbeaten:
        reasons.append("if other pages help, nothing shows that it is because they are related")
    if (SINGLE, "") in unbeaten:
        reasons.append("the page alone may say as much")
    return f"So it is not proven here that related pages help: {'; '.join(reasons)}."


def _ranked(what: str, rows: list[Row], name: str) -> str:
    """The ways from best to worst, and which of them differ significantly from the chosen one."""
    ways = [row for row in rows if row["experts"]]
    order = sorted(ways, key=lambda row: -float(row["accuracy"]))
    listed = joined([f"{row[name]} {row['accuracy']:.1%}" for row in order])
    differ = [str(row[name]) for row in order if row["p_value"] is not None and row["p_value"] < LEVEL]
    chosen = next(row for row in ways if row["method"] == RELATED)
    verb = "differs" if len(differ) < 2 else "differ"
    return f"{what}, the best first: {listed}; {joined(differ) or 'none'} {verb} significantly from {chosen[name]}."


def _over_history(evaluation: ExpertEvaluation) -> Iterator[str]:
    rows = [row for row in evaluation.rows.get("history", []) if row["method"] == RELATED]
    if len(rows) > 1:
        listed = joined([f"{row['n_train']}: {row['accuracy']:.1%}" for row in rows])
        yield f"By rounds of training, related experts are right about (on the same rounds) {listed}."


def _over_number(evaluation: ExpertEvaluation) -> Iterator[str]:
    rows = [row for row in evaluation.rows.get("number", []) if row["method"] == RELATED]
    if len(rows) > 1:
        top = max(rows, key=lambda row: float(row["accuracy"]))
        listed = joined([f"{row['k']}: {row['accuracy']:.1%}" for row in rows])
        yield f"By number of experts, they are right about {listed}; {top['k']} is best in hindsight."


# -- parts ------------------------------------------------------------------------------------------------------------

SETTINGS_TEXT = (
    "What must be known to predict whether a page will change (Table 1 of the paper: 54.84% from its past changes, 62.93% from "
    "its own words too, 72.72% from those of related pages too). Each page is predicted round by round, from the rounds "
    "before alone; its accuracy is the mean over rounds, the table's the mean over pages.\n\n"
    "The coin of the paper shows “change” as often as the page changed in training; the threshold says “change” where that "
    "was in more than half of the rounds, and is the better use of the same knowledge. The majority class is the more frequent "
    "answer in the very rounds that are predicted: it is not known beforehand, and a method that only repeats it has learnt "
    "nothing. Random pages as experts show the effect of many experts, related or not. Balanced accuracy, the mean of the "
    "accuracies among changes and among rounds without one, is 50% for a method that always says the same; it is not defined for "
    "pages with one class alone."
)


def _settings_figure(evaluation: ExpertEvaluation) -> Figure:
    known = {row["method"]: row for row in evaluation.rows["settings"] if row["experts"] != RANDOM}
    names = {RELATED: "Related experts", SINGLE: "the page alone", MAJORITY: "majority class"}
    title = ", ".join(f"{name} {known[key]['accuracy']:.1%}" for key, name in names.items() if key in known)
    return figures.method_figure(title, evaluation.rows["settings"], tables.label)


def _combining_text(evaluation: ExpertEvaluation) -> str:
    return (
        f"The same {evaluation.settings.k} related pages, used in other ways (Table 2 of the paper: relational union 62.91%, "
        "boosting 63.44%, bagging 63.58%, experts 72.72%). The union is one learner with the features of all pages; bagging and "
        f"boosting are {evaluation.settings.n_models} such learners, each trained on a sample of the rounds, or with most weight "
        "on the rounds that those before it got wrong; experts are one learner for each page, and they vote."
    )


def _combining_figure(evaluation: ExpertEvaluation) -> Figure:
    rows = evaluation.rows["combining"]
    return figures.method_figure("Accuracy by the way of combining", rows, lambda row: str(row["method"]))


def _selection_text(evaluation: ExpertEvaluation) -> str:
    again = evaluation.settings.reselect
    when = f"again every {count(again, 'round')}" if again else "once"
    return (
        "Which pages are asked (Table 3 of the paper: graph 64.40%, content 67.27%, cross-correlation 72.72%, dtw 70.33%): those "
        "one link away, those with the most similar words, those whose words rise and fall alike, at any delay "
        "(cross-correlation) or with time stretched (dtw); and random ones, which the paper does not try. Experts are chosen "
        f"{when}, by what was seen before the first prediction they serve. The p-value is against {evaluation.settings.method}."
    )


def _selection_figure(evaluation: ExpertEvaluation) -> Figure:
    rows = evaluation.rows["selection"]
    return figures.method_figure(
        "Accuracy by the way of choosing", rows, lambda row: str(row["experts"] or row["method"])
    )


PARTS: tuple[ReportPart[ExpertEvaluation], ...] = (
    ReportPart(
        title="What helps to predict a change (Table 1 of the paper)",
        name="settings",
        text=lambda _: SETTINGS_TEXT,
        figures=lambda evaluation: [_settings_figure(evaluation)],
        tables=lambda evaluation: [tables.settings_table(evaluation)],
    ),
    ReportPart(
        title="Ways to combine experts (Table 2)",
        name="combining",
        text=_combining_text,
        figures=lambda evaluation: [_combining_figure(evaluation)],
        tables=lambda evaluation: [tables.combining_table(evaluation)],
    ),
    ReportPart(
        title="Ways to choose experts (Table 3)",
        name="selection",
        text=_selection_text,
        figures=lambda evaluation: [_selection_figure(evaluation)],
        tables=lambda evaluation: [tables.selection_table(evaluation)],
    ),
    ReportPart(
        title="Accuracy by rounds of training (Fig. 6)",
        name="history",
        text=lambda _: (
            "Whether more rounds of training help (Fig. 6 of the paper, where they hardly do from 30 days on). All are scored on "
            "the rounds that the longest training leaves, so these accuracies differ a little from those above."
        ),
        figures=lambda evaluation: [
            figures.history_figure(evaluation, "Accuracy by rounds of training, on the same predictions")
        ],
        tables=lambda evaluation: [tables.history_table(evaluation)],
    ),
    ReportPart(
        title="Accuracy by number of experts (Fig. 7)",
        name="number",
        text=lambda _: (
            "How many related pages to ask (Fig. 7 of the paper, where accuracy grows up to 20 and falls after). The lines across "
            "are methods that ask no other page."
        ),
        figures=lambda evaluation: [
            figures.number_figure(evaluation, f"Accuracy by number of experts, chosen by {evaluation.settings.method}")
        ],
        tables=lambda evaluation: [tables.number_table(evaluation)],
    ),
    ReportPart(
        title="Freshness by the rounds observed before (Fig. 8)",
        name=FRESHNESS,
        text=lambda evaluation: (
            f"Every page is seen in the first rounds. Then {evaluation.settings.share:.0%} of the pages are fetched per round, "
            "each picked by a coin that shows heads with the predicted probability of a change, and nothing else is seen. A copy "
            "is current as long as the page does not differ from it (Fig. 8 of the paper, where 2D and 3D gain by observed days)."
        ),
        figures=lambda evaluation: [
            figures.freshness_figure(evaluation, "Share of current copies by rounds observed before")
        ],
        tables=lambda evaluation: [tables.freshness_table(evaluation)],
    ),
    ReportPart(
        title="Who the experts are",
        name=EXPERTS,
        text=lambda evaluation: (
            f"The experts of each page, chosen by {evaluation.settings.method}, the weight of their votes, and how often each of "
            "them was right on its own."
        ),
        tables=lambda evaluation: [tables.experts_table(evaluation)],
    ),
)
