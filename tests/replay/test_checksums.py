"""Histories without links: capture indexes are replayed, planned and evaluated by the checksums of pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
import pytest

import recrawl as rc
from commands import command, output
from made_cdx import START, captures_of_changes, cdx_line, changes_of, checksum, index_history, written_cdx
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.insight.rates import NEW, SAME, UNDEFINED
from recrawl.papers.updates.captures import captures_of
from recrawl.papers.updates.evaluation import UpdateSettings, evaluate_updates
from recrawl.policies import HistoryAware
from recrawl.policies.budget import Budget
from recrawl.replay import past, replay
from shared_data import MISSING, fixture_files

RATES = (0.004, 0.02, 0.06, 0.2)  # changes per day
N_DAYS, PER_RATE = 420, 8
PAGES = {f"http://foo.edu/~p{i:02}/": RATES[i % len(RATES)] for i in range(PER_RATE * len(RATES))}


@pytest.fixture(scope="module")
def captures() -> dict[str, list[tuple[datetime, int]]]:
    return captures_of_changes(changes_of(PAGES, N_DAYS), N_DAYS)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, captures: dict[str, list[tuple[datetime, int]]]) -> History:
    return index_history(tmp_path_factory.mktemp("index"), captures)


def folder_of(history: History) -> str:
    return str(history.store.folder)


# -- replays -------------------------------------------------------------------------------------------------------------------


def plain_rows(captures: dict[str, list[tuple[datetime, int]]], per_cycle: int) -> Iterator[tuple[float, int]]:
    """Round-robin over the weeks: the share of current copies, and the visits that found a change, in every week."""
    pages, n_weeks = sorted(captures), len(next(iter(captures.values())))
    copy = {page: captures[page][0][1] for page in pages}
    visited = dict.fromkeys(pages, 0)
    for week in range(1, n_weeks):
        found = 0
        for page in sorted(pages, key=lambda page: (visited[page], page))[:per_cycle]:
            version = captures[page][week][1]
            found += copy[page] != version
            copy[page], visited[page] = version, week
        yield sum(copy[page] == captures[page][week][1] for page in pages) / len(pages), found


def test_freshness_of_a_replay_is_that_of_a_plain_version(
    index: History, captures: dict[str, list[tuple[datetime, int]]]
) -> None:
    rows = list(replay(past(index, goal="content"), rc.policies.RoundRobin(), Budget(5)))
    found = [(row["current"], row["changes"]) for row in rows]
    assert np.array(found) == pytest.approx(np.array(list(plain_rows(captures, 5))))
    assert {row["found"] for row in rows} == {0}


def test_history_aware_visits_pages_by_their_rates_of_change(index: History) -> None:
    world = past(index, goal="content")
    chosen: dict[float, int] = dict.fromkeys(RATES, 0)
    rate = np.array([PAGES[url] for url in world.url.to_pylist()])

    class Noted(HistoryAware):
        def choose(self, *asked):  # type: ignore[no-untyped-def]
            choice = super().choose(*asked)
            for page in choice.page:
                chosen[rate[page]] += 1
            return choice

    list(replay(world, Noted(updates="content"), Budget(8), observed=30))
    assert list(chosen.values()) == sorted(chosen.values())
    assert chosen[RATES[-1]] > 3 * chosen[RATES[0]]


def test_history_aware_finds_more_changes_than_round_robin_and_random(index: History) -> None:
    names = ["history-aware", "last-observed", "round-robin", "random"]
    result = rc.replay(index, names, budget="25%", goal="content")
    changes = {row["policy"]: row["changes"] for row in result.records()}
    assert changes["history-aware"] > max(changes["round-robin"], changes["random"])
    assert "of the copies current" in repr(result)


def test_without_the_goal_content_the_error_names_it(index: History) -> None:
    with pytest.raises(NotEnoughData, match=r"shows the links of a page.*use --goal content"):
        past(index)
    done = command("replay", "--history", folder_of(index))
    assert done.code == 1
    assert "use --goal content" in done.stderr


def test_the_command_replays_checksums_and_writes_a_page(index: History, tmp_path: Path) -> None:
    page = tmp_path / "replay.html"
    shown = output("replay", "--goal", "content", "--budget", "25%", "--history", folder_of(index), "--out", str(page))
    assert "judged by the copies that are kept current" in shown
    assert "changes found" in shown
    assert "coverage" not in shown
    html = page.read_text()
    assert "Copies kept current" in html
    assert "How soon links are found" not in html


def test_relevance_needs_links() -> None:
    with pytest.raises(rc.errors.BadOption, match="goal content counts changes of pages"):
        rc.replay("nowhere", goal="content", relevant_above=0.5)


# -- plans ---------------------------------------------------------------------------------------------------------------------


def test_a_plan_by_history_aware_ranks_pages_by_what_their_checksums_show(
    index: History, captures: dict[str, list[tuple[datetime, int]]]
) -> None:
    now = max(at for seen in captures.values() for at, _ in seen) + timedelta(days=3)
    plan = rc.plan(index, now=now, goal="content", policy="history-aware", budget=len(PAGES))
    place = {url: i for i, url in enumerate(plan.url.to_pylist())}
    ranks = [float(np.mean([place[url] for url in PAGES if PAGES[url] == rate])) for rate in RATES]
    assert ranks == sorted(ranks, reverse=True)
    assert "updates per day" in plan.reason[0]


@pytest.mark.parametrize(
    "policy", ["freshness-value", "lambda-crawl", "nutch-adaptive", "whole-sites", "last-observed"]
)
def test_other_policies_plan_by_checksums_as_well(index: History, policy: str) -> None:
    plan = rc.plan(index, goal="content", policy=policy, budget=4, roots="/~*/")
    assert len(plan.url) == 4


# -- evaluations ---------------------------------------------------------------------------------------------------------------


def test_an_update_is_a_checksum_that_differs_from_the_capture_before(
    index: History, captures: dict[str, list[tuple[datetime, int]]]
) -> None:
    found = captures_of(index, goal="content")
    urls = index.urls_of(index.timeline.pages).to_pylist()
    for i, url in enumerate(urls):
        numbers = [n for _, n in captures[url]]
        expected = [UNDEFINED, *(NEW if a != b else SAME for a, b in pairwise(numbers))]
        assert found.changed[found.start[i] : found.start[i + 1]].tolist() == expected


def test_the_evaluation_beats_random_and_names_what_was_compared(index: History) -> None:
    settings = UpdateSettings(windows=(12,), goal="content")
    best = {row["policy"]: row for row in evaluate_updates(index, settings).rows["best"] if row["average"] == "micro"}
    assert best["history-aware"]["f1"] > best["random"]["f1"] + 0.1
    shown = output(
        *("evaluate", "--method", "history-aware", "--every", "visits", "--windows", "12", "--goal", "content"),
        *("--rates", "law-of-large-numbers", "--history", folder_of(index)),
    )
    assert "another checksum, text or links than the capture before" in shown
    assert "Rates by law-of-large-numbers" in " ".join(shown.split())
    assert command("evaluate", "--method", "history-aware", "--history", folder_of(index)).code == 1


def test_pages_that_go_back_and_revisits_of_other_copies_are_compared_by_their_own_checksums(tmp_path: Path) -> None:
    url = "http://foo.edu/"
    digests = [
        "a",
        "b",
        "a",
        "a",
        "c",
        "c",
    ]  # back to the first copy, then two revisits of one that the index does not have
    lines = [
        cdx_line(url, START + timedelta(days=day), checksum(text), *(("warc/revisit", "-") if text == "c" else ()))
        for day, text in enumerate(digests)
    ]
    history = History.create(tmp_path / "history")
    import_files(history, [str(written_cdx(tmp_path / "x.cdx", lines))])
    assert captures_of(history, goal="content").changed.tolist() == [UNDEFINED, NEW, NEW, SAME, NEW, SAME]


def test_times_alone_show_no_change(tmp_path: Path) -> None:
    maps = '<http://foo.edu/>; rel="original",\n' + ",\n".join(
        f'<http://archive.example/web/202001{day:02}000000/http://foo.edu/>; rel="memento"; '
        f'datetime="{datetime(2020, 1, day):%a, %d %b %Y} 00:00:00 GMT"'
        for day in range(1, 9)
    )
    (tmp_path / "map.link").write_text(maps)
    history = History.create(tmp_path / "history")
    import_files(history, [str(tmp_path / "map.link")])
    assert history.timeline.n_visits == 8
    with pytest.raises(NotEnoughData, match="shows the content of a page, or a checksum of it"):
        past(history, goal="content")


@pytest.mark.skipif(not fixture_files(".cdx", ".cdxj"), reason=MISSING)
def test_real_indexes_are_evaluated_or_refused_with_a_sentence(tmp_path: Path) -> None:
    for i, path in enumerate(fixture_files(".cdx", ".cdxj", ".cdx.gz")):
        history = tmp_path / str(i)
        command("import", str(path), "--history", str(history))
        done = command("evaluate", "--method", "history-aware", "--every", "visits", "--goal", "content", "--windows", "1",
                       "--history", str(history), "--json")  # fmt: skip
        if done.code:
            assert done.stderr.startswith("error: "), path
        else:
            assert {"part", "level", "goal"} <= orjson.loads(done.stdout.splitlines()[0]).keys()
