"""How often a page changes, estimated from visits at irregular times.

`ESTIMATORS` lists them all. Those of `estimators` look at every interval between two visits; those of `incremental` keep a few
numbers per page and no history.
"""

from collections.abc import Callable

from recrawl.core.arrays import Floats
from recrawl.insight.rates.estimators import (
    NEW,
    SAME,
    UNDEFINED,
    Intervals,
    interpolated_intervals,
    last_updates,
    maximum_likelihood_rate,
    observed_intervals,
    probability_of_change,
    regular_rate,
    simple_rate,
    update_times,
)
from recrawl.insight.rates.incremental import (
    LawOfLargeNumbers,
    StochasticApproximation,
    law_of_large_numbers_rate,
    stochastic_approximation_rate,
)

#: Name on the command line (``--rates``, see `world.rate_names.RATES`) → changes per day of every page.
ESTIMATORS: dict[str, Callable[[Intervals], Floats]] = {
    "maximum-likelihood": maximum_likelihood_rate,
    "simple": simple_rate,
    "regular": regular_rate,
    "law-of-large-numbers": law_of_large_numbers_rate,
    "stochastic-approximation": stochastic_approximation_rate,
}

__all__ = [
    "ESTIMATORS",
    "NEW",
    "SAME",
    "UNDEFINED",
    "Intervals",
    "LawOfLargeNumbers",
    "StochasticApproximation",
    "interpolated_intervals",
    "last_updates",
    "law_of_large_numbers_rate",
    "maximum_likelihood_rate",
    "observed_intervals",
    "probability_of_change",
    "regular_rate",
    "simple_rate",
    "stochastic_approximation_rate",
    "update_times",
]
