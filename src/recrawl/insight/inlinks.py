"""New inlinks as what is predicted: a panel whose "new links" are those that other pages newly show to a page.

Dang et al. (2022), section 5.1: "The method readily extends to inlinks or the total number of outlinks." In such a panel all
targets, features and rankings are the same as for outlinks, and mean inlinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recrawl.core.arrays import Flags, Floats32, Ints
from recrawl.insight.graph import EXTERNAL, INTERNAL, PanelLinks
from recrawl.world.panel import Panel


def with_new_inlinks(panel: Panel) -> Panel:
    """The panel with new inlinks in place of new outlinks.

    A new inlink of a page is a new outlink of another page of the panel that leads to it, so both sides count the same links: those
    of a source's first visit, and of a baseline, are not new. A page need not be visited in a round for its inlinks to be
    known; they are unknown up to the round in which it is first seen, and where no page's new outlinks are known.
    """
    internal, external = (np.full(panel.shape, np.nan, np.float32) for _ in range(2))
    links = PanelLinks.of(panel)
    is_known = _known_pages(panel)
    for r, pages, kinds in _new_links(panel, links):
        for counts, kind in ((internal, INTERNAL), (external, EXTERNAL)):
            gained = np.bincount(pages[kinds == kind], minlength=panel.shape[0])
            counts[:, r] = np.where(is_known[:, r], gained, np.nan)
    return replace(panel, n_new_internal=internal, n_new_external=external)


def _known_pages(panel: Panel) -> Flags:
    """[page, round]: whether the page was seen in an earlier round."""
    seen = np.cumsum(~np.isnat(panel.at), axis=1) > 0
    return np.hstack([np.zeros((len(seen), 1), np.bool_), seen[:, :-1]])


def _new_links(panel: Panel, links: PanelLinks) -> Iterator[tuple[int, Ints, Ints]]:
    """For every round in which any page was compared: the pages that new links lead to, and the kinds of the links."""
    n_pages = panel.shape[0]
    compared: Floats32 = panel.n_new_internal
    for r in range(1, panel.shape[1]):
        sources = np.flatnonzero(~np.isnan(compared[:, r]) & (links.shown[:, r - 1] >= 0))
        if not len(sources):
            continue
        after, before = (links.pages[links.shown[sources, column]].tocoo() for column in (r, r - 1))
        pairs, known = (each.row.astype(np.int64) * n_pages + each.col for each in (after, before))
        is_new = ~np.isin(pairs, known)
        is_new &= sources[after.row] != after.col  # a page's links to itself are no inlinks
        yield r, after.col[is_new].astype(np.int64), after.data[is_new].astype(np.int64)
