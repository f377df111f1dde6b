"""How often whole websites gain links: everything under a root is one, and the visits of a round are one capture of it.

Reference: Jayawardana et al. (2020), HACS, sections II-A and IV.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Times
from recrawl.report.stats.newlinks import new_links
from recrawl.world.panel import Panel
from recrawl.world.roots import Roots, site_names, sites_of

DEEPEST = 2  #: pages below this depth are no part of a website in the paper
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, slots=True)
class Website:
    """What one website gained, as a whole."""

    site: str
    n_pages: int
    n_deep: int  # pages of these that are more than two folders below the root
    n_rounds: int  # in which it is known whether any of its pages gained a link
    n_new: int  # links that its pages gained in these rounds
    rate: float | None  # share of these rounds in which any page gained one
    median_days: float | None  # between two rounds in which it was visited


@dataclass(frozen=True, slots=True)
class Websites:
    """The websites under some roots, the one with most new links first."""

    roots: str  # as --roots has them
    sites: tuple[Website, ...]
    n_outside: int  # pages under no root


def websites(panel: Panel, roots: Roots) -> Websites:
    """Every website of the panel's pages; pages under no root belong to none."""
    places, names = sites_of(panel.url, roots), site_names(panel.url, roots)
    rows = np.flatnonzero(places.is_inside)
    new, seen = new_links(panel, "all").astype(np.float64), ~np.isnat(panel.at)
    by_site = rows[np.argsort(places.site[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(places.site[by_site])) + 1
    found = [
        _website(str(names[members[0]]), places.depth[members], new[members], seen[members], panel.rounds)
        for members in np.split(by_site, starts)
        if len(members)
    ]
    found.sort(key=lambda site: (-site.n_new, -site.n_pages, site.site))
    return Websites(roots.spec, tuple(found), int((~places.is_inside).sum()))


def _website(name: str, depth: Ints, new: Floats, seen: Flags, rounds: Times) -> Website:
    known = ~np.isnan(new).all(axis=0)
    gained = np.nansum(new, axis=0)[known]
    captured = rounds[seen.any(axis=0)]
    return Website(
        site=name,
        n_pages=len(depth),
        n_deep=int((depth > DEEPEST).sum()),
        n_rounds=int(known.sum()),
        n_new=int(gained.sum()),
        rate=float((gained > 0).mean()) if len(gained) else None,
        median_days=float(np.median(np.diff(captured) / _DAY)) if len(captured) > 1 else None,
    )
