"""Validators for conditional requests: those of the last stored copy, unless the server's are unreliable."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from recrawl.history import History, Timeline
from recrawl.web.urls import host, page_id
from recrawl.web.visit import Outcome

Headers = dict[str, str]
MAX_LENGTH = 1_000  #: of a validator: servers refuse requests with longer headers


class StoredValidators:
    """The ETag and Last-Modified of the last copy of each page.

    If a host once sent the same ETag or date with different content, its validators are unreliable and no page of it gets any:
    what it reports as unchanged may have changed. These hosts are detected from the history. A page whose last visit failed
    or found it gone gets none either.
    """

    def __init__(self, history: History) -> None:
        timeline = history.timeline
        newest = timeline.page_start[1:] - 1
        was_fetched = timeline.outcome[newest] <= Outcome.UNCHANGED
        self._page, self._copy = timeline.pages, np.where(was_fetched, timeline.latest[newest], -1)
        self._etag, self._modified = timeline.rows["etag"], timeline.rows["last_modified"]
        self.unreliable = _unreliable_hosts(history, timeline)

    def headers(self, url: str) -> Headers:
        """The request headers for a page; empty if it is to be fetched in full."""
        page = page_id(url)
        at = int(np.searchsorted(self._page, page))
        copy = int(self._copy[at]) if at < len(self._page) and self._page[at] == page else -1
        if copy < 0 or host(url) in self.unreliable:
            return {}
        sent = {"If-None-Match": self._etag[copy].as_py(), "If-Modified-Since": self._modified[copy].as_py()}
        return {name: value for name, value in sent.items() if value and _can_be_sent(value)}


def _can_be_sent(value: str) -> bool:
    """Whether a validator may be sent: an ETag of * would match any copy on the server."""
    return value.isprintable() and value.strip() != "*" and len(value) <= MAX_LENGTH


def _unreliable_hosts(history: History, timeline: Timeline) -> set[str]:
    """Hosts that sent the same strong ETag, or without one the same date, with another text or other links.

    Compares two successive visits of a page that both received a body.
    """
    seen = np.flatnonzero((timeline.outcome == Outcome.OK) & (timeline.latest == np.arange(timeline.n_visits)))
    if len(seen) < 2:
        return set()
    rows = timeline.rows
    sent = pc.coalesce(rows["etag"], rows["last_modified"]).combine_chunks()
    is_strong = np.asarray(pc.fill_null(pc.invert(pc.starts_with(sent, "W/")), False))
    code = sent.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    text = rows["text"].fill_null(0).to_numpy()
    a, b = seen[:-1], seen[1:]
    same_tag = (timeline.page[a] == timeline.page[b]) & (code[a] == code[b]) & (code[a] >= 0) & is_strong[a]
    links = timeline.links
    other_text = (text[a] != text[b]) & (text[a] != 0) & (text[b] != 0)
    other_links = (links[a] != links[b]) & (links[a] >= 0) & (links[b] >= 0)
    is_wrong = same_tag & (other_text | other_links) & ~timeline.baseline[b]
    return {host(url) for url in history.urls_of(np.unique(timeline.page[b[is_wrong]])).to_pylist()}
