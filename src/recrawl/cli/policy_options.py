"""Budgets as they are written on the command line."""

from __future__ import annotations

from typing import Any

import typer

from recrawl.cli.common import note


def per_cycle(help: str) -> Any:
    """The option for pages per cycle."""
    return typer.Option("--budget", "-b", metavar="PAGES", help=help, callback=checked_budgets)


def checked_budgets(text: str) -> str:
    """Budgets; anything else is wrong usage."""
    from recrawl.report.replays.options import check_budgets

    try:
        check_budgets(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def budget_pages(text: str, n_pages: int) -> list[int]:
    """Budgets in pages; what is above all pages is noted on standard error."""
    from recrawl.report.replays.options import budget_pages

    return budget_pages(text, n_pages, note)
