"""What experts predict of a page: that it changes, that it shows new links, or that it becomes relevant.

The paper predicts significant changes. Every other outcome that is known for pages and rounds can take their place.
"""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats, Ints8
from recrawl.core.suggest import unknown
from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.history.history import count_new
from recrawl.world import change, notions
from recrawl.world.contents import Contents
from recrawl.world.every import Every
from recrawl.world.rounds import rounds_of

CHANGE, NEW_LINKS, RELEVANCE = "change", "new-links", "relevance"
TARGETS = (CHANGE, NEW_LINKS, RELEVANCE)


def parsed_target(text: str) -> tuple[str, float]:
    """The name of a target and its threshold, which only relevance has.

    >>> parsed_target("new-links"), parsed_target("relevance:0.8")
    (('new-links', 0.5), ('relevance', 0.8))
    """
    name, _, given = text.partition(":")
    if name not in TARGETS:
        raise RecrawlError(unknown("target", name, TARGETS))
    try:
        threshold = float(given) if given else 0.5
    except ValueError:
        threshold = -1.0
    if given and (name != RELEVANCE or not 0 < threshold <= 1):
        raise RecrawlError(
            f"{text!r} is no target: only relevance takes a threshold, above 0 and up to 1: relevance:0.5"
        )
    return name, threshold


def outcomes(history: History, contents: Contents, every: Every, target: str, notion: str) -> Ints8:
    """Whether it happened to each page in each round: 1 or 0; -1 where that is not known.

    ``change``: a change by the notion. ``new-links``: a visit of the round shows a link that the copy before did not have.
    ``relevance``: the page was found relevant in this round, and had not been when it was last judged before.
    """
    name, threshold = parsed_target(target)
    if name == NEW_LINKS:
        return _new_links(history, contents, every)
    if name == RELEVANCE:
        return crossings(_relevance(history, contents, every), threshold)
    chosen = notions.notion_from(notion)
    sketches = change.sketches_of(history, contents) if isinstance(chosen, notions.Shingles) else None
    return change.changes(contents, chosen, sketches)


def crossings(values: Floats, threshold: float) -> Ints8:
    """Where a series [page, round] reaches a threshold from below; -1 where it is not known, or never was before.

    >>> crossings(np.array([[0.1, 0.9, np.nan, 0.2, 0.7, 0.8]]), 0.5).tolist()
    [[-1, 1, -1, 0, 1, 0]]
    """
    is_known = ~np.isnan(values)
    newest = np.maximum.accumulate(np.where(is_known, np.arange(values.shape[1]), -1), axis=1)
    before = np.full(newest.shape, -1)
    before[:, 1:] = newest[:, :-1]
    last = np.take_along_axis(values, np.maximum(before, 0), axis=1)
    crossed = (values >= threshold) & (last < threshold)
    return np.where(is_known & (before >= 0), crossed, -1).astype(np.int8)


def _new_links(history: History, contents: Contents, every: Every) -> Ints8:
    timeline = history.timeline
    n_new = count_new(timeline).total("previous")
    visit, row, of_round = _places(history, contents, every)
    found = np.full(contents.shape, -1, np.int8)
    np.maximum.at(found, (row, of_round), np.clip(n_new[visit], -1, 1).astype(np.int8))
    if not (found >= 0).any():
        raise NotEnoughData(
            "no visit in this history shows the links of a page twice, so new links cannot be predicted"
        )
    return found


def _relevance(history: History, contents: Contents, every: Every) -> Floats:
    """The last relevance recorded in each round [page, round]; NaN where none was."""
    column = history.timeline.rows["relevance"]
    visit, row, of_round = _places(history, contents, every)
    stored = column.to_numpy().astype(np.float64)[visit]
    if np.isnan(stored).all():
        raise NotEnoughData(
            "no visit in this history has a relevance, so it cannot be predicted; record it with the visits, or train a "
            "classifier with recrawl relevance and crawl with it"
        )
    values = np.full(contents.shape, np.nan)
    known = ~np.isnan(stored)
    values[row[known], of_round[known]] = stored[known]  # in the order of time: the last one stays
    return values


def _places(history: History, contents: Contents, every: Every) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The visits to pages of the contents in their rounds: visit, page, round."""
    timeline = history.timeline
    of_visit = rounds_of(timeline, every).of_visit
    row = np.minimum(np.searchsorted(contents.page, timeline.page), len(contents.page) - 1)
    visit = np.flatnonzero((of_visit >= 0) & (contents.page[row] == timeline.page))
    return visit, row[visit], of_visit[visit]
