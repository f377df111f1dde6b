"""Plans made bucket by bucket are those of one machine, to the byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recrawl.core.places import place
from recrawl.engine import tasks
from recrawl.engine.plan import EnginePlanner, check_parted
from recrawl.engine.scratch import scratch_in
from recrawl.errors import EngineError, NotEnoughData
from recrawl.history import History
from recrawl.plan.options import PlanOptions
from recrawl.plan.plan import Plan
from recrawl.plan.planner import Planner
from recrawl.policies import known
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
PARTED = sorted(name for name, policy in known().items() if policy.parted)
Function = Callable[[bytes], bytes]


def made_up(seed: int, with_importance: bool = False, most_days: int = 7) -> list[Visit]:
    """Sites whose pages share links with each other and with other sites, visited by crawl or at any time, some at one moment."""
    chance = np.random.default_rng(seed)
    n_pages, n_days = int(chance.integers(8, 40)), int(chance.integers(4, most_days))
    is_irregular = chance.random() < 0.6
    born = np.where(chance.random(n_pages) < 0.6, 0, chance.integers(0, n_days, n_pages))
    rate = chance.gamma(0.5, 4.0, n_pages)
    visits = []
    shown: list[set[str]] = [set() for _ in range(n_pages)]
    for day in range(n_days):
        everywhere = [f"https://shared.example/{day}/{i}" for i in range(4)]
        for page in range(n_pages):
            if day < born[page] or (is_irregular and chance.random() < 0.3):
                continue
            site = page % 7
            for hour in sorted(chance.random(int(chance.integers(1, 4)) if is_irregular else 1) * 20):
                moment = START + timedelta(days=day, hours=float(np.round(hour) if chance.random() < 0.5 else hour))
                fresh = {f"https://s{site}.example/{day}/{i}" for i in range(int(chance.poisson(rate[page])))}
                shown[page] |= fresh | {link for link in everywhere if chance.random() < 0.15}
                shown[page] -= {link for link in sorted(shown[page]) if chance.random() < 0.1}
                kind = chance.random()
                if visits and any(v.url == f"https://s{site}.example/p{page}" and v.at == moment for v in visits[-9:]):
                    continue
                visits.append(
                    Visit(
                        url=f"https://s{site}.example/p{page}",
                        at=moment,
                        status=503 if kind < 0.05 else 404 if kind < 0.08 else 304 if kind < 0.15 else 200,
                        links=sorted(shown[page]) if kind >= 0.15 else None,
                        baseline=bool(kind > 0.97),
                        importance=float(1 + page % 3) if with_importance and page % 2 else None,
                    )
                )
    return visits


def history_of(folder: Path, visits: Sequence[Visit]) -> History:
    history = History.create(folder)
    history.add(visits)
    return history


def one_by_one(function: Function, given: Sequence[bytes]) -> Iterator[bytes]:
    return map(function, given)


def in_buckets(history: History, options: PlanOptions, now: datetime, n: int, run: Any = one_by_one) -> Plan:
    planner = Planner(history, options, now)
    assert isinstance(history.folder, Path)
    with scratch_in(history.folder / "engine") as scratch:
        work = place(scratch.folder)
        engine = EnginePlanner(planner=planner, policy=planner.chosen_policy(), map=run, n_buckets=n, work=work)
        try:
            return engine.plan()
        finally:
            tasks.release(engine.job)


def content(plan: Plan) -> dict[str, Any]:
    """All of a plan, arrays as bytes."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.dtype.str, value.tobytes()
        return value.to_pylist() if isinstance(value, pa.Array) else value

    fields = (each.name for each in dataclasses.fields(plan) if each.name != "request")
    return {name: plain(getattr(plan, name)) for name in fields}


@pytest.mark.parametrize("policy", PARTED)
@pytest.mark.parametrize("seed", range(2))
def test_plans_made_in_buckets_are_those_of_one_machine(policy: str, seed: int, tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", made_up(seed, with_importance=seed == 1))
    now = START + timedelta(days=9)
    for n, options in ((3, {"budget": 9, "per_host": 2}), (5, {"budget": "40%", "per_site": 3})):
        asked = PlanOptions(policy=policy, **options)
        assert content(in_buckets(history, asked, now, n)) == content(Planner(history, asked, now).plan())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 60))
def test_plans_made_in_buckets_are_those_of_one_machine_for_more_histories(seed: int, tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", made_up(seed, with_importance=seed % 3 == 0, most_days=16))
    now, chance = START + timedelta(days=17), np.random.default_rng(seed)
    for policy in PARTED:
        asked = PlanOptions(
            policy=policy,
            budget=int(chance.integers(1, 30)),
            per_host=int(chance.integers(1, 6)) if chance.random() < 0.5 else None,
            every=str(chance.choice(["auto", "1d", "6h"])),
            min_gap="12h" if chance.random() < 0.3 else None,
        )
        n = int(chance.integers(1, 8))
        assert content(in_buckets(history, asked, now, n)) == content(Planner(history, asked, now).plan()), policy


def test_a_worker_that_loses_its_buckets_changes_nothing(tmp_path: Path) -> None:
    few = [visit for visit in made_up(5) if visit.at < START + timedelta(days=3)]
    history, chance = history_of(tmp_path / "h", few), np.random.default_rng(0)
    asked, now = PlanOptions(policy="expected-harvest", budget=6), START + timedelta(days=9)
    n_lost = 0

    def forgetful(function: Function, given: Sequence[bytes]) -> Iterator[bytes]:
        nonlocal n_lost
        if chance.random() < 0.2:
            n_lost += len(tasks._held)
            tasks._held.clear()
        return map(function, given)

    assert content(in_buckets(history, asked, now, 3, forgetful)) == content(Planner(history, asked, now).plan())
    assert n_lost > 5


def test_buckets_that_do_not_fit_the_memory_are_put_aside_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [visit for visit in made_up(6, True) if visit.at.hour < 6 and visit.at < START + timedelta(days=3)]
    history, now = history_of(tmp_path / "h", few), START + timedelta(days=5)
    n_put_aside, put_aside = 0, tasks._Held.put_aside

    def counted(held: Any) -> None:
        nonlocal n_put_aside
        n_put_aside += 1
        put_aside(held)

    monkeypatch.setattr(tasks, "HELD_BYTES", 0)
    monkeypatch.setattr(tasks._Held, "put_aside", counted)
    for policy in ("expected-harvest", "lambda-crawl"):
        asked = PlanOptions(policy=policy, budget=6)
        expected = content(Planner(history, asked, now).plan())
        assert content(in_buckets(history, asked, now, 2)) == expected
    assert n_put_aside > 50
    assert not list((tmp_path / "h" / "engine").iterdir())  # what was put aside is removed in the end


def test_what_cannot_be_planned_in_buckets_is_refused_with_the_reason(tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", made_up(0))

    def refused(text: str, **options: Any) -> None:
        planner = Planner(history, PlanOptions(**options))
        with pytest.raises(EngineError, match=text):
            check_parted(planner.chosen_policy(), planner)

    refused("bandit cannot be planned on an engine.*round-robin", policy="bandit")
    refused("--roots", policy="round-robin", roots="host")
    refused("--change", policy="round-robin", change="shingles")
    with pytest.raises(NotEnoughData, match="no visits"):
        in_buckets(History.create(tmp_path / "empty"), PlanOptions(policy="round-robin"), START, 2)
