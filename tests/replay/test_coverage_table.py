"""Coverage on real crawls beside what an independent, simple implementation of the papers' definitions got."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patience import patience
from recrawl.history import History
from recrawl.policies import Budget, named
from recrawl.replay import replay
from recrawl.world.recorded import World
from recrawl.world.recording import record
from shared_data import DATA, MISSING

pytestmark = pytest.mark.skipif(not (DATA / "visits.py").exists(), reason=MISSING)

Import = tuple[Path, subprocess.Popen[bytes]]
Imports = dict[str, Import]
#: How far the order of pages alone, through ties and first visits, moves the coverage; and 0.02 at least.
TOLERANCE = {
    "round-robin": 0.03,
    "windowed-outdegree": 0.05,
    "set-cover": 0.06,
    "windowed-clique": 0.04,
    "regression": 0.04,
    "regression-round-robin": 0.02,
    "bandit": 0.02,
    "oracle": 0.02,
}
HOURLY_12 = (0.671, 0.707, 0.677, 0.749, 0.883, 0.887, 0.892, 0.950)
DAILY_13 = (0.285, 0.651, 0.658, 0.666, 0.663, 0.657, 0.653, 0.749)


@pytest.fixture(scope="module")
def imports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imports:
    """Corpora on their way into histories: one is imported while the other is replayed."""
    tests = {item.name for item in request.session.items}
    return {
        corpus: started(corpus, tmp_path_factory.mktemp(corpus) / "h")
        for corpus, test in (("news_hourly_2025-03", "hourly"), ("news_daily_2025", "daily"))
        if any(name.startswith(f"test_{test}_news") for name in tests)
    }


def started(corpus: str, folder: Path) -> Import:
    python = sys.executable
    command = f"{python} {DATA / 'visits.py'} {corpus} --no-terms | {python} -m recrawl.cli import - --workers 1 --history {folder}"
    return folder, subprocess.Popen(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def world_of(imported: Import) -> World:
    folder, process = imported
    assert process.wait(timeout=patience(400)) == 0
    return record(History.open(folder))


def coverages(world: World, budget: int, window: int) -> dict[str, float]:
    found = {}
    for name in TOLERANCE:
        rows = replay(world, named(name, window=window), Budget(budget))
        found[name] = sum(row["found"] for row in rows) / world.discoverable
    return found


@pytest.mark.slow  # another collection by the same definitions; the order of policies is said by no other test
def test_hourly_news_are_covered_as_the_papers_definitions_say(imports: Imports) -> None:
    world = world_of(imports["news_hourly_2025-03"])
    assert (world.n_pages, world.n_cycles + 1, world.discoverable) == (117, 715, 83_896)
    found = coverages(world, 12, window=168)
    for expected, (name, coverage) in zip(HOURLY_12, found.items(), strict=True):
        assert coverage == pytest.approx(expected, abs=TOLERANCE[name]), name
    predicting = [found[name] for name in ("regression", "regression-round-robin", "bandit")]
    assert found["oracle"] > max(predicting)
    assert min(predicting) > found["windowed-clique"] > found["windowed-outdegree"] > found["round-robin"]


@pytest.mark.slow
def test_daily_news_are_covered_as_the_papers_definitions_say(imports: Imports) -> None:
    world = world_of(imports["news_daily_2025"])
    assert (world.n_pages, world.n_cycles + 1, world.discoverable) == (132, 357, 532_324)
    found = coverages(world, 13, window=28)
    for expected, (name, coverage) in zip(DAILY_13, found.items(), strict=True):
        assert coverage == pytest.approx(expected, abs=TOLERANCE[name]), name
