"""The statistics of new links as tables; many rounds are shown as means by day, week or month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recrawl.core.words import duration
from recrawl.report.stats.analysis import LinkStatistics
from recrawl.report.stats.newlinks import SIDES, Links
from recrawl.report.stats.periods import grouped_rounds
from recrawl.report.tables import Cell, Table
from recrawl.report.words import mean

if TYPE_CHECKING:
    from recrawl.report.stats.tails import TailFits

MAX_SITES = 20  #: websites that are shown
ORDER: tuple[Links, ...] = ("all", "internal", "external")


def outlink_table(statistics: LinkStatistics) -> Table:
    """The outlinks that pages show, and the share of external ones, by round or longer periods (LBLA section 4)."""
    values: dict[int, list[float | None]] = {
        row.round: [row.n_pages, row.n_internal, row.n_external, row.external_rate] for row in statistics.outlink_shares
    }
    columns = ("internal links", "external links", "external share")
    return _by_period(statistics, columns, values, {columns[0]: ",.0f", columns[1]: ",.0f", columns[2]: ".1%"})


def mean_table(statistics: LinkStatistics) -> Table:
    """Mean and standard deviation of new links per page, by round or longer periods (LBLA Table 2)."""
    columns = [f"{links[:3]}. {name}" if links != "all" else name for links in ORDER for name in ("mean", "sd")]
    known = {(row.round, row.links): [row.mean, row.deviation] for row in statistics.round_counts}
    formats = {name: ".1f" if name.endswith("sd") else ".2f" for name in columns}
    return _by_period(statistics, columns, _per_round(statistics, known, 2), formats)


def none_table(statistics: LinkStatistics) -> Table:
    """Share of pages without new links, and how many there are for every page with some, by round or longer periods."""
    known = {(row.round, row.links): [row.none_rate, row.imbalance] for row in statistics.round_counts}
    columns = [name for links in ORDER for name in (links, f"{links[:3]}. : 1" if links != "all" else "all : 1")]
    formats = {name: ".2f" if name.endswith(": 1") else ".1%" for name in columns}
    return _by_period(statistics, columns, _per_round(statistics, known, 2), formats)


def _per_round(
    statistics: LinkStatistics, known: Mapping[tuple[int, Links], Sequence[float | None]], n_cells: int
) -> dict[int, list[float | None]]:
    """Round → the number of pages and the values of each kind of links; None where they are not known."""
    rounds = sorted({number for number, _ in known})
    n_pages = dict.fromkeys(rounds, 0)
    for row in statistics.round_counts:
        n_pages[row.round] = max(n_pages[row.round], row.n_pages)
    return {
        number: [n_pages[number], *(v for links in ORDER for v in known.get((number, links), [None] * n_cells))]
        for number in rounds
    }


def stay_table(statistics: LinkStatistics) -> Table:
    """The share of pages that stay in their group from one round to the next, by the later round."""
    values: dict[int, list[float | None]] = {}
    for row in statistics.group_stays:
        cells = values.setdefault(row.to_round, [0, None, None])
        cells[0] = max(row.n_pages, cells[0] or 0)
        cells[1 + SIDES.index(row.links)] = row.stay_rate
    return _by_period(statistics, SIDES, dict(sorted(values.items())), dict.fromkeys(SIDES, ".1%"))


def _by_period(
    statistics: LinkStatistics,
    columns: Sequence[str],
    values: dict[int, list[float | None]],
    formats: dict[str, str],
) -> Table:
    """Round → number of pages and other values, as one row per round; of many rounds the means by day, week or month."""
    unit, groups = grouped_rounds(statistics.rounds, list(values))
    rows: list[list[Cell]] = []
    for group in groups:
        several = [values[number] for number in group.rounds]
        n_pages = round(mean([row[0] or 0 for row in several]))
        means: list[Cell] = [_known_mean([row[1 + i] for row in several]) for i in range(len(columns))]
        first: Sequence[Cell] = (
            [group.rounds[0], statistics.round_end(group.rounds[0])] if unit == "round" else [group.name, len(several)]
        )
        rows.append([*first, n_pages, *means])
    header = ("round", "until") if unit == "round" else (unit, "rounds")
    note = "" if unit == "round" or not rows else "Means over the rounds; every round is in --json."
    return Table((*header, "pages", *columns), rows, formats, note=note)


def _known_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def rate_table(statistics: LinkStatistics) -> Table:
    """How many pages gained links in which share of the rounds; shares that no page has are left out."""
    known = {(row.rate, row.links): row for row in statistics.change_rates}
    rows: list[list[Cell]] = []
    for rate in sorted({rate for rate, _ in known}):
        sides = [known.get((rate, links)) for links in SIDES]
        if not any(row.n_pages for row in sides if row):
            continue
        rows.append(
            [rate, *(row.n_pages if row else None for row in sides), *(row.share if row else None for row in sides)]
        )
    header = ("share of rounds", *(f"{links} pages" for links in SIDES), *(f"{links} share" for links in SIDES))
    return Table(header, rows, {header[0]: ".0%", header[3]: ".1%", header[4]: ".1%"})


def concentration_table(statistics: LinkStatistics) -> Table:
    """How many of the new links are on the pages with most of them."""
    rows: list[list[Cell]] = [[row.links, row.page_rate, row.link_rate] for row in statistics.concentrations]
    header = ("links", "pages with most", "their share of new links")
    return Table(header, rows, {header[1]: ".0%", header[2]: ".1%"})


def law_tables(statistics: LinkStatistics) -> list[Table]:
    """For each kind of links, every law's distance from the data, the closest of each part in bold; and one law against two."""
    made = ((_law_table(fits), *_comparison_table(fits)) for fits in statistics.tails)
    return [table for both in made for table in both]


def _comparison_table(fits: TailFits) -> list[Table]:
    rows: list[list[Cell]] = [
        [compared.chosen, " + ".join(model.laws), model.n_parameters, model.log_likelihood, model.bic, model.distance]
        for compared in fits.comparisons
        for model in (compared.one, compared.two)
    ]
    if not rows:
        return []
    header = ("compared", "laws", "parameters", "log-likelihood", "BIC", "D")
    verdicts = "; ".join(
        f"{compared.chosen}: {compared.verdict} (ratio {compared.ratio:+.2f}, p {compared.p:.2g})"
        for compared in fits.comparisons
    )
    note = (
        f"{verdicts[0].upper()}{verdicts[1:]}. Two laws: one for the body, one for the tail. Ratio: Vuong's, charged for "
        "parameters; above 0 if two laws are better. The papers compare one stretched exponential with an exponential "
        "body and a stretched exponential tail."
    )
    title = f"One law or two for the number of new {fits.links} links"
    formats = {"log-likelihood": ",.1f", "BIC": ",.1f", "D": ".4f"}
    return [Table(header, rows, formats, title=title, note=note, rules=range(1, len(rows) - 1, 2))]


def _law_table(fits: TailFits) -> Table:
    rows: list[list[Cell]] = []
    bold, rules = set(), set()
    for part in fits.parts:
        reach = f"≥ {part.lower}" if part.upper is None else f"{part.lower}–{part.upper}"
        for fit in part.fits:
            parameters = fit.note or ", ".join(f"{name} {value:.3g}" for name, value in fit.parameters.items())
            if fit is part.best:
                bold |= {(len(rows), 3), (len(rows), 4)}
            law = f"{fit.law} (best)" if fit is part.best else fit.law
            rows.append([part.name, reach, part.n_values, law, fit.distance, parameters])
        rules.add(len(rows) - 1)
    header = ("part", "new links", "pages", "law", "D", "parameters")
    title = f"Laws fitted to the number of new {fits.links} links"
    return Table(header, rows, {"D": ".4f"}, bold, title=title, note=law_note(fits), rules=rules)


def law_note(fits: TailFits) -> str:
    """What could not be fitted, and why; empty if all could."""
    return " ".join(note for note in (fits.note, *(part.note for part in fits.parts)) if note)


def domain_table(statistics: LinkStatistics) -> Table:
    """Pages per top-level domain."""
    rows: list[list[Cell]] = [[row.domain, row.n_pages, row.share] for row in statistics.domains]
    return Table(("domain", "pages", "share"), rows, {"share": ".1%"})


def extreme_table(statistics: LinkStatistics) -> Table:
    """The pages with the most new links in one round."""
    rows: list[list[Cell]] = [
        [i, row.url, row.n_most, statistics.round_end(row.round)] for i, row in enumerate(statistics.extreme_pages, 1)
    ]
    return Table(("", "page", "most new links", "round until"), rows)


def website_table(statistics: LinkStatistics) -> Table:
    """The websites with most new links, each as a whole (HACS section IV)."""
    if statistics.websites is None:
        return Table((), ())
    sites = statistics.websites.sites
    rows: list[list[Cell]] = []
    for row in sites[:MAX_SITES]:
        between = None if row.median_days is None else duration(24 * row.median_days)
        rows.append([row.site, row.n_pages, row.n_deep, row.n_new, row.rate, between])
    header = ("website", "pages", "deeper than 2", "new links", "rounds with new links", "time between visits")
    more = f"{len(sites) - MAX_SITES:,} more are in --json." if len(sites) > MAX_SITES else ""
    return Table(header, rows, {header[4]: ".1%"}, note=more)


def gap_table(statistics: LinkStatistics) -> Table:
    """Quantiles of the time between visits."""
    quantiles = statistics.gaps.quantiles if statistics.gaps else ()
    rows: list[list[Cell]] = [
        [row.quantile, duration(24 * row.days), duration(24 * row.page_median_days)] for row in quantiles
    ]
    return Table(("share", "gaps up to", "page medians up to"), rows, {"share": ".0%"})
