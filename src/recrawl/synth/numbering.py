"""One number per link of the whole web, so that link lists are made and compared as integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.synth.web import Web


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Where each kind of link begins. Pages come first, under their own numbers.

    A site's pool holds what its pages always link to: its visited pages, then further pages that are not visited.
    """

    site: Ints  # [page]
    site_start: Ints  # [site + 1]
    extra_start: Ints  # [site + 1] first pool link that is not a visited page
    pool_size: Ints  # [site] visited pages and further ones
    internal_feed: int
    external_feed: int
    twin: int  # the front page under the other scheme, by site
    outside: int  # front pages of hosts that are never visited
    end: int

    @classmethod
    def layout(cls, web: Web, site_most: Ints, n_internal_items: int, n_external_items: int) -> Numbers:
        """Room for pools in which the longest stretch of a site (`site_most`) fits, and for the items of the feeds."""
        n_pages = np.diff(web.site_start)
        extras = np.maximum(site_most + site_most // 2 + 2 - n_pages, 0)
        extra_start = web.n_pages + np.r_[0, np.cumsum(extras)]
        internal_feed = int(extra_start[-1])
        external_feed = internal_feed + n_internal_items
        twin = external_feed + n_external_items
        outside = twin + web.n_sites
        end = outside + web.n_hosts - web.n_sites
        return cls(
            site=web.site,
            site_start=web.site_start,
            extra_start=extra_start,
            pool_size=n_pages + extras,
            internal_feed=internal_feed,
            external_feed=external_feed,
            twin=twin,
            outside=outside,
            end=end,
        )
