"""The evaluation of papers 000 and 003 on any history: every part yields plain rows, made into tables and plots elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.errors import NotEnoughData
from recrawl.experiments import ladders, maps, rankings
from recrawl.experiments.ladders import FEATURE_SETS, Row
from recrawl.experiments.settings import Settings
from recrawl.features import Features, Known, everything, known_before, static_network
from recrawl.history import History
from recrawl.panel import Panel

MIN_ROUNDS = {"pages": 2, "time": 3}


@dataclass
class Evaluation:
    """All rows, by part, and what they were measured on."""

    settings: Settings
    n_pages: int
    n_rounds: int
    predicted: str  # the end of the predicted round
    related: str  # how the related pages were found
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def mean(self, part: str, by: Iterable[str], scores: Iterable[str]) -> list[Row]:
        """Rows of a part averaged over the repetitions."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        by = list(by)
        for row in self.rows.get(part, []):
            groups.setdefault(tuple(row.get(name) for name in by), []).append(row)
        return [
            dict(zip(by, key, strict=True)) | {score: _mean([row.get(score) for row in rows]) for score in scores}
            for key, rows in groups.items()
        ]


def _mean(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None and not np.isnan(value)]
    return float(np.mean(known)) if known else None


def evaluate(
    history: History,
    panel: Panel,
    settings: Settings,
    on_step: Callable[[str], None] = lambda what: None,
    **sources: Any,
) -> Evaluation:
    """Run the parts that `settings` asks for; `sources` go to `known_before` (k, method, transformer, trusted)."""
    n_pages, n_rounds = panel.shape
    if n_rounds < MIN_ROUNDS[settings.split]:
        raise NotEnoughData(
            f"the panel has {n_rounds} round{'s' * (n_rounds != 1)}; the split by {settings.split} needs at least "
            f"{MIN_ROUNDS[settings.split]}. Shorter rounds (--every) may help, or more visits"
        )
    if n_pages < 8:
        raise NotEnoughData(
            f"{n_pages} page{'s' * (n_pages != 1)} in the panel: too few to learn from some and test on others"
        )
    known = known_before(history, panel, n_rounds - 1, _needed(settings), on_step=on_step, **sources)
    found = Evaluation(settings, n_pages, n_rounds, str(panel.rounds[-1])[:19], _how_related(known))
    for part in settings.parts:
        found.rows[part] = []
        for row in _part(part, known, settings):
            found.rows[part].append(row)
            on_step(_told(part, row))
    return found


def _needed(settings: Settings) -> Features:
    features = set(everything(settings.history, papers_rate=settings.papers_rate)) | set(static_network(page_rank=True))
    if "features" in settings.parts:
        features |= set(FEATURE_SETS["SPsem"])
    if {"rankings", "counts"} & set(settings.parts):
        features |= set(rankings.all_features(settings))
    return tuple(features)


def _part(part: str, known: Known, settings: Settings) -> Iterator[Row]:
    if part == "features":
        return ladders.feature_ladder(known, settings)
    if part == "history":
        return ladders.history_ladder(known, settings)
    if part == "importance":
        return maps.importances(known, settings)
    if part == "correlation":
        return iter([maps.correlation_map(known)])
    if part == "maps":
        return maps.regression_maps(known, settings)
    if part == "rankings":
        return rankings.rank(known, settings)
    return rankings.count_models(known, settings)


def _how_related(known: Known) -> str:
    if known.related is None:
        return "no related pages were needed"
    n = int((known.related.weight.sum(axis=1) > 0).sum())
    if not n:
        return "no page has text: there are no related pages"
    return f"{n:,} pages with related pages, found {known.related.method} at recall {known.related.recall:.3f}"


def _told(part: str, row: Row) -> str:
    keys = ("links", "features", "learner", "ranking", "history", "name")
    return f"{part}: " + ", ".join(str(row[key]) for key in keys if row.get(key) not in (None, ""))[:100]
