"""What experts predict: changes, new links, and pages that become relevant; counted by a plain loop over visits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.papers.experts.targets import crossings, outcomes, parsed_target
from recrawl.web.visit import Visit
from recrawl.world import change, notions
from recrawl.world.contents import contents_of

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
N_PAGES, N_DAYS = 4, 20


def made_up(folder: Path, with_relevance: bool = True) -> tuple[History, list[Visit]]:
    """Pages seen on most days, at times twice a day, with links, words and a relevance that comes and goes."""
    chance = np.random.default_rng(3)
    visits = []
    for page in range(N_PAGES):
        n_links = 1
        for half in range(2 * N_DAYS):
            if half and chance.random() < 0.4:
                continue
            n_links += int(chance.random() < 0.3)
            visits.append(
                Visit(
                    url=f"https://a.org/{page}",
                    at=START + timedelta(hours=12 * half),
                    text=f"word{n_links} here and there",
                    links=[f"https://a.org/l{page}-{i}" for i in range(n_links)],
                    relevance=float(chance.random()) if with_relevance and chance.random() < 0.8 else None,
                )
            )
    history = History.create(folder)
    history.add(visits)
    return history, visits


def by_day(visits: list[Visit], page: int, history: History) -> dict[int, list[Visit]]:
    ends = contents_of(history, "1d").rounds
    days: dict[int, list[Visit]] = {}
    for visit in sorted((v for v in visits if v.url.endswith(f"/{page}")), key=lambda v: v.at):
        day = int(np.searchsorted(ends, np.datetime64(visit.at.replace(tzinfo=None), "us")))
        days.setdefault(day, []).append(visit)
    return days


def row_of(history: History, page: int) -> int:
    urls: list[str] = contents_of(history, "1d").url.to_pylist()
    return urls.index(f"https://a.org/{page}")


def test_new_links_of_a_round_are_those_that_any_of_its_visits_shows_first(tmp_path: Path) -> None:
    history, visits = made_up(tmp_path / "h")
    contents = contents_of(history, "1d")
    found = outcomes(history, contents, "1d", "new-links", "significant")
    for page in range(N_PAGES):
        expected, before = np.full(contents.shape[1], -1), None
        for day, made in by_day(visits, page, history).items():
            for visit in made:
                links = set(visit.links or ())
                if before is not None:
                    expected[day] = max(expected[day], int(bool(links - before)))
                before = links
        assert found[row_of(history, page)].tolist() == expected.tolist()
    assert {-1, 0, 1} == set(found.ravel().tolist())


def test_a_page_becomes_relevant_where_it_was_not_when_it_was_last_judged(tmp_path: Path) -> None:
    history, visits = made_up(tmp_path / "h")
    contents = contents_of(history, "1d")
    found = outcomes(history, contents, "1d", "relevance:0.6", "significant")
    for page in range(N_PAGES):
        expected, before = np.full(contents.shape[1], -1), None
        for day, made in by_day(visits, page, history).items():
            judged = [v.relevance for v in made if v.relevance is not None]
            if judged:
                if before is not None:
                    expected[day] = int(judged[-1] >= 0.6 > before)
                before = judged[-1]
        assert found[row_of(history, page)].tolist() == expected.tolist()
    assert (found == 1).any()


def test_changes_are_those_of_the_notion(tmp_path: Path) -> None:
    history, _ = made_up(tmp_path / "h")
    contents = contents_of(history, "1d")
    found = outcomes(history, contents, "1d", "change", "digest")
    np.testing.assert_array_equal(found, change.changes(contents, notions.notion_from("digest")))


def test_a_history_without_relevance_says_so(tmp_path: Path) -> None:
    history, _ = made_up(tmp_path / "h", with_relevance=False)
    with pytest.raises(NotEnoughData, match="no visit in this history has a relevance"):
        outcomes(history, contents_of(history, "1d"), "1d", "relevance", "significant")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("luck", "No target named 'luck'"),
        ("change:0.3", "only relevance"),
        ("relevance:2", "up to 1"),
        ("relevance:x", "up to 1"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(RecrawlError, match=said):
        parsed_target(text)


def test_nothing_is_crossed_by_what_is_not_known() -> None:
    assert crossings(np.full((2, 3), np.nan), 0.5).tolist() == [[-1] * 3] * 2
