"""The page of `recrawl replay`: what every policy would have found, in words, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from recrawl.experiments import replay_figures as figures
from recrawl.experiments import replay_tables as tables
from recrawl.experiments.findings import percent
from recrawl.experiments.page import Section, write_page
from recrawl.experiments.replays import Replays

MAX_BUDGETS = 3  #: for which curves are drawn: the smallest, the middle one, the greatest


def write_replay_page(
    path: str | os.PathLike[str], replays: Replays, title: str = "What each policy would have found"
) -> Path:
    """Write the whole comparison as one HTML file."""
    return write_page(path, title, [scope(replays), *findings(replays)], sections(replays))


def scope(replays: Replays) -> str:
    """What was replayed, in a sentence."""
    every = "as crawled" if replays.every == "crawl" else f"every {replays.every}"
    span = f"from {replays.first_at} to {replays.last_at} UTC"
    seen = f"; every policy saw all of {_count(replays.observed, 'cycle')} before" if replays.observed else ""
    notes = seen + (f"; {'; '.join(replays.notes)}" if replays.notes else "")
    return (
        f"{replays.n_pages:,} pages of {_count(replays.n_hosts, 'host')} in {replays.n_cycles:,} cycles {every}, {span}, "
        f"with {replays.discoverable:,} links to discover{notes}."
    )


def findings(replays: Replays) -> list[str]:
    """What the replays come to, in a few sentences."""
    parts: tuple[Callable[[Replays], Iterator[str]], ...] = (_winner, _bound, _more_budget, _fresh)
    return [sentence for part in parts for sentence in part(replays)]


def _winner(replays: Replays) -> Iterator[str]:
    for budget in drawn_budgets(replays):
        best, uniform = replays.best(budget), replays.uniform(budget)
        if best is None or not replays.discoverable:
            continue
        found = f"With {tables.budget_text(replays, budget)} {best.policy} finds {percent(replays.coverage(best))} of the links"
        if uniform is None or best is uniform:
            yield f"{found}."
            continue
        compared = replays.versus_uniform[best.policy, budget]
        sure = "the difference is more than chance" if compared.is_significant else "which may be chance"
        if compared.p_value is None:
            sure = compared.note
        yield f"{found}, round-robin {percent(replays.coverage(uniform))} ({sure})."


def _bound(replays: Replays) -> Iterator[str]:
    budget = replays.budgets[0]
    best = replays.best(budget)
    bound = max((run for run in replays.of_budget(budget) if run.sees_future), key=replays.coverage, default=None)
    if best is not None and bound is not None and replays.coverage(bound) > 0:
        reached = replays.coverage(best) / replays.coverage(bound)
        yield (
            f"Foreknowledge of what every page will show finds {percent(replays.coverage(bound))} with "
            f"{tables.budget_text(replays, budget)}; {best.policy} comes to {percent(reached)} of that."
        )


def _more_budget(replays: Replays) -> Iterator[str]:
    small, great = min(replays.budgets), max(replays.budgets)
    best, more = replays.best(small), replays.best(great)
    if small < great and best is not None and more is not None:
        yield (
            f"From {small:,} to {great:,} pages a cycle the best coverage goes from {percent(replays.coverage(best))} to "
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
        yield f"Most copies are kept current by {top}: {percent(fresh[top])} of the pages on average{also}."


def _bound_of_freshness(replays: Replays, budget: int) -> str:
    """What foreknowledge of the changes would keep, if that was replayed."""
    found = (replays.summaries[run.policy, budget].freshness for run in replays.of_budget(budget) if run.sees_future)
    best = max((value for value in found if value is not None), default=None)
    return "" if best is None else f"; with foreknowledge {percent(best)}"


def sections(replays: Replays) -> list[Section]:
    """Results first, then the curves, then what it cost."""
    made = [*_results(replays), _over_time(replays)]
    made += [_by_budget(replays)] if len(replays.budgets) > 1 else []
    return [*made, _ages(replays), _discoveries(replays), _freshness(replays), _costs(replays), _settings(replays)]


def drawn_budgets(replays: Replays) -> list[int]:
    """The smallest, the middle and the greatest budget, in this order."""
    budgets = sorted(replays.budgets)
    return budgets if len(budgets) <= MAX_BUDGETS else [budgets[0], budgets[len(budgets) // 2], budgets[-1]]


def _results(replays: Replays) -> Iterator[Section]:
    """One section a budget; the first one explains."""
    for budget in replays.budgets:
        made = [make(replays, budget) for make in (tables.summary_table, tables.interval_table)]
        title = f"Results with {tables.budget_text(replays, budget)}"
        text = _explained(replays) if budget == replays.budgets[0] else ""
        yield Section(title, text, [table for table in made if table.rows])


def _explained(replays: Replays) -> str:
    text = (
        f"{_known_before(replays)} and then sees only the pages that it chooses. A link counts for the cycle in "
        "which the policy first sees it; one that left a page before is lost, unless another page still shows it.\n\n"
        f"{tables.FOUND[0].upper()}{tables.FOUND[1:]}. The best of each column is bold; the upper bound takes no part."
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
    return f"Every policy starts with the first crawl, sees all that was recorded in {_count(replays.observed, 'cycle')} after it"


def _over_time(replays: Replays) -> Section:
    text = (
        "After each cycle: the links found so far, of all that were on any page by then. Policies that learn climb; where a curve "
        "falls the policy misses what is published, for a while or for good. A click in the legend hides or shows a curve, a "
        "double click shows it alone."
    )
    return Section(
        "Coverage over time", text, [figures.coverage_figure(replays, budget) for budget in drawn_budgets(replays)]
    )


def _by_budget(replays: Replays) -> Section:
    text = (
        "How much each policy makes of more fetches, as in Fig. 5 of Pham, Santos and Freire (2018). Where the curves come "
        "together there is enough budget for any policy."
    )
    return Section("Coverage by budget", text, [figures.budget_figure(replays), tables.budget_table(replays)])


def _ages(replays: Replays) -> Section:
    text = (
        "The time from when a link was first on any page, as far as it was recorded, until the policy saw it. The curves count "
        "all discoverable links and end at the coverage. Fig. 4 of Pham, Santos and Freire (2018) counts only those that were "
        "discovered, which flatters policies that find little; the table has both."
    )
    curves = [figures.age_figure(replays, budget) for budget in drawn_budgets(replays)]
    return Section("How soon links are found", text, [*curves, tables.age_table(replays)])


def _discoveries(replays: Replays) -> Section:
    text = (
        "The grey area is what was published. A policy may find more in a cycle than was published in it: what it missed before "
        f"and is still there.{_smoothed(replays)}"
    )
    return Section(
        "Discoveries per cycle", text, [figures.discovery_figure(replays, budget) for budget in drawn_budgets(replays)]
    )


def _freshness(replays: Replays) -> Section:
    text = (
        "Whoever keeps copies of the pages wants them current. Drawn is the share of the pages of which nothing that counts has "
        "changed since they were last visited, as in Fig. 8 of Radinsky and Bennett (2013). Pages where new links appear and pages "
        "that change are not the same, so that the best policy for one may be poor for the other. Between two recorded visits a "
        "page is taken to be as "
        f"it was last seen.{_smoothed(replays)}"
    )
    return Section(
        "Copies kept current", text, [figures.freshness_figure(replays, budget) for budget in drawn_budgets(replays)]
    )


def _costs(replays: Replays) -> Section:
    text = (
        "Fetches that failed or were not recorded cost budget and show nothing. "
        f"{tables.YIELD[0].upper()}{tables.YIELD[1:]}. Most and mean of a host: fetches from one host in a cycle. The time is the "
        "policy's own, choosing and learning, on the machine that ran the replay: the only figures on this page that differ from "
        "run to run."
    )
    return Section("What a fetch brings, and what it costs", text, [tables.cost_table(replays)])


def _settings(replays: Replays) -> Section:
    return Section("Settings", "What every policy was run with.", [tables.settings_table(replays)])


def _smoothed(replays: Replays) -> str:
    return " Drawn are means of calendar days (UTC)." if replays.n_cycles >= figures.SMOOTHED_FROM else ""


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
