"""A plan by a stored model: what `recrawl train` learnt says what to expect of every page.

Predicting a large collection takes a while, planning by its predictions does not. So predictions are kept beside the visits, and
made again only when another model is used or visits were added.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Ints
from recrawl.core.times import NEVER, US_PER_HOUR
from recrawl.errors import BadOption, NotEnoughData
from recrawl.history import History, Timeline
from recrawl.history.importance import importance_of
from recrawl.insight.choices import OUTLINKS
from recrawl.insight.hints.of_pages import hints_of
from recrawl.insight.targets import new_links
from recrawl.models.predictor import Prediction, Predictor, predict
from recrawl.models.saved import check_fits, load
from recrawl.plan.learning import Say
from recrawl.plan.situation import Situation
from recrawl.policies.by_model import ByModel
from recrawl.web.visit import Outcome
from recrawl.world.page_names import named_pages
from recrawl.world.pages import Pages
from recrawl.world.rounds import rounds_of

FILE = "predictions.parquet"
PAGES = tuple(
    field.name for field in fields(Pages) if field.name not in ("related", "url_groups", "depth", "importance", "ids")
)
PREDICTED = ("expected", "probability", "low", "high", "basis", "n_links", "n_hits")
COLUMNS = {"page", "url", "gap_hours", "change", *PAGES, *PREDICTED}


class PredictedLinks:
    """What a plan needs to know of every page, from predictions."""

    def __init__(self, columns: dict[str, Floats]) -> None:
        self.expected, self.probability = columns["expected"], columns["probability"]
        self.n_links, self.n_hits = columns["n_links"], columns["n_hits"]
        self.size = np.full(len(self.expected), np.nan)  # the model's own bound is enough

    def expect(self, pages: Pages, now: datetime, of: Ints | None = None) -> tuple[Floats, Floats]:
        """New links expected of a visit now, and the probability of at least one; for some pages, or for all."""
        page = np.arange(len(pages)) if of is None else of
        return self.expected[page], self.probability[page]


def situation_by_model(
    history: History, model: str | Path, on_step: Say = lambda what: None, on_note: Say = lambda what: None
) -> Situation:
    """All pages as a stored model sees them."""
    on_step("the model's predictions")
    predictor, key = load(model), _key(history, model)  # before anything is read: what comes later makes it old
    if predictor.recipe.target != OUTLINKS:
        raise BadOption(
            f"model {model} predicts {predictor.recipe.target}, which a visit to the page does not find: plan by a model of "
            f"{OUTLINKS}, or see which pages will be linked to with recrawl predict"
        )
    rows = _kept(history, key)
    if rows is None:
        on_note("predicting first: no predictions of this model with these visits are kept yet")
        rows = _predicted(history, predictor, model, on_step, on_note)
        if history.until is None:
            _keep(history, key, rows)
    else:
        check_fits(predictor, rows["page"].to_numpy(), model)
    columns = {name: rows[name].to_numpy() for name in rows.column_names if name != "url"}
    pages = Pages(**{name: columns[name].copy() for name in PAGES}, importance=importance_of(history, columns["page"]))
    predicted = {name: columns[name].astype(np.float64) for name in PREDICTED}
    (gap,) = columns["gap_hours"][:1]
    policy, expecting = ByModel(predicted), PredictedLinks(predicted)
    hints = hints_of(history, columns["page"], pages.host, pages.last_visit)
    url = rows["url"].combine_chunks()
    return Situation(
        page=columns["page"],
        url=url,
        pages=pages,
        policy=policy,
        expectation=expecting,
        last_change=columns["change"],
        cycle_hours=gap,
        hints=hints,
    )


def _predicted(history: History, predictor: Predictor, model: str | Path, on_step: Say, on_note: Say) -> pa.Table:
    """One row per page, ordered by URL, with all that a plan needs."""
    timeline = history.timeline
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    check_fits(predictor, timeline.pages, model)
    by_kind = predict(predictor, history, (), on_step, on_note)
    prediction = by_kind["all"] if "all" in by_kind else next(iter(by_kind.values()))
    ids, url, host, site = named_pages(history, timeline.pages)
    at = np.searchsorted(prediction.panel.page, ids)
    pages = _pages(timeline, ids, site, host)
    gaps = np.diff(rounds_of(timeline, predictor.recipe.every).ends) / US_PER_HOUR
    columns = {name: getattr(pages, name) for name in PAGES}
    columns |= {name: values[at] for name, values in _columns(prediction).items()}
    usual = float(np.median(gaps)) if len(gaps) else 24.0
    return pa.table({"page": ids, "url": url, "gap_hours": np.full(len(ids), usual)} | columns)


def _pages(timeline: Timeline, ids: Ints, site: Ints, host: Ints) -> Pages:
    """What all visits together say of each page; the timeline is ordered by page and time."""
    pages = Pages.unseen(site, host)
    order = np.searchsorted(timeline.pages, ids)
    first = np.searchsorted(timeline.page, timeline.pages)
    last = np.append(first[1:], timeline.n_visits) - 1
    failed, gone = timeline.outcome == Outcome.FAILED, timeline.outcome == Outcome.GONE
    # The last visit that was answered at all: everything after it failed.
    answered_at = np.maximum.accumulate(np.where(~failed, np.arange(timeline.n_visits), -1))
    answered_at = np.maximum(answered_at[last], first - 1)
    pages.last_visit[:] = timeline.at[last][order]
    pages.n_visits[:] = (last - first + 1)[order]
    pages.n_answers[:] = np.add.reduceat(~failed & ~gone & (timeline.links >= 0), first)[order]
    pages.n_failures[:] = (last - answered_at)[order]
    pages.is_gone[:] = ((answered_at >= first) & gone[np.maximum(answered_at, 0)])[order]
    return pages


def _columns(prediction: Prediction) -> dict[str, NDArray[Any]]:
    new = new_links(prediction.panel, prediction.links)
    has_new = np.nan_to_num(new) > 0
    moments = prediction.panel.at.astype("datetime64[us]").astype(np.int64)
    return {name: getattr(prediction, name) for name in ("expected", "probability", "low", "high", "basis")} | {
        "n_links": np.nansum(new, axis=1),
        "n_hits": has_new.sum(axis=1),
        "change": np.where(has_new, moments, NEVER).max(axis=1, initial=NEVER),
    }


def _key(history: History, model: str | Path) -> bytes:
    """What predictions depend on: the model and the visits."""
    part = [history.store.part] if history.store.part else []
    files = "\n".join([*part, str(history.until), *sorted(history.store.files("visits"))])
    return hashlib.sha256(Path(model).read_bytes() + files.encode()).hexdigest().encode()


def _kept(history: History, key: bytes) -> pa.Table | None:
    """The predictions that were kept, if they are of this model and no visit was added since."""
    data = history.beside.read_bytes(FILE)
    if data is None:
        return None
    try:
        if (pq.read_schema(pa.BufferReader(data)).metadata or {}).get(b"of") != key:
            return None
        rows = pq.read_table(pa.BufferReader(data))
        return rows if set(rows.column_names) == COLUMNS else None
    except (OSError, pa.ArrowInvalid):
        return None


def _keep(history: History, key: bytes, rows: pa.Table) -> None:
    buffer = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata({b"of": key}), buffer, compression="zstd")
    history.beside.write_bytes(FILE, buffer.getvalue().to_pybytes())
