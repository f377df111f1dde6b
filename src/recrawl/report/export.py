"""The tables of a history for a notebook or another program: Arrow tables, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Floats32, Ints
from recrawl.history import History, Timeline
from recrawl.history.visit_table import times_column
from recrawl.insight.choices import LINKS
from recrawl.insight.features import known_before
from recrawl.insight.features import preset as preset_of
from recrawl.insight.targets import NewLinkCount
from recrawl.models.predictor import predict
from recrawl.models.records import records
from recrawl.models.saved import check_fits, load
from recrawl.web.visit import Outcome
from recrawl.world import panel

LINKS_AT_ONCE = 2_000_000
PAGES_AT_ONCE = 50_000


def visits(history: History) -> Iterator[pa.Table]:
    """One row per visit, ordered by page and time: what it showed and what was new; null where unknown or undefined."""
    return history.visits().parts()


def links(history: History) -> Iterator[pa.Table]:
    """One row for every link that a visit showed, except where the visit only confirmed an earlier copy."""
    timeline = history.timeline
    shown = visits_with_links(timeline)
    lengths = np.diff(timeline.sets.start)[timeline.links[shown]] if len(shown) else shown
    part = np.cumsum(lengths) // LINKS_AT_ONCE
    for i in np.unique(part) if len(part) else [0]:
        yield link_table(history, shown[part == i])[0]


def visits_with_links(timeline: Timeline) -> Ints:
    """The visits that showed links of their own."""
    return np.flatnonzero((timeline.links >= 0) & (timeline.outcome == Outcome.OK))


def link_table(history: History, visits: Ints) -> tuple[pa.Table, Ints]:
    """One row for every link that these visits showed; and the visit of each row."""
    timeline = history.timeline
    sets, of_set = timeline.sets, timeline.links[visits]
    n = np.diff(sets.start)[of_set] if len(visits) else visits
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    of_row = np.repeat(np.arange(len(visits)), n)
    ids = sets.links[np.repeat(sets.start[of_set], n) + within]
    table = pa.table(
        {
            "url": history.urls_of(timeline.page[visits]).take(pa.array(of_row)),
            "at": times_column(timeline.at[visits][of_row]),
            "link": history.urls_of(ids),
            "internal": pa.array(within < sets.n_internal[of_set][of_row]),
        }
    )
    return table, visits[of_row]


def panel_rows(
    history: History, every: str | timedelta | Sequence[datetime] = "crawl", min_share: float = 1.0
) -> Iterator[pa.Table]:
    """One row per page and round; null where the page was not visited."""
    built = panel.build(history, every, min_share)
    for r in range(len(built.rounds)):
        columns = {
            "url": built.url,
            "round": pa.array(np.full(len(built.page), r, np.int32)),
            "round_end": times_column(np.full(len(built.page), built.rounds[r].astype(np.int64))),
            "at": pa.array(built.at[:, r], pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
            "n_new_internal": _numbers(built.n_new_internal[:, r]),
            "n_new_external": _numbers(built.n_new_external[:, r]),
            "content_changed": _numbers(built.content_changed[:, r]),
        }
        yield pa.table(columns | {name: _numbers(values[:, r]) for name, values in built.base.items()})


def features(
    history: History,
    preset: str = "everything",
    every: str | timedelta | Sequence[datetime] = "crawl",
    min_share: float = 1.0,
    n_past: int = 0,
) -> Iterator[pa.Table]:
    """One row per page: the features known now, for the next round; and the same for `n_past` earlier rounds, with their targets.

    Related pages are those known now, in all rounds, as in training.
    """
    built = panel.build(history, every, min_share)
    now = len(built.rounds)
    wanted = tuple(dict.fromkeys(f for links in LINKS for f in preset_of(preset, NewLinkCount(links))))
    known = known_before(history, built, now, wanted)
    for r in range(max(1, now - n_past), now + 1):
        columns: dict[str, pa.Array] = {"url": built.url, "round": pa.array(np.full(len(built.page), r, np.int32))}
        for links in LINKS:
            target = NewLinkCount(links).values(built, r) if r < now else np.full(len(built.page), np.nan, np.float32)
            columns[f"target_new_{links}"] = _numbers(target)
        values = known.matrix(wanted, r)
        yield pa.table(columns | {str(f): _numbers(values[:, i]) for i, f in enumerate(wanted)})


def predictions(history: History, model: str) -> Iterator[pa.Table]:
    """One row per page: what the model in this file expects of the next round, and why."""
    predictor = load(model)
    check_fits(predictor, history.timeline.pages, model)
    by_kind = predict(predictor, history)
    kind = "all" if "all" in by_kind else next(iter(by_kind))
    rows = records(predictor, by_kind, kind)
    while part := list(islice(rows, PAGES_AT_ONCE)):
        for row in part:
            for name in by_kind:
                row[f"low_{name}"], row[f"high_{name}"] = row.pop(f"interval_{name}")
            row["reasons"] = "; ".join(row["reasons"])
        yield pa.Table.from_pylist(part)


def _numbers(values: Floats32) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
