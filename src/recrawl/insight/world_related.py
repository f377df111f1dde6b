"""The related pages of a recorded world, by the texts that a crawler could know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.history import History
from recrawl.world.every import Every
from recrawl.world.panel import build
from recrawl.world.recorded import World


def with_related(
    world: World,
    history: History,
    every: Every,
    k: int,
    *,
    as_of_now: bool = False,
) -> World:
    """The same world with the `k` most related pages of each page; without any where no text is known.

    The texts are those known at the end of cycle 0, so that a replay learns nothing of its future; with `as_of_now` those
    known at the end, for a plan.
    """
    if not any(history.store.read(name, columns=["digest"]).num_rows for name in ("texts", "vectors")):
        return world
    from recrawl.insight.related import related_pages  # takes a second to load, and few policies need it
    from recrawl.insight.vectors import page_vectors

    panel = build(history, every, 0.0)
    last = panel.shape[1] - 1
    start = int(np.searchsorted(panel.rounds.astype("datetime64[us]").astype(np.int64), world.time[0]))
    vectors_at = page_vectors(history, panel, last if as_of_now else start)
    if not vectors_at.known.any():
        return world
    at = np.minimum(np.searchsorted(panel.page, world.page), len(panel.page) - 1)
    vectors = np.where((panel.page[at] == world.page)[:, None], vectors_at.values[at], 0).astype(np.float32)
    return replace(world, related=related_pages(vectors, k))
