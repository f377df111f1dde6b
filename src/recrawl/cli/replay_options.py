"""Options of ``recrawl replay``: which past is replayed, and what counts in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import ChangeOption, EveryOption, open_history
from recrawl.world.notion_names import ANY
from recrawl.world.pages import Need

if TYPE_CHECKING:
    from recrawl.policies import Policy
    from recrawl.world.recorded import World

RELEVANT = 0.5  # above which a link counts as relevant


@dataclass(frozen=True)
class ReplayedPast:
    """The past that policies are replayed on."""

    every: EveryOption = "crawl"
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Ignore everything recorded before this time.")
    ] = None
    until: Annotated[
        str | None,
        typer.Option("--until", "--as-of", metavar="TIME", help="Ignore everything recorded after this time."),
    ] = None
    observed: Annotated[
        int, typer.Option("--observed", min=0, help="Number of cycles that every policy sees whole before it chooses.")
    ] = 0
    change: ChangeOption = ANY
    related: Annotated[
        int, typer.Option("--related", min=0, help="Number of related pages per page, for policies that use them.")
    ] = 30
    relevance: Annotated[
        str | None,
        typer.Option(
            "--relevance",
            metavar="FILE",
            help="Count only links that this classifier (from recrawl relevance) finds relevant.",
        ),
    ] = None
    relevant_above: Annotated[
        float | None,
        typer.Option(
            "--relevant-above",
            min=0.0,
            max=1.0,
            help="Count only links above this relevance; without --relevance, as recorded. [0.5]",
        ),
    ] = None

    @property
    def is_focused(self) -> bool:
        """Whether only relevant links count."""
        return self.relevance is not None or self.relevant_above is not None

    def world(self, history: str, policies: Sequence[Policy]) -> World:
        """What every page showed in every cycle, with all that these policies need to know."""
        from recrawl.replay import past
        from recrawl.world.change import notion_or_any

        first, notion = _moment("--from", self.since), notion_or_any(self.change)
        opened = open_history(history, self.until)
        world = past(
            opened,
            self.every,
            first,
            self.related if any(Need.RELATED in policy.needs for policy in policies) else 0,
            with_words=any(Need.WORDS in policy.needs for policy in policies),
            notion=notion,
            observed=self.observed,
        )
        if not self.is_focused:
            return world
        from recrawl.models.relevance import Relevance
        from recrawl.replay.focus import focused

        above = RELEVANT if self.relevant_above is None else self.relevant_above
        return focused(opened, world, above, Relevance.load(self.relevance) if self.relevance else None)

    def limits(self) -> list[str]:
        """What a reader of the results must know of what counts."""
        from recrawl.world.change import notion_or_any

        limits = ["only relevant links count"] if self.is_focused else []
        if notion_or_any(self.change) is not None:
            limits.append(f"a copy is current until a change of the kind {self.change!r}")
        return limits


def _moment(option: str, text: str | None) -> Any:
    from recrawl.errors import BadRecord
    from recrawl.web.visit import parse_at

    try:
        return parse_at(text) if text else None
    except BadRecord as error:
        raise typer.BadParameter(
            f"{option}: {error}; write a time with its zone, such as 2025-03-01T00:00:00Z"
        ) from None
