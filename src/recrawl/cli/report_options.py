"""The options of every command that writes an HTML page."""

from __future__ import annotations

from typing import Annotated

import typer

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
