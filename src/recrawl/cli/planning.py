"""What the commands that plan share: the history that they read, and the planner that they use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.cli.common import HISTORY, AsOfOption, HistoryOption, note, open_history, steps

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.plan.options import PlanOptions
    from recrawl.plan.planner import Planner


@dataclass(frozen=True)
class HistoryOptions:
    """Which history a command reads, and up to when."""

    history: HistoryOption = HISTORY
    as_of: AsOfOption = None

    def open(self) -> History:
        """The history."""
        opened: History = open_history(self.history, self.as_of)
        return opened


@contextmanager
def planning(
    past: HistoryOptions, options: PlanOptions, page: str | None = None, *, carry: bool = True
) -> Iterator[tuple[History, Planner]]:
    """The history as it was opened, and a planner for it, with a sign of life on a terminal.

    A `page` that the history does not have is an error before anything slow begins. `carry`: keep what is learnt.
    """
    opened = past.open()
    if page is not None:
        from recrawl.plan.known import known_page

        known_page(opened, page)
    from recrawl.plan.planner import Planner

    with steps("reading what was visited") as on_step:
        planner = Planner(opened, options, carry=carry, on_step=on_step, on_note=note)
        planner.situation  # noqa: B018  # the slow part, while progress is shown
    yield opened, planner
