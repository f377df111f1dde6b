"""How likely each page has changed since its last visit, as its sitemap or feed says: known only where they have proven true."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl import urls
from recrawl.features.operators import Features, now
from recrawl.hints_told import NOT_TOLD, told
from recrawl.history import History
from recrawl.panel import Panel

Floats = NDArray[np.float32]
_EVER = np.iinfo(np.int64).max


def proven_hints(history: History, panel: Panel) -> Features:
    """The column of hints, if any source has proven true in the rounds that can be learnt from; else none."""
    hinted = hinted_by_round(history, panel)
    return now("hinted") if hinted is not None and not np.isnan(hinted[:, :-1]).all() else ()


def hinted_by_round(history: History, panel: Panel) -> Floats | None:
    """The probability [page, round] that a page changed after the visits of a round; None where no source was ever read.

    Column j is what was known before the visits of round j + 1: what was read until the first of them, and each source's record
    by the visits up to round j. NaN where no source has proven true on the page's host by then (`recrawl.hints`).
    """
    host = np.unique([urls.host(url) for url in panel.url.to_pylist()], return_inverse=True)[1].astype(np.int64)
    sources = list(told(history, panel.page, host))
    if not sources:
        return None
    hinted = np.full(panel.shape, np.nan, np.float32)
    seen = panel.at.astype("datetime64[us]").astype(np.int64)  # NaT is the smallest number, and so `NOT_TOLD`
    last_visit = np.maximum.accumulate(seen, axis=1)
    for j, end in enumerate(panel.rounds.astype("datetime64[us]").astype(np.int64).tolist()):
        until = _first_after(seen, j)
        for source in sources:
            worths = source.worths(end)
            if worths.is_proven.any():
                likely = worths.probability(host, source.newest(until) > last_visit[:, j])
                hinted[:, j] = np.fmax(hinted[:, j], likely)
    return hinted


def _first_after(seen: NDArray[np.int64], j: int) -> int:
    """Just before the first visit of the round after round j; for ever if there is none."""
    following = seen[:, j + 1] if j + 1 < seen.shape[1] else seen[:0, 0]
    following = following[following != NOT_TOLD]
    return int(following.min()) - 1 if len(following) else _EVER
