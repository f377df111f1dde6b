"""The made-up web with everything that happens on it; `tables` and `records` are two ways to write it down."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.arrays import Flags, Ints
from recrawl.synth.addresses import Addresses
from recrawl.synth.behaviour import last_change, simulate
from recrawl.synth.chance import stream
from recrawl.synth.links import make_links
from recrawl.synth.settings import SynthSettings
from recrawl.synth.text import Texts
from recrawl.synth.web import make_web

CONTENT_TYPE = "text/html; charset=utf-8"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MODIFIED_LAG = 600  # seconds between a page's change and our seeing it, at least


class SynthWorld:
    """What every visit shows, given as (page, round) in arrays.

    >>> world = SynthWorld(SynthSettings(pages=10, rounds=3))
    >>> world.at.shape, bool((np.diff(world.at) > 0).all())
    ((10, 3), True)
    """

    def __init__(self, settings: SynthSettings) -> None:
        self.settings = settings
        self.web = make_web(settings)
        self.behaviour = simulate(self.web)
        self.links = make_links(self.web, self.behaviour)
        self.addresses = Addresses(self.web, self.links)
        self.texts = Texts(self.web)
        self.at = _visit_times(settings)

    @cached_property
    def link_round(self) -> Ints:
        """[page, round]: the round since which the page has had these links."""
        return last_change(self.behaviour.links_changed)

    @cached_property
    def text_round(self) -> Ints:
        """[page, round]: the round since which the page has had this text."""
        return last_change(self.behaviour.text_changed)

    @cached_property
    def version(self) -> Ints:
        """[page, round]: how often the text has changed."""
        return np.cumsum(self.behaviour.text_changed, axis=1)

    def etags(self, page: Ints, number: Ints) -> pa.Array:
        """An entity tag that changes with links or text; null where the page is sent without."""
        state = np.maximum(self.link_round[page, number], self.text_round[page, number])
        parts = (pa.array(values).cast(pa.string()) for values in (page, state))
        tags = pc.binary_join_element_wise(*parts, "-")
        return _where(self.behaviour.has_validators[page], pc.binary_join_element_wise('"', tags, '"', ""))

    def last_modified(self, page: Ints, number: Ints) -> pa.Array:
        """When links or text last changed, as an HTTP date; null where the page is sent without."""
        state = np.maximum(self.link_round[page, number], self.text_round[page, number])
        seconds = self.at[page, state] - _LAST_MODIFIED_LAG
        return _where(self.behaviour.has_validators[page], http_dates(seconds))

    def text_names(self, page: Ints, page_id: Ints, number: Ints) -> pa.Array:
        """The text digests as crawlers report them: a text of its own for every version of every page."""
        parts = (pa.array(values).cast(pa.string()) for values in (page_id, self.version[page, number]))
        return pc.binary_join_element_wise(str(self.settings.seed), *parts, "-")


def http_dates(seconds: Ints) -> pa.Array:
    """Epoch seconds as HTTP dates.

    >>> http_dates(np.array([0]))[0].as_py()
    'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    return pc.strftime(pa.array(seconds).cast(pa.timestamp("s")), format="%a, %d %b %Y %H:%M:%S GMT")


def _where(holds: Flags, values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(holds), values, pa.scalar(None, values.type))


def _visit_times(settings: SynthSettings) -> Ints:
    """[page, round]: epoch seconds; the visits of a round are spread over the first part of it."""
    every = settings.every.total_seconds()
    begin = (settings.start - _EPOCH).total_seconds() + every * np.arange(settings.rounds)
    spread = stream(settings.seed, "times").random((settings.pages, settings.rounds)) * every * settings.crawl_rate
    return (begin + spread).astype(np.int64)
