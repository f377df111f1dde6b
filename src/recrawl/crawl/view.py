"""The live view of a running crawl, and its summary at the end."""

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
TOP_KINDS = 5  #: of failures that are listed


class CrawlView:
    """A live view on a terminal: pages fetched, new links found and expected, failures by kind, pages per second."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.crawler: Any = None
        self.cycle = 0
        self._next_at: float | None = None  # when the next cycle begins, between two cycles
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("cycle {task.fields[cycle]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        )
        self._task = self._bar.add_task("", total=None, cycle=1)
        self._live: Live | None = None
        if console.is_terminal and not quiet:
            self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, cycle: int) -> None:
        """Show a cycle that begins."""
        self.cycle, self._started, self._next_at = cycle, time.monotonic(), None
        self._bar.reset(self._task, total=None, cycle=cycle + 1)

    def watch(self, crawler: Any) -> None:
        """Show the stats of this crawler."""
        self.crawler = crawler

    def wait(self, seconds: float | None) -> None:
        """Show that a cycle ended and that the next begins in that many seconds; None: there is no next one."""
        self._next_at = None if seconds is None else time.monotonic() + seconds

    def _stats(self) -> dict[str, Any]:
        try:
            return dict(self.crawler.stats.get_stats()) if self.crawler is not None else {}
        except (AttributeError, RuntimeError):  # no stats before the start; or one is added during the copy
            return {}

    def _state(self, seconds: float, done: int) -> str:
        if self._next_at is not None:
            return f"next cycle in {max(self._next_at - time.monotonic(), 0):,.0f} s"
        if not getattr(self.crawler, "crawling", True) and done:
            return "stopping: waiting for requests in progress; press Ctrl-C again to stop at once"
        return f"{done / seconds:.1f} pages/s"

    def render(self) -> Group:
        """The view as it is now."""
        summary = crawl_summary(self._stats())
        done = summary["visits"]
        planned = summary["planned"] or None
        self._bar.update(self._task, completed=min(done, planned) if planned else done, total=planned)
        seconds = max(time.monotonic() - self._started, 1e-9)
        lines = Table.grid(padding=(0, 2))
        expected = f" of {summary['expected_new_links']:,.0f} expected" if planned else ""
        lines.add_row(
            f"{summary['fetched']:,} fetched, {summary['not_modified']:,} unchanged, {summary['gone']:,} gone",
            f"{summary['new_links']:,} new links{expected}",
            self._state(seconds, done),
        )
        return Group(self._bar, lines, Text(most_common(summary["failures"]), style="yellow"))


def crawl_summary(stats: Mapping[str, Any]) -> dict[str, Any]:
    """What a crawl did, as plain numbers, from Scrapy's stats. The keys are an interface (``recrawl crawl --json``)."""

    stats = dict(stats)  # a copy, because the crawl may still add to it

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
        "followed": count("followed"),
        "adopted": count("adopted"),
        "adopted_pages": stats.get("recrawl/adopted_pages", []),
        "relevant": count("relevant"),
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


def most_common(counts: Mapping[str, int]) -> str:
    """The most common of some kinds, with their counts.

    >>> most_common({"timeout": 2, "host not found": 1_234})
    '1,234 host not found, 2 timeout'
    """
    by_count = sorted(counts.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{n:,} {kind}" for kind, n in by_count[:TOP_KINDS])
    return shown + (f" and {len(by_count) - TOP_KINDS} other kinds" if len(by_count) > TOP_KINDS else "")
