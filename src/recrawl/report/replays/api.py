"""Replay policies on the past of a history, and recommend one of them: what the commands and the API call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.core.options import record_of
from recrawl.core.times import moment
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.plan.planner import Report, ignore
from recrawl.plan.survey import N_RELATED
from recrawl.policies.budget import Budget
from recrawl.replay import many
from recrawl.replay import tune as tuning
from recrawl.replay.past import past
from recrawl.report.replays.comparison import Replays, gather
from recrawl.report.replays.options import (
    ReplayOptions,
    TuneOptions,
    budget_pages,
    read_time,
)
from recrawl.world.notions import notion_or_any
from recrawl.world.pages import Need
from recrawl.world.recorded import World
from recrawl.world.roots import Roots, parse_roots, same_anywhere

if TYPE_CHECKING:
    from recrawl.models.link_relevance import Focus
    from recrawl.policies.base import Policy


SIGNALLED = "policies that take signalled changes know those read by then"


def ignore_cycles(done: int, total: int) -> None:
    """Default callback: do nothing."""


def replay(
    history: History | str | Path,
    policies: str | Policy | Sequence[str | Policy] | None = None,
    budget: str | int = "10%",
    *,
    on_step: Report = ignore,
    on_cycles: many.OnCycles = ignore_cycles,
    on_note: Report = ignore,
    **options: Any,
) -> Replays:
    """What each policy would have found on the recorded past, by the options of ``recrawl replay`` (see `ReplayOptions`).

    `policies` are names or `Policy` objects, `budget` is a number of pages per cycle or a share of the pages. `on_cycles` is
    called with the number of cycles finished and the number of all, `on_note` with what the user should know. The history and
    the policies stay as they are.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     result = rc.replay(history, ["round-robin", rc.policies.WindowedOutdegree(window=3)], budget=1)
    >>> result
    Replays(2 policies on 3 pages in 5 cycles, 1 page per cycle; windowed-outdegree found 88% of 25 new links)
    >>> [row["policy"] for row in result.records()]
    ['round-robin', 'windowed-outdegree']
    """
    asked = record_of(ReplayOptions, {"policies": policies, "budget": budget} | options)
    return replay_by(history, asked, on_step=on_step, on_cycles=on_cycles, on_note=on_note)


def replay_by(
    history: History | str | Path,
    options: ReplayOptions,
    *,
    on_step: Report = ignore,
    on_cycles: many.OnCycles = ignore_cycles,
    on_note: Report = ignore,
) -> Replays:
    """The same with a record of options."""
    if options.resume is not None:
        _make_folder(options.resume)
    policies = options.made_policies()
    on_step("working out what every page showed in every cycle")
    roots = parse_roots(options.roots)
    for note in roots.notes():
        on_note(note)
    world = _world(History.of(history), options, policies, roots, on_note)
    budgets = [
        Budget(pages, options.per_host, options.per_site)
        for pages in budget_pages(options.budget, world.n_pages, on_note)
    ]
    on_step("replaying")
    runs = many.replay_many(
        world,
        policies,
        budgets,
        workers=options.workers,
        folder=options.resume,
        on_cycles=on_cycles,
        observed=options.observed,
    )
    return gather(
        world,
        runs,
        every=options.every,
        seed=options.seed,
        notes=[*options.notes(), *([SIGNALLED] if world.hints is not None else [])],
        observed=options.observed,
        goal=options.goal,
    )


def tune(
    history: History | str | Path,
    budget: str | int = "10%",
    policies: str | Sequence[str] | None = None,
    *,
    keep: bool = False,
    on_step: Report = ignore,
    on_cycles: many.OnCycles = ignore_cycles,
    on_note: Report = ignore,
    **options: Any,
) -> tuning.Tuning:
    """The policy that suits this history best, by the options of ``recrawl tune`` (see `TuneOptions`).

    The default policy is always among those that are tried, and stays unless another is better by more than chance. The history
    stays as it is, unless `keep` stores the recommendation, so that plans without a policy of their own use it.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     rc.tune(history, budget=1, policies="round-robin,average-count")
    Tuning(expected-harvest of 3 candidates, 92% of the new links found)
    """
    asked = record_of(TuneOptions, {"budget": budget, "policies": policies} | options)
    return tune_by(history, asked, keep, on_step=on_step, on_cycles=on_cycles, on_note=on_note)


def tune_by(
    history: History | str | Path,
    options: TuneOptions,
    keep: bool = False,
    *,
    on_step: Report = ignore,
    on_cycles: many.OnCycles = ignore_cycles,
    on_note: Report = ignore,
) -> tuning.Tuning:
    """The same with a record of options."""
    from recrawl.plan.default import recommend

    on_step("working out what every page showed in every cycle")
    history, focus, roots = History.of(history), options.focus, parse_roots(options.roots)
    for note in roots.notes():
        on_note(note)
    known = history.detached()
    world = past(
        known,
        options.every,
        n_related=N_RELATED,
        hinted=True,
        notion=notion_or_any(options.change),
        candidates=options.candidates,
        between=options.between,
        links=options.links,
        goal=options.goal,
        roots=roots,
    )
    world = _focused(known, world, focus, on_note)
    (pages,) = budget_pages(options.budget, world.n_pages, on_note)
    on_step("replaying")
    result = tuning.tune(
        world,
        Budget(pages),
        options.tried(),
        goal=options.goal,
        window=options.window,
        seed=options.seed,
        workers=options.workers,
        on_cycles=on_cycles,
    )
    last = moment(int(known.page_times()[1].max()))  # the last batch may end after it
    result = replace(
        result,
        until=min(result.until or last, last),
        links=options.links,
        roots=same_anywhere(options.roots),
        change=options.change,
    )
    if keep and not result.is_tie:
        recommend(history, result.record(options.every), focus)
    return result


def _world(
    history: History, options: ReplayOptions, policies: Sequence[Policy], roots: Roots, on_note: Report
) -> World:
    """What every page showed in every cycle, with all that these policies need to know."""
    known = history.detached() if options.until is None else history.as_of(read_time(options.until))
    needs = {need for policy in policies for need in policy.needs}
    world = past(
        known,
        options.every,
        None if options.since is None else read_time(options.since),
        options.related if Need.RELATED in needs else 0,
        with_words=Need.WORDS in needs,
        hinted=Need.SIGNALS in needs,
        notion=notion_or_any(options.change),
        observed=options.observed,
        candidates=options.candidates,
        between=options.between,
        links=options.links,
        goal=options.goal,
        roots=roots,
    )
    return _focused(known, world, options.focus, on_note)


def _focused(history: History, world: World, focus: Focus | None, on_note: Report) -> World:
    """The world with only the links that count."""
    if focus is None:
        return world
    from recrawl.replay.focus import focused

    return focused(history, world, focus, on_note)


def _make_folder(folder: str | os.PathLike[str]) -> None:
    """Create the folder of finished runs now, not after the first one an hour later."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecrawlError(f"cannot keep finished runs in {folder}: {error.strerror or error}") from error
