"""The page of `recrawl stats`: every part of the empirical analysis with its words, figure and table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.experiments import figures, tables
from recrawl.experiments.empirical import Empirical
from recrawl.experiments.findings import percent
from recrawl.experiments.newlinks import SIDES
from recrawl.experiments.page import Section, write_page

if TYPE_CHECKING:
    from recrawl.experiments.tails import TailFits


def write_empirical_page(
    path: str | os.PathLike[str], empirical: Empirical, title: str = "What the history shows"
) -> Path:
    """Write the whole analysis as one HTML file."""
    scope = f"{empirical.n_pages:,} pages in {len(empirical.rounds)} rounds"
    if empirical.rounds:
        scope += f", {empirical.rounds[0]} to {empirical.rounds[-1]}"
    return write_page(path, title, [f"{scope}.", *empirical.findings], sections(empirical))


def sections(empirical: Empirical) -> list[Section]:
    """Every part as a section; an empty part is one sentence that says why."""
    return [section(empirical) for section in ALL]


def _amounts(empirical: Empirical) -> Section:
    title = "New links per page"
    if note := empirical.notes.get("round_counts"):
        return Section(title, note)
    text = (
        "New are links that were not on the page in the round before. A link is internal when it keeps the page's "
        "scheme and host. Round 0 is the first look, with which round 1 is compared. The standard deviation (sd) is "
        "taken over pages."
    )
    return Section(title, text, [figures.mean_figure(empirical), tables.mean_table(empirical)])


def _nothing_new(empirical: Empirical) -> Section:
    title = "Pages without new links"
    if note := empirical.notes.get("round_counts"):
        return Section(title, note)
    text = "A visit to these pages found nothing new: the higher the share, the more a good choice of pages saves."
    return Section(title, text, [figures.none_figure(empirical), tables.none_table(empirical)])


def _change_rates(empirical: Empirical) -> Section:
    title = "How often pages gain links"
    if note := empirical.notes.get("change_rates"):
        return Section(title, note)
    text = "A page's link change rate is the share of its rounds in which it gained links."
    return Section(title, text, [figures.rate_figure(empirical), tables.rate_table(empirical)])


def _groups(empirical: Empirical) -> Section:
    title = "How pages move between groups"
    if note := empirical.notes.get("group_flows"):
        return Section(title, note)
    text = (
        "Pages are grouped by their number of new links; the bands show how many pages move from group to group "
        "between rounds that follow each other. Only pages seen in both rounds are counted. The table has the share "
        "of pages that stay in their group."
    )
    known = {flow.links for flow in empirical.group_flows}
    diagrams = [figures.flow_figure(empirical, links) for links in SIDES if links in known]
    return Section(title, text, [*diagrams, tables.stay_table(empirical)])


def _distributions(empirical: Empirical) -> Section:
    title = "How new links are spread over pages"
    if note := empirical.notes.get("ccdfs"):
        return Section(title, note)
    known = {curve.links for curve in empirical.ccdfs}
    missing = "".join(f"\n\nNo page gained an {links} link in any round." for links in SIDES if links not in known)
    text = (
        "Both axes are logarithmic; curves of different rounds that lie on each other mean a stable web. The table has "
        "what a crawler could find at best if it knew the richest pages beforehand, over all rounds together."
    )
    curves = [figures.ccdf_figure(empirical, links) for links in SIDES if links in known]
    return Section(title, text + missing, [*curves, tables.concentration_table(empirical)])


def _laws(empirical: Empirical) -> Section:
    title = "Laws fitted to the number of new links"
    if note := empirical.notes.get("tails"):
        return Section(title, note)
    text = "D is the largest difference between the cumulative shares of data and law: the smaller, the closer."
    curves = [figures.law_figure(fits.links, part) for fits in empirical.tails for part in fits.parts if part.best]
    table = tables.law_table(empirical)
    items = [*curves, table] if table.rows else []
    return Section(title, "\n\n".join([text, *map(_law_text, empirical.tails)]), items)


def _law_text(fits: TailFits) -> str:
    text = f"{fits.n_values:,} pages gained {fits.links} links in round {fits.round}; the others are left out."
    if fits.lower_tail and fits.tail_rate and fits.lower_tail > 1:
        text += f" The tail begins at {fits.lower_tail} new links and holds {percent(fits.tail_rate)} of them."
    return f"{text} {tables.law_note(fits)}".strip()


def _extremes(empirical: Empirical) -> Section:
    title = "The most extreme pages"
    if note := empirical.notes.get("extreme_pages"):
        return Section(title, note)
    text = "Pages with the most new links in one round: some gain the same every round, others once and never again."
    series = [figures.extreme_figure(empirical, links) for links in SIDES]
    return Section(title, text, [*series, tables.extreme_table(empirical)])


def _domains(empirical: Empirical) -> Section:
    title = "Pages per top-level domain"
    if note := empirical.notes.get("domains"):
        return Section(title, note)
    return Section(title, "", [figures.domain_figure(empirical), tables.domain_table(empirical)])


def _gaps(empirical: Empirical) -> Section:
    title = "Time between visits"
    if note := empirical.notes.get("gaps"):
        return Section(title, note)
    text = (
        "A change lies somewhere in the gap between two visits, not at its end: what happens faster than the gaps "
        "cannot be seen. The table is in days; its last column takes the median gap of every page first, so that often "
        "visited pages weigh no more."
    )
    curves = [figures.gap_figure(empirical), figures.gap_cdf_figure(empirical)]
    return Section(title, text, [*curves, tables.gap_table(empirical)])


def _captures(empirical: Empirical) -> Section:
    title = "Visits over time"
    if note := empirical.notes.get("captured_pages"):
        return Section(title, note)
    return Section(title, "One line per page, one dot per visit.", [figures.capture_figure(empirical)])


#: The order of the papers.
ALL = (
    _amounts, _nothing_new, _change_rates, _groups, _distributions, _laws, _extremes, _domains, _gaps, _captures,
)  # fmt: skip
