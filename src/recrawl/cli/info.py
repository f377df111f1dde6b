"""``recrawl info``: what the history holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EngineOption,
    HistoryOption,
    JsonOption,
    console,
    note,
    open_history,
    print_json,
    working,
)
from recrawl.cli.screen import Screen
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.history import History, Summary
    from recrawl.plan.readiness import Readiness

BARS = " ▁▂▃▄▅▆▇█"
MEANING = {
    "previous": "since the page's previous visit",
    "page": "never before on the page",
    "anywhere": "never before anywhere (distinct)",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("info")(info)


def info(
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    engine: EngineOption = None,
    json: JsonOption = False,
) -> None:
    """Show what the history holds (totals, period, outcomes, hosts, new links) and what can be done with it."""
    opened = open_history(history, as_of)
    with working("counting"):
        totals, hints, n_unwatched, ready = _counted(opened) if engine is None else _counted_by(engine, opened)
    sizes = opened.store.size_in_bytes()
    n_buckets, n_unlaid = opened.layout(), opened.store.n_unlaid()
    if json:
        layout = {"buckets": n_buckets, "unlaid_files": n_unlaid}
        more = {**layout, "hints": hints, "unwatched": n_unwatched, "ready": ready and ready.as_dict()}
        print_json({**totals.as_dict(), "bytes": sizes, **more})
    else:
        _print(totals, sum(sizes.values()))
        for sentence in ready.sentences() if ready else ():
            Screen().line(sentence)
        if n_buckets:
            n_files = opened.store.n_files()["visits"]
            came_since = f"{n_unlaid:,} of {count(n_files, 'file')} of visits came since"
            Screen().line(f"laid out in {count(n_buckets, 'bucket')}, {came_since}")
        if n_unwatched:
            Screen().line(f"{count(n_unwatched, 'page')} not watched: plans leave them out; recrawl watch lists them")
        for kind, row in hints.items():
            Screen().line(
                f"{kind}s: {row['judged_hosts']:,} hosts with visits to compare them with, trusted on {row['proven_hosts']:,}; "
                f"{row['right']:,} of {row['hinted']:,} hints were right"
            )


Counted = tuple["Summary", dict[str, dict[str, int]], int, "Readiness | None"]


def _counted(history: History) -> Counted:
    from recrawl.history import summary
    from recrawl.insight.hints.of_pages import hint_counts
    from recrawl.plan.readiness import readiness

    totals = summary(history)
    return totals, hint_counts(history), _n_unwatched(history), readiness(history) if totals.visits else None


def _counted_by(engine: str, history: History) -> Counted:
    from recrawl.engine.collection import opened_collection
    from recrawl.engine.info import info_of

    with opened_collection(engine, history, note) as collection:
        found = info_of(collection)
    return found.summary, found.hints, found.n_unwatched, found.ready


def _n_unwatched(history: History) -> int:
    """Visited pages that are not watched."""
    import numpy as np

    from recrawl.history.watching import unwatched

    left_out = unwatched(history)
    return int(np.isin(left_out, history.page_times()[0]).sum()) if len(left_out) else 0


def _print(totals: Summary, n_bytes: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from recrawl.core.times import iso_text

    out = console()
    period = "no visits yet"
    if totals.first_at and totals.last_at:
        days = (totals.last_at - totals.first_at).total_seconds() / 86400
        period = f"{iso_text(totals.first_at)[:16]} to {iso_text(totals.last_at)[:16]} UTC, {days:,.1f} days"
    out.print(
        f"[bold]{totals.visits:,}[/] visits to [bold]{totals.pages:,}[/] pages on {totals.hosts:,} hosts, "
        f"{totals.links:,} distinct links seen; {n_bytes / 1e6:,.1f} MB"
    )
    out.print(period)
    if not totals.visits:
        return
    outcomes = Table("outcome", "visits", "share", box=None)
    for name in ("ok", "unchanged", "gone", "failed"):
        count = getattr(totals, name)
        outcomes.add_row(name, f"{count:,}", f"{count / totals.visits:.1%}")
    out.print(outcomes)
    new = Table("new links", "links", "on visits", "share of compared visits", box=None)
    for meaning, words in MEANING.items():
        visits = totals.visits_with_new_links[meaning]
        share = f"{visits / totals.visits_compared:.1%}" if totals.visits_compared else "–"
        new.add_row(words, f"{totals.new_links[meaning]:,}", f"{visits:,}", share)
    out.print(new)
    per_day = list(totals.visits_per_day.values())
    out.print(f"visits per day, {len(per_day):,} days with any: {_spark(per_day)}  at most {max(per_day):,}")
    hosts = Table("hosts with most pages", "pages", box=None)
    for name, count in totals.top_hosts.items():
        hosts.add_row(Text(name), f"{count:,}")
    out.print(hosts)
    if totals.pages_with_importance:
        out.print(f"pages with an importance: {totals.pages_with_importance:,}; all others count as 1")
    if totals.traps:
        out.print(f"{totals.traps:,} known URLs look like crawler traps")


def _spark(counts: list[int], width: int = 60) -> str:
    """A row of bars, at most `width` of them.

    >>> _spark([0, 4, 8])
    ' ▄█'
    """
    size = -(-len(counts) // width)
    sums = [sum(counts[i : i + size]) for i in range(0, len(counts), size)]
    return "".join(BARS[round(count / max(max(sums), 1) * (len(BARS) - 1))] for count in sums)
