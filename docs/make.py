"""Write docs/commands.md from the commands' own help; ``--check`` only tells whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from recrawl.cli import app

PAGE = Path(__file__).with_name("commands.md")


def render() -> str:
    """The page: for every command its help and a table of its options."""
    group = typer.main.get_command(app)
    parts = ["# Commands\n", "Made by `make docs` from the commands' own help.\n"]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        parts.append(f"## recrawl {name}\n")
        parts.append((command.help or "").strip() + "\n")
        parts.append("| option | meaning | default |\n|---|---|---|")
        parts += [row(parameter) for parameter in command.params if parameter.name != "help"]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def row(parameter: object) -> str:
    """One option as a line of the table."""
    options, secondary = getattr(parameter, "opts", []), getattr(parameter, "secondary_opts", [])
    names = getattr(parameter, "metavar", None) or parameter.name.upper()  # type: ignore[attr-defined]
    if options and options[0].startswith("-"):
        names = ", ".join(options + secondary)
    default = getattr(parameter, "default", None)
    shown = "" if default in (None, False, [], ()) or callable(default) else f"`{default}`"
    return f"| `{names}` | {(getattr(parameter, 'help', '') or '').replace('|', '/')} | {shown} |"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.exists() and PAGE.read_text() == render() else "docs/commands.md is out of date: make docs")
    PAGE.write_text(render())
