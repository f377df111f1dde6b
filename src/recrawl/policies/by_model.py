"""Visit the pages with the most new links by the predictions of a stored model."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.models.around import BASES
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages


class ByModel(Policy):
    """Visit the pages with the most new links by predictions made beforehand; of equal pages the one that waited longest.

    The predictions are those of `recrawl train` and `recrawl predict`. `columns` are aligned with the pages.
    """

    name: ClassVar[str] = "model"

    def __init__(self, columns: dict[str, Floats]) -> None:
        self.columns = columns

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest prediction first."""
        columns = self.columns
        detail = {name: columns[name] for name in ("expected", "low", "high")}
        detail["basis"] = np.array(BASES)[columns["basis"].astype(np.int64)]
        return take(
            columns["expected"],
            pages,
            budget,
            ties=pages.age_hours(now),
            reason="{expected:.1f} new links predicted, 80% between {low:.0f} and {high:.0f}, from {basis}",
            detail=detail,
            expected=columns["expected"],
        )
