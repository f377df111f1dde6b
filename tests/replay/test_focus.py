from datetime import UTC, datetime, timedelta

import pytest

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.models.link_relevance import Focus, RelevanceEvidence
from recrawl.models.relevance import train
from recrawl.policies import Budget, named
from recrawl.replay import replay
from recrawl.replay.focus import focused
from recrawl.web.visit import Visit
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
