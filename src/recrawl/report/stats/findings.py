"""What the history shows, in a few plain sentences with their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recrawl.core.words import count, duration, number, percent
from recrawl.insight.choices import INLINKS
from recrawl.report.stats.newlinks import SIDES
from recrawl.report.words import mean

if TYPE_CHECKING:
    from recrawl.report.stats.analysis import LinkStatistics


def findings(statistics: LinkStatistics) -> tuple[str, ...]:
    """Up to seven sentences on what the history shows; fewer where it shows less."""
    parts = (_without_new_links, _amounts, _stability, _laws, _gaps, _websites)
    sentences = (sentence for part in parts for sentence in part(statistics))
    if statistics.target == INLINKS:
        return tuple(re.sub(r"\blink(s?)\b", r"inlink\1", sentence) for sentence in sentences)
    return tuple(sentences)


def _without_new_links(statistics: LinkStatistics) -> Iterator[str]:
    for links in SIDES:
        none = [row.none_rate for row in statistics.round_counts if row.links == links]
        never = [row.share for row in statistics.change_rates if row.links == links and row.rate == 0]
        if not none:
            continue
        usual = f"In one round, {percent(mean(none))} of pages gained no {links} link{_span(none)}"
        yield (
            f"{usual}; {percent(never[0])} never did in {count(len(none), 'round')}." if len(none) > 1 else f"{usual}."
        )


def _amounts(statistics: LinkStatistics) -> Iterator[str]:
    rows = [row for row in statistics.round_counts if row.links == "all"]
    if not rows:
        return
    average, deviation = mean([row.mean for row in rows]), mean([row.deviation for row in rows])
    sentence = (
        f"A page gained {number(average)} links per round on average, with a standard deviation of {number(deviation)}"
    )
    held = [
        f"{percent(row.link_rate)} of new {row.links} links"
        for row in statistics.concentrations
        if row.page_rate == 0.1
    ]
    yield f"{sentence}; the tenth of the pages with most of them held {' and '.join(held)}." if held else f"{sentence}."


def _stability(statistics: LinkStatistics) -> Iterator[str]:
    stays = {links: [row.stay_rate for row in statistics.group_stays if row.links == links] for links in SIDES}
    shares = [f"{percent(mean(rates))} of pages by {links} links" for links, rates in stays.items() if rates]
    if shares:
        yield f"From one round to the next, {' and '.join(shares)} stay in their group by number of new links."


def _laws(statistics: LinkStatistics) -> Iterator[str]:
    for fits in statistics.tails:
        best = fits.parts[0].best if fits.parts else None
        if best is None or best.distance is None:
            continue
        tail = ""
        if fits.lower_tail is not None and fits.tail_rate is not None and fits.lower_tail > 1:
            tail = f"; the tail, from {fits.lower_tail} new links up, holds {percent(fits.tail_rate)} of these pages"
        yield (
            f"Of five laws, the {best.law} is closest (D = {best.distance:.3f}) to the number of new {fits.links} links on the "
            f"{count(fits.n_values, 'page')} that gained any in the round until {statistics.round_end(fits.round)}{tail}."
        )
        return  # the internal links' law, or else the external links': the table has the rest


def _gaps(statistics: LinkStatistics) -> Iterator[str]:
    if statistics.gaps is None:
        return
    days = {row.quantile: row for row in statistics.gaps.quantiles}
    half, low, high = (
        duration(24 * value) for value in (days[0.5].days, days[0.1].page_median_days, days[0.9].page_median_days)
    )
    span = f"is about {low}" if low == high else f"is between {low} and {high}"
    yield f"Half of all visits come within {half} of the page's previous one; for 80% of pages the median gap {span}."


def _websites(statistics: LinkStatistics) -> Iterator[str]:
    if statistics.websites is None or not statistics.websites.sites:
        return
    sites, n_outside = statistics.websites.sites, statistics.websites.n_outside
    rates = [site.rate for site in sites if site.rate is not None]
    gained = f"; in one round, {percent(mean(rates))} of them gained a link on any of their pages" if rates else ""
    outside = f"; {count(n_outside, 'page')} under no root" if n_outside else ""
    yield f"The pages belong to {count(len(sites), 'website')}{gained}{outside}."


def _span(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return "" if low == high else f" ({low} to {high})"
