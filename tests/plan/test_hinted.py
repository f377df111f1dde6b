"""Hints of sitemaps in plans: a truthful host's are used, a lying one's are not, and none before they are proven."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.plan.explain import explain
from recrawl.plan.make import Request, make, survey
from recrawl.plan.score import scores, store
from recrawl.policies import named
from recrawl.urls import page_id
from recrawl.visits import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
N_DAYS, N_PAGES = 20, 6
NOW = START + (N_DAYS + 0.5) * DAY


def url(host: str, page: int) -> str:
    return f"https://{host}.org/{page}"


def changes(host: str, page: int, day: int) -> bool:
    """A third of the pages change on a day."""
    return (day + page + (host == "liar")) % 3 == 0


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Two hosts visited daily at noon. Each midnight their sitemaps are read: one names what changed since, the other all pages.

    In the last night page 4 of each host is named; on the truthful one nothing else is.
    """
    made = History.create(tmp_path_factory.mktemp("hinted") / "history")
    rows: list[dict[str, object]] = []
    for host in ("honest", "liar"):
        links = dict.fromkeys(range(N_PAGES), 3)
        visits = []
        for day in range(N_DAYS + 1):
            read_at = START + (day - 0.4) * DAY
            rows.append(_row(host, None, read_at, None))
            for page in range(N_PAGES):
                if changes(host, page, day):
                    links[page] += 2
                if host == "liar" or changes(host, page, day):
                    rows.append(_row(host, page, read_at, read_at - timedelta(minutes=1)))
                shown = [url(host, 1000 * page + i) for i in range(links[page])]
                visits.append(Visit(url=url(host, page), at=START + day * DAY, links=shown, text=f"{links[page]}"))
        made.add(visits)
        last = START + (N_DAYS + 0.4) * DAY
        rows += [_row(host, None, last, None), _row(host, 4, last, last - timedelta(minutes=1))]
    HINTS.append(made.store.folder, pa.Table.from_pylist(rows, schema=HINTS.schema))
    return made


def _row(host: str, page: int | None, read_at: datetime, changed_at: datetime | None) -> dict[str, object]:
    number = None if page is None else page_id(url(host, page))
    source = f"https://{host}.org/sitemap.xml"
    return {
        "kind": "sitemap", "source": source, "host": f"{host}.org", "page": number, "read_at": read_at, "changed_at": changed_at,
    }  # fmt: skip


def test_a_proven_hint_comes_first_and_says_why(history: History) -> None:
    plan = make(history, named("round-robin"), Request(2), NOW)
    assert plan.url[0].as_py() == url("honest", 4)
    assert plan.reason[0].startswith("its sitemap says it changed 2026-01-25")
    assert "right" in plan.reason[0]
    assert plan.probability_changed[0] > 0.9
    assert plan.expected[0] > 1.5  # its changes brought two links each
    assert url("liar", 4) not in plan.url.to_pylist()


def test_a_lying_host_is_not_believed(history: History) -> None:
    situation = survey(history.as_of(NOW), named("round-robin"))
    assert situation.hints is not None
    by_url = dict(zip(situation.url.to_pylist(), situation.hints.probability, strict=True))
    assert by_url[url("honest", 4)] > 0.9
    assert np.isnan([value for name, value in by_url.items() if "liar" in name]).all()


def test_what_a_complete_source_does_not_name_is_left_out_but_for_a_few(history: History) -> None:
    situation = survey(history.as_of(NOW), named("round-robin"))
    assert situation.hints is not None
    by_url = dict(zip(situation.url.to_pylist(), situation.hints.probability, strict=True))
    assert all(by_url[url("honest", page)] < 0.1 for page in range(N_PAGES) if page != 4)
    plans = [make(history, named("round-robin"), Request(12), NOW + day * DAY) for day in range(10)]
    unnamed = [sum("honest" in one and one != url("honest", 4) for one in plan.url.to_pylist()) for plan in plans]
    assert sum(unnamed) == N_PAGES - 1  # each of them once in ten days
    assert plans[0].left_out["unpromising"] >= N_PAGES - 3


def test_hints_are_not_believed_before_they_are_proven(history: History) -> None:
    early = START + 2.5 * DAY
    situation = survey(history.as_of(early), named("round-robin"))
    assert situation.hints is not None
    assert not situation.hints
    assert "sitemap" not in " ".join(make(history, named("round-robin"), Request(12), early).reason)


def test_what_is_read_later_counts_for_nothing(history: History) -> None:
    before = START + (N_DAYS + 0.35) * DAY  # the last reading is at 0.4
    hints = survey(history.as_of(before), named("round-robin")).hints
    assert hints is not None
    assert set(hints.reason) == {""}
    assert not (hints.probability > 0.1).any()


def test_hints_take_at_most_half_of_the_budget_and_keep_to_the_caps(history: History, tmp_path: Path) -> None:
    rows = [_row("honest", page, NOW - timedelta(hours=1), NOW - timedelta(hours=2)) for page in range(N_PAGES)]
    other = History.open(shutil.copytree(history.store.folder, tmp_path / "h"))
    HINTS.append(other.store.folder, pa.Table.from_pylist(rows, schema=HINTS.schema))
    hinted = [reason.startswith("its sitemap") for reason in make(other, named("round-robin"), Request(6), NOW).reason]
    assert hinted == [True] * 3 + [False] * 3
    capped = make(other, named("round-robin"), Request(6, per_host=1), NOW)
    assert sorted(capped.host) == ["honest.org", "liar.org"]


def test_explain_tells_of_the_hint(history: History) -> None:
    situation = survey(history.as_of(NOW), named("round-robin"))
    told = explain(situation, Request(2), url("honest", 4), NOW)
    assert told.is_picked
    assert told.reason.startswith("its sitemap says")
    assert told.probability_changed is not None
    assert told.probability_changed > 0.9


def test_round_robin_is_measured_without_hints(history: History) -> None:
    store(history, make(history, named("round-robin"), Request(2), START + 18.7 * DAY))
    (score,) = scores(history)
    assert score.visited == 2
    assert score.round_robin_visited == 2


def test_for_content_a_hint_counts_by_its_probability(history: History) -> None:
    plan = make(history, named("round-robin"), Request(2, goal="content"), NOW)
    assert plan.url[0].as_py() == url("honest", 4)
    assert plan.gain[0] > 0.9


def test_info_tells_what_hints_were_worth(history: History) -> None:
    result = CliRunner().invoke(app, ["info", "--history", str(history.store.folder), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["hints"]["sitemap"]
    assert (told["judged_hosts"], told["proven_hosts"]) == (2, 1)
    assert 0.3 * told["hinted"] < told["right"] < 0.6 * told["hinted"]  # a third of the liar's, all of the honest one's
    assert "sitemaps: 2 hosts" in CliRunner().invoke(app, ["info", "--history", str(history.store.folder)]).stdout
