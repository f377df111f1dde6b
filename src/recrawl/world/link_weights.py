"""How much each link of a recorded world matters: as much as the most important page that showed it."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats
from recrawl.world.recorded import World


def link_weights(world: World) -> Floats | None:
    """One weight per link, the greatest importance among the pages that ever showed it, as it was then; None: all pages are alike.

    A link counts the same wherever it is found, so that it does not pay to find it on one page rather than on another, and no
    policy can find more than there is.

    >>> from dataclasses import replace
    >>> from recrawl.testing import tiny_world
    >>> world = tiny_world([[{1}, {2}], [{1, 3}, {2, 3}]])
    >>> link_weights(replace(world, importance=np.array([1.0, 5.0, 2.0, 4.0])))
    array([2., 5., 4.])
    """
    if world.importance is None:
        return None
    seen = world.shows >= 0
    of_list = np.zeros(len(world.sets.sizes))
    np.maximum.at(of_list, world.shows[seen], world.importance[seen])
    weights: Floats = _greatest(world.sets.start, world.sets.links, of_list, len(world.link))
    return weights


@njit(cache=True)
def _greatest(start, links, of_list, n_links):  # type: ignore[no-untyped-def]
    greatest = np.zeros(n_links)
    for i in range(len(of_list)):
        for j in range(start[i], start[i + 1]):
            greatest[links[j]] = max(greatest[links[j]], of_list[i])
    return greatest
