import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from recrawl.crawl.view import CrawlView, crawl_summary, most_common

STATS: dict[str, Any] = {
    "recrawl/planned": 40,
    "recrawl/visits": 12,
    "recrawl/fetched": 7,
    "recrawl/not_modified": 4,
    "recrawl/failed": 1,
    "recrawl/failed/timeout": 1,
    "recrawl/expected_new_links": 31.4,
    "recrawl/new_links": 9,
}


def shown(terminal: bool, quiet: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=110)
    with CrawlView(console, quiet) as view:
        view.begin(0)
        view.watch(SimpleNamespace(stats=SimpleNamespace(get_stats=lambda: STATS)))
        assert view.render() is not None
    return out.getvalue()


def test_a_terminal_shows_what_was_fetched_found_and_failed() -> None:
    text = shown(terminal=True)
    for part in ("cycle 1", "12/40", "7 fetched, 4 unchanged, 0 gone", "9 new links of 31 expected", "1 timeout"):
        assert part in text, part


def test_a_crawler_that_has_no_stats_yet_is_shown_as_zeros() -> None:
    class NotYet:
        @property
        def stats(self) -> Any:
            raise RuntimeError("Crawler.stats is not set yet")

    view = CrawlView(Console(file=io.StringIO()))
    view.watch(NotYet())
    assert "0 fetched" in rendered(view)


def test_the_view_says_when_the_next_cycle_begins_and_that_a_crawl_is_stopping() -> None:
    view = CrawlView(Console(file=io.StringIO()))
    view.watch(SimpleNamespace(crawling=False, stats=SimpleNamespace(get_stats=lambda: STATS)))
    assert "press Ctrl-C again to stop at once" in rendered(view)
    view.wait(90)
    assert "next cycle in 90 s" in rendered(view)
    view.begin(1)
    assert "next cycle" not in rendered(view)


def rendered(view: CrawlView) -> str:
    console = Console(file=io.StringIO(), width=150)
    with console.capture() as captured:
        console.print(view.render())
    return captured.get()


def test_there_is_no_live_view_in_files_and_with_json() -> None:
    assert shown(terminal=False) == ""
    assert shown(terminal=True, quiet=True) == ""


def test_the_most_common_failures_come_first() -> None:
    kinds = {f"recrawl/failed/kind {i}": i for i in range(1, 9)}
    text = most_common(crawl_summary(STATS | kinds)["failures"])
    assert text.startswith("8 kind 8, 7 kind 7")
    assert text.endswith("and 4 other kinds")


def test_the_summary_of_a_crawl_that_did_nothing_has_zeros() -> None:
    summary = crawl_summary({})
    assert summary["visits"] == summary["new_links"] == 0
    assert summary["ended"] == "running"
