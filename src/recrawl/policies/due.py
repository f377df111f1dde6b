"""Pages with a time at which each is due again → the choice that crawlers with such a calendar make."""

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
AT_ONCE = -np.inf  #: due since ever: a page that was never visited

_REASONS = (
    "due in {hours_left:.1f} h, sooner than others: visited every {interval_hours:.1f} h",
    "due since {hours_late:.1f} h: visited every {interval_hours:.1f} h",
    "never visited",
)


def seconds(moment: datetime) -> float:
    """An aware time as seconds since 1970."""
    return microseconds(moment) / 1e6


def take_due(
    due: Floats,
    interval: Floats,
    pages: Pages,
    budget: Budget,
    now: datetime,
    score: Floats,
    only_due: bool,
) -> Choice:
    """Due pages by descending score, then by the time they are due since; what is left of the budget goes to those due soonest.

    `due` is in seconds since 1970, `interval` in seconds. With `only_due` what is left of the budget is not used.
    """
    late = (seconds(now) - due) / 3600.0
    is_due = late >= 0
    order = ranked(is_due, np.where(is_due, score, 0.0), late)
    detail = {"hours_late": late, "hours_left": -late, "interval_hours": interval / 3600.0}
    choice = take(order, pages, budget, may=is_due if only_due else None)
    kind = np.where(np.isinf(late), 2, is_due)[choice.page]
    words = {name: values[choice.page] for name, values in detail.items()}
    sentences = [Sentence(template, words) for template in _REASONS]
    return replace(choice, reason=lambda i, name: sentences[kind[i]](i, name))
