"""Policies and budgets as they are told on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from recrawl.cli.common import note

if TYPE_CHECKING:
    from recrawl.policies import Policy


def made_policies(names: str, given: Sequence[str] = (), **common: Any) -> list[Policy]:
    """The policies named with commas between, or ``all``; `common` are settings for those that take them.

    `given` are settings of single policies, such as ``bandit.window=28``.
    """
    from recrawl import policies

    known = [policy.name for policy in policies.ALL]
    wanted = known if names.strip() == "all" else _listed("--policies", names)
    for name in wanted:
        try:
            policies.named(name)  # so that an unknown name is told before anything else
        except policies.UnknownPolicy as error:
            raise typer.BadParameter(str(error)) from None
    special = _settings(given, wanted)
    useful = {key: value for key, value in common.items() if value is not None}
    return [_made(name, {**useful, **special.get(name, {})}) for name in wanted]


def _made(name: str, settings: Mapping[str, Any]) -> Policy:
    from recrawl.policies import named

    try:
        return named(name, **settings)
    except ValueError as error:
        raise typer.BadParameter(f"{name}: {error}") from None


def _listed(option: str, text: str) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise typer.BadParameter(f"{option} {text!r} names nothing")
    return names


def _settings(given: Sequence[str], wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
    from recrawl.policies import ALL, settings_of

    by_name = {policy.name: policy for policy in ALL}
    found: dict[str, dict[str, Any]] = {}
    for text in given:
        match = re.fullmatch(r"\s*([^.=\s]+)\.(\w+)\s*=\s*(.*?)\s*", text)
        if not match:
            raise typer.BadParameter(f"--set {text!r}: write policy.setting=value, such as bandit.window=28")
        name, setting, value = match.groups()
        if name not in wanted:
            raise typer.BadParameter(f"--set {text!r}: {name!r} is not among the policies ({', '.join(wanted)})")
        defaults = settings_of(by_name[name])
        if setting not in defaults:
            ways = f"It has: {', '.join(defaults)}" if defaults else "It has none"
            raise typer.BadParameter(f"--set {text!r}: {name} has no setting {setting!r}. {ways}")
        try:
            found.setdefault(name, {})[setting] = typed(value, defaults[setting])
        except ValueError as error:
            raise typer.BadParameter(f"--set {text!r}: {error}") from None
    return found


def typed(text: str, default: Any) -> Any:
    """A value of the kind of a setting's default.

    >>> typed("28", 168), typed("0.5", 1.0), typed("no", True), typed("0.6,0.8", (0.5,)), typed("none", None), typed("24", None)
    (28, 0.5, False, (0.6, 0.8), None, 24)
    """
    if isinstance(default, bool):
        return _truth(text)
    if isinstance(default, int):
        return _whole(text)
    if isinstance(default, float):
        return _finite(text)
    if isinstance(default, str):
        return text
    if isinstance(default, tuple) and default:
        return tuple(typed(part.strip(), default[0]) for part in text.split(",") if part.strip())
    if default is None or isinstance(default, type):
        return _guessed(text)
    raise ValueError("this setting cannot be told on the command line")


def _truth(text: str) -> bool:
    values = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if text.lower() not in values:
        raise ValueError(f"{text!r} is neither yes nor no")
    return values[text.lower()]


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no number")
    return number


def _guessed(text: str) -> Any:
    """For settings that are off by default: nothing, a number, or a word."""
    if text.lower() == "none":
        return None
    for read in (_whole, _finite):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def per_cycle(told: str) -> Any:
    """The option for pages a cycle, with what is told of it."""
    return typer.Option("--budget", "-b", metavar="PAGES", help=told, callback=checked_budgets)


def checked_budgets(text: str) -> str:
    """Budgets; anything else is wrong usage."""
    budget_pages(text, 1, quiet=True)
    return text


def budget_pages(text: str, n_pages: int, quiet: bool = False) -> list[int]:
    """Budgets in pages or as shares of the pages, with commas between, as pages: each once, none above all there are.

    >>> budget_pages("10%,20%,12,1", 117)
    [12, 23, 1]
    """
    from recrawl.plan.budgets import BadBudget, pages_of

    found = []
    for part in _listed("--budget", text):
        try:
            pages = pages_of(part, n_pages)
        except BadBudget as error:
            raise typer.BadParameter(f"--budget {error}") from None
        if pages > n_pages and not quiet:
            note(f"budget {part} is above the number of pages: {n_pages:,} are used")
        found.append(min(pages, n_pages))
    return list(dict.fromkeys(found))
