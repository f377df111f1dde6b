"""What is known is carried: plans with and without a state, however visits arrive, are the same to the byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.core.snapshot import restored, taken
from recrawl.core.times import NEVER
from recrawl.errors import BadState
from recrawl.history import BatchBuilder, History, Timeline
from recrawl.history.states import States
from recrawl.plan.learning import Learning
from recrawl.plan.new_visits import NewVisits
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.policies import known, named
from recrawl.policies.base import Policy
from recrawl.testing import tiny_history
from recrawl.web.visit import Visit
from recrawl.world.notions import notion_from
from recrawl.world.pages import Need

START = datetime(2026, 1, 5, tzinfo=UTC)
NOW = START + timedelta(days=40)
SOON = datetime(2026, 3, 13, 1, tzinfo=UTC)  # shortly after the last visits of `tiny_history(12)`
POLICIES = [name for name, policy in known().items() if Need.FUTURE not in policy.needs]
QUICK = [name for name in POLICIES if not name.startswith("predicted")]  # those that train forests take seconds each


def made_up(seed: int) -> list[Visit]:
    """Visits by crawl or at random times, with pages that appear later, fail, are gone, unchanged or read in a new way."""
    chance = np.random.default_rng(seed)
    n_pages, n_days = int(chance.integers(3, 12)), int(chance.integers(6, 14))
    is_irregular, born = chance.random() < 0.5, chance.integers(0, n_days // 2 + 1, n_pages)
    visits = []
    for page in range(n_pages):
        n_links = 0
        for day in range(int(born[page]), n_days):
            if is_irregular and chance.random() < 0.4:
                continue
            hours = 24 * day + chance.random() * (24 if is_irregular else 0.3)
            n_links += int(chance.poisson(0.5 * page))
            url, kind = f"https://h{page % 3}.example/{page}", chance.random()
            at = START + timedelta(hours=float(hours))
            if kind < 0.2:
                visits.append(Visit(url=url, at=at, status=404 if kind < 0.05 else 500 if kind < 0.1 else 304))
                continue
            links = [f"https://h{page % 3}.example/n{page // 2}-{i}" for i in range(max(0, n_links - 8), n_links + 2)]
            # Words of some pages become known later, of some never.
            text = f"topic{n_links} " * 4 + f"site{page % 3} news{n_links // 3}" if page % 4 and day > page else None
            visits.append(Visit(url=url, at=at, links=links, text=text, baseline=True if kind > 0.97 else None))
    return sorted(visits, key=lambda visit: visit.at)


def pieces_of(visits: Sequence[Visit], seed: int, n: int = 5) -> list[Sequence[Visit]]:
    """Visits cut into pieces, in the order of time or (for odd seeds) shuffled."""
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(1, len(visits)), min(n - 1, len(visits) - 1)))
    pieces = [visits[low:high] for low, high in zip([0, *cuts], [*cuts, len(visits)], strict=True)]
    if seed % 2:
        chance.shuffle(pieces)
    return pieces


def planned(
    history: History,
    policy: str | Policy,
    *,
    carry: bool = False,
    relearn: bool = False,
    now: datetime = NOW,
    change: str = "any",
) -> str:
    """A plan as text, with every number in full."""
    options = PlanOptions(budget="3", policy=policy, relearn=relearn, change=change)
    return repr(Planner(history, options, now, carry=carry).plan().to_arrow().to_pydict())


def notes_of(history: History, policy: str | Policy = "average-count", **more: Any) -> list[str]:
    notes: list[str] = []
    Learning(
        history=history.as_of(NOW),
        policy=named(policy) if isinstance(policy, str) else policy,
        now=NOW,
        carry=True,
        on_note=notes.append,
        **more,
    ).learn()
    return [note for note in notes if not note.startswith("learnt from")]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("policy", QUICK)
def test_a_plan_is_the_same_however_visits_arrive_and_whatever_was_kept(policy: str, seed: int, tmp_path: Path) -> None:
    visits = made_up(seed)
    history, at_once = History.create(tmp_path / "pieces"), History.create(tmp_path / "at-once")
    for piece in pieces_of(visits, seed):
        history.add(piece)
        # In the order of time the last batch may still be going on at the moment of a plan.
        now = NOW if seed % 2 else piece[-1].at + timedelta(minutes=1)
        carried = planned(history, policy, carry=True, now=now)
        assert carried == planned(history, policy, relearn=True, now=now)
    at_once.add(visits)
    assert planned(history, policy, carry=True) == planned(at_once, policy)


@pytest.mark.parametrize("name", ["single-expert", "related-experts"])
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.more) for seed in (5, 8))])
def test_experts_that_learn_at_once_are_carried_with_the_words_that_they_read(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.policies.expert_panel.N_OF_BOTH", 1)
    settings: dict[str, Any] = {"n_train": 3} | ({"k": 2, "reselect": 2} if name == "related-experts" else {})
    history = History.create(tmp_path / "h")
    for piece in pieces_of(made_up(seed), 2 * seed):
        history.add(piece)
        now = piece[-1].at + timedelta(minutes=1)
        carried = planned(history, named(name, **settings), carry=True, now=now)
        assert carried == planned(history, named(name, **settings), relearn=True, now=now)
    assert "by its own words" in carried
    assert {kept.head["policy"] for kept in States(history.beside).checkpoints()} == {name}


@pytest.mark.parametrize("change", ["significant", "digest", "shingles:0.8"])
def test_what_a_notion_of_change_shows_is_carried(change: str, tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for piece in pieces_of(made_up(5), 6):
        history.add(piece)
        carried = planned(history, "lambda-crawl", carry=True, change=change)
        assert carried == planned(history, "lambda-crawl", relearn=True, change=change)
    assert len({planned(history, "lambda-crawl", change=each) for each in ("any", change)}) == 2
    assert len(States(history.beside).checkpoints()) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - set(QUICK)))
def test_so_it_is_for_policies_that_train_models(policy: str, tmp_path: Path) -> None:
    visits, history = made_up(4), History.create(tmp_path / "pieces")
    for piece in pieces_of(visits, 4):
        history.add(piece)
        assert planned(history, policy, carry=True) == planned(history, policy, relearn=True)


@pytest.mark.parametrize(
    "seed",
    [
        10,
        *(pytest.param(seed, marks=pytest.mark.more) for seed in (11, 12)),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(13, 22)),
    ],
)
def test_the_default_policy_learns_the_same_in_a_dozen_more_histories(seed: int, tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for piece in pieces_of(made_up(seed), seed, 7):
        history.add(piece)
        assert planned(history, "expected-harvest", carry=True) == planned(history, "expected-harvest", relearn=True)


@pytest.mark.parametrize("held", [pytest.param(1_000_000, marks=pytest.mark.more), 5])
@pytest.mark.parametrize("policy", ["expected-harvest", "bandit", "history-aware", "related-experts"])
def test_it_does_not_matter_how_many_visits_are_read_and_followed_at_once(
    policy: str, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.create(tmp_path / "h")
    pieces = list(pieces_of(made_up(13), 13, 3))
    history.add(pieces[0])
    first = planned(history, policy, relearn=True)
    for piece in pieces[1:]:
        history.add(piece)
    whole = planned(history, policy)
    monkeypatch.setattr("recrawl.plan.new_visits.SEGMENT", 7)
    monkeypatch.setattr("recrawl.plan.new_visits.HELD", held)
    monkeypatch.setattr("recrawl.plan.new_visits.PART", 11)
    again = History.create(tmp_path / "again")
    again.add(pieces[0])
    assert planned(again, policy, carry=True) == first
    for piece in pieces[1:]:
        again.add(piece)
    assert planned(again, policy, carry=True) == whole
    again.compact()
    assert planned(again, policy, carry=True) == whole


@pytest.mark.parametrize("policy", ["expected-harvest", "bandit", "history-aware", "average-count"])
@pytest.mark.parametrize("status", [503, 404, 304])
def test_a_night_that_shows_no_links_is_learnt_from(policy: str, status: int, tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    visits = made_up(13)
    history.add(visits)
    planned(history, policy, carry=True)
    history.add([replace(visits[0], at=NOW - timedelta(hours=30), status=status, links=None, text=None)])
    assert planned(history, policy, carry=True) == planned(history, policy, relearn=True)


def test_older_visits_that_come_while_segments_are_read_are_learnt_from_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.plan.new_visits.SEGMENT", 7)
    monkeypatch.setattr("recrawl.plan.new_visits.HELD", 5)
    visits = sorted(made_up(13), key=lambda visit: visit.at)
    history = History.create(tmp_path / "h")
    history.add(visits[20:])
    without = planned(history, "expected-harvest")
    read, left = NewVisits._timelines, [visits[:20]]

    def meanwhile(self: NewVisits, since: int, until: int) -> Iterator[Timeline]:
        if since != NEVER and left:
            History.open(tmp_path / "h").add(left.pop())
        return read(self, since, until)

    monkeypatch.setattr(NewVisits, "_timelines", meanwhile)
    assert planned(history, "expected-harvest", carry=True) == without
    assert not left
    with_them = planned(history, "expected-harvest", carry=True)
    assert with_them == planned(history, "expected-harvest", relearn=True) != without


def test_a_compaction_while_segments_are_read_starts_learning_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.plan.new_visits.SEGMENT", 7)
    monkeypatch.setattr("recrawl.plan.new_visits.HELD", 5)
    history = History.create(tmp_path / "h")
    history.add(made_up(13))
    whole = planned(history, "expected-harvest")
    read, left = NewVisits._timelines, [1]

    def meanwhile(self: NewVisits, since: int, until: int) -> Iterator[Timeline]:
        if since != NEVER and left:
            left.pop()
            History.open(tmp_path / "h").compact()
        return read(self, since, until)

    monkeypatch.setattr(NewVisits, "_timelines", meanwhile)
    assert planned(history, "expected-harvest", carry=True) == whole
    assert not left


def test_visits_without_links_are_read_in_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.create(tmp_path / "h")
    history.add([replace(visit, links=None, text_digest=str(visit.at.day // 3)) for visit in made_up(13)])
    options = PlanOptions(budget=3, goal="content")
    whole = Planner(history, options, NOW).plan().to_arrow()
    for name, value in (("SEGMENT", 7), ("HELD", 5), ("PART", 11)):
        monkeypatch.setattr(f"recrawl.plan.new_visits.{name}", value)
    assert Planner(history, options, NOW).plan().to_arrow() == whole


def test_words_that_are_added_to_old_visits_are_learnt_from(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    visits = [visit for visit in made_up(13) if visit.text]
    history.add([replace(visit, text=None, text_digest="x") for visit in visits])
    options = PlanOptions(budget=3, goal="content", change="significant")
    Planner(history, options, NOW, carry=True).plan()
    history.add(visits)
    history.compact()
    again = Planner(history, options, NOW, carry=True).plan().to_arrow()
    assert again == Planner(history, replace(options, relearn=True), NOW).plan().to_arrow()


@pytest.mark.parametrize("table", ["short_terms", "sketches"])
def test_what_a_second_import_tells_of_old_texts_is_learnt_from(table: str, tmp_path: Path) -> None:
    history, builder = History.create(tmp_path / "h"), BatchBuilder()
    for visit in made_up(13):
        builder.add(visit)
    batch = builder.take()
    history.append({name: rows for name, rows in batch.items() if name != table})
    planned(history, "lambda-crawl", carry=True, change="shingles:0.8")
    assert history.append(batch).added == 0
    notes = notes_of(history, "lambda-crawl", notion=notion_from("shingles:0.8"))
    assert any("more is known of what pages said" in note for note in notes)
    carried = planned(history, "lambda-crawl", carry=True, change="shingles:0.8")
    assert carried == planned(history, "lambda-crawl", relearn=True, change="shingles:0.8")


def test_a_plan_that_fails_waits_until_its_state_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.create(tmp_path / "h")
    history.add(made_up(13))
    planner = Planner(history, PlanOptions(budget=3), NOW, carry=True)

    def fail(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("recrawl.plan.planner.make_plan", fail)
    with pytest.raises(KeyboardInterrupt):
        planner.plan()
    assert not any(thread.name == "recrawl-keeping" for thread in threading.enumerate())
    assert len(States(history.beside).checkpoints()) == 1


def test_only_visits_since_the_last_plan_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny_history(12) as history:
        learning = Learning(history=history, policy=named("average-count"), now=SOON, carry=True)
        learning.learn()
        (kept,) = States(history.beside).checkpoints()
        assert kept.head["n_batches"] == 11  # the last one may still be going on, an hour later
        followed = []
        observe = type(learning.policy).observe
        monkeypatch.setattr(
            type(learning.policy), "observe", lambda self, visits: (followed.append(len(visits)), observe(self, visits))
        )
        Learning(history=history, policy=named("average-count"), now=SOON).learn()
    assert followed == [3]


def test_states_restored_in_a_new_process_go_on_equal(tmp_path: Path) -> None:
    policies = ("bandit", "expected-harvest", "history-aware", "windowed-clique", "lambda-crawl")
    visits = made_up(6)
    history = History.create(tmp_path / "h")
    history.add(visits[: len(visits) // 2])
    for policy in policies:
        planned(history, policy, carry=True)
    history.add(visits[len(visits) // 2 :])
    code = (
        "import json, sys; sys.path.insert(0, 'tests/plan'); from test_learning import *\n"
        f"print(json.dumps([planned(History.open({str(tmp_path / 'h')!r}), policy) for policy in {policies!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    for policy, plan in zip(policies, json.loads(done.stdout), strict=True):
        assert plan == planned(history, policy, relearn=True), policy


def test_late_visits_send_learning_back_and_a_line_says_so(tmp_path: Path) -> None:
    visits = made_up(2)
    history = History.create(tmp_path / "h")
    late = visits[4]
    history.add(visit for visit in visits if visit is not late)
    assert notes_of(history) == []
    history.add([late])
    (note,) = notes_of(history)
    assert note.startswith("visits were added to the past since the last plan: learning ")
    assert notes_of(history) == []


def test_learning_continues_from_a_checkpoint_before_late_visits(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    days = [
        [Visit(url=f"https://e.org/{p}", at=START + timedelta(days=d), links=[f"https://e.org/{p}-{d}"]) for p in "ab"]
        for d in range(30)
    ]
    for first in range(0, 30, 6):
        history.add(visit for day in days[first : first + 6] for visit in day)
        notes_of(history)
    assert len(States(history.beside).checkpoints()) > 2
    history.add([Visit(url="https://e.org/a", at=START + timedelta(days=27, hours=6), links=[])])
    (note,) = notes_of(history)
    assert "learning continues from 2026-01-" in note
    assert planned(history, "average-count", carry=True) == planned(history, "average-count", relearn=True)


def test_another_pace_of_the_crawl_is_said_and_everything_learnt_again(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(
        Visit(url=f"https://e.org/{p}", at=START + timedelta(days=d), links=[]) for d in range(4) for p in "abc"
    )
    notes_of(history)
    chance = np.random.default_rng(0)
    hours = 24 * 5 + np.sort(chance.random(600)) * 400
    history.add(
        Visit(url=f"https://e.org/{i % 30}", at=START + timedelta(hours=float(hour)), links=[])
        for i, hour in enumerate(hours)
    )
    (note,) = notes_of(history)
    assert note.startswith("learning again from the beginning, since visits now come in batches of")


@pytest.mark.parametrize("at_once", [7, 8_000_000])
def test_a_compaction_keeps_states_valid(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.past.AT_ONCE", at_once)
    history = History.create(tmp_path / "h")
    visits, cut = made_up(8), START + timedelta(days=5)
    for piece in pieces_of([visit for visit in visits if visit.at < cut], 8):
        history.add(piece)
    notes_of(history)
    history.compact()
    assert notes_of(history) == []
    history.add(visit for visit in visits if visit.at >= cut)
    assert notes_of(history) == []
    assert planned(history, "average-count", carry=True) == planned(history, "average-count", relearn=True)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "not ours", "piece"])
def test_a_damaged_or_foreign_state_is_ignored(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.states.SMALL", 64)
    history = History.create(tmp_path / "h")
    history.add(made_up(3))
    whole = planned(history, "average-count", carry=True)
    kind = "*.lz4" if damage == "piece" else "*.state"
    for path in (tmp_path / "h" / "states").glob(kind):
        data = path.read_bytes()
        path.write_bytes(
            {"cut": data[:-9], "changed": data[:40] + b"?" + data[41:], "empty": b"", "piece": b""}.get(damage, b"{}")
        )
    assert planned(history, "average-count", carry=True) == whole


def test_a_state_of_another_version_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny_history(8) as history:
        Learning(history=history, policy=named("average-count"), now=SOON, carry=True).learn()
        assert len(States(history.beside).checkpoints()) == 1
        monkeypatch.setattr("recrawl.history.states.FORMAT", 99)
        assert States(history.beside).checkpoints() == []


def test_what_cannot_be_written_does_not_stop_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    history = History.create(tmp_path / "h")
    history.add(made_up(3))
    monkeypatch.setattr("recrawl.core.files.write_bytes", full)
    (note,) = notes_of(history)
    assert note.startswith("what was learnt could not be kept, so the next plan learns it again: ")
    assert "No space left on device" in note


def test_two_planners_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    history = History.create(tmp_path / "h")
    visits = made_up(9)
    history.add(visits[: len(visits) // 2])
    with ThreadPoolExecutor(4) as threads:
        plans = list(
            threads.map(lambda _: planned(History.open(tmp_path / "h"), "average-count", carry=True), range(8))
        )
    assert set(plans) == {planned(history, "average-count", relearn=True)}


@pytest.mark.parametrize("wait", [0.11, *(pytest.param(each, marks=pytest.mark.more) for each in (0.05, 0.2))])
def test_kill_while_a_state_is_written_loses_nothing(wait: float, tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    visits = made_up(11)
    history.add(visits[: len(visits) // 2])
    code = (
        "import sys; sys.path.insert(0, 'tests/plan'); from test_learning import *\n"
        f"history = History.open({str(tmp_path / 'h')!r})\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    planned(history, 'average-count', carry=True)\n"
        "    States(history.beside).forget(States(history.beside).checkpoints()[0])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(wait)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert planned(history, "average-count", carry=True) == planned(history, "average-count", relearn=True)


def test_a_policy_that_cannot_be_kept_is_learnt_again_and_a_line_says_so(tmp_path: Path) -> None:
    class Odd(type(named("average-count"))):  # type: ignore[misc]
        name = "odd"

        def observe(self, visits: Any) -> None:
            super().observe(visits)
            self.open_ = (i for i in range(3))

    notes: list[str] = []
    with tiny_history(8) as history:
        Learning(history=history, policy=Odd(), now=SOON, carry=True, on_note=notes.append).learn()
    assert any("could not be kept" in note and "generator" in note for note in notes)


def test_a_snapshot_restores_no_class_that_is_not_ours() -> None:
    tree, arrays = taken([1.5, float("inf"), None, {"a": (1, 2)}, np.float32(2), START, {3, 4}])
    assert restored(tree, arrays) == [1.5, float("inf"), None, {"a": (1, 2)}, np.float32(2), START, {3, 4}]
    for tree in ({"object": "os:environ", "has": {}}, {"object": "subprocess:Popen", "has": {}}, {"surprise": 1}):
        with pytest.raises(BadState):
            restored(tree, [])


def test_a_read_only_question_keeps_nothing() -> None:
    with tiny_history(8) as history:
        planned(history, "average-count", now=datetime(2026, 4, 1, tzinfo=UTC))
        assert States(history.beside).checkpoints() == []


def test_what_older_code_of_a_plug_in_has_learnt_is_not_used(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    text = (
        "from recrawl.policies import AverageCount\n\nclass Mine(AverageCount):\n    name = 'mine'\n    sign = {sign}\n"
    )
    text += "    def observe(self, visits):\n        super().observe(visits)\n        self.sum_ *= self.sign\n"
    history = History.create(tmp_path / "h")
    history.add(made_up(2))
    code = (
        "import sys; sys.path.insert(0, 'tests/plan'); from test_learning import *; "
        f"print(planned(History.open({str(tmp_path / 'h')!r}), {str(mine)!r} + ':Mine', carry=True, relearn=len(sys.argv) > 1))"
    )

    def run(sign: int, *more: str) -> str:
        mine.write_text(text.format(sign=sign))
        done = subprocess.run(
            [sys.executable, "-c", code, *more], capture_output=True, text=True, cwd=Path(__file__).parents[2]
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    older, newer = run(1), run(-1)
    assert older != newer
    assert newer == run(-1, "relearn")


@pytest.mark.parametrize("odd", [2**70, {1: [2**70]}, np.zeros(2, [("a", float)]), Counter("aab")])
def test_whatever_a_policy_holds_keeping_it_never_stops_a_plan(odd: Any) -> None:
    class Holder(type(named("average-count"))):  # type: ignore[misc]
        name = "holder"

        def start(self, pages: Any) -> None:
            super().start(pages)
            self.odd_ = odd

    notes: list[str] = []
    with tiny_history(8) as history:
        Learning(history=history, policy=Holder(), now=SOON, carry=True, on_note=notes.append).learn()
    assert any("could not be kept" in note for note in notes)
