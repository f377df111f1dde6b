"""The rounds and the pages that a predictor uses: all periods that have ended, all pages that were ever fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Ints
from recrawl.history import History
from recrawl.web.urls import domain_depth, page_id, path_depth
from recrawl.world.panel import Panel, build
from recrawl.world.rounds import has_ended


def ended_rounds(
    history: History, every: str, n_rounds: int, on_note: Callable[[str], None], with_content: bool = False
) -> Panel:
    """The last rounds of a history that have ended, all pages that were seen in any of them.

    A period that has not ended shows fewer new links than it will have: a model would learn that pages have become quiet.
    """
    panel = build(history, every, 0.0, with_content=with_content)
    last = panel.shape[1]
    if last > 1 and not has_ended(history.timeline, every):
        newest = str(np.datetime64(int(history.timeline.at.max()), "us"))[:16].replace("T", " ")
        ends = str(panel.rounds[-1])[:16].replace("T", " ")
        on_note(
            f"the period up to {ends} UTC has not ended, its newest visit is of {newest}: nothing is learnt from it, "
            "and it is the round that is predicted"
        )
        last -= 1
    return panel.window(max(0, last - n_rounds), last)


def last_visit(panel: Panel) -> str:
    """When the newest visit in the panel was made: the last one of a page in a round."""
    return str(panel.at[~np.isnat(panel.at)].max())[:19]


def first_visit(panel: Panel) -> str:
    """When the oldest visit in the panel was made."""
    return str(panel.at[~np.isnat(panel.at)].min())[:19]


def ever_fetched(history: History, more_urls: Sequence[str]) -> tuple[Ints, pa.Array]:
    """The pages of a history, also those that never answered, and further URLs."""
    timeline = history.timeline
    ids = np.concatenate([timeline.pages, np.array([page_id(url) for url in more_urls], np.int64)])
    texts = pa.concat_arrays(
        [history.page_urls(timeline.pages).cast(pa.string()), pa.array(list(more_urls), pa.string())]
    )
    first = np.unique(ids, return_index=True)[1]
    return ids[first], texts.take(pa.array(first))


def with_pages(panel: Panel, ids: Ints, urls: pa.Array) -> Panel:
    """The panel with a row for each of these pages; of those that it did not have only the URL is known."""
    new = np.flatnonzero(~np.isin(ids, panel.page) & np.asarray(urls.is_valid()))
    if not len(new):
        return panel
    extra = urls.take(pa.array(new))
    page = np.concatenate([panel.page, ids[new]])
    order = np.argsort(page)

    def longer(matrix: NDArray[Any], fill: Any) -> NDArray[Any]:
        return np.vstack([matrix, np.full((len(new), matrix.shape[1]), fill, matrix.dtype)])[order]

    base = {name: longer(matrix, np.nan) for name, matrix in panel.base.items()}
    added = order >= len(panel.page)
    for name, depth in (("path_depth", path_depth), ("domain_depth", domain_depth)):
        depths = np.array([depth(url) for url in extra.to_pylist()], np.float32)
        base[name][added] = depths[order[added] - len(panel.page)][:, None]
    return Panel(
        page=page[order],
        url=pa.concat_arrays([panel.url.cast(pa.string()), extra.cast(pa.string())]).take(pa.array(order)),
        rounds=panel.rounds,
        at=longer(panel.at, np.datetime64("NaT", "us")),
        n_new_internal=longer(panel.n_new_internal, np.nan),
        n_new_external=longer(panel.n_new_external, np.nan),
        content_changed=longer(panel.content_changed, np.nan),
        base=base,
        terms=None if panel.terms is None else longer(panel.terms, 0),
        links=None if panel.links is None else longer(panel.links, -1),
        sets=panel.sets,
        given=None if panel.given is None else panel.given.each(longer),
    )
