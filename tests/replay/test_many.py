import json
import os
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from made_visits import laid_out
from recrawl.core.times import moment
from recrawl.errors import ReplayError
from recrawl.history import History
from recrawl.policies import Bandit, Budget, Oracle, Policy, RoundRobin, WindowedOutdegree
from recrawl.policies.choice import Choice
from recrawl.replay import Replayed, past, replay, replay_many
from recrawl.replay.runs import fingerprint, settings
from recrawl.web.visit import Visit
from recrawl.world.pages import Pages
from recrawl.world.recorded import World
from replay.odd_policies import Dying, Slow

POLICIES = (RoundRobin(), Bandit(window=12, bootstrap=3), Oracle())
BUDGETS = (Budget(6), Budget(15, per_host=2))


def seen(runs: list[Replayed]) -> list[Any]:
    return [(run.policy, run.budget, json.dumps(run.timeless_rows())) for run in runs]


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    found: World = made.world
    return found


@pytest.fixture(scope="module")
def alone(world: World) -> list[Replayed]:
    return replay_many(world, POLICIES, BUDGETS, workers=1)


def test_every_policy_is_run_with_every_budget_in_order(world: World, alone: list[Replayed]) -> None:
    expected = [(policy.name, budget.pages) for budget in BUDGETS for policy in POLICIES]
    assert [(run.policy, run.budget) for run in alone] == expected
    rows = list(replay(world, Bandit(window=12, bootstrap=3), BUDGETS[1]))
    assert [{**row, "seconds": 0} for row in rows] == [{**row, "seconds": 0} for row in alone[4].rows]
    assert alone[1].settings["window"] == 12


@pytest.mark.slow
def test_the_rows_do_not_depend_on_the_number_of_workers(world: World, alone: list[Replayed], tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    shared = replay_many(
        world, POLICIES, BUDGETS, workers=2, folder=tmp_path / "two", on_cycles=lambda *n: progress.append(n)
    )
    assert seen(shared) == seen(alone)
    assert progress[-1] == (6 * world.n_cycles, 6 * world.n_cycles)
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    replay_many(world, POLICIES, BUDGETS, workers=1, folder=tmp_path / "one")
    files = [sorted((tmp_path / name).iterdir()) for name in ("one", "two")]
    assert [file.name for file in files[0]] == [file.name for file in files[1]]
    for one, two in zip(*files, strict=True):  # all but the last line, which has how long it took
        assert one.read_bytes().splitlines()[:-1] == two.read_bytes().splitlines()[:-1]


class Counted(RoundRobin):
    """Counts how often it was started."""

    name: ClassVar[str] = "counted"
    starts: ClassVar[int] = 0

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def start(self, pages: Pages) -> None:
        type(self).starts += 1


def starts_of(world: World, folder: Path, policy: Policy | None = None, budget: Budget = BUDGETS[0]) -> int:
    """How many runs were not found in the folder."""
    before = Counted.starts
    replay_many(world, [policy or Counted()], [budget], workers=1, folder=folder)
    return Counted.starts - before


def test_a_finished_run_is_not_run_again(world: World, tmp_path: Path) -> None:
    assert starts_of(world, tmp_path) == 1
    assert starts_of(world, tmp_path) == 0
    calls: list[int] = []
    again = replay_many(
        world, [Counted()], BUDGETS[:1], workers=1, folder=tmp_path, on_cycles=lambda done, total: calls.append(done)
    )
    assert calls == []  # nothing was left to do
    fresh = replay_many(world, [Counted()], BUDGETS[:1], workers=1)
    assert seen(again) == seen(fresh)
    assert [sorted(row) for row in again[0].rows] == [sorted(row) for row in fresh[0].rows]


def test_other_settings_budgets_and_histories_are_not_mistaken_for_it(world: World, tmp_path: Path) -> None:
    assert starts_of(world, tmp_path) == 1
    assert starts_of(world, tmp_path, Counted(step=2)) == 1
    assert starts_of(world, tmp_path, budget=Budget(6, per_host=1)) == 1
    assert starts_of(world, tmp_path, budget=Budget(6, barred=np.zeros(world.n_pages, np.int8))) == 1
    later = replace(world, time=world.time + 1)
    assert starts_of(later, tmp_path) == 1
    assert starts_of(world.until(world.n_cycles - 1), tmp_path) == 1
    assert starts_of(world, tmp_path) == 0
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.parametrize("harm", ["cut", "empty", "changed", "other head", "no seconds", "binary"])
def test_an_unfinished_or_damaged_run_is_run_again(world: World, tmp_path: Path, harm: str) -> None:
    assert starts_of(world, tmp_path) == 1
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    harmed = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "changed": whole.replace(b'"found":', b'"found":1', 1),
        "other head": lines[0].replace(b"counted", b"curated") + b"".join(lines[1:]),
        "no seconds": b"".join(lines[:-1]) + b"{}\n",
        "binary": os.urandom(300),
    }[harm]
    assert harmed != whole
    file.write_bytes(harmed)
    assert starts_of(world, tmp_path) == 1
    assert file.read_bytes().splitlines()[:-1] == whole.splitlines()[:-1]
    assert starts_of(world, tmp_path) == 0


def test_a_draft_that_was_left_behind_is_no_run(world: World, tmp_path: Path) -> None:
    assert starts_of(world, tmp_path) == 1
    (file,) = tmp_path.iterdir()
    file.rename(file.with_name(f".{file.name}.123.draft"))
    assert starts_of(world, tmp_path) == 1


def test_when_a_worker_dies_the_error_names_its_policy(world: World, tmp_path: Path) -> None:
    message = r"'dying' with a budget of 6 was killed, perhaps because memory ran out\..*are kept in.*--workers 1"
    with pytest.raises(ReplayError, match=message):
        replay_many(world, [Slow(), Dying()], BUDGETS[:1], workers=2, folder=tmp_path)
    assert not active_children()


def test_an_interrupt_stops_the_workers_at_once_and_keeps_what_is_finished(world: World, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if list(tmp_path.glob("round-robin-6-*.jsonl")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay_many(world, [RoundRobin(), Slow()], BUDGETS[:1], workers=2, folder=tmp_path, on_cycles=interrupt)
    assert not active_children()
    assert [file.name.split("-")[0] for file in tmp_path.iterdir()] == ["round"]  # the slow one was not waited for


def test_a_policy_that_fails_fails_as_itself(world: World) -> None:
    class Failing(RoundRobin):
        name: ClassVar[str] = "failing"

        def choose(self, pages: Pages, budget: Budget, now: Any) -> Choice:
            raise ZeroDivisionError("no such thing")

    with pytest.raises(ZeroDivisionError, match="no such thing"):
        replay_many(world, [Failing()], BUDGETS[:1], workers=1)


def test_settings_are_what_the_constructor_remembered() -> None:
    assert settings(WindowedOutdegree(window=7)) == {"begin": "sweep", "window": 7}
    used = Bandit()
    used.start(Pages.unseen(np.zeros(2, np.int64), np.zeros(2, np.int64)))
    assert settings(used) == settings(Bandit())


def test_a_saved_world_is_the_same_world(world: World, tmp_path: Path) -> None:
    world.save(tmp_path)
    assert fingerprint(World.load(tmp_path)) == fingerprint(world)
    assert fingerprint(replace(world, host=world.host + 1)) != fingerprint(world)


def test_the_past_from_a_moment_on_knows_nothing_of_before(tmp_path: Path) -> None:
    from making import imported, jsonl

    def visit(hour: int, page: str, links: str) -> dict[str, Any]:
        shown = [f"https://e.org/{link}" for link in links]
        return {"url": f"https://e.org/{page}", "at": f"2026-01-01T{hour:02d}:00:00Z", "links": shown}

    visits = (
        (1, "x", "ab"),
        (1, "y", "c"),
        (2, "x", "bd"),
        (2, "y", "c"),
        (3, "x", "ad"),
        (3, "y", "ce"),
        (4, "x", "af"),
    )
    history = imported(tmp_path, jsonl(visit(*each) for each in visits))[1]
    assert past(history).discoverable == 3  # d, e, f
    later = past(history, since=moment(1_767_232_800_000_000))  # 02:00
    assert (later.n_cycles, later.discoverable) == (2, 3)  # a was gone at 2 and is new again at 3; e; f


def test_a_past_from_a_moment_on_is_ordered_by_page_however_it_was_imported(tmp_path: Path) -> None:
    def visit(hour: int, page: str, **more: object) -> Visit:
        return Visit(url=f"https://e.org/{page}", at=moment(1_767_225_600_000_000 + hour * 3_600_000_000), **more)  # type: ignore[arg-type]

    history = History.create(tmp_path / "history")
    for hour in range(4):  # one import per hour: on disk the visits to a page are not next to each other
        links = [f"https://e.org/{hour}"]
        more = {"status": 304, "links": None} if hour == 2 else {"links": links}
        history.add([visit(hour, page, **more) for page in "xyz"])
    world = past(history, since=moment(1_767_225_600_000_000 + 3_600_000_000))
    shows = laid_out(world, world.shows)
    assert shows[1].tolist() == shows[0].tolist()  # a 304 shows what was there before
    assert (world.n_pages, world.discoverable) == (3, 1)
