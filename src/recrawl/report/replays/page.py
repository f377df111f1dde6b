"""The report of `recrawl replay`: what every policy would have found, in words, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import count, percent
from recrawl.report.page import Section, write_page
from recrawl.report.parts import ReportPart, page_sections
from recrawl.report.replays import figures, focus, tables
from recrawl.report.replays.comparison import Replays

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_BUDGETS = 3  #: for which curves are drawn: the smallest, the middle one, the greatest


def write_replay_page(
    path: str | os.PathLike[str],
    replays: Replays,
    title: str = "What each policy would have found",
    *,
    self_contained: bool = False,
) -> Path:
    """Write the whole comparison as an HTML page."""
    intro = [*findings(replays), scope(replays)]
    return write_page(path, title, intro, sections(replays), self_contained=self_contained)


def scope(replays: Replays) -> str:
    """What was replayed, in a sentence."""
    every = {"auto": "by the times of visits", "crawl": "as crawled"}.get(replays.every, f"every {replays.every}")
    span = f"from {replays.first_at} to {replays.last_at} UTC"
    seen = f"; before that, every policy saw {count(replays.observed, 'cycle')} completely" if replays.observed else ""
    notes = seen + (f"; {'; '.join(replays.notes)}" if replays.notes else "")
    return (
        f"{count(replays.n_pages, 'page')} of {count(replays.n_hosts, 'host')} in {count(replays.n_cycles, 'cycle')} {every}, "
        f"{span}, {_aim(replays)}{notes}."
    )


def _aim(replays: Replays) -> str:
    if replays.goal == "content":
        return "judged by the copies that are kept current"
    noun = "relevant link" if replays.is_focused else "link"
    return f"with {count(replays.discoverable, noun)} to discover"


def findings(replays: Replays) -> list[str]:
    """What the replays show, in a few sentences."""
    parts: tuple[Callable[[Replays], Iterator[str]], ...] = (_winner, _bound, _more_budget, _fresh)
    if replays.goal == "content":
        parts = (_fresh,)
    return [sentence for part in parts for sentence in part(replays)]


def _winner(replays: Replays) -> Iterator[str]:
    for budget in drawn_budgets(replays):
        best, uniform = replays.best(budget), replays.uniform(budget)
        if best is None or not replays.discoverable:
            continue
        winner = f"With {tables.budget_text(replays, budget)}, {best.policy} finds {percent(replays.coverage(best))} of the links"
        if uniform is None or best is uniform:
            yield f"{winner}."
            continue
        compared = replays.versus_uniform[best.policy, budget]
        sure = "the difference is more than chance" if compared.is_significant else "which may be chance"
        if compared.p_value is None:
            sure = compared.note
        yield f"{winner}, round-robin {percent(replays.coverage(uniform))} ({sure})."


def _bound(replays: Replays) -> Iterator[str]:
    budget = replays.budgets[0]
    best = replays.best(budget)
    bound = max((run for run in replays.of_budget(budget) if run.sees_future), key=replays.coverage, default=None)
    if best is not None and bound is not None and replays.coverage(bound) > 0:
        reached = replays.coverage(best) / replays.coverage(bound)
        yield (
            f"A policy that knows what every page will show finds {percent(replays.coverage(bound))} with "
            f"{tables.budget_text(replays, budget)}; {best.policy} reaches {percent(reached)} of that."
        )


def _more_budget(replays: Replays) -> Iterator[str]:
    small, great = min(replays.budgets), max(replays.budgets)
    best, more = replays.best(small), replays.best(great)
    if small < great and best is not None and more is not None:
        yield (
            f"From {small:,} to {great:,} pages per cycle, the best coverage goes from {percent(replays.coverage(best))} to "
            f"{percent(replays.coverage(more))}."
        )


def _fresh(replays: Replays) -> Iterator[str]:
    budget = replays.budgets[0]
    fresh = {
        run.policy: replays.summaries[run.policy, budget].freshness or 0.0
        for run in replays.of_budget(budget)
        if not run.sees_future
    }
    best = replays.best(budget)
    if best is not None and len(fresh) > 1:
        top = max(fresh, key=lambda policy: fresh[policy])
        also = "" if top == best.policy else f"; {best.policy}: {percent(fresh[best.policy])}"
        also += _bound_of_freshness(replays, budget)
        yield f"{top} keeps most copies current, {percent(fresh[top])} of the pages on average{also}."


def _bound_of_freshness(replays: Replays, budget: int) -> str:
    """What a policy that knows the future keeps current, if one was replayed."""
    shares = (replays.summaries[run.policy, budget].freshness for run in replays.of_budget(budget) if run.sees_future)
    best = max((share for share in shares if share is not None), default=None)
    return "" if best is None else f"; a policy that knows the future: {percent(best)}"


def drawn_budgets(replays: Replays) -> list[int]:
    """The smallest, the middle and the greatest budget, in this order."""
    budgets = sorted(replays.budgets)
    return budgets if len(budgets) <= MAX_BUDGETS else [budgets[0], budgets[len(budgets) // 2], budgets[-1]]


def sections(replays: Replays) -> list[Section]:
    """Results first, then the curves, then what it cost."""
    left_out = {"budgets"} if len(replays.budgets) == 1 else set()
    left_out |= set() if replays.is_focused else {"focus"}
    if replays.goal == "content":
        left_out = {part.name for part in PARTS} - OF_CONTENT
    parts = [part for part in PARTS if part.name not in left_out]
    return page_sections(parts, replays)


def _results_text(replays: Replays) -> str:
    columns = _sentence(tables.legend(narrow=True, goal=replays.goal, is_weighted=replays.is_weighted))
    if replays.goal == "content":
        return f"{_known_before(replays)} and then sees only the pages that it chooses.\n\n{columns}"
    text = (
        f"{_known_before(replays)} and then sees only the pages that it chooses. A link counts for the cycle in "
        "which the policy first sees it; one that left a page before is lost, unless another page still shows it.\n\n"
        f"{columns} The best of each column is bold, except for the upper bound."
    )
    if len(replays.policies) == 1:
        return text
    return (
        f"{text}\n\nDifferences are of coverage. {tables.SIGNIFICANCE}: whole days (UTC) are drawn, the same for both policies. "
        "The p-values are not corrected for the number of policies."
    )


def _known_before(replays: Replays) -> str:
    if not replays.observed:
        return "Every policy starts with the first crawl"
    seen = count(replays.observed, "cycle")
    return f"Every policy starts with the first crawl, sees all that was recorded in {seen} after it"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _per_budget(draw: Callable[[Replays, int], Figure]) -> Callable[[Replays], list[Figure]]:
    """One figure for each of the drawn budgets."""
    return lambda replays: [draw(replays, budget) for budget in drawn_budgets(replays)]


def _smoothed(replays: Replays) -> str:
    return " Drawn are means by calendar day (UTC)." if replays.n_cycles >= figures.SMOOTHED_FROM else ""


OF_CONTENT = {"results", "freshness", "costs", "settings"}  #: parts of the page where content counts
#: What the page shows, in its order; the terminal shows the summary of each budget alone (`tables.tables`).
PARTS: tuple[ReportPart[Replays], ...] = (
    ReportPart(
        title="Results",
        name="results",
        text=_results_text,
        tables=lambda replays: [
            make(replays, budget)
            for budget in replays.budgets
            for make in (tables.summary_table, tables.interval_table)
            if replays.goal == "links" or make is tables.summary_table
        ],
    ),
    ReportPart(
        title="Coverage over time",
        text=lambda _: (
            "After each cycle: the links found so far, of all that were on any page by then. Policies that learn climb; where a "
            "curve falls, the policy misses what is published, for a while or for good. A click in the legend hides or shows a "
            "curve, a double click shows it alone."
        ),
        figures=_per_budget(figures.coverage_figure),
    ),
    ReportPart(
        title="Relevant and all new links",
        name="focus",
        text=lambda _: (
            "Only relevant links counted for the policies: solid, the coverage above. Dotted: the share that the same fetches "
            "found of all links. Where the solid curve is far above the dotted one, fetches went to pages of the topic."
        ),
        figures=_per_budget(focus.focus_figure),
        tables=lambda replays: [focus.focus_table(replays)],
    ),
    ReportPart(
        title="Coverage by budget",
        name="budgets",
        text=lambda _: (
            "How much each policy makes of more fetches, as in Fig. 5 of Pham, Santos and Freire (2018). Where the curves come "
            "together there is enough budget for any policy."
        ),
        figures=lambda replays: [figures.budget_figure(replays)],
        tables=lambda replays: [tables.budget_table(replays)],
    ),
    ReportPart(
        title="How soon links are found",
        text=lambda _: (
            "The time from when a link was first on any page, as far as it was recorded, until the policy saw it. The curves "
            "count all discoverable links and end at the coverage. Fig. 4 of Pham, Santos and Freire (2018) counts only those "
            "that were discovered, which flatters policies that find little; the table has both."
        ),
        figures=_per_budget(figures.age_figure),
        tables=lambda replays: [tables.age_table(replays)],
    ),
    ReportPart(
        title="Discoveries per cycle",
        text=lambda replays: (
            "The grey area is what was published. A policy may find more in a cycle than was published in it: links that it "
            f"missed before and that are still there.{_smoothed(replays)}"
        ),
        figures=_per_budget(figures.discovery_figure),
    ),
    ReportPart(
        title="Valleys and peaks",
        text=lambda replays: (
            "What is published and found by hour of the day, or by day of the week where a cycle is a day or longer: means over "
            "all cycles that ended then."
        ),
        figures=_per_budget(figures.clock_figure),
    ),
    ReportPart(
        title="Copies kept current",
        name="freshness",
        text=lambda replays: (
            "Those who keep copies of the pages want them current. Drawn is the share of the pages of which nothing that counts "
            "has changed since they were last visited, as in Fig. 8 of Radinsky and Bennett (2013). Pages where new links appear "
            "and pages that change are not the same, so the best policy for one may be poor for the other. Between two recorded "
            f"visits a page is assumed to be as it was last seen.{_smoothed(replays)}"
        ),
        figures=_per_budget(figures.freshness_figure),
    ),
    ReportPart(
        title="What a fetch brings, and what it costs",
        name="costs",
        text=lambda _: (
            "Fetches that failed or were not recorded cost budget and show nothing. "
            f"{_sentence(tables.YIELD)} Most and mean per host: fetches from one host in a cycle. The time is the "
            "policy's own, choosing and learning, on the machine that ran the replay: the only numbers on this page that differ "
            "from run to run."
        ),
        tables=lambda replays: [tables.cost_table(replays)],
    ),
    ReportPart(
        title="Settings",
        name="settings",
        text=lambda _: "What every policy was run with.",
        tables=lambda replays: [tables.settings_table(replays)],
    ),
)
