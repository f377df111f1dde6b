"""Signalled changes in replays: those read by then, judged by the crawler's own visits, against a plain version."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import recrawl as rc
from commands import output
from made_hints import DAY, N_DAYS, START, hint_row, hinted_history
from recrawl.core.times import NEVER, US_PER_DAY, microseconds, moment
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.insight.hints.of_pages import signals_of
from recrawl.insight.hints.track_record import learn
from recrawl.policies import LambdaCrawl
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.replay.many import replay_many
from recrawl.replay.past import past
from recrawl.replay.run import replay
from recrawl.world.pages import Pages, Signals, Visits
from recrawl.world.recorded import World


class Spy(LambdaCrawl):
    """Notes what it is given, and what its visits showed."""

    name: ClassVar[str] = "spy"

    def start(self, pages: Pages) -> None:
        super().start(pages)
        self.heard: list[tuple[int, int, Signals | None]] = []
        self.seen: list[tuple[int, int, int, int]] = []  # time, page, changed, after how many choices

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        self.heard.append((microseconds(now), len(pages), pages.signals))
        return super().choose(pages, budget, now)

    def observe(self, visits: Visits) -> None:
        super().observe(visits)
        for i in np.flatnonzero(visits.came).tolist():
            self.seen.append((int(visits.at[i]), int(visits.page[i]), int(visits.changed[i]), len(self.heard)))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """With a feed, too, that names every other change of the honest host, and an hour of readings twice."""
    made = hinted_history(tmp_path_factory.mktemp("signals") / "history", n_pages=9)
    rows = []
    for day in range(0, N_DAYS, 2):
        read_at = START + (day - 0.3) * DAY
        rows += [hint_row("honest", None, read_at, None), hint_row("honest", 3, read_at, read_at - timedelta(hours=2))]
        rows.append(hint_row("honest", 3, read_at + timedelta(hours=1), read_at - timedelta(hours=2)))
    table = pa.Table.from_pylist([row | {"kind": "feed"} for row in rows], schema=HINTS.schema)
    HINTS.append(made.beside, table)
    return made


def spied(world: World, budget: int) -> Spy:
    spy = Spy()
    list(replay(world, spy, Budget(budget)))
    return spy


def plain_signals(history: History, world: World, spy: Spy, number: int) -> list[tuple[bool, int, int, float]]:
    """What the policy should have heard before one of its choices: complete, changed at, changes and days of every page."""
    now, n_pages, _ = spy.heard[number]
    rows = [row for row in HINTS.read(history.beside).to_pylist() if microseconds(row["read_at"]) <= now]
    ids, urls = world.page.tolist(), world.url.to_pylist()
    hosts = [url.split("/")[2] for url in urls]
    answers = [(False, int(NEVER), 0, 0.0)] * n_pages
    for kind in ("feed", "sitemap"):  # the sitemap last: it has the last word
        claims = [
            (ids.index(row["page"]), microseconds(row["read_at"]), microseconds(row["changed_at"]))
            for row in rows
            if row["kind"] == kind and row["changed_at"] and row["page"] in ids[:n_pages]
        ]
        reads = [(row["host"], microseconds(row["read_at"])) for row in rows if row["kind"] == kind and not row["page"]]
        times = [read_at for _, read_at, _ in claims]
        days = (max(times) - min(times)) / US_PER_DAY if times else 0.0
        judged: dict[str, list[tuple[bool, bool]]] = {host: [] for host in hosts}
        for page in range(n_pages):
            mine = sorted((at, changed) for at, p, changed, after in spy.seen if p == page and after <= number)
            for (before, _), (at, changed) in pairwise(mine):
                if changed >= 0 and any(host == hosts[page] and before < read <= at for host, read in reads):
                    hinted = any(p == page and before < read <= at and then > before for p, read, then in claims)
                    judged[hosts[page]].append((hinted, changed == 1))
        for page in range(n_pages):
            hinted, changed = (np.array([pair[i] for pair in judged[hosts[page]]], np.bool_) for i in (0, 1))
            record = learn(kind, np.zeros(len(hinted), np.int64), hinted, changed, n_hosts=1)
            if record.is_complete[0]:
                named = {then for p, _, then in claims if p == page}
                answers[page] = (True, max(named, default=int(NEVER)), len(named), days)
    return answers


@pytest.mark.parametrize("budget", [2, 5, 18])
def test_a_policy_hears_what_was_read_by_then_judged_by_its_own_visits(history: History, budget: int) -> None:
    world = past(history, hinted=True)
    spy = spied(world, budget)
    n_complete = 0
    for number, (_, n_pages, heard) in enumerate(spy.heard):
        expected = plain_signals(history, world, spy, number)
        if heard is None:
            assert not any(complete for complete, *_ in expected)
            continue
        n_complete += 1
        for page in range(n_pages):
            assert bool(heard.is_complete[page]) == expected[page][0]
            if heard.is_complete[page]:
                got = (True, int(heard.changed_at[page]), int(heard.n_changes[page]), pytest.approx(heard.days[page]))
                assert got == expected[page]
    assert n_complete or budget < 18


def test_who_visits_all_pages_hears_what_a_plan_would(history: History) -> None:
    world = past(history, hinted=True)
    spy = spied(world, world.n_pages)
    compared = 0
    for now, n_pages, heard in spy.heard:
        before = moment(now) - timedelta(microseconds=1)  # a plan is made before the visits of its time
        planned = signals_of(history.as_of(before), world.page[:n_pages], world.host[:n_pages])
        assert (heard is None) == (planned is None)
        if heard is not None and planned is not None:
            compared += 1
            for name in ("is_complete", "changed_at", "n_changes", "days"):
                assert getattr(heard, name).tolist() == getattr(planned, name).tolist(), name
    assert compared > 5


def test_nothing_that_is_read_later_matters(history: History, tmp_path: Path) -> None:
    until = START + 14 * DAY
    other = hinted_history(tmp_path / "other", n_pages=9)
    rows = [row for row in HINTS.read(history.beside).to_pylist() if row["read_at"] <= until]
    all_later = [
        hint_row("honest", page, START + (day - 0.4) * DAY, START + day * DAY) for page in range(9) for day in (16, 18)
    ]
    world = past(history, hinted=True)
    for more in ([], all_later):
        shutil.rmtree(other.store.folder / HINTS.name)
        HINTS.append(other.beside, pa.Table.from_pylist(rows + more, schema=HINTS.schema))
        changed = past(other, hinted=True)
        assert (changed.page == world.page).all()
        mine, theirs = ([row for row in replayed(each) if row["at"] <= until.isoformat()] for each in (world, changed))
        assert mine == theirs
        assert len(mine) == 14


def replayed(world: World) -> list[dict[str, Any]]:
    rows = replay(world, LambdaCrawl(), Budget(4))
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_signals_keep_more_copies_current_and_other_processes_hear_the_same(history: History) -> None:
    world = past(history, hinted=True)
    with_signals, without, uniform = rc.replay(
        history, [LambdaCrawl(), LambdaCrawl(signals=False), rc.policies.RoundRobin()], budget=6, goal="content"
    ).runs[:3]
    fresh = [np.mean([row["current"] for row in run.rows]) for run in (with_signals, without, uniform)]
    assert fresh[0] > fresh[1]
    here, there = (
        replay_many(world, [LambdaCrawl(), rc.policies.RoundRobin()], [Budget(4)], workers=n)[0].timeless_rows()
        for n in (1, 2)
    )
    assert here == there


def test_pages_in_another_order_hear_the_same(history: History) -> None:
    world = past(history, hinted=True)
    turned = world.reordered(np.arange(world.n_pages)[::-1])
    for (_, n, heard), (_, _, other) in zip(spied(world, 18).heard, spied(turned, 18).heard, strict=True):
        if heard is not None and other is not None:
            assert dict(zip(world.page[:n].tolist(), heard.changed_at.tolist(), strict=True)) == dict(
                zip(turned.page[:n].tolist(), other.changed_at.tolist(), strict=True)
            )


def test_a_replay_says_that_hints_count_and_ignores_those_before_its_time(history: History) -> None:
    folder = str(history.store.folder)
    options = ("replay", "-p", "lambda-crawl", "-b", "4", "--history", folder)
    shown = " ".join(output(*options).split())
    assert "policies that take signalled changes know those read by then" in shown
    assert "signalled" not in output(*options[:1], "-p", "round-robin", *options[3:])
    since = START + 10 * DAY
    world = past(history, since=since, hinted=True)
    assert world.hints is not None
    assert min(each.read_at.min() for each in world.hints.sources.values()) >= microseconds(since)
    (row,) = (json.loads(line) for line in output(*options, "--goal", "content", "--json").splitlines())
    without = output(*options, "--goal", "content", "--json", "--set", "lambda-crawl.signals=false")
    assert row["freshness"] != json.loads(without)["freshness"]
