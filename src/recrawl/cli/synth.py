"""``recrawl synth``: a made-up history with the papers' statistics."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    HistoryOption,
    JsonOption,
    SeedOption,
    checked_period,
    console,
    note,
    print_json,
    progress,
    working,
    written,
)
from recrawl.errors import RecrawlError

if TYPE_CHECKING:
    from recrawl.synth import SynthSettings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("synth")(synth)


def synth(
    pages: Annotated[int, typer.Option("--pages", min=1, help="Number of pages; Dang et al. had 384323.")] = 2_000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of visits per page; Dang et al. had 10.")] = 10,
    every: Annotated[
        str, typer.Option("--every", metavar="PERIOD", help="Time between rounds.", callback=checked_period)
    ] = "7d",
    rhythm: Annotated[
        bool, typer.Option("--rhythm", help="New links follow the hour of the day and the day of the week.")
    ] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Include 192-dimensional semantic vectors.")] = False,
    terms: Annotated[bool, typer.Option("--terms/--no-terms", help="Include the words of the texts.")] = True,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write a .jsonl or .warc.gz file instead (-: JSONL to stdout)."
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the pages on loopback instead, to try a crawler on.")
    ] = False,
    step: Annotated[
        str,
        typer.Option(
            "--step", metavar="PERIOD", help="With --serve: real time that one --every takes.", callback=checked_period
        ),
    ] = "1m",
    history: HistoryOption = HISTORY,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Generate a synthetic web with the statistics of real ones, of any size: into a history, or as JSONL or WARC.

    Pages gain and lose links, disappear and fail; pages on the same topic behave alike, pages of a site share links, and
    distributions have heavy tails. The same seed generates the same web.
    """
    from recrawl.core.times import parse_period
    from recrawl.synth import SynthSettings

    if serve:
        _serve(pages, rounds, parse_period(every), parse_period(step).total_seconds(), seed)
        return
    settings = SynthSettings(
        pages=pages,
        rounds=rounds,
        every=parse_period(every),
        rhythm=rhythm,
        vectors=vectors,
        terms=terms,
        seed=seed,
    )
    if out is None:
        _into_history(settings, history, json)
    else:
        _into_file(settings, out)


def _into_history(settings: SynthSettings, folder: str, json: bool) -> None:
    from recrawl.history import History
    from recrawl.synth import batches

    history = History.create(folder)
    added = duplicates = 0
    with progress("generating pages", settings.pages) as advance:
        done = 0

        def report(now: int, total: int) -> None:
            nonlocal done
            advance(now - done, total)
            done = now

        for batch in batches(settings, report):
            receipt = history.append(batch)
            added, duplicates = added + receipt.added, duplicates + receipt.duplicates
    if json:
        print_json({"added": added, "duplicates": duplicates, "pages": settings.pages, "rounds": settings.rounds})
    else:
        console().print(f"[bold]{added:,}[/] visits to {settings.pages:,} synthetic pages in {folder}")


def _into_file(settings: SynthSettings, out: str) -> None:
    from recrawl.synth import write_jsonl, write_warc

    with working(f"generating {settings.pages:,} pages"):
        if out.endswith((".warc", ".warc.gz")):
            try:
                n = write_warc(settings, out)
            except OSError as error:
                raise RecrawlError(f"cannot write {out}: {error.strerror or error}") from error
        else:
            with written(out) as stream:
                n = write_jsonl(settings, stream)
    if out != "-":
        note(f"{n:,} visits to {settings.pages:,} synthetic pages in {out}")


def _serve(pages: int, steps: int, every: timedelta, seconds: float, seed: int) -> None:
    """Serve a synthetic web until it is interrupted, or its rounds are over."""
    import time
    from datetime import UTC, datetime

    from recrawl.synth.living.web import Living, LivingWeb

    with LivingWeb(Living(pages=pages, steps=steps, every=every, seed=seed, start=datetime.now(UTC))) as web:
        for url in web.seeds:
            print(url, flush=True)
        note(
            f"{pages:,} pages on {len(web.seeds)} hosts, for {steps} rounds of {seconds:g} s; try recrawl crawl --seeds "
            f"{web.seeds[0]} --anywhere --allow-loopback --user-agent 'Trial/1.0 (+https://example.org/bot)'"
        )
        try:
            for now in range(steps + 1):
                web.step = now
                web.log.clear()
                note(f"round {now} of {steps}: {web.now:%Y-%m-%d %H:%M}")
                time.sleep(seconds)
            note("the last round is over; --rounds makes the web last longer")
        except KeyboardInterrupt:
            note("ended")
