"""``recrawl tune``: which policy suits this history best."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    note,
    open_history,
    print_json,
    progress,
)
from recrawl.cli.option_groups import with_options
from recrawl.plan.options import PlanOptions
from recrawl.report.replays.options import TuneOptions

if TYPE_CHECKING:
    from recrawl.replay.compare import Comparison
    from recrawl.replay.tune import Tuning


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tune")(with_options(tune))


def tune(
    options: TuneOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not store the recommendation.")] = False,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """Replay several policies and settings on this history's past and recommend one, which recrawl plan then uses.

    The policy that found most new links is recommended, or with --goal content the one that kept most copies current. The default
    policy stays unless another is better by more than chance. Plans for the same goal use it.
    """
    opened = open_history(history, as_of)
    from recrawl.report.replays.api import tune_by

    with progress("replaying", None) as advance:
        before = 0

        def on_cycles(done: int, total: int) -> None:
            nonlocal before
            advance(done - before, total)
            before = done

        tuning = tune_by(opened, options, keep=not dry_run, on_cycles=on_cycles, on_note=note)
    if json:
        print_json(tuning.record(options.every))
    else:
        _show(tuning, options, dry_run)


def _show(tuning: Tuning, options: TuneOptions, dry_run: bool) -> None:
    from recrawl.cli.screen import Screen
    from recrawl.replay.tune import GAIN, label

    screen, best, focus = Screen(), tuning.best, options.focus
    gain = GAIN[tuning.goal] if focus is None else GAIN[tuning.goal].replace("new links", "new relevant links")
    by = ", by importance" if tuning.is_weighted else ""
    screen.line(
        f"{len(best.rows):,} cycles of {tuning.n_pages:,} pages, {best.budget:,} fetches each; share {gain}{by}:"
    )
    for run in tuning.runs:
        score = tuning.score(run)
        screen.line(f"{label(run):36} {'–' if score is None else f'{score:.3f}'}", indent="  ")
    if tuning.is_tie:
        screen.line(
            "all of them found the same, so none is recommended: the budget reaches every page, or hardly any of them twice"
        )
        return
    margins = (tuning.against_next, tuning.against_round_robin)
    for margin in margins if tuning.against_next != tuning.against_round_robin else margins[:1]:
        if margin is not None and margin.difference is not None:
            screen.line(_margin(margin, margin.difference, tuning.goal))
    if best is not tuning.runs[0]:
        screen.line(f"{label(tuning.runs[0])} is not better than it by more than chance, so the default stays")
    end = "not kept (--dry-run)" if dry_run else f"{_command(options)} will use it"
    screen.line(f"recommended: {label(best)}; {end}")


def _command(options: TuneOptions) -> str:
    """The plan that a recommendation is for."""
    words = ["recrawl plan"] + ([f"--goal {options.goal}"] if options.goal != "links" else [])
    words.append(f"--every {options.every}")
    for name in ("change", "roots", "links"):
        value = getattr(options, name)
        words += [f"--{name} {shlex.quote(value)}"] if value != getattr(PlanOptions(), name) else []
    if options.focus is not None:
        words.append(f"--relevance {shlex.quote(options.focus.source)}:{options.focus.above!r}")
    return " ".join(words)


def _margin(margin: Comparison, difference: float, goal: str) -> str:
    """How much better, or worse, the recommended policy is than another."""
    # Resampled days may hold more links than all days do: a share is at most 1 all the same.
    low, high = (max(-1.0, min(1.0, end or 0.0)) for end in (margin.low, margin.high))
    interval = "" if margin.low is None else f" (95% between {low:+.3f} and {high:+.3f})"
    than = f"{abs(difference):.3f} {'more' if difference >= 0 else 'less'} than {margin.against}"
    return f"{margin.policy} {'keeps' if goal == 'content' else 'finds'} {than}{interval}"
