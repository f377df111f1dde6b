"""The evaluation of Dang et al. (LBLA, 2022, and its preprint) on any history: every part yields plain rows.

Tables and plots are made from the rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.core.words import count
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight.choices import LinkKind
from recrawl.insight.inlinks import with_new_inlinks
from recrawl.insight.targets import HasNewLinks
from recrawl.papers.outlinks import drift, ladders, maps, rankings
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
    notes: tuple[str, ...] = ()  # what could not be done, and why
    imbalance: dict[str, float | None] = field(default_factory=dict)  # kind of links → see `imbalance_ratio`
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def about(self) -> Row:
        """What the rows were measured on, as a row of its own."""
        return {
            "pages": self.n_pages,
            "rounds": self.n_rounds,
            "predicted": self.predicted,
            "split": self.settings.split,
            "target": self.settings.target,
            "imbalance": self.imbalance,
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
    """Run the parts named in `settings`; `sources` are passed to `evidence.gather_evidence` (k, method, transformer, trusted)."""
    n_pages, n_rounds = panel.shape
    if n_rounds < MIN_ROUNDS[settings.split]:
        raise NotEnoughData(
            f"the panel has {count(n_rounds, 'round')}; the split by {settings.split} needs at least "
            f"{MIN_ROUNDS[settings.split]}. Shorter rounds (--every) may help, or more visits"
        )
    if n_pages < 8:
        raise NotEnoughData(f"{count(n_pages, 'page')} in the panel: too few to learn from some and test on others")
    if settings.target == "inlinks":
        panel = with_new_inlinks(panel)
    evidence = gather_evidence(history, panel, settings, on_step, **sources)
    evaluation = OutlinkEvaluation(
        settings=settings,
        n_pages=n_pages,
        n_rounds=n_rounds,
        predicted=str(panel.rounds[-1])[:19],
        related=evidence.related,
        recall=evidence.recall,
        notes=evidence.notes,
        imbalance={links: imbalance_ratio(panel, links) for links in settings.links},
    )
    for part in settings.parts:
        evaluation.rows[part] = []
        for row in RUN[part](evidence, settings):
            evaluation.rows[part].append(row)
            on_step(_step(part, row))
    return evaluation


def imbalance_ratio(panel: Panel, links: LinkKind) -> float | None:
    """Pages without new links for every page with some, in the predicted round (LBLA section 6.2: 2.57 and 12.15)."""
    has_new = HasNewLinks(links).values(panel, panel.shape[1] - 1)
    n_with = int(np.nansum(has_new))
    return (int((~np.isnan(has_new)).sum()) - n_with) / n_with if n_with else None


#: Part of the evaluation → how its rows are made.
RUN: dict[str, Callable[[Evidence, OutlinkSettings], Iterator[Row]]] = {
    "features": lambda evidence, settings: ladders.feature_ladder(evidence.first, settings),
    "history": lambda evidence, settings: ladders.history_ladder(evidence.before, settings),
    "importance": lambda evidence, settings: maps.importances(evidence.first, evidence.before, settings),
    "correlation": lambda evidence, settings: iter([maps.correlation_map(evidence.before)]),
    "maps": lambda evidence, settings: maps.regression_maps(evidence.first, settings),
    "rankings": lambda evidence, settings: rankings.rank(evidence.before, settings),
    "counts": lambda evidence, settings: rankings.count_models(evidence.before, settings),
    "drift": lambda evidence, settings: drift.drift(evidence.halfway or evidence.before, settings),
}


def _step(part: str, row: Row) -> str:
    keys = ("links", "features", "learner", "ranking", "history", "name", "model", "origin", "round", "way")
    return f"{part}: " + ", ".join(str(row[key]) for key in keys if row.get(key) not in (None, ""))[:100]
