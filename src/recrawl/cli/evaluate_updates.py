"""``recrawl evaluate --method history-aware``: the options of the evaluation of Jayawardana et al. (HACS), and its work."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import checked_period, chosen, console, note, open_history, print_json, steps
from recrawl.cli.report_options import PageOutput
from recrawl.core.words import duration
from recrawl.world.rate_names import RATES

if TYPE_CHECKING:
    from datetime import datetime

    from recrawl.papers.updates.evaluation import UpdateEvaluation, UpdateSettings
    from recrawl.world.roots import Roots

MAX_WINDOWS = 1000
PANEL = "Options of --method history-aware"


def _option(name: str, text: str, **more: Any) -> Any:
    return typer.Option(name, help=text, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class UpdateOptions:
    """The options of this method."""

    windows: Annotated[
        str, _option("--windows", "Weeks of history to try: numbers and ranges, separated by commas.", metavar="WEEKS")
    ] = "1-12"
    thetas: Annotated[
        str, _option("--thetas", "Thresholds on the probability of an update, separated by commas.", metavar="NUMBERS")
    ] = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
    ahead: Annotated[
        str, _option("--ahead", "Predict updates within this time.", metavar="PERIOD", callback=checked_period)
    ] = "7d"
    since: Annotated[
        str | None,
        _option("--from", "Evaluate from this time on; earlier visits still count as history.", metavar="TIME"),
    ] = None
    until: Annotated[str | None, _option("--until", "Evaluate up to this time.", metavar="TIME")] = None
    goal: Annotated[
        str,
        _option(
            "--goal",
            "What an update is: links (one never before on the page), or content (another checksum than the capture before).",
            metavar="NAME",
        ),
    ] = "links"
    level: Annotated[
        str,
        _option(
            "--level",
            "What is updated: page, homepage (the root of a site) or site (all its pages up to depth 2 together); several, "
            "separated by commas, are evaluated one after the other.",
            metavar="NAMES",
        ),
    ] = "page"
    roots: Annotated[
        str,
        _option(
            "--roots",
            "Where sites begin: domain, host, a pattern such as '/~*/', or a file with one root per line.",
            metavar="domain|host|PATTERN|FILE",
        ),
    ] = "host"
    rates: Annotated[
        str,
        typer.Option(
            "--rates",
            "--estimator",
            help=f"How rates of updates are estimated: {', '.join(RATES)}.",
            metavar="NAME",
            rich_help_panel=PANEL,
        ),
    ] = RATES[0]
    updates: Annotated[
        str,
        _option(
            "--updates",
            "Assumed time of an update: interpolated (halfway to the visit before) or observed.",
            metavar="NAME",
        ),
    ] = "interpolated"
    pdf: Annotated[
        str,
        _option(
            "--pdf",
            "New links to PDF files: with all others, only (nothing else is an update), or without.",
            metavar="CHOICE",
        ),
    ] = "with"

    def settings(self, every: str, seed: int) -> list[UpdateSettings]:
        """The settings of the evaluation of each level."""
        from recrawl.core.times import parse_period
        from recrawl.papers.updates.captures import GOALS, LEVELS
        from recrawl.papers.updates.evaluation import UPDATES, UpdateSettings
        from recrawl.web.pdf import PDF_CHOICES

        common = UpdateSettings(
            windows=parse_windows(self.windows),
            thetas=parse_thetas(self.thetas),
            ahead=parse_period(self.ahead),
            every=every,
            goal=chosen("--goal", self.goal, GOALS)[0],
            roots=read_roots(self.roots),
            estimator=chosen("--rates", self.rates, RATES)[0],
            updates=chosen("--updates", self.updates, UPDATES)[0],
            pdf=chosen("--pdf", self.pdf, PDF_CHOICES)[0],
            since=parse_moment("--from", self.since),
            until=parse_moment("--until", self.until),
            seed=seed,
        )
        return [replace(common, level=level) for level in dict.fromkeys(chosen("--level", self.level, tuple(LEVELS)))]


def read_roots(text: str) -> Roots:
    """Where sites begin; what names no roots is wrong usage."""
    from recrawl.world.roots import parse_roots

    try:
        return parse_roots(text)
    except ValueError as error:
        raise typer.BadParameter(f"--roots: {error}") from None


def parse_windows(text: str) -> tuple[float, ...]:
    """Weeks of history: numbers and ranges separated by commas.

    >>> parse_windows("1-3,8")
    (1.0, 2.0, 3.0, 8.0)
    """
    weeks: list[float] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:-\s*(\d+)\s*)?", part)
        first = float(match[1]) if match else 0.0
        last = float(match[2]) if match and match[2] else first
        if not 0 < first <= last <= MAX_WINDOWS:
            raise typer.BadParameter(f"--windows {part.strip()!r} is not a number of weeks; write e.g. 1-12 or 1,2,4")
        weeks += [first + i for i in range(int(last - first) + 1)]
    return tuple(dict.fromkeys(weeks))


def parse_thetas(text: str) -> tuple[float, ...]:
    """Thresholds from 0 to 1 separated by commas, ascending.

    >>> parse_thetas("0.5,0.1")
    (0.1, 0.5)
    """
    try:
        thetas = sorted({float(part) for part in text.split(",")})
    except ValueError:
        thetas = []
    if not thetas or thetas[0] < 0 or not thetas[-1] <= 1:
        raise typer.BadParameter(f"--thetas {text!r}: write probabilities separated by commas, e.g. 0.5,0.7,0.9")
    return tuple(thetas)


def parse_moment(option: str, text: str | None) -> datetime | None:
    """A time given with an option."""
    from recrawl.errors import BadRecord
    from recrawl.web.visit import parse_at

    try:
        return parse_at(text) if text else None
    except BadRecord as error:
        message = f"{option}: {error}; write a time with its zone, such as 2025-03-01T00:00:00Z"
        raise typer.BadParameter(message) from None


def too_short(evaluation: UpdateEvaluation) -> str | None:
    """Advice where --ahead is shorter than the time in which most pages are visited again."""
    from datetime import datetime

    whole = (
        datetime.fromisoformat(evaluation.last) - datetime.fromisoformat(evaluation.first)
    ).total_seconds() / 86_400
    days = whole * evaluation.n_pages / max(evaluation.n_captures - evaluation.n_pages, 1)
    ahead = evaluation.settings.ahead.total_seconds() / 86_400
    if ahead >= 0.9 * days:
        return None
    return (
        f"a page is visited every {duration(24 * days)}, so within --ahead {ahead:g}d hardly any update can be seen; "
        f"try --ahead {math.ceil(days)}d"
    )


def run(history: str, as_of: str | None, settings: list[UpdateSettings], page: PageOutput, json: bool) -> None:
    """Evaluate each level, then print the tables or the rows, and write the page."""
    from recrawl.papers.updates.evaluation import evaluate_updates

    opened = open_history(history, as_of)
    for text in settings[0].roots.notes():
        note(text)
    with steps("what was new on each visit") as on_step:
        evaluations = [evaluate_updates(opened, each, on_step) for each in settings]
        if page.path:
            from recrawl.papers.updates.page import write_updates_page

            write_updates_page(page.path, *evaluations, self_contained=page.self_contained)
    for evaluation in evaluations:
        _print_rows(evaluation) if json else _print_tables(evaluation)
    if not json:
        page.print_path(console())


def _print_rows(evaluation: UpdateEvaluation) -> None:
    settings = evaluation.settings
    common = {"method": "history-aware", "level": settings.level, "goal": settings.goal}
    for part, rows in evaluation.rows.items():
        for row in rows:
            print_json({"part": part, **common, **row})


def _print_tables(evaluation: UpdateEvaluation) -> None:
    from rich.text import Text

    from recrawl.papers.updates.page import findings, scope, update_tables
    from recrawl.report.terminal import Bullets

    screen = console()
    screen.print(Bullets(findings(evaluation)))
    screen.print(Text(scope(evaluation)))
    for table in update_tables(evaluation):
        screen.print(table)
    if advice := too_short(evaluation):
        note(advice)
