"""The report of `recrawl stats`: one list of parts, from which its page and its tables on the terminal are made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import count, percent
from recrawl.insight.choices import INLINKS
from recrawl.report.page import Section, write_page
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.stats import figures, tables
from recrawl.report.stats.analysis import LinkStatistics
from recrawl.report.stats.newlinks import SIDES
from recrawl.report.tables import Table

if TYPE_CHECKING:
    from recrawl.report.stats.tails import TailFits


def write_stats_page(
    path: str | os.PathLike[str],
    statistics: LinkStatistics,
    title: str | None = None,
    *,
    self_contained: bool = False,
) -> Path:
    """Write the whole analysis as an HTML page."""
    title = title or f"How new {'inlinks' if statistics.target == INLINKS else 'links'} arrive"
    intro = [*statistics.findings, f"{scope(statistics)}."]
    return write_page(path, title, intro, sections(statistics), self_contained=self_contained)


def scope(statistics: LinkStatistics) -> str:
    """What was analysed."""
    shown = f"{count(statistics.n_pages, 'page')} in {count(len(statistics.rounds), 'round')}"
    if statistics.target == INLINKS:
        shown = f"New links are new inlinks: links to a page that appear on other pages. {shown}"
    if not statistics.rounds:
        return shown
    return f"{shown}, {statistics.round_end(0)} to {statistics.round_end(-1)} UTC"


def sections(statistics: LinkStatistics) -> list[Section]:
    """Every part as a section; an empty part is one sentence that says why."""
    return page_sections(parts_of(statistics), statistics)


def stats_tables(statistics: LinkStatistics) -> list[Table]:
    """Every part's tables for the terminal; an empty part says why it is empty."""
    return terminal_tables(parts_of(statistics), statistics)


def parts_of(statistics: LinkStatistics) -> list[ReportPart[LinkStatistics]]:
    """The parts of a report: those that are always there, and those that were asked for."""
    return [*PARTS, *(part for part in ASKED if getattr(statistics, part.name) is not None)]


def _missing(part: str) -> Callable[[LinkStatistics], str]:
    return lambda statistics: statistics.notes.get(part, "")


def _distribution_text(statistics: LinkStatistics) -> str:
    known = {curve.links for curve in statistics.ccdfs}
    missing = "".join(f"\n\nNo page gained an {links} link in any round." for links in SIDES if links not in known)
    return (
        "Both axes are logarithmic; curves of different rounds that coincide mean a stable web. At most "
        f"{figures.MAX_CURVES} rounds are drawn, from the lightest, the first, to the darkest, the last. The table shows what a "
        f"crawler could find at best if it knew beforehand which pages gain most, over all rounds together.{missing}"
    )


def _law_text(statistics: LinkStatistics) -> str:
    text = "D is the largest difference between the cumulative shares of data and law: the smaller, the closer."
    return "\n\n".join([text, *(_law_scope(statistics, fits) for fits in statistics.tails)])


def _law_scope(statistics: LinkStatistics, fits: TailFits) -> str:
    end = statistics.round_end(fits.round)
    text = (
        f"{count(fits.n_values, 'page')} gained {fits.links} links in the round until {end}; the others are left out."
    )
    if fits.lower_tail and fits.tail_rate and fits.lower_tail > 1:
        text += f" The tail begins at {fits.lower_tail} new links and holds {percent(fits.tail_rate)} of these pages."
    return text


#: The order of the papers.
PARTS: tuple[ReportPart[LinkStatistics], ...] = (
    ReportPart(
        title="Links on the pages",
        text=lambda _: (
            "All links that pages show, not only new ones. A link is external when it leaves the page's scheme and host; in "
            "the papers' last crawl 14.7% of all links are."
        ),
        tables=lambda statistics: [tables.outlink_table(statistics)],
        missing=_missing("outlink_shares"),
    ),
    ReportPart(
        title="New links per page",
        text=lambda _: (
            "New are links that were not on the page in the round before. A link is internal when it keeps the page's "
            "scheme and host. Round 0 is the first look, with which round 1 is compared. The standard deviation (sd) is "
            "taken over pages."
        ),
        figures=lambda statistics: [figures.mean_figure(statistics)],
        tables=lambda statistics: [tables.mean_table(statistics)],
        missing=_missing("round_counts"),
    ),
    ReportPart(
        title="Share of pages without new links",
        text=lambda _: (
            "A visit to these pages found nothing new: the higher the share, the more a good choice of pages saves. The columns "
            "“: 1” have the imbalance ratio: pages without new links for every page with some (in the papers' last week 2.57 "
            "internal, 12.15 external)."
        ),
        figures=lambda statistics: [figures.none_figure(statistics)],
        tables=lambda statistics: [tables.none_table(statistics)],
        missing=_missing("round_counts"),
    ),
    ReportPart(
        title="How often pages gain links",
        text=lambda _: "A page's link change rate is the share of its rounds in which it gained links.",
        figures=lambda statistics: [figures.rate_figure(statistics)],
        tables=lambda statistics: [tables.rate_table(statistics)],
        missing=_missing("change_rates"),
    ),
    ReportPart(
        title="Pages that stay in their group from round to round",
        text=lambda _: (
            "Pages are grouped by their number of new links; the bands show how many pages move from group to group "
            "between one round and the next. Only pages seen in both rounds are counted. The table has the share "
            "of pages that stay in their group."
        ),
        figures=lambda statistics: [
            figures.flow_figure(statistics, links)
            for links in SIDES
            if any(flow.links == links for flow in statistics.group_flows)
        ],
        tables=lambda statistics: [tables.stay_table(statistics)],
        missing=_missing("group_flows"),
    ),
    ReportPart(
        title="How new links are spread over pages",
        text=_distribution_text,
        figures=lambda statistics: [
            figures.ccdf_figure(statistics, links)
            for links in SIDES
            if any(curve.links == links for curve in statistics.ccdfs)
        ],
        tables=lambda statistics: [tables.concentration_table(statistics)],
        missing=_missing("ccdfs"),
    ),
    ReportPart(
        title="Laws fitted to the number of new links",
        text=_law_text,
        figures=lambda statistics: [
            figures.law_figure(fits.links, part) for fits in statistics.tails for part in fits.parts if part.best
        ],
        tables=tables.law_tables,
        missing=_missing("tails"),
    ),
    ReportPart(
        title="Pages with the most new links in one round",
        text=lambda _: "Some of them gain as many in every round, others once and never again.",
        figures=lambda statistics: [figures.extreme_figure(statistics, links) for links in SIDES],
        tables=lambda statistics: [tables.extreme_table(statistics)],
        missing=_missing("extreme_pages"),
    ),
    ReportPart(
        title="Pages per top-level domain",
        figures=lambda statistics: [figures.domain_figure(statistics)],
        tables=lambda statistics: [tables.domain_table(statistics)],
        missing=_missing("domains"),
    ),
    ReportPart(
        title="Time between visits of a page",
        text=lambda _: (
            "A change happened somewhere in the gap between two visits, not at its end: what happens faster than the gaps "
            "cannot be seen. The last column of the table takes the median gap of every page first, so that pages that are "
            "visited often weigh no more than others."
        ),
        figures=lambda statistics: [figures.gap_figure(statistics), figures.gap_cdf_figure(statistics)],
        tables=lambda statistics: [tables.gap_table(statistics)],
        missing=_missing("gaps"),
    ),
    ReportPart(
        title="Visits over time",
        text=lambda _: "One line per page, one dot per visit.",
        figures=lambda statistics: [figures.capture_figure(statistics)],
        missing=_missing("captured_pages"),
        on_terminal=False,
    ),
)
#: What is there only where it was asked for.
ASKED: tuple[ReportPart[LinkStatistics], ...] = (
    ReportPart(
        title="Websites as a whole",
        name="websites",
        text=lambda _: (
            "A website is everything under one root. It gained a link in a round if any of its pages did, and the visits of a "
            "round are one visit to it."
        ),
        tables=lambda statistics: [tables.website_table(statistics)],
        missing=_missing("websites"),
    ),
)
