"""The names of the estimators of how often pages change, without the code behind them, which takes a while to load."""

from __future__ import annotations

from recrawl.core.suggest import unknown

#: See `insight.rates.ESTIMATORS`; the first is the default.
RATES = (
    "maximum-likelihood",
    "simple",
    "regular",
    "law-of-large-numbers",
    "stochastic-approximation",
)


def checked_rates(name: str) -> str:
    """The name of an estimator; any other is refused.

    >>> checked_rates("law of large numbers")
    Traceback (most recent call last):
    ValueError: No estimator named 'law of large numbers'. Did you mean 'law-of-large-numbers'? Known: maximum-likelihood, ...
    """
    if name not in RATES:
        raise ValueError(unknown("estimator", name, RATES))
    return name
