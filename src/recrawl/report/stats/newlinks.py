"""How many links pages gain from round to round: means, shares, change rates, groups, distributions and extremes.

Every function takes a panel and returns plain rows; cells without a visit (NaN) are left out everywhere.
References: LBLA (2022) section 4, Table 2 and Figs. 3 to 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from recrawl.core.arrays import Floats, Floats32, Ints
from recrawl.world.panel import Panel

Links: TypeAlias = Literal["internal", "external", "all"]
KINDS: tuple[Links, ...] = ("internal", "external", "all")
SIDES: tuple[Links, ...] = ("internal", "external")

#: The papers' groups by number of new links, as the largest number of each group but the last.
INTERNAL_GROUPS = (0, 2, 10)
EXTERNAL_GROUPS = (0, 1)

MAX_RATE_STEPS = 20  # bars of a change-rate histogram; more rounds than this are rounded
MAX_CURVE_POINTS = 200  # enough for a smooth log-log curve


@dataclass(frozen=True, slots=True)
class RoundCount:
    """New links per page in one round."""

    links: Links
    round: int  # column of the panel; round 1 compares the second look with the first
    n_pages: int  # pages of which the number of new links is known
    mean: float
    deviation: float  # standard deviation over these pages
    none_rate: float  # share of pages without any
    imbalance: float | None  # pages without any for every page with some; None: no page has any


@dataclass(frozen=True, slots=True)
class ChangeRate:
    """How many pages gained links in about this share of the rounds."""

    links: Links
    rate: float  # 0 exactly: never; 1 exactly: every time; between: the nearest step
    n_pages: int
    share: float


@dataclass(frozen=True, slots=True)
class GroupFlow:
    """How many pages went from one group to another between two rounds that follow each other."""

    links: Links
    from_round: int
    to_round: int
    from_group: str
    to_group: str
    n_pages: int


@dataclass(frozen=True, slots=True)
class GroupStay:
    """The share of pages that are in the same group in two rounds that follow each other."""

    links: Links
    from_round: int
    to_round: int
    n_pages: int
    stay_rate: float


@dataclass(frozen=True, slots=True)
class Ccdf:
    """The share of pages with at least x new links, in one round."""

    links: Links
    round: int
    n_pages: int
    at_least: tuple[int, ...]
    share: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Concentration:
    """The share of all new links that was found on the pages with most of them."""

    links: Links
    page_rate: float  # this share of the pages, those with most new links over all rounds
    link_rate: float  # held this share of the new links


@dataclass(frozen=True, slots=True)
class ExtremePage:
    """A page that gained exceptionally many links in one round, and its series over all rounds."""

    url: str
    n_most: int  # the most new links in one round
    round: int  # the round with that number
    internal: tuple[int | None, ...]  # by round; None: not visited
    external: tuple[int | None, ...]


def new_links(panel: Panel, links: Links) -> Floats32:
    """The matrix [page, round] of new links of one kind."""
    if links == "all":
        return panel.n_new_internal + panel.n_new_external
    return panel.n_new_internal if links == "internal" else panel.n_new_external


def known_rounds(counts: Floats32) -> list[int]:
    """The rounds in which the number of new links is known for at least one page.

    >>> known_rounds(np.array([[np.nan, 2, np.nan], [np.nan, np.nan, np.nan]], dtype=np.float32))
    [1]
    """
    return [int(column) for column in np.flatnonzero((~np.isnan(counts)).any(axis=0))]


def round_counts(panel: Panel) -> list[RoundCount]:
    """Mean, standard deviation and share of pages without new links, per kind and round (LBLA Table 2)."""
    return [
        RoundCount(
            links=links,
            round=column,
            n_pages=values.size,
            mean=float(values.mean()),
            deviation=float(values.std()),
            none_rate=float((values == 0).mean()),
            imbalance=float((values == 0).sum() / (values > 0).sum()) if values.any() else None,
        )
        for links, column, values in _known_values(panel, KINDS)
    ]


def change_rates(panel: Panel) -> list[ChangeRate]:
    """Histogram over pages of the share of rounds in which a page gained links (LBLA Fig. 4)."""
    return [row for links in SIDES for row in _change_rates(links, new_links(panel, links))]


def _change_rates(links: Links, counts: Floats32) -> list[ChangeRate]:
    rate, n_steps = page_rates(counts), min(len(known_rounds(counts)), MAX_RATE_STEPS)
    if not rate.size:
        return []
    step = np.rint(rate * n_steps).astype(np.int64)
    # "Never" and "every time" are findings of their own: rounding must not add pages to them.
    step[(rate > 0) & (step == 0)] = 1
    step[(rate < 1) & (step == n_steps)] = max(n_steps - 1, 0)
    n_pages = np.bincount(step, minlength=n_steps + 1)
    return [ChangeRate(links, i / n_steps, int(n), float(n / rate.size)) for i, n in enumerate(n_pages)]


def page_rates(counts: Floats32) -> Floats:
    """For every page that was ever compared, the share of its known rounds in which it gained links.

    >>> page_rates(np.array([[np.nan, 2, 0], [np.nan, np.nan, np.nan], [np.nan, np.nan, 3]], dtype=np.float32))
    array([0.5, 1. ])
    """
    n_known = (~np.isnan(counts)).sum(axis=1)
    compared = n_known > 0
    gained: Floats = (counts > 0).sum(axis=1)[compared] / n_known[compared]
    return gained


def group_labels(bounds: tuple[int, ...]) -> list[str]:
    """The names of the groups that end at `bounds`.

    >>> group_labels((0, 2, 10))
    ['0', '1–2', '3–10', '>10']
    """
    starts = [0, *(bound + 1 for bound in bounds)]
    names = [str(end) if start == end else f"{start}–{end}" for start, end in zip(starts, bounds, strict=False)]
    return [*names, f">{bounds[-1]}"]


def group_flows(
    panel: Panel, internal: tuple[int, ...] = INTERNAL_GROUPS, external: tuple[int, ...] = EXTERNAL_GROUPS
) -> list[GroupFlow]:
    """How pages move between groups from round to round, for a Sankey diagram (LBLA Fig. 3).

    Only pages known in both rounds are counted; moves that no page made are left out.
    """
    flows = []
    for links, bounds in zip(SIDES, (internal, external), strict=True):
        names = group_labels(bounds)
        for first, second, moved in _moves(new_links(panel, links), bounds):
            flows += [
                GroupFlow(
                    links=links,
                    from_round=first,
                    to_round=second,
                    from_group=names[i],
                    to_group=names[j],
                    n_pages=int(moved[i, j]),
                )
                for i, j in np.argwhere(moved)
            ]
    return flows


def group_stays(flows: list[GroupFlow]) -> list[GroupStay]:
    """The share of pages that stay in their group, per kind and pair of rounds.

    >>> group_stays([GroupFlow("all", 1, 2, "0", "0", 3), GroupFlow("all", 1, 2, "0", ">0", 1)])[0].stay_rate
    0.75
    """
    total: dict[tuple[Links, int, int], list[int]] = {}
    for flow in flows:
        stayed_and_all = total.setdefault((flow.links, flow.from_round, flow.to_round), [0, 0])
        stayed_and_all[0] += flow.n_pages if flow.from_group == flow.to_group else 0
        stayed_and_all[1] += flow.n_pages
    return [GroupStay(*key, n_pages=n, stay_rate=stayed / n) for key, (stayed, n) in total.items()]


def _moves(counts: Floats32, bounds: tuple[int, ...]) -> Iterator[tuple[int, int, Ints]]:
    columns, n_groups = known_rounds(counts), len(bounds) + 1
    for first, second in pairwise(columns):
        both = ~np.isnan(counts[:, first]) & ~np.isnan(counts[:, second])
        before, after = (np.searchsorted(bounds, counts[both, column]) for column in (first, second))
        yield first, second, np.bincount(before * n_groups + after, minlength=n_groups**2).reshape(n_groups, n_groups)


def ccdfs(panel: Panel) -> list[Ccdf]:
    """The share of pages with at least x new links, for x ≥ 1, per kind and round (LBLA Fig. 5)."""
    return [
        Ccdf(links, column, values.size, *ccdf(values))
        for links, column, values in _known_values(panel, SIDES)
        if values.any()
    ]


def ccdf(values: Floats) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The positive values that occur and the share of values at least as large, at most `MAX_CURVE_POINTS` of them.

    >>> ccdf(np.array([0.0, 0.0, 1.0, 5.0]))
    ((1, 5), (0.5, 0.25))
    """
    ordered = np.sort(values)
    x = spread(np.unique(ordered[ordered > 0]), MAX_CURVE_POINTS)
    share = 1 - np.searchsorted(ordered, x, side="left") / max(ordered.size, 1)
    return tuple(x.astype(np.int64).tolist()), tuple(share.tolist())


def spread(x: Floats, n_points: int) -> Floats:
    """At most `n_points` of the ascending positive values, evenly spread on a logarithmic axis, with both ends."""
    if x.size <= n_points:
        return x
    chosen = np.searchsorted(x, np.geomspace(x[0], x[-1], n_points)).clip(max=x.size - 1)
    picked: Floats = x[np.unique(chosen)]
    return picked


def concentrations(panel: Panel, page_rates: tuple[float, ...] = (0.01, 0.1)) -> list[Concentration]:
    """The share of all new links on the pages with most of them: what a budget for that many pages could find at best."""
    rows = []
    for links in SIDES:
        counts = new_links(panel, links)
        per_page = np.sort(np.nansum(counts, axis=1, dtype=np.float64))[::-1]
        total = per_page.sum()
        if total:
            held = ((rate, per_page[: max(1, round(rate * per_page.size))].sum()) for rate in page_rates)
            rows += [Concentration(links, rate, float(n / total)) for rate, n in held]
    return rows


def extreme_pages(panel: Panel, n_pages: int = 8) -> list[ExtremePage]:
    """The pages with the most new links in any one round (LBLA Fig. 6; Fig. 7 of its preprint)."""
    counts = np.nan_to_num(new_links(panel, "all"))
    if not counts.size:
        return []
    most = counts.max(axis=1)
    richest = np.argsort(-most, kind="stable")[:n_pages]
    return [
        ExtremePage(
            url=str(panel.url[int(row)].as_py()),
            n_most=int(most[row]),
            round=int(counts[row].argmax()),
            internal=_series(panel.n_new_internal[row]),
            external=_series(panel.n_new_external[row]),
        )
        for row in richest
        if most[row] > 0
    ]


def _series(counts: Floats32) -> tuple[int | None, ...]:
    return tuple(None if np.isnan(count) else int(count) for count in counts)


def _known_values(panel: Panel, kinds: tuple[Links, ...]) -> Iterator[tuple[Links, int, Floats]]:
    for links in kinds:
        counts = new_links(panel, links)
        for column in known_rounds(counts):
            values = counts[:, column]
            yield links, column, values[~np.isnan(values)].astype(np.float64)
