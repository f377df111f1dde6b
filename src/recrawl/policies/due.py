"""Pages that are due again at a given time → the choice of crawlers that work with such a calendar."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.times import microseconds
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice, Sentence
from recrawl.policies.ranking import ranked
from recrawl.policies.select import take
from recrawl.world.pages import Pages

SECONDS_PER_DAY = 86_400.0
AT_ONCE = -np.inf  #: when a page that was never visited is due

EARLY, OVERDUE, NEVER_VISITED = range(3)
_REASONS = {
    EARLY: "due in {hours_left:.1f} h, sooner than others: visited every {interval_hours:.1f} h",
    OVERDUE: "due for {hours_late:.1f} h: visited every {interval_hours:.1f} h",
    NEVER_VISITED: "never visited",
}


def seconds(moment: datetime) -> float:
    """An aware time as seconds since 1970."""
    return microseconds(moment) / 1e6


def take_due(
    pages: Pages, budget: Budget, now: datetime, *, due: Floats, interval: Floats, score: Floats, only_due: bool
) -> Choice:
    """Due pages by descending score, then by how long they have been due; the rest of the budget goes to those due soonest.

    `due` is in seconds since 1970, `interval` in seconds. With `only_due` the rest of the budget is not used.
    """
    late = (seconds(now) - due) / 3600.0
    is_due = late >= 0
    order = ranked(is_due, np.where(is_due, score, 0.0), late)
    detail = {"hours_late": late, "hours_left": -late, "interval_hours": interval / 3600.0}
    choice = take(order, pages, budget, may=is_due if only_due else None)
    kind = np.select([np.isinf(late), is_due], [NEVER_VISITED, OVERDUE], EARLY)[choice.page]
    words = {name: values[choice.page] for name, values in detail.items()}
    sentences = {which: Sentence(template, words) for which, template in _REASONS.items()}
    return replace(choice, reason=lambda i, name: sentences[int(kind[i])](i, name))
