"""The related pages of a recorded world, or of a plan's pages, by the texts that a crawler could know."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.core.times import moment
from recrawl.history import History
from recrawl.world.panel import build
from recrawl.world.recorded import World
from recrawl.world.related import Related


def with_related(world: World, history: History, k: int) -> World:
    """The same world with the `k` most related pages of each page; without any where no text is known.

    The texts are those known at the end of cycle 0, so that a replay learns nothing of its future.
    """
    return replace(world, related=related_at(history, world.page, k, moment(int(world.time[0]))))


def related_at(history: History, page: Ints, k: int, at: datetime) -> Related | None:
    """The `k` most related pages of each page by what they had last said at a moment; None where no text is known."""
    if not any(history.store.read(name, columns=["digest"]).num_rows for name in ("texts", "vectors")):
        return None
    from recrawl.insight.related import related_pages  # takes a second to load, and few policies need it
    from recrawl.insight.vectors import page_vectors

    panel = build(history, [at], 0.0)
    vectors_at = page_vectors(history, panel, 0)
    if not vectors_at.known.any():
        return None
    place = np.minimum(np.searchsorted(panel.page, page), len(panel.page) - 1)
    vectors = np.where((panel.page[place] == page)[:, None], vectors_at.values[place], 0).astype(np.float32)
    return related_pages(vectors, k)
