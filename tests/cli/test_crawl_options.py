"""User-Agents that are accepted, and the notes in a crawl's summary."""

from __future__ import annotations

import pytest
import typer

from recrawl.cli.crawl_options import checked_agent
from recrawl.crawl.view import crawl_summary


def test_an_agent_with_name_and_contact_is_taken_as_it_is() -> None:
    for agent in ("Webwatch/1.0 (+https://example.org/bot)", "Webwatch bot@example.org"):
        assert checked_agent(agent) == agent


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("Webwatch/1.0", "reach you"),
        ("(+https://example.org/bot)", "robots.txt"),
        ("bot@example.org", "robots.txt"),
        ("Wëbwatch bot@example.org", "ASCII"),
        ("Webwatch\r\nX: y bot@example.org", "ASCII"),
    ],
)
def test_an_agent_without_a_name_or_a_contact_is_refused(agent: str, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        checked_agent(agent)


def test_notes_about_the_plan_are_part_of_the_summary() -> None:
    assert crawl_summary({"recrawl/notes": ["planning by round-robin"]})["notes"] == ["planning by round-robin"]
    assert crawl_summary({})["notes"] == []
