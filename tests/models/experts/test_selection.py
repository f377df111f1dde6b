from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from recrawl.history import History
from recrawl.models.experts.online import MAX_DELAY
from recrawl.models.experts.selection import METHODS, choose, links_between
from recrawl.web.visit import Visit
from recrawl.world.contents import contents_of

START = datetime(2026, 1, 5, tzinfo=UTC)
PAGES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """a and b follow the same topic, b one day later; c says the same words every day; d is about something else."""
    made = History.create(tmp_path_factory.mktemp("selection") / "history")
    rhythm = [1, 5, 2, 9, 1, 7, 3, 8, 2, 6, 1, 9]
    visits = []
    for day, n in enumerate(rhythm):
        before = rhythm[max(day - 1, 0)]
        said = {
            "a": {"rain": before, "weather": 3, "alpha": 1},
            "b": {"rain": n, "weather": 3, "beta": 1},
            "c": {"rain": 4, "weather": 3, "gamma": 1},
            "d": {"football": n, "goal": 2, "delta": 1},
        }
        links = {"a": ["c", "b"], "b": ["a"], "c": [], "d": ["elsewhere"]}
        for page in PAGES:
            on_page = [f"https://e.org/{other}" for other in links[page]]
            visits.append(
                Visit(url=f"https://e.org/{page}", at=START + timedelta(days=day), terms=said[page], links=on_page)
            )
    made.add(visits)
    return made


def experts_of(history: History, page: str, method: str, k: int = 3) -> list[str]:
    contents = contents_of(history, "1d")
    names = [url.removeprefix("https://e.org/") for url in contents.url.to_pylist()]
    links = links_between(history, contents)
    experts, weight = choose(contents, k, method, links=links).of(names.index(page))
    assert (weight > 0).all()
    assert list(weight) == sorted(weight, reverse=True)
    return [names[expert] for expert in experts]


def test_the_page_that_leads_is_the_nearest_in_time(history: History) -> None:
    assert experts_of(history, "a", "cross-correlation")[0] == "b"  # b says today what a says tomorrow
    assert experts_of(history, "a", "online-correlation")[0] == "b"


def test_the_online_correlation_of_a_short_history_chooses_as_the_correlation_of_all_delays(history: History) -> None:
    contents = contents_of(history, "1d")
    assert contents.shape[1] <= MAX_DELAY + 1
    online, whole = (choose(contents, 3, method) for method in ("online-correlation", "cross-correlation"))
    np.testing.assert_array_equal(online.neighbour, whole.neighbour)
    np.testing.assert_allclose(online.weight, whole.weight, atol=1e-9)
    np.testing.assert_allclose(online.own_weight, whole.own_weight, atol=1e-9)


def test_an_unknown_method_is_refused_with_a_sentence(history: History) -> None:
    with pytest.raises(ValueError, match=r"No method to choose experts named 'grap'\. Did you mean 'graph'\?"):
        choose(contents_of(history, "1d"), 3, "grap")


def test_pages_with_the_same_words_are_near_and_those_without_a_common_one_are_none(history: History) -> None:
    assert set(experts_of(history, "a", "content")) == {"b", "c"}
    assert set(experts_of(history, "d", "content")) == set()


def test_linked_pages_are_near_in_either_direction_and_those_that_link_both_ways_first(history: History) -> None:
    assert experts_of(history, "a", "graph") == ["b", "c"]
    assert experts_of(history, "c", "graph") == ["a"]
    assert experts_of(history, "d", "graph") == []


def test_random_experts_are_distinct_and_never_the_page_itself(history: History) -> None:
    for page in PAGES:
        experts = experts_of(history, page, "random")
        assert sorted([page, *experts]) == sorted(PAGES)


@pytest.mark.parametrize("method", METHODS)
def test_a_page_without_words_so_far_is_its_own_expert_at_least(method: str, tmp_path: Path) -> None:
    made = History.create(tmp_path / "history")
    for day in range(4):
        at = START + timedelta(days=day)
        made.add([Visit(url=f"https://e.org/{i}", at=at, terms={"x": day + i + 1, "y": 2}) for i in range(3)])
    made.add([Visit(url="https://e.org/late", at=START + timedelta(days=3), terms={"z": 1})])
    contents = contents_of(made, "1d").window(0, 3)
    late = int(np.flatnonzero(contents.text[:, -1] < 0)[0])
    experts = choose(contents, 2, method, links=sparse.csr_array((4, 4), dtype=np.int8))
    assert experts.own_weight[late] > 0
    assert experts.own_weight.min() >= 0


@pytest.mark.parametrize("method", ["content", "cross-correlation", "dtw", "online-correlation"])
def test_texts_without_a_word_that_counts_have_no_experts(method: str, tmp_path: Path) -> None:
    made = History.create(tmp_path / "history")
    for day in range(3):
        made.add([Visit(url=f"https://e.org/{i}", at=START + timedelta(days=day), text="… – !") for i in range(3)])
    experts = choose(contents_of(made, "1d"), 5, method)
    assert [experts.of(page)[0] for page in range(3)] == [[], [], []]
    assert (experts.own_weight > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_single_page_has_no_experts(method: str, tmp_path: Path) -> None:
    made = History.create(tmp_path / "history")
    made.add([Visit(url="https://e.org/", at=START + timedelta(days=d), terms={"x": d + 1}) for d in range(3)])
    contents = contents_of(made, "1d")
    links = sparse.csr_array((1, 1), dtype=np.int8)
    assert choose(contents, 5, method, links=links).of(0)[0] == []
