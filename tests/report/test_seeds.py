"""Seeds for another crawl: the pages that brought most new links, compared with a plain count."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.errors import BadOption, NotEnoughData
from recrawl.history import History
from recrawl.models.link_relevance import Focus
from recrawl.models.relevance import train
from recrawl.report.seeds import seeds
from recrawl.web.visit import Visit

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
HOSTS = [f"https://{name}.{site}.org" for site in ("a", "b") for name in ("www", "blog")]


def random_visits(seed: int) -> list[Visit]:
    chance = random.Random(seed)
    pages = [f"{host}/{i}" for host in HOSTS for i in range(3)]
    visits = []
    for day in range(6):
        for number, page in enumerate(pages):
            if chance.random() < 0.7:
                host = page.rsplit("/", 1)[0]
                links = [f"{host}/item/{chance.randrange(40)}" for _ in range(chance.randrange(5))]
                links += [f"https://www.a.org/item/{chance.randrange(40)}"]
                visits.append(Visit(url=page, at=MONDAY + timedelta(days=day, minutes=number), links=links))
    return visits


def plain_count(visits: list[Visit], counts: set[str] | None = None) -> dict[str, tuple[int, int]]:
    """URL → new internal links and compared visits, visit by visit with sets."""
    seen: set[str] = set()
    n_new, n_compared, known = defaultdict(int), defaultdict(int), set()
    for visit in sorted(visits, key=lambda visit: visit.at):
        own = {link for link in visit.links or () if link.split("/")[2] == visit.url.split("/")[2]}
        own = own if counts is None else own & counts
        if visit.url in known:
            n_compared[visit.url] += 1
            n_new[visit.url] += len(own - seen)
        known.add(visit.url)
        seen |= own  # a link of another host is internal nowhere else
    return {url: (n_new[url], n_compared[url]) for url in known}


@pytest.mark.parametrize("seed", range(4))
def test_yield_is_what_a_plain_count_gives(seed: int, tmp_path: Path) -> None:
    visits = random_visits(seed)
    history = History.create(tmp_path / "h")
    history.add(visits)
    expected = {url: counts for url, counts in plain_count(visits).items() if counts[0]}
    found = seeds(history)
    assert {page.url: (page.new_links, page.visits) for page in found} == expected
    assert [page.worth for page in found] == sorted((page.worth for page in found), reverse=True)
    assert all(page.worth == pytest.approx(page.new_links / page.visits, abs=1e-4) for page in found)


def test_only_relevant_links_count_where_relevance_is_known(tmp_path: Path) -> None:
    visits, relevant = random_visits(7), {f"{host}/item/{i}" for host in HOSTS for i in range(0, 40, 3)}
    items = {link for visit in visits for link in visit.links or ()}
    judged = [Visit(url=url, at=MONDAY + timedelta(days=9), relevance=float(url in relevant)) for url in items]
    history = History.create(tmp_path / "h")
    history.add([*visits, *judged])
    expected = {url: counts for url, counts in plain_count(visits, relevant).items() if counts[0]}
    found = seeds(history, focus=Focus())
    assert {page.url: (page.new_links, page.visits) for page in found} == expected


def test_a_classifier_judges_what_was_not_recorded(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    topics = {"https://e.org/1": "flood", "https://e.org/2": "party"}
    history.add(
        Visit(url=url, at=MONDAY, links=[f"https://e.org/{word}/{i}" for i in range(5)]) for url, word in topics.items()
    )
    model = train([f"https://e.org/{w}/x{i}" for w in topics.values() for i in range(4)], [True] * 4 + [False] * 4)
    assert [page.url for page in seeds(history, by="outlinks", focus=Focus(model=model))] == ["https://e.org/1"]
    with pytest.raises(NotEnoughData, match="train a classifier"):
        seeds(history, by="outlinks", focus=Focus())


def test_where_pages_were_fetched_once_outlinks_decide_within_sites_and_without_pages_that_are_gone(
    tmp_path: Path,
) -> None:
    history = History.create(tmp_path / "h")
    history.add(
        Visit(url=f"https://{site}.org/{n}", at=MONDAY, links=[f"https://{site}.org/l{n}-{i}" for i in range(n)])
        for site in ("a", "b")
        for n in range(4)
    )
    history.add([Visit(url="https://b.org/3", at=MONDAY + timedelta(days=1), status=404)])
    assert seeds(history) == []
    found = seeds(history, by="outlinks", per_site=2)
    assert [page.url for page in found] == ["https://a.org/3", "https://a.org/2", "https://b.org/2", "https://b.org/1"]
    assert [page.url for page in seeds(history, by="outlinks", top=1)] == ["https://a.org/3"]


def test_the_command_writes_a_list_that_a_crawl_takes(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(random_visits(1))
    ask = ["seeds", "--history", str(tmp_path / "h"), "--top", "3"]
    listed = CliRunner().invoke(app, ask).stdout.splitlines()
    assert listed == [page.url for page in seeds(history, top=3)]
    assert [json.loads(line)["url"] for line in CliRunner().invoke(app, [*ask, "--json"]).stdout.splitlines()] == listed
    CliRunner().invoke(app, [*ask, "--out", str(tmp_path / "seeds.txt")])
    from recrawl.cli.crawl_options import FirstCrawlOptions

    frontier = FirstCrawlOptions(seeds=[str(tmp_path / "seeds.txt")]).frontier(None, 1)
    assert frontier is not None
    assert frontier.seeds == listed


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    with pytest.raises(NotEnoughData, match="no visits"):
        seeds(history)
    with pytest.raises(BadOption, match="by is yield or outlinks"):
        seeds(history, by="fame")
    assert CliRunner().invoke(app, ["seeds", "--by", "fame"]).exit_code == 2
