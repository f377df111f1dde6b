"""Websites as a whole, against plain loops over pages and rounds."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from recrawl.report.stats.websites import websites
from recrawl.world.panel import Panel
from recrawl.world.roots import parse_roots


@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_that_of_a_plain_version(seed: int, panel_of: Callable[..., Panel]) -> None:
    random, (n_pages, n_rounds) = np.random.default_rng(seed), (30, 7)
    folders = ["/~a/", "/~b/x/", "/c/~d/1/2/3/", "/news/"]
    urls = [f"https://foo.edu{folders[i % 4]}{i}" for i in range(n_pages)]
    new = np.where(random.random((n_pages, n_rounds)) < 0.4, np.nan, random.poisson(0.2, (n_pages, n_rounds)))
    panel = panel_of(new, 0 * new, urls)
    panel = replace(panel, at=np.where(np.isnan(new), np.datetime64("NaT", "us"), panel.at))
    found = websites(panel, parse_roots("/~*/"))
    assert found.n_outside == sum("~" not in url for url in urls)
    assert len(found.sites) == 3
    assert [site.n_new for site in found.sites] == sorted((site.n_new for site in found.sites), reverse=True)
    for site in found.sites:
        rows = [i for i, url in enumerate(urls) if f"{site.site}/" in url]
        below = [urls[i].partition(f"{site.site}/")[2] for i in rows]
        known = [[x for x in new[rows, r].tolist() if not math.isnan(x)] for r in range(n_rounds)]
        days = [7 * r for r in range(n_rounds) if known[r]]
        assert (site.n_pages, site.n_deep) == (len(rows), sum(path.count("/") + 1 > 2 for path in below))
        assert site.n_rounds == sum(bool(x) for x in known)
        assert site.n_new == sum(sum(x) for x in known)
        assert site.rate == pytest.approx(plain.mean(float(sum(x) > 0) for x in known if x))
        assert site.median_days == plain.median(b - a for a, b in pairwise(days))


def test_a_website_that_was_never_compared_has_no_rate(panel_of: Callable[..., Panel]) -> None:
    (site,) = websites(panel_of([[math.nan]], [[math.nan]], ["https://e.org/a"]), parse_roots("host")).sites
    assert (site.site, site.rate, site.median_days, site.n_new) == ("e.org", None, None, 0)
