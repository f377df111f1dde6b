"""What is knowable of a page before a round: static page features, and the two operators that make all others."""

from recrawl.features.gather import known_before
from recrawl.features.matrix import Known
from recrawl.features.operators import Feature, Features, mean_past, now, of_site, past, related
from recrawl.features.sets import (
    MAX_HISTORY,
    PRESETS,
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
    "MAX_HISTORY",
    "PRESETS",
    "Feature",
    "Features",
    "Known",
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
