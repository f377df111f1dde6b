"""``recrawl archive``: histories from web archives."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    HistoryOption,
    JsonOption,
    checked_period,
    chosen,
    console,
    note,
    print_json,
    progress,
)

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.sources.wayback import Archive, ArchiveReport, Delivery

AUTO = "auto"
AT_ONCE = 200  #: visits stored and acknowledged together


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("archive")(archive)


def archive(
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URLS",
            help="Pages, prefixes ('e.org/~me/*'), domains ('*.e.org'), or files with one of these per line; - is stdin.",
        ),
    ],
    contact: Annotated[
        str,
        typer.Option("--contact", envvar="RECRAWL_CONTACT", help="Your e-mail or web address, sent to the archive."),
    ],
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Captures from this time on.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Captures up to this time.")] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=0, help="Pages up to this number of path segments below a prefix or a host."),
    ] = None,
    pdf: Annotated[
        str, typer.Option("--pdf", metavar="CHOICE", help="Captures of PDF files: with, only or without.")
    ] = "with",
    mementos: Annotated[
        bool,
        typer.Option("--mementos/--no-mementos", help="Fetch changed copies for their links, or use digests only."),
    ] = True,
    server: Annotated[
        str | None,
        typer.Option("--server", help="Another archive: the address of its server or collection."),
    ] = None,
    interface: Annotated[
        str,
        typer.Option(
            "--interface",
            metavar="NAME",
            help="What the server speaks: internet-archive, pywb, outbackcdx or timemap; auto finds out and remembers it.",
        ),
    ] = AUTO,
    copies: Annotated[
        str | None,
        typer.Option("--copies", help="Where copies are (ADDRESS/<time>id_/<url>), if the server only lists them."),
    ] = None,
    patience: Annotated[
        str,
        typer.Option(
            "--patience",
            metavar="PERIOD",
            help="How long to wait while the archive refuses every request.",
            callback=checked_period,
        ),
    ] = "30m",
    history: HistoryOption = HISTORY,
    json: JsonOption = False,
) -> None:
    """Import the history of pages from a web archive: every capture, with the links of each copy that differs.

    From the Internet Archive, or from another archive with --server. Polite (24 index requests per minute, Retry-After obeyed) and
    resumable: run it again to continue, or to get new captures. Only this command and recrawl crawl use the network.
    """
    wanted = _wanted(urls)
    options = _checked(interface, pdf, depth, wanted)
    from recrawl.core.times import parse_period
    from recrawl.core.version import __version__
    from recrawl.history import History
    from recrawl.sources.response import response_visit
    from recrawl.sources.wayback import BASE_URL, Archive, Client
    from recrawl.web.visit import parse_at

    options |= {"since": parse_at(since) if since else None, "until": parse_at(until) if until else None}
    options |= {"mementos": mementos, "copies": copies and copies.rstrip("/")}
    waits: dict[str, Any] = {"patience": parse_period(patience).total_seconds(), "on_wait": note}
    client = Client(f"recrawl/{__version__} (+{contact})", base_url=server or BASE_URL, **waits)
    opened = History.create(history)
    with Archive(client, _kept(history), response_visit, **options) as source:
        _store(source, opened, wanted)
    _tell(source.report, json=json)
    if source.report.failed:
        raise typer.Exit(1)


def _kept(history: str) -> Path:
    """Where it is noted what was fetched: in the history; for one in an object store, in the user's cache on this machine."""
    from recrawl.core.hashing import hash64
    from recrawl.core.places import place

    folder = place(history)
    if isinstance(folder, Path):
        return folder / "archive"
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        cache = Path(tempfile.gettempdir())
    return cache / "recrawl" / "archive" / f"{hash64(str(folder)) & (1 << 64) - 1:016x}"


def _checked(interface: str, pdf: str, depth: int | None, wanted: list[str]) -> dict[str, Any]:
    """The options of the archive; what is wrong with them is said before anything is opened."""
    from recrawl.sources.wayback import INTERFACES, Filters
    from recrawl.web.pdf import PDF_CHOICES

    chosen("--interface", interface, (AUTO, *INTERFACES))
    chosen("--pdf", pdf, PDF_CHOICES)
    if depth is not None and not any("*" in text for text in wanted):
        raise typer.BadParameter("only prefixes ('e.org/*') and domains ('*.e.org') have a depth", param_hint="--depth")
    return {"interface": None if interface == AUTO else interface, "filters": Filters(depth=depth, pdf=pdf)}


def _tell(report: ArchiveReport, *, json: bool) -> None:
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
        if reason != report.stopped:
            note(f"error: {url}: {reason}")
    if report.stopped:
        note(f"error: {report.stopped}. What was fetched is kept: run the same command again to continue.")


def _store(source: Archive, history: History, urls: list[str]) -> None:
    """Store visits in groups; a group is acknowledged only when it is on disk. What was fetched is kept, however the run ends."""
    group: list[Delivery] = []
    with progress("captures") as advance:
        try:
            for delivery in source.visits(urls):
                group.append(delivery)
                advance(1)
                if len(group) >= AT_ONCE:
                    _put(source, history, group)
                    group = []
        finally:
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
            urls.append(argument)
    return [_spelled(url) for url in urls if url and not url.startswith("#")]


def _spelled(url: str) -> str:
    """A page without a scheme gets one; a pattern may do without."""
    return url if "://" in url or url.startswith("*") or url.endswith("*") else f"http://{url}"
