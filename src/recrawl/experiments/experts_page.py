"""The page of ``recrawl evaluate --method experts``: what it comes to in words, then each part with its figure and table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from recrawl.experiments import experts_figures as figures
from recrawl.experiments import experts_tables as tables
from recrawl.experiments.experts_settings import MAJORITY, RELATED, SINGLE, THRESHOLD, ExpertEvaluation, Row
from recrawl.experiments.experts_tables import RANDOM, scope
from recrawl.experiments.page import Section, write_page

LEVEL = 0.05  #: of the tests, as in the paper
#: Whom related experts have to beat, in words.
OPPONENTS = {
    (RELATED, RANDOM): "random pages as experts",
    (SINGLE, ""): "the page as its only expert",
    (MAJORITY, ""): "each page's majority class",
    (THRESHOLD, ""): "the threshold on its past changes",
}


def write_experts_page(
    path: str | os.PathLike[str], found: ExpertEvaluation, title: str = "Do related pages tell when a page will change?"
) -> Path:
    """Write the whole evaluation as one HTML file."""
    return write_page(path, title, [*findings(found), scope(found), *found.notes], sections(found))


def sections(found: ExpertEvaluation) -> list[Section]:
    """The parts that were asked for, in the order of the page."""
    makers = {
        "settings": _settings,
        "combining": _combining,
        "selection": _selection,
        "history": _history,
        "number": _number,
    }
    return [make(found) for part, make in makers.items() if found.rows.get(part)]


# -- in words ---------------------------------------------------------------------------------------------------------


def findings(found: ExpertEvaluation) -> list[str]:
    """What it comes to: first whether related pages are worth asking, then a sentence for each other part."""
    said = [" ".join(_verdict(found))]
    if found.rows.get("combining"):
        said.append(_ranked("Ways to combine experts", found.rows["combining"], "method"))
    if found.rows.get("selection"):
        said.append(_ranked("Ways to choose experts", found.rows["selection"], "experts"))
    said += [*_over_history(found), *_over_number(found)]
    return [sentence for sentence in said if sentence]


def _verdict(found: ExpertEvaluation) -> Iterator[str]:
    """Whether related experts beat those that know less, and what follows."""
    known = {(row["method"], row["experts"]): row for row in _against_related(found)}
    ours = known.get((RELATED, found.settings.method))
    if ours is None:
        return
    balanced = f"; balanced accuracy {ours['balanced_accuracy']:.1%}" if ours["balanced_accuracy"] is not None else ""
    yield (
        f"Related pages as experts ({ours['k']} chosen by {found.settings.method}) are right about {ours['accuracy']:.1%} of the "
        f"rounds, as a mean over {ours['n_pages']:,} page{'s' * (ours['n_pages'] != 1)}{balanced}."
    )
    others = {key: known[key] for key in OPPONENTS if key in known and known[key] is not ours}
    told: dict[str, list[str]] = {"They beat": [], "They are beaten by": [], "They cannot be told apart from": []}
    for key, other in others.items():
        told[_outcome(ours, other)].append(f"{OPPONENTS[key]} ({other['accuracy']:.1%}, {_tested(ours, other)})")
    yield from (f"{outcome} {_and(names)}." for outcome, names in told.items() if names)
    yield _conclusion({key for key, other in others.items() if _outcome(ours, other) == "They beat"}, set(others))


def _against_related(found: ExpertEvaluation) -> Iterator[Row]:
    """The rows that are tested against related experts as asked for, on the same rounds."""
    for part in ("settings", "combining", "selection"):
        yield from found.rows.get(part, [])


def _outcome(ours: Row, other: Row) -> str:
    if other["p_value"] is None or other["p_value"] >= LEVEL:
        return "They cannot be told apart from"
    return "They beat" if ours["accuracy"] > other["accuracy"] else "They are beaten by"


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
        return f"So related pages tell something about the next change{than_others}."
    reasons = []
    if unbeaten & {(MAJORITY, ""), (THRESHOLD, "")}:
        reasons.append("what does not beat the majority class or a threshold on the past is not a result")
    if (RELATED, RANDOM) in unbeaten:
        reasons.append("if other pages help, nothing shows that it is because they are related")
    if (SINGLE, "") in unbeaten:
        reasons.append("the page alone may tell as much")
    return f"So it is not proven here that related pages help: {'; '.join(reasons)}."


def _ranked(what: str, rows: list[Row], name: str) -> str:
    """The ways from best to worst, and which of them a test tells apart from the one asked for."""
    ways = [row for row in rows if row["experts"]]
    order = sorted(ways, key=lambda row: -float(row["accuracy"]))
    listed = _and([f"{row[name]} {row['accuracy']:.1%}" for row in order])
    differ = [str(row[name]) for row in order if row["p_value"] is not None and row["p_value"] < LEVEL]
    asked = next(row for row in ways if row["method"] == RELATED)
    apart = f"{_and(differ)} differ{'s' * (len(differ) == 1)}" if differ else "none differs"
    return f"{what}, the best first: {listed}; {apart} significantly from {asked[name]}."


def _over_history(found: ExpertEvaluation) -> Iterator[str]:
    rows = [row for row in found.rows.get("history", []) if row["method"] == RELATED]
    if len(rows) > 1:
        listed = _and([f"{row['n_train']}: {row['accuracy']:.1%}" for row in rows])
        yield f"By rounds of training, related experts are right about (on the same rounds) {listed}."


def _over_number(found: ExpertEvaluation) -> Iterator[str]:
    rows = [row for row in found.rows.get("number", []) if row["method"] == RELATED]
    if len(rows) > 1:
        top = max(rows, key=lambda row: float(row["accuracy"]))
        listed = _and([f"{row['k']}: {row['accuracy']:.1%}" for row in rows])
        yield f"By number of experts, they are right about {listed}; {top['k']} is best, as is known in hindsight."


def _and(parts: list[str]) -> str:
    """Parts with commas between, and "and" before the last.

    >>> _and(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# -- sections ---------------------------------------------------------------------------------------------------------


def _settings(found: ExpertEvaluation) -> Section:
    text = (
        "What must be known to tell whether a page will change (Table 1 of the paper: 54.84% from its past changes, 62.93% from "
        "its own words too, 72.72% from those of related pages too). Each page is predicted round by round, from the rounds "
        "before alone; its accuracy is the mean over rounds, the table's the mean over pages.\n\n"
        "The coin of the paper shows “change” as often as the page changed in training; the threshold says “change” where that "
        "was in more than half of the rounds, and is the better use of the same knowledge. The majority class is the more frequent "
        "answer in the very rounds that are predicted: nobody knows it beforehand, and a method that only repeats it has learnt "
        "nothing. Random pages as experts show what comes of asking many, related or not. Balanced accuracy, the mean of that "
        "among changes and that among rests, is 50% for whoever always says the same; pages of one class have none.\n\n"
        "The p-value is that of a paired t-test over pages against related experts."
    )
    bars = figures.method_figure(_settings_title(found), found.rows["settings"], tables.label)
    return Section("What helps to predict a change", text, [bars, tables.settings_table(found)])


def _settings_title(found: ExpertEvaluation) -> str:
    known = {row["method"]: row for row in found.rows["settings"] if row["experts"] != RANDOM}
    names = {RELATED: "Related experts", SINGLE: "the page alone", MAJORITY: "majority class"}
    return ", ".join(f"{name} {known[key]['accuracy']:.1%}" for key, name in names.items() if key in known)


def _combining(found: ExpertEvaluation) -> Section:
    text = (
        f"The same {found.settings.k} related pages, used in other ways (Table 2 of the paper: relational union 62.91%, boosting "
        "63.44%, bagging 63.58%, experts 72.72%). The union is one learner with the features of all pages; bagging and boosting "
        f"are {found.settings.n_models} such learners, each taught with a sample of the rounds, or with most weight on the rounds "
        "that those before it got wrong; experts are one learner for each page, and they vote. The p-value is against the experts."
    )
    rows = found.rows["combining"]
    bars = figures.method_figure("Accuracy by the way of combining", rows, lambda row: str(row["method"]))
    return Section("Ways to combine experts", text, [bars, tables.combining_table(found)])


def _selection(found: ExpertEvaluation) -> Section:
    again = found.settings.reselect
    when = f"anew every {again} rounds" if again else "once"
    text = (
        "Which pages are asked (Table 3 of the paper: graph 64.40%, content 67.27%, cross-correlation 72.72%, dtw 70.33%): those "
        "one link away, those with the most similar words, those whose words rise and fall alike, at any delay "
        "(cross-correlation) or with time stretched (dtw); and random ones, which the paper does not try. Experts are chosen "
        f"{when}, by what was seen before the first prediction they serve. The p-value is against {found.settings.method}."
    )
    bars = figures.method_figure(
        "Accuracy by the way of choosing", found.rows["selection"], lambda row: str(row["experts"] or row["method"])
    )
    return Section("Ways to choose experts", text, [bars, tables.selection_table(found)])


def _history(found: ExpertEvaluation) -> Section:
    text = (
        "Whether more rounds of training help (Fig. 6 of the paper, where they hardly do from 30 days on). All are scored on the "
        "rounds that the longest training leaves, so these accuracies differ a little from those above. The p-value compares the "
        "page alone with related experts after the same training."
    )
    title = "Accuracy by rounds of training, on the same predictions"
    return Section("How much history", text, [figures.history_figure(found, title), tables.history_table(found)])


def _number(found: ExpertEvaluation) -> Section:
    text = (
        "How many related pages to ask (Fig. 7 of the paper, where accuracy grows up to 20 and falls after). The lines across are "
        "those that ask no other page. The p-value is against the page alone."
    )
    title = f"Accuracy by number of experts, chosen by {found.settings.method}"
    return Section("How many experts", text, [figures.number_figure(found, title), tables.number_table(found)])
