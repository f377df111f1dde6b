"""Write docs/commands.md from the commands' own help, and the table of settings in docs/crawl.md.

``--check`` only tells whether they are up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from recrawl.cli import app
from recrawl.crawl.settings import Options

PAGE = Path(__file__).with_name("commands.md")
CRAWL = Path(__file__).with_name("crawl.md")
SETTINGS = re.compile(r"(?<=<!-- settings: made by make docs -->\n).*(?=<!-- end of settings -->)", re.DOTALL)


def render() -> str:
    """The page: for every command its help and a table of its options."""
    group = typer.main.get_command(app)
    parts = ["# Commands\n", "Made by `make docs` from the commands' own help.\n"]
    for name, command in leaves(group):
        parts.append(f"## recrawl {name}\n")
        parts.append((command.help or "").strip() + "\n")
        parts.append("| option | meaning | default |\n|---|---|---|")
        parts += [row(parameter) for parameter in command.params if parameter.name != "help"]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def leaves(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its whole name; of those that have commands below them, these."""
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield before + name, command


def row(parameter: object) -> str:
    """One option as a line of the table."""
    options, secondary = getattr(parameter, "opts", []), getattr(parameter, "secondary_opts", [])
    names = getattr(parameter, "metavar", None) or parameter.name.upper()  # type: ignore[attr-defined]
    if options and options[0].startswith("-"):
        names = ", ".join(options + secondary)
    default = getattr(parameter, "default", None)
    shown = "" if default in (None, False, [], ()) or callable(default) else f"`{default}`"
    return f"| `{names}` | {(getattr(parameter, 'help', '') or '').replace('|', '/')} | {shown} |"


def with_settings(page: str) -> str:
    """The page about crawling, with a table of all settings in its place."""
    rows = [
        f"| `{name}` | {told.replace('|', '/')} | {default and f'`{default}`'} |"
        for name, default, told in Options.table()
    ]
    table = "\n".join(["| setting | meaning | default |", "|---|---|---|", *rows, ""])
    return SETTINGS.sub(lambda _: table, page)


def pages() -> dict[Path, str]:
    """What is to be in each file."""
    return {PAGE: render(), CRAWL: with_settings(CRAWL.read_text())}


if __name__ == "__main__":
    if "--check" in sys.argv:
        outdated = [path.name for path, text in pages().items() if not path.exists() or path.read_text() != text]
        sys.exit(f"out of date in docs: {', '.join(outdated)}; make docs mends it" if outdated else 0)
    for path, text in pages().items():
        path.write_text(text)
