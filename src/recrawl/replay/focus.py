"""The focused setting: only links that lead to relevant pages count."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Floats, Ints
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.models.relevance import Relevance
from recrawl.world.recorded import World


def focused(history: History, world: World, above: float = 0.5, model: Relevance | None = None) -> World:
    """The world with only the links whose relevance is above a threshold (Pham et al. 2018, section 3).

    The relevance recorded at a page's last visit comes first. Where none was recorded, the classifier predicts it: from the page's
    words if the history has them, else from its URL. Without a classifier, links to pages without a recorded relevance do not
    count.
    """
    relevance = recorded_relevance(history, world.link)
    unknown = np.flatnonzero(np.isnan(relevance))
    if model is not None and len(unknown):
        relevance[unknown] = predicted_relevance(history, world.link[unknown], model)
    counts = np.nan_to_num(relevance, nan=-1.0) > above
    if not counts.any():
        hint = "" if model else "; no visit in this history has a relevance: train a classifier with recrawl relevance"
        raise NotEnoughData(f"no link has a relevance above {above}{hint}")
    return world.relevant(counts)


def recorded_relevance(history: History, link: Ints) -> Floats:
    """The last relevance that was recorded for each page that a link leads to; NaN where none was."""
    timeline = history.timeline
    column = timeline.rows["relevance"]
    visits = np.flatnonzero(np.asarray(column.is_valid()))
    values = column.fill_null(0).to_numpy()[visits].astype(np.float64)
    page = timeline.page[visits]
    last = np.flatnonzero(np.append(page[1:] != page[:-1], True)[: len(page)])
    page, values = page[last], values[last]
    if not len(page):
        return np.full(len(link), np.nan)
    at = np.minimum(np.searchsorted(page, link), len(page) - 1)
    return np.where(page[at] == link, values[at], np.nan)


def predicted_relevance(history: History, link: Ints, model: Relevance) -> Floats:
    """The classifier's prediction for the pages that links lead to: from their words where they are known, else from their URL."""
    urls = history.urls_of(link).to_pylist()
    probability = model.predict([url or "" for url in urls])
    for i, counts in words_of(history, link).items():
        probability[i] = model.predict([counts])[0]
    return probability


def words_of(history: History, link: Ints) -> dict[int, Counter[str]]:
    """The words that each page showed first, by its place among the links; pages that were never read are missing."""
    timeline = history.timeline
    digest = timeline.rows["terms"]
    read = np.flatnonzero(np.asarray(digest.is_valid()) & np.isin(timeline.page, link))
    if not len(read):
        return {}
    page, first = np.unique(timeline.page[read], return_index=True)
    wanted = digest.fill_null(0).to_numpy()[read[first]]
    texts = history.store.read("texts", where=pc.is_in(ds.field("digest"), pa.array(np.unique(wanted))))
    terms = history.store.read("terms")
    word = dict(zip(terms["id"].to_pylist(), terms["term"].to_pylist(), strict=True))
    rows = zip(*(texts[name].to_pylist() for name in ("digest", "terms", "counts")), strict=True)
    counted = {key: Counter({word[i]: n for i, n in zip(ids, ns, strict=True) if i in word}) for key, ids, ns in rows}
    place = {int(page): i for i, page in enumerate(link)}
    return {place[int(p)]: counted[int(key)] for p, key in zip(page, wanted, strict=True) if int(key) in counted}
