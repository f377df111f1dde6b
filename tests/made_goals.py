"""Pages that gain links and change at different rates: what each goal of a plan must tell apart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recrawl.history import History
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
N_DAYS = 20
NOW = START + (N_DAYS + 1) * DAY


def page(name: str, host: str = "e.org") -> str:
    return f"https://{host}/{name}"


def watched(history: History, name: str, changes_at: set[int], new_links: int, host: str = "e.org") -> None:
    """A page that was visited daily; on some days its text is another, and it has `new_links` more."""
    visits, n_links, text = [], 5, 0
    for day in range(N_DAYS + 1):
        if day in changes_at:
            n_links, text = n_links + new_links, day
        links = [page(f"{name}/{i}", host) for i in range(n_links)]
        visits.append(Visit(url=page(name, host), at=START + day * DAY, links=links, text=f"as of {text}"))
    history.add(visits)


def on(n: int) -> set[int]:
    """`n` days, evenly spread."""
    return {round(N_DAYS * (i + 1) / n) for i in range(n)}


def goal_history(folder: Path) -> History:
    """New links per day 1.6, 1.2 and none; changes per visit 0.1, 0.6, 0.8 and none."""
    made = History.create(folder)
    watched(made, "bursts", on(2), 16)
    watched(made, "mixed", on(12), 2)
    watched(made, "ticker", on(16), 0)
    watched(made, "quiet", set(), 0)
    return made


def wordy(history: History, name: str, words: Callable[[int], dict[str, int]], days_seen: range) -> None:
    history.add(Visit(url=page(name), at=START + day * DAY, links=[page("a")], terms=words(day)) for day in days_seen)


def trembles(day: int) -> dict[str, int]:
    return {"x": 30 + day % 2, "y": 10}  # never the same, never significantly different


def turns(day: int) -> dict[str, int]:
    return {"x": 30, "y": 10} if day % 4 < 2 else {"x": 10, "y": 30}


def two_wordy_pages(folder: Path) -> History:
    """One page whose words differ at every visit, but never significantly, and one that changes for good every other day."""
    history = History.create(folder)
    for name, words in (("trembles", trembles), ("turns", turns)):
        wordy(history, name, words, range(20))
    return history
