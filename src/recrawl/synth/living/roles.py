"""The roles of pages on a living web: sites of equal size in sections, hubs, private pages, pages that move or go away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.synth.behaviour import Behaviour, simulate
from recrawl.synth.chance import shares, stream
from recrawl.synth.feeds import ENDLESS
from recrawl.synth.living.settings import HABITS, Living
from recrawl.synth.rhythm import elapsed_weeks
from recrawl.synth.settings import WEEK, SynthSettings
from recrawl.synth.web import TOP_LEVEL_DOMAINS, TOPICS_PER_FIELD, Web

_OUTSIDE_HOSTS = 20  # synth links to hosts that are not visited; here these links lead to home pages
_DAYS_PER_WEEK = WEEK / timedelta(days=1)


class Habit(Enum):
    """How a page uses the validators of HTTP, in the order of the shares in `Faults`."""

    NO_VALIDATORS = 0
    DATED_ONLY = 1
    WEAK_ETAG = 2
    LYING_ETAG = 3
    CHANGING_ETAG = 4
    HONEST = 5  # a strong ETag and Last-Modified


@dataclass(frozen=True)
class Roles:
    """What is special about each page; all arrays are [page]."""

    hub: Flags
    private: Flags
    moved: Flags
    gone_at: Ints  # the first step without the page; ENDLESS: it stays
    habit: Ints  # a value of Habit


def make_living_web(living: Living) -> Web:
    """The sites of the settings, of equal size; `make_web` would draw their number and sizes.

    >>> np.diff(make_living_web(Living(sites=3, pages=60)).site_start).tolist()
    [20, 20, 20]
    """
    settings = SynthSettings(
        pages=living.pages,
        rounds=living.steps + 1,
        every=living.every,
        start=living.start,
        seed=living.seed,
        rhythm=True,
        words_per_text=living.words_per_text,
    )
    rng = stream(living.seed, "living web")
    site_start = np.arange(living.sites + 1) * living.pages // living.sites
    site = np.repeat(np.arange(living.sites), np.diff(site_start))
    place = np.arange(living.pages) - site_start[site]
    is_index = place % settings.pages_per_section == 0
    section, section_start = np.cumsum(is_index) - 1, np.flatnonzero(is_index)
    n_topics = max(2, round(living.pages / settings.pages_per_topic))
    n_hosts = living.sites + _OUTSIDE_HOSTS
    weights = np.array(list(TOP_LEVEL_DOMAINS.values()))
    return Web(
        settings=settings,
        site_start=site_start,
        site=site,
        section=section,
        section_site=site[section_start],
        section_start=section_start,
        topic=rng.integers(0, n_topics, len(section_start))[section],
        field=np.arange(n_topics) // TOPICS_PER_FIELD,
        domain=rng.choice(len(weights), n_hosts, p=weights / weights.sum()),  # decides the time zone
        is_https=np.zeros(n_hosts, np.bool_),
    )


def make_roles(web: Web, living: Living) -> Roles:
    """Exactly the shares of the settings, as far as there are pages; index pages and hubs neither move nor disappear."""
    rng, faults = stream(living.seed, "living roles"), living.faults
    is_index = np.zeros(web.n_pages, np.bool_)
    is_index[web.section_start] = True
    others = rng.permutation(np.flatnonzero(~is_index))
    counts = [round(share * web.n_pages) for share in (living.hubs, living.private, faults.moved, faults.gone)]
    hub, private, moved, gone = (
        np.isin(np.arange(web.n_pages), chosen) for chosen in np.split(others, np.cumsum(counts))[:4]
    )
    hub[web.site_start[:-1]] = True
    end = rng.integers(1, living.steps + 1, web.n_pages) if living.steps else np.full(web.n_pages, ENDLESS)
    habit = np.searchsorted(np.cumsum(faults.shares(HABITS)), shares(rng.random(web.n_pages)), side="right")
    return Roles(hub, private, moved, np.where(gone, end, ENDLESS), habit)


def live(web: Web, roles: Roles, living: Living) -> Behaviour:
    """The behaviour of synth, with hubs that gain links by the hour and private pages that gain none.

    A private page with news of its own would have links that no polite crawler can ever find.
    """
    behaviour, rng = simulate(web), stream(living.seed, "living hubs")
    weeks = elapsed_weeks(web, rng)
    n_internal, n_external = behaviour.n_internal.copy(), behaviour.n_external.copy()
    n_internal[roles.hub] = rng.poisson(living.hub_links * _DAYS_PER_WEEK * weeks[roles.hub])
    n_internal[roles.private] = n_external[roles.private] = 0
    return replace(behaviour, n_internal=n_internal, n_external=n_external)
