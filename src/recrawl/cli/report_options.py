"""The options of every command that writes an HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

OutOption = Annotated[
    str | None, typer.Option("--out", "-o", metavar="PAGE.html", help="Write an HTML page with plots.")
]
SelfContainedOption = Annotated[
    bool,
    typer.Option(
        "--self-contained",
        help="Write the page as one file with the plot library in it (5 MB). Default: the library is written once beside "
        "the pages.",
    ),
]


@dataclass(frozen=True)
class PageOutput:
    """Where the HTML page goes, if anywhere, and whether it holds the plot library."""

    path: str | None
    self_contained: bool = False

    def print_path(self, screen: Console) -> None:
        """Say where the page is."""
        from rich.text import Text

        if self.path:
            screen.print(Text(f"\nall of it with plots: {self.path}"), soft_wrap=True)
