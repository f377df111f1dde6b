"""The probability that each page changed since its last visit, by its sitemap or feed; known only where these are proven."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats32, Ints
from recrawl.history import History
from recrawl.insight.features.operators import Features, now
from recrawl.insight.hints.evidence import NO_CLAIM, hint_evidence
from recrawl.web import urls
from recrawl.world.panel import Panel

_FOREVER = np.iinfo(np.int64).max


def proven_hints(history: History, panel: Panel) -> Features:
    """The column of hints, if any source is proven in the rounds that can be learnt from; else no column."""
    hinted = hinted_by_round(history, panel)
    return now("hinted") if hinted is not None and not np.isnan(hinted[:, :-1]).all() else ()


def hinted_by_round(history: History, panel: Panel) -> Floats32 | None:
    """The probability [page, round] that a page changed after the visits of a round; None where no source was ever read.

    Column j is what was known before the visits of round j + 1: what was read until the first of them, and each source's record
    by the visits up to round j. NaN where no source is proven on the page's host by then.
    """
    host = np.unique([urls.host(url) for url in panel.url.to_pylist()], return_inverse=True)[1].astype(np.int64)
    sources = list(hint_evidence(history, panel.page, host))
    if not sources:
        return None
    hinted = np.full(panel.shape, np.nan, np.float32)
    seen = panel.at.astype("datetime64[us]").astype(np.int64)  # NaT is the smallest number, and so `NO_CLAIM`
    last_visit = np.maximum.accumulate(seen, axis=1)
    for j, end in enumerate(panel.rounds.astype("datetime64[us]").astype(np.int64).tolist()):
        until = _first_after(seen, j)
        for source in sources:
            record = source.record(end)
            if record.is_proven.any():
                likely = record.probability(host, source.newest(until) > last_visit[:, j])
                hinted[:, j] = np.fmax(hinted[:, j], likely)
    return hinted


def _first_after(seen: Ints, j: int) -> int:
    """Just before the first visit of the round after round j; the end of time if there is none."""
    following = seen[:, j + 1] if j + 1 < seen.shape[1] else seen[:0, 0]
    following = following[following != NO_CLAIM]
    return int(following.min()) - 1 if len(following) else _FOREVER
