"""Tables on terminals of any width: no word of a heading is broken, and no number is lost."""

from __future__ import annotations

import pytest
from rich.console import Console

from recrawl.report.tables import Table
from recrawl.report.terminal import Bullets

HEADER = ("policy", "coverage", "vs round-robin", "links per fetch", "overlap of the cycle", "milliseconds per cycle")
WIDE = Table(HEADER, [["regression-round-robin (baseline)", 0.129, "+0.519*", 5.62, 0.125, 20.37]], note="A note.")


def printed(renderable: object, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 140])
def test_every_heading_and_number_is_shown_whole(width: int) -> None:
    lines = printed(WIDE, width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for name in HEADER:
        assert set(name.split()) <= set(words)
    assert {"0.129", "+0.519*", "5.62", "0.125", "20.4"} <= set(words)


def test_what_does_not_fit_follows_below_beside_the_first_column() -> None:
    lines = printed(WIDE, 40)
    assert sum("policy" in line for line in lines) > 1
    assert sum("policy" in line for line in printed(WIDE, 140)) == 1


def test_an_empty_table_is_its_title_and_its_note() -> None:
    assert [line.strip() for line in printed(Table((), (), title="Laws", note="Too few pages."), 40)] == [
        "",
        "Laws",
        "Too few pages.",
    ]


def test_lines_of_a_list_are_indented() -> None:
    lines = printed(Bullets(["one two three four five", "six"]), 12)
    assert [line.rstrip() for line in lines] == ["• one two", "  three four", "  five", "• six"]
