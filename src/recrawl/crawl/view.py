"""What a person sees while a crawl runs, and what is told of it at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

FAILED, FORBIDDEN = "recrawl/failed/", "recrawl/forbidden/"
TOP_FAILURES = 5


class View:
    """A live view on a terminal: fetched, new links found against expected, errors by kind, pages a second."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.crawler: Any = None
        self.cycle = 0
        self._next_at: float | None = None  # when the next cycle begins, while it is waited for
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("cycle {task.fields[cycle]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        )
        self._task = self._bar.add_task("", total=None, cycle=1)
        shown = console.is_terminal and not quiet
        self._live = (
            Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True) if shown else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, cycle: int) -> None:
        """A cycle begins."""
        self.cycle, self._started, self._next_at = cycle, time.monotonic(), None
        self._bar.reset(self._task, total=None, cycle=cycle + 1)

    def watch(self, crawler: Any) -> None:
        """This is the crawler to look at."""
        self.crawler = crawler

    def wait(self, seconds: float | None) -> None:
        """A cycle ended; in so many seconds the next begins, if there is one."""
        self._next_at = None if seconds is None else time.monotonic() + seconds

    def _stats(self) -> dict[str, Any]:
        try:
            return dict(self.crawler.stats.get_stats()) if self.crawler is not None else {}
        except (AttributeError, RuntimeError):  # a crawler has none before it starts; or one is added meanwhile
            return {}

    def _told(self, seconds: float, done: int) -> str:
        if self._next_at is not None:
            return f"the next cycle begins in {max(self._next_at - time.monotonic(), 0):,.0f} s"
        if not getattr(self.crawler, "crawling", True) and done:
            return "ending: what is under way is waited for; Ctrl-C again ends at once"
        return f"{done / seconds:.1f} pages/s"

    def render(self) -> Group:
        """The view as it is now."""
        stats = self._stats()
        found = told(stats)
        done = found["visits"]
        planned = found["planned"] or None
        self._bar.update(self._task, completed=min(done, planned) if planned else done, total=planned)
        seconds = max(time.monotonic() - self._started, 1e-9)
        lines = Table.grid(padding=(0, 2))
        expected = f" of {found['expected_new_links']:,.0f} expected" if planned else ""
        lines.add_row(
            f"{found['fetched']:,} fetched, {found['not_modified']:,} unchanged, {found['gone']:,} gone",
            f"{found['new_links']:,} new links{expected}",
            self._told(seconds, done),
        )
        return Group(self._bar, lines, Text(failures(stats), style="yellow"))


def told(stats: Mapping[str, Any]) -> dict[str, Any]:
    """What a crawl did, as plain numbers; these keys are an interface."""

    stats = dict(stats)  # the crawl adds to it while the view looks

    def count(name: str) -> Any:
        return stats.get(f"recrawl/{name}", 0)

    return {
        "planned": count("planned"),
        "visits": count("visits"),
        "fetched": count("fetched"),
        "not_modified": count("not_modified"),
        "gone": count("gone"),
        "redirects": count("redirects"),
        "failed": count("failed"),
        "failures": {name.removeprefix(FAILED): n for name, n in stats.items() if name.startswith(FAILED)},
        "forbidden": count("forbidden"),
        "forbidden_why": {name.removeprefix(FORBIDDEN): n for name, n in stats.items() if name.startswith(FORBIDDEN)},
        "throttled": count("throttled"),
        "refused": count("refused"),
        "soft_404": count("soft_404"),
        "conditional": count("conditional"),
        "hints_read": count("hints_read"),
        "expected_new_links": count("expected_new_links"),
        "new_links": count("new_links"),
        "written": count("written"),
        "spilled": count("spilled"),
        "spilled_to": stats.get("recrawl/spilled_to", []),
        "not_written": stats.get("recrawl/not_written"),
        "bytes": stats.get("downloader/response_bytes", 0),
        "seconds": round(float(stats.get("elapsed_time_seconds", 0.0)), 3),
        "notes": stats.get("recrawl/notes", []),
        "plan_failed": count("plan_failed") or None,
        "ended": stats.get("finish_reason", "running"),
    }


def failures(stats: Mapping[str, Any]) -> str:
    """The commonest kinds of failure, with their numbers."""
    return counted(told(stats)["failures"])


def counted(kinds: Mapping[str, int]) -> str:
    """The commonest of some kinds, with their numbers."""
    found = sorted(kinds.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{n:,} {kind}" for kind, n in found[:TOP_FAILURES])
    return shown + (f" and {len(found) - TOP_FAILURES} other kinds" if len(found) > TOP_FAILURES else "")
