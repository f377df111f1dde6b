"""The evaluation of papers 000 and 003 on any history: every part yields plain rows, made into tables and plots elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.papers.outlinks import ladders, maps, rankings
from recrawl.papers.outlinks.evidence import Evidence, gather_evidence
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.world.panel import Panel

MIN_ROUNDS = {"pages": 2, "time": 3}


@dataclass
class OutlinkEvaluation:
    """All rows, by part, and what they were measured on."""

    settings: OutlinkSettings
    n_pages: int
    n_rounds: int
    predicted: str  # the end of the predicted round
    related: str  # how the related pages were found
    recall: float | None = None  # of the search for related pages
    notes: tuple[str, ...] = ()  # what was asked for but could not be done
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def about(self) -> Row:
        """What the rows were measured on, as a row of its own."""
        return {
            "pages": self.n_pages,
            "rounds": self.n_rounds,
            "predicted": self.predicted,
            "split": self.settings.split,
            "related": self.related,
            "recall": self.recall,
            "notes": list(self.notes),
        }

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
    settings: OutlinkSettings,
    on_step: Callable[[str], None] = lambda what: None,
    **sources: Any,
) -> OutlinkEvaluation:
    """Run the parts that `settings` asks for; `sources` go to `evidence.gathered` (k, method, transformer, trusted)."""
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
    known = gather_evidence(history, panel, settings, on_step, **sources)
    predicted = str(panel.rounds[-1])[:19]
    found = OutlinkEvaluation(settings, n_pages, n_rounds, predicted, known.related, known.recall, known.notes)
    for part in settings.parts:
        found.rows[part] = []
        for row in _part(part, known, settings):
            found.rows[part].append(row)
            on_step(_told(part, row))
    return found


def _part(part: str, known: Evidence, settings: OutlinkSettings) -> Iterator[Row]:
    if part == "features":
        return ladders.feature_ladder(known.first, settings)
    if part == "history":
        return ladders.history_ladder(known.before, settings)
    if part == "importance":
        return maps.importances(known.first, known.before, settings)
    if part == "correlation":
        return iter([maps.correlation_map(known.before)])
    if part == "maps":
        return maps.regression_maps(known.first, settings)
    if part == "rankings":
        return rankings.rank(known.before, settings)
    return rankings.count_models(known.before, settings)


def _told(part: str, row: Row) -> str:
    keys = ("links", "features", "learner", "ranking", "history", "name")
    return f"{part}: " + ", ".join(str(row[key]) for key in keys if row.get(key) not in (None, ""))[:100]
