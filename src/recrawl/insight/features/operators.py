"""Features, and the two operators that make them of quantities: `past` steps back in time, `related` looks at related pages.

Dang et al. (2022), section 5.2: "any static page feature becomes dynamic if we include its historic values, and becomes a network
feature when we include this feature of neighboring or related pages."
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from recrawl.insight.features.quantities import QUANTITIES

HINTED = "probability of a change, by sitemap or feed"
Around = Literal["", "related", "site"]


@dataclass(frozen=True, order=True)
class Feature:
    """One column of a model's input.

    >>> print(Feature("new_internal", lag=2, around="related"))
    related new_internal -2
    """

    quantity: str  # a name in QUANTITIES, "vector" or "hinted"
    lag: int = 0  # rounds before now, the last round known when predicting; of "vector" the number of the column
    around: Around = ""  # "related": the weighted mean over related pages; "site": the mean over the pages of the host
    mean_of: int = 0  # > 0: the mean of lags 1 to this

    def __str__(self) -> str:
        if self.quantity == "vector":
            return f"vector {self.lag}"
        around = f"{self.around} " if self.around else ""
        when = f" mean of {self.mean_of}" if self.mean_of else f" -{self.lag}" if self.lag else ""
        return f"{around}{self.quantity}{when}"

    @property
    def leaks(self) -> bool:
        """Whether it uses what happens in the round that is predicted."""
        is_now = not self.lag and not self.mean_of
        return is_now and self.quantity in QUANTITIES and QUANTITIES[self.quantity].of_interval

    @property
    def words(self) -> str:
        """The column in words, for people.

        >>> Feature("new_internal", 1, "related").words
        'new internal links one round ago, on related pages'
        """
        if self.quantity == "hinted":
            return HINTED
        label = QUANTITIES[self.quantity].label if self.quantity in QUANTITIES else f"text dimension {self.lag}"
        when = f", mean of the last {self.mean_of} rounds" if self.mean_of else ""
        if self.lag and self.quantity in QUANTITIES:
            is_summary = QUANTITIES[self.quantity].of_interval and not self.quantity.startswith("new_")
            ago = self.lag - 1 if is_summary else self.lag
            when = "" if not ago else " one round ago" if ago == 1 else f" {ago} rounds ago"
        where = {"": "", "related": ", on related pages", "site": ", on its site"}[self.around]
        return f"{label}{when}{where}"


Features = tuple[Feature, ...]


def now(*quantities: str) -> Features:
    """The quantities as they are now."""
    return tuple(Feature(name) for name in quantities)


def past(features: Features, lags: Iterable[int]) -> Features:
    """The operator `past`: the same features some rounds earlier.

    >>> [str(f) for f in past(now("text_bytes"), range(1, 3))]
    ['text_bytes -1', 'text_bytes -2']
    """
    return tuple(replace(feature, lag=feature.lag + lag) for lag in lags for feature in features)


def mean_past(features: Features, n: int) -> Features:
    """The mean of the last `n` rounds before now."""
    return tuple(replace(feature, mean_of=n) for feature in features) if n else ()


def related(features: Features) -> Features:
    """The operator `related`: the same features, averaged over the related pages."""
    return tuple(replace(feature, around="related") for feature in features)


def of_site(features: Features) -> Features:
    """The same features, averaged over the other pages of the host: all there is for a page without related pages."""
    return tuple(replace(feature, around="site") for feature in features)
