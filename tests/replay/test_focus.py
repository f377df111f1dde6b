from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recrawl as rc
from made_focus import made_visits, plain_relevant, topic_model, without
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.models.link_relevance import Focus, RelevanceEvidence
from recrawl.models.relevance import train
from recrawl.policies import Budget, named
from recrawl.replay import replay
from recrawl.replay.focus import focused
from recrawl.web.visit import Visit
from recrawl.world.crawler import Crawler
from recrawl.world.recorded import World
from recrawl.world.recording import record

START = datetime(2026, 1, 5, tzinfo=UTC)
GOOD, BAD = "https://e.org/politics/vote-{}", "https://e.org/sport/goal-{}"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A page that gains one relevant and one irrelevant link a day; the first relevant one was read, and found relevant."""
    made = History.create(tmp_path_factory.mktemp("focus") / "history")
    hub = [
        Visit(
            url="https://e.org/",
            at=START + day * timedelta(days=1),
            links=[text.format(i) for i in range(day + 1) for text in (GOOD, BAD)],
        )
        for day in range(5)
    ]
    read = Visit(url=GOOD.format(1), at=START, links=[], relevance=0.9)
    made.add([*hub, read])
    return made


def test_only_links_to_pages_recorded_as_relevant_count(history: History) -> None:
    world = record(history)
    assert world.discoverable == 8
    only = focused(history, world, Focus())
    assert only.discoverable == 1
    rows = list(replay(only, named("brute-force"), Budget(only.n_pages)))
    assert [row["found"] for row in rows] == [1, 0, 0, 0]


def test_a_classifier_judges_links_that_nobody_read(history: History) -> None:
    urls = [text.format(i) for i in range(10, 30) for text in (GOOD, BAD)]
    model = train(urls, [url.startswith("https://e.org/politics") for url in urls])
    only = focused(history, record(history), Focus(model=model))
    assert only.discoverable == 4
    rows = list(replay(only, named("brute-force"), Budget(only.n_pages)))
    assert sum(row["found"] for row in rows) == 4


def test_recorded_relevance_comes_before_the_classifier(history: History) -> None:
    world = record(history)
    relevance = RelevanceEvidence.of(history, Focus()).recorded(world.link)
    known = relevance[~(relevance != relevance)]
    assert known.tolist() == pytest.approx([0.9])


def test_no_relevant_link_at_all_is_a_clear_sentence(history: History) -> None:
    with pytest.raises(NotEnoughData, match=r"above 0\.95"):
        focused(history, record(history), Focus(above=0.95))


@pytest.mark.parametrize("policy", ["round-robin", "windowed-outdegree", "expected-harvest"])
def test_all_links_are_counted_beside_the_relevant_ones(policy: str, tmp_path: Path) -> None:
    visits, history = made_visits(2, n_days=12), History.create(tmp_path / "h")
    history.add(visits)
    topic_model(tmp_path / "m.json")
    focus = Focus.of(str(tmp_path / "m.json"))
    assert focus is not None
    world = record(history)
    only = focused(history, world, focus)
    chosen: list[list[int]] = []

    class Spy(type(named(policy))):  # type: ignore[misc]
        def choose(self, *asked: Any, **more: Any) -> Any:
            choice = super().choose(*asked, **more)
            chosen.append(choice.page.tolist())
            return choice

    rows = list(replay(only, Spy(), Budget(2)))
    # The same fetches in the world with all links, one by one.
    crawler = Crawler(world)
    expected = []
    for pages in chosen:
        crawler.meet_pages()
        expected.append(crawler.visit(np.array(pages)).visits.n_found)
    assert [row["found_all"] for row in rows] == expected
    assert sum(row["published_all"] for row in rows) == world.discoverable
    assert 0 < sum(row["found"] for row in rows) < sum(expected)
    only.save(tmp_path)
    again = list(replay(World.load(tmp_path), named(policy), Budget(2)))
    assert [row["found_all"] for row in again] == expected


def test_a_replay_is_that_of_a_history_without_irrelevant_links(tmp_path: Path) -> None:
    visits = [visit for visit in made_visits(4, n_days=12) if visit.relevance is not None or ".example/" in visit.url]
    topic_model(tmp_path / "m.json")
    full, only = History.create(tmp_path / "full"), History.create(tmp_path / "only")
    full.add(visits)
    only.add(without(visits, plain_relevant(visits, tmp_path / "m.json")))
    asked: dict[str, Any] = {"policies": "round-robin,bandit,expected-harvest,oracle", "budget": "10,20"}
    focused_rows = rc.replay(full, relevance=str(tmp_path / "m.json"), **asked).records()
    for row, plain in zip(focused_rows, rc.replay(only, **asked).records(), strict=True):
        assert row["coverage"] == plain["coverage"]
        assert row["within_4_cycles"] == plain["within_4_cycles"]
        assert row["discovered_all"] > row["discovered"] > 0, row["policy"]
