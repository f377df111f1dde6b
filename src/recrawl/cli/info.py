"""``recrawl info``: what the history holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    console,
    open_history,
    print_json,
    working,
)

if TYPE_CHECKING:
    from recrawl.history import History, Summary

BARS = " ▁▂▃▄▅▆▇█"
MEANING = {
    "previous": "since the page's previous visit",
    "page": "never before on the page",
    "anywhere": "never before anywhere (distinct)",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("info")(info)


def info(history: HistoryOption = HISTORY, as_of: AsOfOption = None, json: JsonOption = False) -> None:
    """What the history holds: totals, period, visits per day, outcomes, hosts, new links."""
    from recrawl.history import summary

    opened = open_history(history, as_of)
    with working("counting"):
        found = summary(opened)
    sizes = opened.store.size_in_bytes()
    hints = _hints(opened)
    if json:
        print_json({**found.as_dict(), "bytes": sizes, "hints": hints})
    else:
        _print(found, sum(sizes.values()))
        for kind, row in hints.items():
            console().print(
                f"{kind}s: {row['judged_hosts']:,} hosts with visits that can be compared with what they said, believed on "
                f"{row['proven_hosts']:,}; {row['right']:,} of {row['hinted']:,} hints were right"
            )


def _hints(history: History) -> dict[str, dict[str, int]]:
    """What sitemaps and feeds said, and how far it was right."""
    from recrawl.insight.hints.of_pages import track_records

    return {
        one.kind: {
            "judged_hosts": int((one.n_visits > 0).sum()),
            "proven_hosts": int(one.is_proven.sum()),
            "hinted": int(one.n_hinted.sum()),
            "right": int(one.n_right.sum()),
        }
        for one in track_records(history)
    }


def _print(found: Summary, n_bytes: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from recrawl.history.summary import moment

    out = console()
    period = "no visits yet"
    if found.first_at and found.last_at:
        days = (found.last_at - found.first_at).total_seconds() / 86400
        period = f"{moment(found.first_at)[:16]} to {moment(found.last_at)[:16]} UTC, {days:,.1f} days"
    out.print(
        f"[bold]{found.visits:,}[/] visits to [bold]{found.pages:,}[/] pages on {found.hosts:,} hosts, "
        f"{found.links:,} distinct links seen; {n_bytes / 1e6:,.1f} MB"
    )
    out.print(period)
    if not found.visits:
        return
    outcomes = Table("outcome", "visits", "share", box=None)
    for name in ("ok", "unchanged", "gone", "failed"):
        count = getattr(found, name)
        outcomes.add_row(name, f"{count:,}", f"{count / found.visits:.1%}")
    out.print(outcomes)
    new = Table("new links", "links", "on visits", "share of compared visits", box=None)
    for meaning, words in MEANING.items():
        visits = found.visits_with_new_links[meaning]
        share = f"{visits / found.visits_compared:.1%}" if found.visits_compared else "–"
        new.add_row(words, f"{found.new_links[meaning]:,}", f"{visits:,}", share)
    out.print(new)
    per_day = list(found.visits_per_day.values())
    out.print(f"visits per day, {len(per_day):,} days with any: {_spark(per_day)}  at most {max(per_day):,}")
    hosts = Table("hosts with most pages", "pages", box=None)
    for name, count in found.top_hosts.items():
        hosts.add_row(Text(name), f"{count:,}")
    out.print(hosts)
    if found.traps:
        out.print(f"{found.traps:,} known URLs look like crawler traps")


def _spark(counts: list[int], width: int = 60) -> str:
    """A row of bars, at most `width` of them.

    >>> _spark([0, 4, 8])
    ' ▄█'
    """
    size = -(-len(counts) // width)
    sums = [sum(counts[i : i + size]) for i in range(0, len(counts), size)]
    return "".join(BARS[round(count / max(max(sums), 1) * (len(BARS) - 1))] for count in sums)
