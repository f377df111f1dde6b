"""The empirical analysis in a few plain sentences, each with its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recrawl.experiments.newlinks import SIDES

if TYPE_CHECKING:
    from recrawl.experiments.empirical import Empirical


def findings(empirical: Empirical) -> tuple[str, ...]:
    """Up to six sentences on what the history shows; fewer where it shows less."""
    parts = (_without_new_links, _amounts, _stability, _laws, _gaps)
    return tuple(sentence for part in parts for sentence in part(empirical))


def percent(share: float) -> str:
    """A share as people read it: never rounded to 0% or 100% unless it is.

    >>> percent(0.714), percent(0.0321), percent(0.9996), percent(1.0), percent(0.00001)
    ('71%', '3.2%', '99.9%', '100%', '<0.1%')
    """
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return "99.9%"
    return f"{share:.0%}" if share in (0, 1) or 0.1 <= share <= 0.99 else f"{share:.1%}"


def number(value: float) -> str:
    """Two digits, or whole numbers from ten up.

    >>> number(2.71), number(0.0123), number(123.4), number(0.0)
    ('2.7', '0.012', '123', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.2g}"


def _without_new_links(empirical: Empirical) -> Iterator[str]:
    for links in SIDES:
        none = [row.none_rate for row in empirical.round_counts if row.links == links]
        never = [row.share for row in empirical.change_rates if row.links == links and row.rate == 0]
        if not none:
            continue
        usual = f"In one round, {percent(mean(none))} of pages gained no {links} link{_span(none)}"
        yield f"{usual}; {percent(never[0])} never did in {_rounds(len(none))}." if len(none) > 1 else f"{usual}."


def _amounts(empirical: Empirical) -> Iterator[str]:
    rows = [row for row in empirical.round_counts if row.links == "all"]
    if not rows:
        return
    average, deviation = mean([row.mean for row in rows]), mean([row.deviation for row in rows])
    sentence = (
        f"A page gained {number(average)} links per round on average, with a standard deviation of {number(deviation)}"
    )
    held = [
        f"{percent(row.link_rate)} of new {row.links} links" for row in empirical.concentrations if row.page_rate == 0.1
    ]
    yield f"{sentence}; the richest tenth of the pages held {' and '.join(held)}." if held else f"{sentence}."


def _stability(empirical: Empirical) -> Iterator[str]:
    stays = {links: [row.stay_rate for row in empirical.group_stays if row.links == links] for links in SIDES}
    shares = [f"{percent(mean(rates))} of pages by {links} links" for links, rates in stays.items() if rates]
    if shares:
        yield f"From one round to the next, {' and '.join(shares)} keep their group by number of new links."


def _laws(empirical: Empirical) -> Iterator[str]:
    for fits in empirical.tails:
        best = fits.parts[0].best if fits.parts else None
        if best is None or best.distance is None:
            continue
        tail = ""
        if fits.lower_tail is not None and fits.tail_rate is not None and fits.lower_tail > 1:
            tail = f"; the tail, from {fits.lower_tail} new links up, holds {percent(fits.tail_rate)} of them"
        yield (
            f"Of five laws the {best.law} is closest (D = {best.distance:.3f}) to the numbers of new {fits.links} "
            f"links on the {fits.n_values:,} pages that gained any in round {fits.round}{tail}."
        )
        return  # the internal links' law, or else the external links': the table has the rest


def _gaps(empirical: Empirical) -> Iterator[str]:
    if empirical.gaps is None:
        return
    days = {row.quantile: row for row in empirical.gaps.quantiles}
    yield (
        f"Half of all visits come within {_days(days[0.5].days)} of the page's previous one; for 80% of pages the "
        f"median gap lies between {_days(days[0.1].page_median_days)} and {_days(days[0.9].page_median_days)}."
    )


def _days(days: float) -> str:
    number = f"{days * 24:.3g}" if days < 2 else f"{days:.3g}" if days < 100 else f"{days:,.0f}"
    unit = "hour" if days < 2 else "day"
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def _rounds(n: int) -> str:
    return "1 round" if n == 1 else f"{n} rounds"


def _span(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return "" if low == high else f" ({low} to {high})"


def mean(numbers: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return sum(numbers) / len(numbers) if numbers else math.nan
