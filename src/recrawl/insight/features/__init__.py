"""What can be known of a page before a round: static page features, and the two operators that make all others of them."""

from recrawl.insight.choices import FEATURE_SETS, MAX_HISTORY
from recrawl.insight.features.assemble import known_before
from recrawl.insight.features.matrix import FeatureInputs
from recrawl.insight.features.operators import Feature, Features, mean_past, now, of_site, past, related
from recrawl.insight.features.sets import (
    all_but_own_past,
    default,
    dynamic_network,
    dynamic_page,
    everything,
    look_back_look_around,
    preset,
    static_network,
    static_page,
    summaries,
    vector,
)

__all__ = [
    "FEATURE_SETS",
    "MAX_HISTORY",
    "Feature",
    "FeatureInputs",
    "Features",
    "all_but_own_past",
    "default",
    "dynamic_network",
    "dynamic_page",
    "everything",
    "known_before",
    "look_back_look_around",
    "mean_past",
    "now",
    "of_site",
    "past",
    "preset",
    "related",
    "static_network",
    "static_page",
    "summaries",
    "vector",
]
