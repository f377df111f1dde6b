"""How many links pages show, and how many of them are external.

Reference: Dang et al. (2022), "Look back, look around", section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.world.panel import Panel


@dataclass(frozen=True, slots=True)
class OutlinkShare:
    """The outlinks that pages show in one round, and the share of external ones among them."""

    round: int
    n_pages: int  # pages whose links are known
    n_internal: int
    n_external: int
    external_rate: float | None  # None: there are no links


def outlink_shares(panel: Panel) -> list[OutlinkShare]:
    """The share of external links among all that pages show, by round; in the papers' last crawl 14.7% (LBLA section 4)."""
    if not {"n_internal", "n_external"} <= set(panel.base):
        return []
    internal, external = (panel.base[name].astype(np.float64) for name in ("n_internal", "n_external"))
    known = ~np.isnan(internal) & ~np.isnan(external)
    rows = []
    for column in np.flatnonzero(known.any(axis=0)).tolist():
        seen = known[:, column]
        n_internal, n_external = (int(counts[seen, column].sum()) for counts in (internal, external))
        total = n_internal + n_external
        rate = n_external / total if total else None
        rows.append(OutlinkShare(column, int(seen.sum()), n_internal, n_external, rate))
    return rows
