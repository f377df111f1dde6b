"""A rich console for text from the web. Apart from `output`, since rich takes its time to load."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from recrawl.cli.screen import width
from recrawl.core.visible import visible


class Terminal(Console):
    """A console on which the control characters of texts are visible; the colours of its own are not touched."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        # The stream by itself: while a progress bar is shown, rich puts something of its own before standard output.
        file = getattr(stream, "rich_proxied_file", stream)
        super().__init__(file=file, stderr=stderr, width=None if stderr else width(), highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
