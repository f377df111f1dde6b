"""Replays know how much pages matter as it was known in each cycle, and weigh what is found beside counting it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import recrawl as rc
from recrawl.cli import app
from recrawl.core.arrays import Floats
from recrawl.history import History
from recrawl.policies import Budget, named
from recrawl.policies.choice import Choice
from recrawl.policies.round_robin import RoundRobin
from recrawl.replay.run import replay
from recrawl.replay.summary import summarise
from recrawl.replay.tune import tune
from recrawl.testing import tiny_world
from recrawl.web.visit import Visit
from recrawl.world.link_weights import link_weights
from recrawl.world.pages import Pages
from recrawl.world.recorded import World
from recrawl.world.recording import record

START = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = ("round-robin", "average-count", "expected-harvest", "oracle", "freshness-value")
DAYS, PAGES = 10, 6


class Watching(RoundRobin):
    """Round robin that remembers what it heard of importance."""

    name: ClassVar[str] = "watching"

    def __init__(self) -> None:
        self.heard: list[tuple[datetime, Floats | None]] = []

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        self.heard.append((now, None if pages.importance is None else pages.importance.copy()))
        return super().choose(pages, budget, now)


def made_up(seed: int) -> list[Visit]:
    """Daily visits; importances change, also with visits that fail and with the first of two visits of a day."""
    chance = np.random.default_rng(seed)
    visits = []
    for day in range(DAYS):
        for page in range(PAGES):
            if page == PAGES - 1 and day < 4:
                continue  # it becomes known later
            links = [f"https://e.org/s{page // 2}-{i}" for i in range(day * page)] + [f"https://e.org/{page}-{day}"]
            for part in range(1 + (page == 0)):
                weight = float(chance.choice([0.0, 0.5, 2.0, 7.0])) if chance.random() < 0.4 else None
                status = 500 if chance.random() < 0.15 and day else 200
                at = START + timedelta(days=day, minutes=page + 10 * part)
                visits.append(Visit(url=f"https://e.org/{page}", at=at, status=status, links=links, importance=weight))
    return visits


def stated_before(visits: list[Visit], url: str, moment: datetime) -> float:
    """The last importance stated up to a moment, in plain Python."""
    said = [(visit.at, visit.importance) for visit in visits if visit.url == url and visit.importance is not None]
    return float(max(((at, n) for at, n in said if at <= moment), default=(moment, 1.0))[1] or 0.0)


def history_of(folder: Path, visits: list[Visit]) -> History:
    history = History.create(folder)
    history.add(visits)
    return history


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_policies_know_what_was_stated_before_the_cycle_and_nothing_later(seed: int, tmp_path: Path) -> None:
    visits = made_up(seed)
    world = record(history_of(tmp_path, visits), "1d")
    policy = Watching()
    list(replay(world, policy, Budget(2)))
    assert len(policy.heard) == world.n_cycles
    ends = [datetime.fromtimestamp(int(us) / 1e6, UTC) for us in world.time]
    urls = world.url.to_pylist()
    for before, (now, heard) in zip(ends, policy.heard, strict=False):
        assert before < now
        assert heard is not None
        assert heard.tolist() == [stated_before(visits, url, before) for url in urls[: len(heard)]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_weighted_numbers_are_those_of_a_plain_version(name: str, seed: int, tmp_path: Path) -> None:
    visits = made_up(seed)
    world = record(history_of(tmp_path, visits), "1d")
    weights = plain_link_weights(world)
    policy = named(name)
    seen = Recorded(policy)
    rows = list(replay(world, policy, Budget(2)))
    found, copies = set(np.flatnonzero(world.first_shown == 0).tolist()), {}
    shows = plain_shows(world)
    for page, entry in shows[0].items():
        copies[page] = world.version[entry]
    for cycle, (row, chosen) in enumerate(zip(rows, seen.chosen(world, Budget(2)), strict=True), 1):
        fresh: set[int] = set()
        for page in chosen:
            entry = shows[cycle][page]
            if world.shows[entry] >= 0:
                fresh |= set(world.sets[world.shows[entry]].tolist()) - found
                copies[page] = world.version[entry]
        found |= fresh
        assert row["found"] == len(fresh)
        assert row["found_weight"] == pytest.approx(sum(weights[link] for link in fresh))
        by_wait = dict(row["after_weight"])
        for waited in {cycle - int(world.first_shown[link]) for link in fresh}:
            late = sum(weights[link] for link in fresh if cycle - world.first_shown[link] == waited)
            assert by_wait.pop(waited) == pytest.approx(late)
        assert not by_wait
        published = [link for link in range(len(world.link)) if world.first_shown[link] == cycle]
        assert row["published_weight"] == pytest.approx(sum(weights[link] for link in published))
        known = [page for page in range(world.n_pages) if world.first_cycle[page] <= cycle]
        end = datetime.fromtimestamp(int(world.time[cycle]) / 1e6, UTC)
        matters = {page: stated_before(visits, world.url[page].as_py(), end) for page in known}
        current = [page for page in known if page in copies and copies[page] == newest_version(world, page, cycle)]
        assert row["current_weight"] == pytest.approx(sum(matters[p] for p in current) / (sum(matters.values()) or 1.0))


class Recorded:
    """The pages that a policy chooses, cycle by cycle, found by replaying it again."""

    def __init__(self, policy: object) -> None:
        self.name = policy.name  # type: ignore[attr-defined]

    def chosen(self, world: World, budget: Budget) -> list[list[int]]:
        from recrawl.core.times import moment
        from recrawl.policies.important_first import choose_important
        from recrawl.replay.run import known_only, meet_pages
        from recrawl.world.crawler import Crawler

        policy = named(self.name)
        crawler = Crawler(world, policy.needs)
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
        made = []
        for cycle in range(1, world.n_cycles + 1):
            meet_pages(crawler, policy)
            now = moment(int(world.time[cycle]))
            choice = choose_important(policy, crawler.pages, known_only(budget, crawler), now)
            made.append(choice.page.tolist())
            policy.observe(crawler.visit(choice.page, choice.memo).visits)
        return made


def plain_link_weights(world: World) -> list[float]:
    assert world.importance is not None
    weights = [0.0] * len(world.link)
    for entry, number in enumerate(world.shows.tolist()):
        for link in world.sets[number].tolist() if number >= 0 else ():
            weights[link] = max(weights[link], float(world.importance[entry]))
    return weights


def plain_shows(world: World) -> list[dict[int, int]]:
    """The record that counts for each page in each cycle: that of the cycle, else the newest that was no failure."""
    newest: dict[int, int] = {}
    shown = []
    for cycle in range(len(world.time)):
        here = {int(world.row[e]): e for e in range(len(world.row)) if world.cycle[e] == cycle}
        shown.append({**newest, **here})
        newest |= {page: e for page, e in here.items() if world.shows[e] != -3}
    return shown


def newest_version(world: World, page: int, cycle: int) -> int:
    entries = [
        e for e in range(len(world.row)) if world.row[e] == page and world.cycle[e] <= cycle and world.version[e] >= 0
    ]
    return int(world.version[entries[-1]]) if entries else -1


def test_link_weights_are_the_greatest_of_the_pages_that_show_a_link(tmp_path: Path) -> None:
    world = record(history_of(tmp_path, made_up(1)), "1d")
    weights = link_weights(world)
    assert weights is not None
    assert weights.tolist() == plain_link_weights(world)
    counts = np.arange(len(world.link)) % 2 == 0
    some = link_weights(world.relevant(counts))
    assert some is not None
    assert some.tolist() == weights[counts].tolist()


def test_worlds_keep_it_when_they_are_saved_cut_and_reordered(tmp_path: Path) -> None:
    world = record(history_of(tmp_path / "h", made_up(2)), "1d")
    (tmp_path / "w").mkdir()
    world.save(tmp_path / "w")
    again = World.load(tmp_path / "w")
    assert world.importance is not None
    assert again.importance is not None
    np.testing.assert_array_equal(again.importance, world.importance)
    cut = world.until(3)
    assert cut.importance is not None
    assert len(cut.importance) == len(cut.row)
    order = np.arange(world.n_pages)[::-1]
    turned = world.reordered(order)
    assert turned.importance is not None
    by_page = {(world.page[r], c): w for r, c, w in zip(world.row, world.cycle, world.importance, strict=True)}
    assert {
        (turned.page[r], c): w for r, c, w in zip(turned.row, turned.cycle, turned.importance, strict=True)
    } == by_page


def test_without_importances_rows_and_records_are_as_ever(tmp_path: Path) -> None:
    visits = made_up(1)
    plain = history_of(tmp_path / "plain", [replace(visit, importance=None) for visit in visits])
    ones = history_of(tmp_path / "ones", [replace(visit, importance=1.0) for visit in visits])
    some = history_of(tmp_path / "some", visits)
    results = [rc.replay(history, list(NAMES), budget=2, every="1d", workers=1) for history in (plain, ones, some)]
    first, second, third = (json.dumps(list(result.cycle_records())) for result in results)
    assert first == second != third
    assert "weight" not in first
    assert not any("weighted" in key for row in results[0].records() for key in row)
    assert "weighted_coverage" not in results[1].to_arrow().column_names
    weighted = results[2].records()
    assert all(0 <= row["weighted_coverage"] <= 1 and 0 <= row["weighted_freshness"] <= 1 for row in weighted)
    assert results[2].to_arrow()["weighted_coverage"].null_count == 0


def test_weighing_pays_where_pages_differ() -> None:
    """Two pages gain a link per day, and one of them matters ten times as much: it is visited, and its links count."""
    shows = [[{10 + t}, {100 + 2 * t, 101 + 2 * t}] for t in range(12)]
    importance = [[10.0, 1.0]] * 12
    plain = tiny_world(shows)
    weighed = tiny_world(shows, importance=importance)
    without, with_it = (list(replay(world, named("average-count"), Budget(1))) for world in (plain, weighed))
    assert sum(row["found"] for row in without) > sum(row["found"] for row in with_it)
    share = sum(row["found_weight"] for row in with_it) / sum(row["published_weight"] for row in with_it)
    assert share > 0.7


def test_people_see_weighted_numbers_where_there_are_any(tmp_path: Path) -> None:
    history_of(tmp_path / "some", made_up(1))
    history_of(tmp_path / "plain", [replace(visit, importance=None) for visit in made_up(1)])
    run = CliRunner().invoke
    shown = {}
    for name in ("some", "plain"):
        options = [
            "--history",
            str(tmp_path / name),
            "--budget",
            "2",
            "--every",
            "1d",
            "--policies",
            "round-robin,average-count",
        ]
        shown[name] = run(app, ["replay", *options], env={"COLUMNS": "200"}).output
        content = run(app, ["replay", *options, "--goal", "content"], env={"COLUMNS": "200"}).output
        assert ("fresh, weighted" in content) == (name == "some")
        page = tmp_path / f"{name}.html"
        assert run(app, ["replay", *options, "--out", str(page)]).exit_code == 0
        assert ("weighted" in page.read_text()) == (name == "some")
    assert "weighted: coverage with every link counted by the importance" in " ".join(shown["some"].split())
    assert "weighted" not in shown["plain"]


def test_tune_goes_by_weighted_coverage_and_so_do_its_margins() -> None:
    """One page matters and gains a link per cycle; three others gain more, and by plain coverage they are the better ones."""
    shows = [[{1_000 * p + i for i in range((3 * p or 1) * (t + 1))} for p in range(4)] for t in range(30)]
    importance = [[50.0, 1.0, 1.0, 1.0]] * 30
    hours = range(0, 24 * 30, 24)
    candidates = ("average-count", "round-robin")
    plain = tune(tiny_world(shows, hours=hours), Budget(1), candidates)
    weighed = tune(tiny_world(shows, hours=hours, importance=importance), Budget(1), candidates)
    assert (plain.is_weighted, weighed.is_weighted) == (False, True)
    assert "by importance" in repr(weighed)
    assert "by importance" not in repr(plain)
    judged = {run.policy: summarise(run) for run in weighed.runs}
    best = weighed.runs[0].policy
    assert judged[best].weighted_coverage == max(each.weighted_coverage or 0.0 for each in judged.values())
    margin = weighed.against_next
    assert margin is not None
    gap = (judged["average-count"].weighted_coverage or 0.0) - (judged["round-robin"].weighted_coverage or 0.0)
    assert margin.difference == pytest.approx(gap if margin.policy == "average-count" else -gap)
    assert weighed.record("auto")["coverage"] == {name: each.weighted_coverage for name, each in judged.items()}
    assert "weighted_coverage" in weighed.to_arrow().column_names
    assert "weighted_coverage" not in plain.to_arrow().column_names
