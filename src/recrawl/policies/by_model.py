"""Visit the pages with the most new links by the predictions of a stored model."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages


class ByModel(Policy):
    """Visit the pages with the most new links by predictions made beforehand; of equal pages the one that waited longest.

    For plans by a model of `recrawl train`. `columns` are those of its predictions, with one entry per page: `expected`, `low`,
    `high` and `basis`.

    >>> pages = Pages.unseen(site=np.arange(2), host=np.arange(2))
    >>> columns = {"expected": np.array([1.2, 3.4]), "low": np.zeros(2), "high": np.array([3.0, 8.0]), "basis": np.zeros(2)}
    >>> ByModel(columns).choose(pages, Budget(1), datetime(2026, 3, 2).astimezone()).page
    array([1])
    """

    name: ClassVar[str] = "model"
    weighs: ClassVar[bool] = True

    def __init__(self, columns: dict[str, Floats]) -> None:
        self.columns = columns

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest prediction first."""
        from recrawl.models.around import BASES

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
            weighs=True,
        )
