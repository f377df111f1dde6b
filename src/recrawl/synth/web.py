"""The made-up web at rest: sites, their sections, topics, and every page's place in them.

Pages are numbered 0, 1, 2, …; those of a site follow each other, its front page first, and so do those of a section.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.synth.chance import stream
from recrawl.synth.settings import SynthSettings

#: Share of pages per top-level domain: .com and the order of the others as in Dang et al. (2022), section 3 and Figure 2.
TOP_LEVEL_DOMAINS = {
    "com": 0.468, "org": 0.125, "net": 0.068, "edu": 0.055, "gov": 0.045, "de": 0.036, "co.uk": 0.035, "fr": 0.033,
    "ru": 0.015, "it": 0.015, "nl": 0.014, "info": 0.012, "eu": 0.011, "ca": 0.01, "es": 0.009, "ch": 0.009,
    "com.au": 0.008, "be": 0.008, "pl": 0.007, "io": 0.007,
}  # fmt: skip
#: How much more (in standard deviations) pages of a domain change; .edu changes less than .com (section 9.1).
_LIVELINESS = {"com": 0.1, "net": 0.1, "edu": -0.3, "gov": -0.3}
_FRONT_PAGE, _SECTION_PAGE = 0.8, 0.4  # pages near the root change more (section 9.1)
PAGES_PER_OUTSIDE_HOST = 20  # hosts that are linked to but never visited
TOPICS_PER_FIELD = 12


@dataclass(frozen=True)
class Web:
    """Which page belongs to which site, section and topic; struct of arrays."""

    settings: SynthSettings
    site_start: Ints  # [site + 1] first page of each site
    site: Ints  # [page]
    section: Ints  # [page]
    section_site: Ints  # [section]
    section_start: Ints  # [section] first page
    topic: Ints  # [page]
    field: Ints  # [topic] a field of related topics
    domain: Ints  # [host] index in TOP_LEVEL_DOMAINS; sites first, then hosts outside the collection
    is_https: Flags  # [host]

    @property
    def n_pages(self) -> int:
        """Pages that are visited."""
        return len(self.site)

    @property
    def n_sites(self) -> int:
        """Sites with visited pages."""
        return len(self.site_start) - 1

    @property
    def n_hosts(self) -> int:
        """Sites, and hosts that are only linked to."""
        return len(self.domain)


def make_web(settings: SynthSettings) -> Web:
    """The web of the settings, before anything happens on it.

    >>> web = make_web(SynthSettings(pages=100))
    >>> web.n_pages, bool((np.diff(web.site) >= 0).all())
    (100, True)
    """
    rng = stream(settings.seed, "web")
    site_start = _site_starts(settings, rng)
    sizes = np.diff(site_start)
    site = np.repeat(np.arange(len(sizes)), sizes)
    section_number = (np.arange(settings.pages) - site_start[site]) // settings.pages_per_section
    is_first = np.r_[True, (np.diff(site) != 0) | (np.diff(section_number) != 0)]
    section = np.cumsum(is_first) - 1
    section_start = np.flatnonzero(is_first)
    n_topics = max(2, round(settings.pages / settings.pages_per_topic))
    n_outside = max(20, settings.pages // PAGES_PER_OUTSIDE_HOST)
    outside = _domains(np.ones(n_outside, np.int64), rng)
    return Web(
        settings=settings,
        site_start=site_start,
        site=site,
        section=section,
        section_site=site[section_start],
        section_start=section_start,
        topic=_section_topics(site[section_start], n_topics, settings.topic_loyalty, rng)[section],
        field=np.arange(n_topics) // TOPICS_PER_FIELD,
        domain=np.r_[_domains(sizes, rng), outside],
        is_https=rng.random(len(sizes) + n_outside) < 0.85,
    )


def _site_starts(settings: SynthSettings, rng: np.random.Generator) -> Ints:
    """Heavy-tailed site sizes (Lomax, exponent 1.5) until all pages have a site."""
    n_drawn = int(settings.pages / settings.pages_per_site * 4) + 10
    sizes = 1 + (rng.pareto(1.5, n_drawn) * (settings.pages_per_site - 0.5) / 2).astype(np.int64)
    sizes = np.minimum(sizes, np.clip(settings.pages // 200, 20, 2_000))
    starts = np.r_[0, np.cumsum(sizes)]
    missing = settings.pages - starts[-1]
    if missing > 0:  # only with extreme settings: the rest are sites of one page
        starts = np.r_[starts, starts[-1] + 1 + np.arange(missing)]
    return np.unique(np.minimum(starts, settings.pages)).astype(np.int64)


def _section_topics(section_site: Ints, n_topics: int, loyalty: float, rng: np.random.Generator) -> Ints:
    site_topic = rng.integers(0, n_topics, section_site[-1] + 1)
    other = rng.integers(0, n_topics, len(section_site))
    return np.where(rng.random(len(section_site)) < loyalty, site_topic[section_site], other)


def _domains(n_pages: Ints, rng: np.random.Generator) -> Ints:
    """A top-level domain per host such that the shares hold for pages, not for hosts."""
    order = rng.permutation(len(n_pages))
    position = np.empty(len(n_pages))
    position[order] = np.cumsum(n_pages[order]) - n_pages[order] / 2
    bounds = np.cumsum(list(TOP_LEVEL_DOMAINS.values()))
    return np.asarray(np.searchsorted(bounds / bounds[-1], position / n_pages.sum()))


def latent(web: Web, rng: np.random.Generator) -> Floats:
    """One hidden normal number per page, in part that of its topic and of its section: similar pages behave similarly."""
    settings = web.settings
    own_weight = 1 - settings.topic_weight - settings.section_weight
    return np.asarray(
        np.sqrt(settings.topic_weight) * rng.standard_normal(len(web.field))[web.topic]
        + np.sqrt(settings.section_weight) * rng.standard_normal(len(web.section_start))[web.section]
        + np.sqrt(own_weight) * rng.standard_normal(web.n_pages)
    )


def liveliness(web: Web) -> Floats:
    """How much more than others a page is expected to change for its place on the site and its top-level domain."""
    by_domain = np.array([_LIVELINESS.get(name, 0.0) for name in TOP_LEVEL_DOMAINS])
    lively = by_domain[web.domain[web.site]]
    lively[web.section_start] += _SECTION_PAGE
    lively[web.site_start[:-1]] += _FRONT_PAGE - _SECTION_PAGE
    return lively
