"""Why a page is expected to have new links, in words.

For a page with a past: what the prediction would be if one thing about the page were as usual. For any other: what is around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.core.words import count, number
from recrawl.insight.choices import INLINKS
from recrawl.insight.features import Feature
from recrawl.models.learners import named
from recrawl.models.predictor import Prediction, Predictor

UNSEEN_FOR = "unseen for"  #: rounds since the page was last visited, beside the features


@dataclass(frozen=True)
class Reason:
    """One thing about a page and what it adds to (or takes from) the expected number of new links."""

    words: str
    effect: float

    def __str__(self) -> str:
        return f"{self.words} ({number(self.effect, '+')})"


@dataclass(frozen=True)
class Theme:
    """Features that belong together, and how to put them in words."""

    name: str
    holds: Callable[[Feature], bool]
    describe: Callable[[dict[str, float], str], str]


def _links(n: float, links: str) -> str:
    kind = "" if links == "all" else f"{links} "
    if n < 10 and n != round(n):
        return f"{n:.2g} new {kind}links"
    return f"{n:.0f} new {kind}link{'' if round(n) == 1 else 's'}"


def _own(feature: Feature) -> bool:
    return not feature.around


def _lately(row: dict[str, float], links: str) -> str:
    counts = [row[f"new_{links} -{lag}"] for lag in (1, 2, 3) if not np.isnan(row.get(f"new_{links} -{lag}", np.nan))]
    ago = _ago(row)
    if not counts:
        return f"last visited {ago}" if ago else "its last rounds are not known"
    if not any(counts):
        rounds = f" {len(counts)} rounds" if len(counts) > 1 else " round"
        return f"nothing new when last seen, {ago}" if ago else f"nothing new in the last{rounds}"
    when = f"when last seen, {ago}" if ago else "in its last rounds"
    if len(counts) == 1:
        return f"{_links(counts[0], 'all')} {when}"
    return f"{', '.join(f'{count:.0f}' for count in counts)} new links {when}, newest first"


def _ago(row: dict[str, float]) -> str:
    """How long ago the page was last visited; nothing if it was in the last round."""
    rounds = row[UNSEEN_FOR]
    return f"{count(round(rounds), 'round')} ago" if rounds else ""


def _overall(row: dict[str, float], links: str) -> str:
    mean, rate = row.get(f"mean_{links} -1", np.nan), row.get(f"rate_{links} -1", np.nan)
    if np.isnan(mean):
        return "nothing is known of its past"
    if not mean:
        return "never had new links so far"
    often = "" if np.isnan(rate) else f", with some in {rate:.0%} of rounds"
    return f"{_links(mean, links)} per round on average{often}"


def _quiet(row: dict[str, float], links: str) -> str:
    quiet, ago = row.get(f"quiet_{links} -1", np.nan), _ago(row)
    if np.isnan(quiet):
        return "never checked for new links"
    if quiet:
        until = f" when last seen, {ago}" if ago else ""
        return f"quiet for {count(round(quiet), 'round')}{until}"
    return f"had new links when last seen, {ago}" if ago else "had new links in the last round"


def _around(where: str, around: str) -> Callable[[dict[str, float], str], str]:
    def describe(row: dict[str, float], links: str) -> str:
        names = (f"{around} recent_{links} -1", f"{around} mean_{links} -1", f"{around} new_{links} -1")
        known = [row[name] for name in names if not np.isnan(row.get(name, np.nan))]
        return f"{where}: {_links(known[0], links)} per round" if known else f"nothing known of {where}"

    return describe


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
    Theme("hints", lambda f: f.quantity == "hinted", lambda row, links: _hinted(row)),
    Theme("page", lambda f: _own(f) and "_" in f.quantity and not f.quantity.startswith(_PAST), _page),
)


def _content(row: dict[str, float]) -> str:
    rate = row.get("content_change_rate -1", np.nan)
    return "content changes are not known" if np.isnan(rate) else f"content changed in {rate:.0%} of rounds"


def _hinted(row: dict[str, float]) -> str:
    likely = row["hinted"]
    if np.isnan(likely):
        return "no sitemap or feed mentions it"
    return f"{likely:.0%} likely to have changed, by its sitemap or feed"


def reasons(predictor: Predictor, prediction: Prediction, pages: Ints, n: int = 3) -> list[list[Reason]]:
    """The `n` strongest reasons for each of some pages (rows of the panel); that a page is gone comes first.

    Pages with a past are explained by the model, all others by what is around them.
    """
    of_model = {}
    is_blind = named(predictor.recipe.learner).is_blind
    own = np.array([page for page in pages if is_blind or not prediction.basis[page]], np.int64)
    for page, themes in zip(own, _of_model(predictor, prediction, own), strict=True):
        of_model[int(page)] = sorted(themes, key=lambda reason: -abs(reason.effect))
    chance = prediction.gone.chance
    all_reasons = []
    for page in pages:
        of_page = of_model.get(int(page)) or _of_surroundings(prediction, int(page))
        if chance[page] < 1:
            of_page = [Reason(reason.words, reason.effect * float(chance[page])) for reason in of_page]
            of_page = [_gone(prediction, int(page)), *of_page]
        all_reasons.append(of_page[:n])
    if predictor.recipe.target == INLINKS:
        return [[_about_inlinks(reason) for reason in of_page] for of_page in all_reasons]
    return all_reasons


def _about_inlinks(reason: Reason) -> Reason:
    """The same reason, of new inlinks; the links on the page itself are called as before."""
    return Reason(re.sub(r"\bnew (internal |external |)link", r"new \1inlink", reason.words), reason.effect)


def _of_model(predictor: Predictor, prediction: Prediction, pages: Ints) -> list[list[Reason]]:
    """By how much the prediction would change if one thing about the page were as usual."""
    if not len(pages):
        return []
    links, columns = prediction.links, prediction.columns
    trained, x = predictor.trained[links], prediction.x[pages]
    expected = np.asarray(trained.model.predict(x), np.float64)
    effects: dict[Theme, Any] = {}
    for theme in THEMES:
        at = [i for i, feature in enumerate(columns) if theme.holds(feature)]
        if at:
            as_usual = x.copy()
            as_usual[:, at] = trained.usual[at]
            effects[theme] = expected - np.asarray(trained.model.predict(as_usual), np.float64)
    names = [str(feature) for feature in columns]
    all_reasons = []
    for i, page in enumerate(pages):
        row = dict(zip(names, x[i].tolist(), strict=True)) | {UNSEEN_FOR: float(prediction.unseen_for[page])}
        all_reasons.append([Reason(theme.describe(row, links), float(effect[i])) for theme, effect in effects.items()])
    return all_reasons


def _of_surroundings(prediction: Prediction, page: int) -> list[Reason]:
    """What each step nearer to the page adds; together they are the prediction. The nearest comes first."""
    near, links = prediction.near, prediction.links
    steps, before = [], 0.0
    names = ("all pages", "its site", "related pages")
    for name, group, expected in zip(names, near.averages, near.expected, strict=True):
        now = float(expected[page])
        if not np.isnan(group.mean[page]):
            n_pages = max(1, round(float(group.n_pages[page])))
            words = f"{name}: {_links(float(group.mean[page]), links)} per round on {count(n_pages, 'page')}"
            steps.append(Reason(words, now - before))
        before = now
    return [*reversed(steps)] or [Reason("nothing is known of any page", before)]


def _gone(prediction: Prediction, page: int) -> Reason:
    chance = float(prediction.gone.chance[page])
    since = str(prediction.gone.since[page])[:10]
    lost = float(prediction.expected[page]) * (1 - 1 / chance)
    return Reason(f"gone since {since}; such pages came back in {chance:.1%} of rounds", lost)
