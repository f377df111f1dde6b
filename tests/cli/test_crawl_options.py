"""User-Agents that are accepted, where first crawls begin, and the notes in a crawl's summary."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.cli.crawl_options import FirstCrawlOptions, checked_agent, home_pages
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


def test_a_first_crawl_can_begin_with_home_pages(tmp_path: Path) -> None:
    """URLs are cut to scheme, host and port; names, also in files, become home pages; each begins once."""
    listed = tmp_path / "sites.txt"
    listed.write_text("https://a.org/deep/page?x=1\nb.org\nHTTP://A.org:80/\n")
    seeds = ["https://A.org/other#part", str(listed), "c.org", "c.org/about", "https://d.org:8443/x"]
    found = home_pages(seeds)
    assert found == ["https://a.org/", "https://b.org/", "http://a.org/", "https://c.org/", "https://d.org:8443/"]
    frontier = FirstCrawlOptions(seeds=seeds, home_pages=True, order="breadth").frontier(None, 1)
    assert frontier is not None
    assert frontier.seeds == found
    assert {frontier.take() for _ in found} == set(found)
    assert frontier.take() is None


def test_home_pages_need_seeds_and_hosts_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="--home-pages needs --seeds"):
        FirstCrawlOptions(home_pages=True).frontier(None, 1)
    with pytest.raises(typer.BadParameter, match="'https://not a host'"):
        home_pages(["not a host"])
    empty = tmp_path / "none.txt"
    empty.write_text("\n")
    with pytest.raises(typer.BadParameter, match="names no URL"):
        home_pages([str(empty)])
    given = ["crawl", "--user-agent", "Webwatch bot@example.org", "--home-pages", "--history", str(tmp_path / "h")]
    result = CliRunner().invoke(app, given, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "--home-pages needs --seeds" in result.output
