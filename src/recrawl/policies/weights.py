"""Numbers that a user gives for every page: scores, importance."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.world.pages import Pages


def weights_for(pages: Pages, given: Floats | None, name: str) -> Floats:
    """The numbers given, one for each page in their order; all 1 where none were given.

    There may be more of them, for pages that are not known yet.

    >>> pages = Pages.unseen(site=np.arange(2), host=np.arange(2))
    >>> weights_for(pages, None, "importance"), weights_for(pages, np.array([3, 1]), "importance")
    (array([1., 1.]), array([3., 1.]))
    """
    if given is None:
        return np.ones(len(pages))
    weights = np.asarray(given, np.float64)
    if weights.ndim != 1 or len(weights) < len(pages):
        raise ValueError(
            f"{name} holds {weights.size} numbers for {len(pages)} pages; give one for each, in their order"
        )
    wrong = weights[~((weights >= 0) & (weights < np.inf))]
    if len(wrong):
        raise ValueError(f"{name} holds {wrong[0]}; it must be 0 or more and finite for every page")
    return weights[: len(pages)].copy()


def given_or_stated(given: Floats | None, weights: Floats, pages: Pages) -> Floats:
    """The weights of a setting where it was given; else how much each page matters, as far as any visit states it.

    >>> pages = Pages.unseen(site=np.arange(2), host=np.arange(2))
    >>> pages.importance = np.array([5.0, 1.0])
    >>> given_or_stated(None, np.ones(2), pages), given_or_stated(np.array([3, 1]), np.array([3.0, 1.0]), pages)
    (array([5., 1.]), array([3., 1.]))
    """
    return weights if given is not None or pages.importance is None else pages.importance
