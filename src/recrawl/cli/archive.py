"""``recrawl archive``: histories from the Internet Archive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, console, note, print_json, progress

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.sources.wayback import Archive, Delivery

AT_ONCE = 200  #: visits stored and acknowledged together


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("archive")(archive)


def archive(
    urls: Annotated[
        list[str], typer.Argument(metavar="URLS", help="Pages, or files with one URL per line; - is stdin.")
    ],
    contact: Annotated[
        str,
        typer.Option("--contact", envvar="RECRAWL_CONTACT", help="Your e-mail or web address, sent to the archive."),
    ],
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Captures from this time on.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Captures up to this time.")] = None,
    mementos: Annotated[
        bool,
        typer.Option("--mementos/--no-mementos", help="Fetch changed copies for their links, or use digests only."),
    ] = True,
    server: Annotated[str | None, typer.Option("--server", help="Another archive with the same interface.")] = None,
    history: HistoryOption = HISTORY,
    json: JsonOption = False,
) -> None:
    """Import the history of pages from the Internet Archive: every capture, with the links of each copy that differs.

    Polite (24 index requests per minute, Retry-After obeyed) and resumable: run it again to continue, or to get new captures.
    Only this command and recrawl crawl use the network.
    """
    from recrawl.core.version import __version__
    from recrawl.history import History
    from recrawl.sources.response import response_visit
    from recrawl.sources.wayback import BASE_URL, Archive, Client
    from recrawl.web.visit import parse_at

    opened = History.create(history)
    client = Client(f"recrawl/{__version__} (+{contact})", base_url=server or BASE_URL)
    span: dict[str, Any] = {"since": parse_at(since) if since else None, "until": parse_at(until) if until else None}
    state = Path(history) / "archive"
    with Archive(client, state, response_visit, mementos=mementos, **span) as source:
        _store(source, opened, _wanted(urls))
    report = source.report
    if json:
        print_json(report.__dict__)
    else:
        console().print(
            f"[bold]{report.visits:,}[/] visits from {report.captures:,} new captures of {report.urls:,} URLs, "
            f"{report.mementos:,} copies fetched"
        )
        for kind, counts in (("without links", report.without_links), ("skipped", report.skipped)):
            for reason, count in counts.most_common():
                console().print(f"{kind}: {count:,} {reason}", markup=False)
    for message in report.notes:
        note(message)
    for url, reason in report.failed.items():
        note(f"error: {url}: {reason}")
    if report.failed:
        raise typer.Exit(1)


def _store(source: Archive, history: History, urls: list[str]) -> None:
    """Store visits in groups; a group is acknowledged only when it is on disk."""
    group: list[Delivery] = []
    with progress("captures") as advance:
        for delivery in source.visits(urls):
            group.append(delivery)
            advance(1)
            if len(group) >= AT_ONCE:
                _put(source, history, group)
                group = []
        _put(source, history, group)


def _put(source: Archive, history: History, group: list[Delivery]) -> None:
    from recrawl.errors import BadRecord, BadUrl
    from recrawl.history import BatchBuilder

    builder = BatchBuilder()
    for delivery in group:
        try:
            builder.add(delivery.visit)
        except (BadRecord, BadUrl) as error:
            source.report.skipped[str(error).partition(":")[0]] += 1
    if group:
        history.append(builder.take())
        source.acknowledge(*group)


def _wanted(arguments: list[str]) -> list[str]:
    urls: list[str] = []
    for argument in arguments:
        if argument == "-":
            urls += [line.strip() for line in sys.stdin]
        elif "://" not in argument and Path(argument).is_file():
            urls += [line.strip() for line in Path(argument).read_text(encoding="utf-8", errors="replace").splitlines()]
        else:
            urls.append(argument if "://" in argument else f"http://{argument}")
    return [url for url in urls if url and not url.startswith("#")]
