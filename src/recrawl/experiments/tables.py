"""The empirical analysis as tables: neutral ones that a page can hold, and the same for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from recrawl.experiments.empirical import Empirical
from recrawl.experiments.newlinks import SIDES, Links, RoundCount
from recrawl.experiments.page import Cell, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from recrawl.experiments.tails import TailFits

ORDER: tuple[Links, ...] = ("all", "internal", "external")


def mean_table(empirical: Empirical) -> Table:
    """Mean and standard deviation of new links per page, one row per round (LBLA Table 2)."""
    columns = [f"{links[:3]}. {name}" if links != "all" else name for links in ORDER for name in ("mean", "sd")]
    rows = _per_round(empirical, lambda row: [row.mean, row.deviation], 2)
    formats = {name: ".1f" if name.endswith("sd") else ".2f" for name in columns}
    return Table(("round", "until", "pages", *columns), rows, formats)


def none_table(empirical: Empirical) -> Table:
    """Share of pages without new links, one row per round."""
    rows = _per_round(empirical, lambda row: [row.none_rate], 1)
    return Table(("round", "until", "pages", *ORDER), rows, dict.fromkeys(ORDER, ".1%"))


def _per_round(empirical: Empirical, cells: Callable[[RoundCount], list[float]], n_cells: int) -> list[list[Cell]]:
    known = {(row.round, row.links): row for row in empirical.round_counts}
    rows: list[list[Cell]] = []
    for number in sorted({row.round for row in empirical.round_counts}):
        row: list[Cell] = [number, empirical.rounds[number]]
        row.append(max(count.n_pages for (column, _), count in known.items() if column == number))
        for links in ORDER:
            count = known.get((number, links))
            row += cells(count) if count else [None] * n_cells
        rows.append(row)
    return rows


def rate_table(empirical: Empirical) -> Table:
    """How many pages gained links in which share of the rounds."""
    known = {(row.rate, row.links): row for row in empirical.change_rates}
    rows: list[list[Cell]] = []
    for rate in sorted({rate for rate, _ in known}):
        found = [known.get((rate, links)) for links in SIDES]
        rows.append(
            [rate, *(row.n_pages if row else None for row in found), *(row.share if row else None for row in found)]
        )
    header = ("share of rounds", *(f"{links} pages" for links in SIDES), *(f"{links} share" for links in SIDES))
    return Table(header, rows, {header[0]: ".0%", header[3]: ".1%", header[4]: ".1%"})


def stay_table(empirical: Empirical) -> Table:
    """The share of pages that stay in their group."""
    known = {(row.from_round, row.to_round, row.links): row for row in empirical.group_stays}
    rows: list[list[Cell]] = []
    for first, second in sorted({(first, second) for first, second, _ in known}):
        found = [known.get((first, second, links)) for links in SIDES]
        n_pages = max(row.n_pages for row in found if row)
        rows.append([f"{first} → {second}", n_pages, *(row.stay_rate if row else None for row in found)])
    return Table(("rounds", "pages", *SIDES), rows, dict.fromkeys(SIDES, ".1%"))


def concentration_table(empirical: Empirical) -> Table:
    """How much the richest pages hold."""
    rows: list[list[Cell]] = [[row.links, row.page_rate, row.link_rate] for row in empirical.concentrations]
    return Table(
        ("links", "richest pages", "share of new links"), rows, {"richest pages": ".0%", "share of new links": ".1%"}
    )


def law_table(empirical: Empirical) -> Table:
    """Every law's distance from the data, the best of each part marked."""
    rows: list[list[Cell]] = []
    for fits in empirical.tails:
        for part in fits.parts:
            reach = f"≥ {part.lower}" if part.upper is None else f"{part.lower}–{part.upper}"
            for fit in part.fits:
                parameters = fit.note or ", ".join(f"{name} {value:.3g}" for name, value in fit.parameters.items())
                law = f"{fit.law} (best)" if fit is part.best else fit.law
                rows.append([fits.links, part.name, reach, part.n_values, law, fit.distance, parameters])
    return Table(("links", "part", "new links", "pages", "law", "D", "parameters"), rows, {"D": ".4f"})


def law_note(fits: TailFits) -> str:
    """What could not be fitted, and why; empty if all could."""
    return " ".join(note for note in (fits.note, *(part.note for part in fits.parts)) if note)


def domain_table(empirical: Empirical) -> Table:
    """Pages per top-level domain."""
    rows: list[list[Cell]] = [[row.domain, row.n_pages, row.share] for row in empirical.domains]
    return Table(("domain", "pages", "share"), rows, {"share": ".1%"})


def extreme_table(empirical: Empirical) -> Table:
    """The pages with the most new links in one round."""
    rows: list[list[Cell]] = [[i, row.url, row.n_most, row.round] for i, row in enumerate(empirical.extreme_pages, 1)]
    return Table(("", "page", "most new links", "in round"), rows)


def gap_table(empirical: Empirical) -> Table:
    """Quantiles of the days between visits."""
    quantiles = empirical.gaps.quantiles if empirical.gaps else ()
    rows: list[list[Cell]] = [[row.quantile, row.days, row.page_median_days] for row in quantiles]
    return Table(("share", "gaps up to", "page medians up to"), rows, {"share": ".0%"})


#: Title, part of the analysis, and its table, in the order they are shown.
ALL: tuple[tuple[str, str, Callable[[Empirical], Table]], ...] = (
    ("New links per page and round", "round_counts", mean_table),
    ("Share of pages without new links", "round_counts", none_table),
    ("How often pages gain links", "change_rates", rate_table),
    ("Pages that stay in their group from round to round", "group_flows", stay_table),
    ("Where the new links are", "concentrations", concentration_table),
    ("Laws fitted to the number of new links", "tails", law_table),
    ("Pages per top-level domain", "domains", domain_table),
    ("Pages with the most new links in one round", "extreme_pages", extreme_table),
    ("Days between visits of a page", "gaps", gap_table),
)


def tables(empirical: Empirical) -> list[RichTable]:
    """All tables for the terminal; an empty one says why it is empty."""
    return [
        rich_table(title, make(empirical), empirical.notes.get(part) or _law_notes(empirical, part))
        for title, part, make in ALL
    ]


def _law_notes(empirical: Empirical, part: str) -> str:
    notes = ((fits.links, law_note(fits)) for fits in empirical.tails if part == "tails")
    return "\n".join(f"{links}: {note}" for links, note in notes if note)


def rich_table(title: str, table: Table, note: str) -> RichTable:
    """A table for the terminal, with a title and a note below."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    texts = table.texts()
    caption = Text(note) if note and texts else None
    shown = RichTable(title=Text(title), caption=caption, title_justify="left", box=box.SIMPLE_HEAD)
    shown.pad_edge, shown.collapse_padding = False, True
    if not texts:
        shown.show_header = False
        shown.add_row(Text(note))
        return shown
    for i, name in enumerate(table.header):
        is_text = any(isinstance(row[i], str) for row in table.rows)
        # A column is as wide as its cells, not as its name: so more of them fit a narrow terminal.
        head = name if len(name) <= max(len(row[i]) for row in texts) else name.replace(" ", "\n")
        shown.add_column(Text(head), justify="left" if is_text else "right", overflow="fold")
    for i, row in enumerate(texts):
        # As Text: a URL may hold what rich would take for markup.
        shown.add_row(*(Text(cell, "bold" if (i, j) in table.bold else "") for j, cell in enumerate(row)))
    return shown
