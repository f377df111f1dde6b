"""Why a page is expected to have new links, in words: what the prediction would be if one thing about the page were as usual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.features import Feature
from recrawl.models.predictor import Prediction, Predictor

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Reason:
    """One thing about a page and what it adds to (or takes from) the expected number of new links."""

    words: str
    effect: float

    def __str__(self) -> str:
        return f"{self.words} ({number(self.effect, '+')})"


def number(value: float, sign: str = "") -> str:
    """As many digits as are of use.

    >>> number(174.4), number(4.62), number(0.00234), number(-31.7, "+")
    ('174', '4.6', '0.0023', '-32')
    """
    size = abs(value)
    return f"{value:{sign},.0f}" if size >= 10 else f"{value:{sign}.1f}" if size >= 1 else f"{value:{sign}.2g}"


@dataclass(frozen=True)
class Theme:
    """Features that tell the same story, and how to tell it."""

    name: str
    holds: Callable[[Feature], bool]
    tell: Callable[[dict[str, float], str], str]


def _links(n: float, links: str) -> str:
    kind = "" if links == "all" else f"{links} "
    return (
        f"{n:.0f} new {kind}link{'' if round(n) == 1 else 's'}"
        if n >= 10 or n == round(n)
        else f"{n:.2g} new {kind}links"
    )


def _own(feature: Feature) -> bool:
    return not feature.around


def _lately(row: dict[str, float], links: str) -> str:
    counts = [row[f"new_{links} -{lag}"] for lag in (1, 2, 3) if not np.isnan(row.get(f"new_{links} -{lag}", np.nan))]
    if not counts:
        return "its last rounds are not known"
    if not any(counts):
        return f"nothing new in the last {len(counts)} rounds" if len(counts) > 1 else "nothing new in the last round"
    return f"{', '.join(f'{count:.0f}' for count in counts)} new links in its last rounds, newest first"


def _overall(row: dict[str, float], links: str) -> str:
    mean, rate = row.get(f"mean_{links} -1", np.nan), row.get(f"rate_{links} -1", np.nan)
    if np.isnan(mean):
        return "it has no past to look back on"
    if not mean:
        return "never had new links so far"
    often = "" if np.isnan(rate) else f", with some in {rate:.0%} of rounds"
    return f"{_links(mean, links)} a round on average{often}"


def _quiet(row: dict[str, float], links: str) -> str:
    quiet = row.get(f"quiet_{links} -1", np.nan)
    if np.isnan(quiet):
        return "never watched for new links"
    return "had new links in the last round" if quiet == 0 else f"quiet for {quiet:.0f} round{'s' * (quiet != 1)}"


def _around(where: str, around: str) -> Callable[[dict[str, float], str], str]:
    def tell(row: dict[str, float], links: str) -> str:
        names = (f"{around} recent_{links} -1", f"{around} mean_{links} -1", f"{around} new_{links} -1")
        known = [row[name] for name in names if not np.isnan(row.get(name, np.nan))]
        return f"{where}: {_links(known[0], links)} a round" if known else f"nothing known of {where}"

    return tell


def _page(row: dict[str, float], links: str) -> str:
    parts = []
    if not np.isnan(row.get("n_internal", np.nan)):
        parts.append(f"{row['n_internal'] + np.nan_to_num(row.get('n_external', 0.0)):.0f} links on it")
    if not np.isnan(row.get("content_bytes", np.nan)):
        parts.append(f"{row['content_bytes'] / 1000:.3g} kB")
    if not np.isnan(row.get("path_depth", np.nan)):
        parts.append(f"path depth {row['path_depth']:.0f}")
    return "the page itself: " + (", ".join(parts) or "not much known")


_PAST = ("new_", "recent_", "mean_", "rate_", "watched_", "quiet_", "shrunk_", "content_change")
THEMES = (
    Theme("lately", lambda f: _own(f) and f.quantity.startswith(("new_", "recent_")), _lately),
    Theme("overall", lambda f: _own(f) and f.quantity.startswith(("mean_", "rate_", "watched_", "shrunk_")), _overall),
    Theme("quiet", lambda f: _own(f) and f.quantity.startswith("quiet_"), _quiet),
    Theme("related", lambda f: f.around == "related", _around("related pages", "related")),
    Theme("site", lambda f: f.around == "site", _around("its site", "site")),
    Theme("content", lambda f: f.quantity == "content_change_rate", lambda row, links: _content(row)),
    Theme("page", lambda f: _own(f) and "_" in f.quantity and not f.quantity.startswith(_PAST), _page),
)


def _content(row: dict[str, float]) -> str:
    rate = row.get("content_change_rate -1", np.nan)
    return "content changes are not known" if np.isnan(rate) else f"content changed in {rate:.0%} of rounds"


def reasons(predictor: Predictor, prediction: Prediction, pages: NDArray[np.int64], n: int = 3) -> list[list[Reason]]:
    """The `n` strongest reasons for each of some pages (rows of the panel)."""
    columns, links = prediction.columns, prediction.links
    x, usual = prediction.x[pages], predictor.usual[links]
    model = predictor.models[links]
    effects: dict[Theme, Any] = {}
    for theme in THEMES:
        at = [i for i, feature in enumerate(columns) if theme.holds(feature)]
        if at:
            as_usual = x.copy()
            as_usual[:, at] = usual[at]
            effects[theme] = prediction.expected[pages] - np.asarray(model.predict(as_usual), np.float32)
    names = [str(feature) for feature in columns]
    found = []
    for i in range(len(pages)):
        row = dict(zip(names, x[i].tolist(), strict=True))
        strongest = sorted(effects, key=lambda theme: -abs(effects[theme][i]))[:n]
        found.append([Reason(theme.tell(row, links), float(effects[theme][i])) for theme in strongest])
    return found
