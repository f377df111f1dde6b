"""Policies and budgets as they are written on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from recrawl.cli.common import note
from recrawl.errors import BadBudget, BadOption

if TYPE_CHECKING:
    from recrawl.policies import Policy


def made_policies(names: str, settings: Sequence[str] = (), **common: Any) -> list[Policy]:
    """The policies named, separated by commas, or ``all``; `common` are settings for those that take them.

    `settings` are those of single policies, such as ``bandit.window=28``.
    """
    from recrawl.policies.registry import known, policy_class
    from recrawl.policies.settings import made, parse

    wanted = list(known()) if names.strip() == "all" else listed("--policies", names)
    for name in wanted:
        policy_class(name)  # an unknown name is refused before anything else
    parse(settings, wanted)
    return [made(name, [text for text in settings if text.strip().startswith(f"{name}.")], **common) for name in wanted]


def listed(option: str, text: str) -> list[str]:
    """The names given with an option, separated by commas, each once."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise BadOption(f"{option} {text!r} names nothing")
    return names


def per_cycle(help: str) -> Any:
    """The option for pages per cycle."""
    return typer.Option("--budget", "-b", metavar="PAGES", help=help, callback=checked_budgets)


def checked_budgets(text: str) -> str:
    """Budgets; anything else is wrong usage."""
    try:
        budget_pages(text, 1, quiet=True)
    except BadBudget as error:
        raise typer.BadParameter(str(error)) from None
    return text


def budget_pages(text: str, n_pages: int, quiet: bool = False) -> list[int]:
    """Budgets in pages or as shares of the pages, separated by commas, as pages: each once, none above all there are.

    >>> budget_pages("10%,20%,12,1", 117)
    [12, 23, 1]
    """
    from recrawl.plan.budgets import pages_of

    budgets = []
    for part in listed("--budget", text):
        pages = pages_of(part, n_pages)
        if pages > n_pages and not quiet:
            note(f"budget {part} is above the number of pages: {n_pages:,} are used")
        budgets.append(min(pages, n_pages))
    return list(dict.fromkeys(budgets))
