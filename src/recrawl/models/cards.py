"""The card of a saved model, read with suspicion: every value has the type and the range that recrawl writes, or it is refused.

A model may come from anyone. What is wrong with its card is said when it is loaded, not by a failure in the middle of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32, Ints
from recrawl.insight.choices import FEATURE_SETS, LINKS, NEIGHBOUR_SEARCHES, RELATED_BY, TARGETS
from recrawl.insight.features import Feature
from recrawl.insight.features.quantities import QUANTITIES
from recrawl.models.link_models import Recipe
from recrawl.world.every import parse_rounds

MOST = 100_000  #: rounds, related pages, features, workers: a larger number is not one that recrawl wrote
_LARGEST_COUNT = 1 << 53
_CHOICES = {
    "features": (*FEATURE_SETS, "lbla"),
    "neighbours": NEIGHBOUR_SEARCHES,
    "related_by": RELATED_BY,
    "target": TARGETS,
}
_LEAST = {"rounds": 2, "k": 1, "n_jobs": -1}  # of the numbers in a recipe; 0 of all others
_AROUND = ("", "related", "site")
_QUANTITIES = frozenset((*QUANTITIES, "vector", "hinted"))


def recipe_of(about: Mapping[str, Any]) -> Recipe:
    """How the model was trained; raises ``ValueError`` with what is wrong."""
    given, usual = _mapping(about, "recipe"), Recipe()
    unknown = given.keys() - {each.name for each in fields(Recipe)}
    if unknown:
        raise ValueError(f"recipe has unknown settings: {sorted(map(str, unknown))[:3]}")
    recipe = Recipe(**{name: _setting(name, value, getattr(usual, name)) for name, value in given.items()})
    if not recipe.links or len(set(recipe.links)) < len(recipe.links) or not set(recipe.links) <= set(LINKS):
        raise ValueError(f"links is {recipe.links!r}")
    for name, known in _CHOICES.items():
        if getattr(recipe, name) not in known:
            raise ValueError(f"{name} is {getattr(recipe, name)!r}")
    parse_rounds(recipe.every)
    return recipe


def _setting(name: str, value: Any, usual: Any) -> Any:
    """A setting of the type that it has in a recipe."""
    if isinstance(usual, tuple):
        return tuple(_text(each, name) for each in _list(value, name))
    if isinstance(usual, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}")
        return value
    if isinstance(usual, int):
        return whole(value, name, _LEAST.get(name, 0), _LARGEST_COUNT if name == "seed" else MOST)
    return _text(value, name)


def columns_of(about: Mapping[str, Any], links: str) -> tuple[Feature, ...]:
    """The features of a kind of links."""
    rows = _list(_mapping(about, "features").get(links), "features")
    if len(rows) > MOST:
        raise ValueError(f"{len(rows)} features")
    return tuple(_feature(row) for row in rows)


def _feature(row: Any) -> Feature:
    if not isinstance(row, dict) or row.keys() - {each.name for each in fields(Feature)}:
        raise ValueError(f"a feature is {row!r:.80}")
    feature = Feature(
        quantity=_text(row.get("quantity"), "quantity"),
        lag=whole(row.get("lag", 0), "lag", 0, MOST),
        around=row.get("around", ""),
        mean_of=whole(row.get("mean_of", 0), "mean_of", 0, MOST),
    )
    if feature.quantity not in _QUANTITIES or feature.around not in _AROUND:
        raise ValueError(f"a feature is {row!r:.80}")
    return feature


def usual_of(about: Mapping[str, Any], links: str, n: int) -> Floats32:
    """The usual value of each of `n` features."""
    values = _list(_mapping(about, "usual").get(links), "usual")
    if len(values) != n:
        raise ValueError(f"{len(values)} usual values of {n} features")
    return np.array([number(value, "usual") for value in values], np.float32)


def overall_of(about: Mapping[str, Any], links: str) -> tuple[float, float]:
    """The mean number of new links, and the share of rows with any."""
    first, second = _pair(_mapping(about, "overall").get(links), "overall")
    mean, share = number(first, "overall"), number(second, "overall")
    if mean < 0 or not (math.isnan(share) or 0 <= share <= 1):
        raise ValueError(f"overall is {mean!r}, {share!r}")
    return mean, share


def pages_of(about: Mapping[str, Any]) -> Ints:
    """The ids of some pages that it was trained on."""
    ids = [int(_text(page, "pages")) for page in _list(about.get("pages"), "pages")]
    if ids and not -(1 << 63) <= min(ids) <= max(ids) < 1 << 63:
        raise ValueError("pages has a number that is no id")
    return np.array(ids, np.int64)


def window_of(about: Mapping[str, Any]) -> tuple[str, str]:
    """When the first and the last visit was made."""
    first, last = (_text(each, "window") for each in _pair(about.get("window"), "window"))
    for moment in (first, last):
        if datetime.fromisoformat(moment).tzinfo is not None:
            raise ValueError(f"window is {moment!r}")
    return first, last


def scores_of(about: Mapping[str, Any]) -> dict[Any, dict[str, float]]:
    """How well the same recipe did one round earlier, for each kind of links."""
    scores = _mapping(about, "scores_one_round_earlier")
    if not scores.keys() <= set(LINKS):
        raise ValueError(f"scores of {list(scores)[:3]!r}")
    return {
        links: {name: number(value, "scores") for name, value in _mapping(scores, links).items()} for links in scores
    }


def neighbours_of(about: Mapping[str, Any]) -> tuple[str, float]:
    """How related pages were found, and the recall."""
    method, recall = _pair(about.get("neighbours"), "neighbours")
    return _text(method, "neighbours"), number(recall, "neighbours")


def advantage_of(about: Mapping[str, Any]) -> tuple[float, ...]:
    """By how much it ranked better than average-count in the last rounds; files of format 3 do not say."""
    values = _list(about.get("advantage_over_average", []), "advantage_over_average")
    return tuple(number(value, "advantage_over_average") for value in values)


def count_of(about: Mapping[str, Any], name: str) -> int:
    """A number of pages or rounds."""
    return whole(about.get(name), name, 0, _LARGEST_COUNT)


def versions_of(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The packages that made it; nothing where the card does not say."""
    versions = about.get("versions")
    return versions if isinstance(versions, dict) else {}


def number(value: Any, name: str) -> float:
    """A finite number, as a float; NaN for None, as JSON has no NaN."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError(f"{name} has {value!r:.80}")
    return float(value)


def whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number within a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r:.80}")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} has {value!r:.80}, which is no text")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")
    return value


def _pair(value: Any, name: str) -> list[Any]:
    if len(_list(value, name)) != 2:
        raise ValueError(f"{name} has not two values")
    return list(value)


def _mapping(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = about.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name} is missing")
    return value
