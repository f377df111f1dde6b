"""What the parts of an evaluation may use: what is known before the predicted round, and before the second round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight import graph
from recrawl.insight.features import (
    Feature,
    FeatureInputs,
    Features,
    everything,
    known_before,
    static_network,
    static_page,
)
from recrawl.papers.outlinks import drift, rankings
from recrawl.papers.outlinks.ladders import FEATURE_SETS
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.world.panel import Panel
from recrawl.world.related import Related


@dataclass(frozen=True)
class Evidence:
    """The same panel with related pages, vectors and graph of two times.

    The link change rate counts all rounds after the first. Text or links of any of them would give away what is to be predicted, so
    its features are made from `first`.
    """

    first: FeatureInputs  # what the first round shows
    before: FeatureInputs  # all up to the predicted round
    notes: tuple[str, ...] = ()  # what could not be done, and why
    related_by: str = "content"  # what makes pages related before the predicted round
    halfway: FeatureInputs | None = None  # all up to the first of the rounds that `drift` predicts

    @property
    def related(self) -> str:
        """How the related pages were found."""
        searches = [f"{when} {_described(related)}" for when, related in self._searches()]
        return "; ".join(searches) or "none were needed"

    @property
    def recall(self) -> float | None:
        """The share of the most similar pages that were found, the lower of both searches."""
        return min((related.recall for _, related in self._searches()), default=None)

    def _searches(self) -> Iterator[tuple[str, Related]]:
        by = "text" if self.related_by == "content" else f"new links over time ({self.related_by})"
        for when, known in (
            (f"by the {by} before the predicted round", self.before),
            ("by the text of the first round", self.first),
        ):
            if known.related is not None:
                yield when, known.related


def _described(related: Related) -> str:
    n = int((related.weight.sum(axis=1) > 0).sum())
    return f"{n:,} pages have some, {related.method} search with recall {related.recall:.3f}" if n else "there are none"


def gather_evidence(
    history: History,
    panel: Panel,
    settings: OutlinkSettings,
    on_step: Callable[[str], None] = lambda what: None,
    *,
    trusted: Sequence[str] | None = None,
    **sources: Any,
) -> Evidence:
    """What the parts named in `settings` need; `sources` are passed to `known_before` (k, method, transformer).

    In the first round nothing has moved yet: its related pages are always those by content.
    """
    unknown = graph.trusted_rows(panel, trusted)[1] if trusted else ()
    at_first = trusted if trusted and _any_seen(panel.window(0, 1), trusted) else None
    last = panel.shape[1] - 1
    sources |= {"idf": settings.idf}
    before = known_before(
        history,
        panel,
        last,
        _needed(settings),
        related_by=settings.related_by,
        on_step=on_step,
        trusted=trusted,
        **sources,
    )
    first = known_before(history, panel, 1, _needed_first(settings), on_step=on_step, trusted=at_first, **sources)
    notes = tuple(
        _notes(unknown, bool(trusted) and at_first is None, settings.idf != "log" and _has_vectors(history, panel))
    )
    if trusted and panel.given is not None and panel.given.has("trustrank"):
        notes += ("--trusted has no effect where TrustRank came with the data",)
    halfway = None
    if "drift" in settings.parts:
        start = drift.first_predicted(panel.shape[1])
        needed = drift.drift_features(settings)
        halfway = known_before(
            history, panel, start, needed, related_by=settings.related_by, on_step=on_step, **sources
        )
    return Evidence(first, before, notes, settings.related_by, halfway)


def _has_vectors(history: History, panel: Panel) -> bool:
    from recrawl.insight.vectors import given_vectors, texts_up_to  # loads scikit-learn

    return given_vectors(history, texts_up_to(panel, panel.shape[1] - 2)) is not None


def _needed(settings: OutlinkSettings) -> Features:
    features: set[Feature] = set()
    if {"history", "importance"} & set(settings.parts):
        features |= set(everything(settings.history, **settings.leaks))
    if "correlation" in settings.parts:
        features |= set(static_page() + static_network(page_rank=True))
    if {"rankings", "counts"} & set(settings.parts):
        features |= set(rankings.all_features(settings))
    return tuple(features)


def _needed_first(settings: OutlinkSettings) -> Features:
    sets = {"features": "SPsem+SN", "importance": "SPsem+SN", "maps": "SP"}
    return tuple({feature for part, name in sets.items() if part in settings.parts for feature in FEATURE_SETS[name]})


def _any_seen(panel: Panel, trusted: Sequence[str]) -> bool:
    try:
        return bool(len(graph.trusted_rows(panel, trusted)[0]))
    except NotEnoughData:
        return False


def _notes(unknown: Sequence[str], none_at_first: bool, idf_unused: bool) -> Iterator[str]:
    for entry in unknown:
        yield f"--trusted {entry!r}: no such page or host is among those evaluated"
    if idf_unused:
        yield "--idf has no effect: the semantic vectors came with the data"
    if none_at_first:
        yield "no trusted page was seen in the first round; its features use the home pages as trusted instead"
