"""New inlinks against a plain version with sets of URLs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.history import History
from recrawl.insight.inlinks import with_new_inlinks
from recrawl.web.visit import Visit
from recrawl.world.panel import Panel, build

START = datetime(2026, 1, 5, tzinfo=UTC)
PAGES = [f"https://site{i % 3}.org/{i}" for i in range(12)]
ROUNDS = 6
ENDS = [START + timedelta(days=7 * (r + 1)) for r in range(ROUNDS)]


def shown(seed: int) -> dict[tuple[str, int], Visit]:
    """What each page shows in each round; a fifth of the visits were not made, one page is read in a new way once."""
    rng = np.random.default_rng(seed)
    visits = {}
    for r in range(ROUNDS):
        for i, url in enumerate(PAGES):
            links = [str(link) for link in rng.choice([*PAGES, "https://elsewhere.org/"], rng.integers(0, 6))]
            if rng.random() < 0.2 or (i == 5 and r < 2):
                continue
            at = START + timedelta(days=7 * r, hours=i + 1)
            visits[url, r] = Visit(url=url, at=at, links=links, baseline=(i, r) == (3, 3))
    return visits


def slow_inlinks(visits: dict[tuple[str, int], Visit], url: str, r: int, internal: bool) -> float:
    """The pages whose last two looks show that they have begun to link here."""
    if not any((url, earlier) in visits for earlier in range(r)):
        return np.nan
    found, n_compared = 0, 0
    for source in PAGES:
        looks = [visits[source, earlier] for earlier in range(r + 1) if (source, earlier) in visits]
        if len(looks) < 2 or (source, r) not in visits or looks[-1].baseline:
            continue
        n_compared += 1
        before, now = (set(look.links or ()) for look in looks[-2:])
        same_host = source.split("/")[2] == url.split("/")[2]
        found += source != url and url in now - before and same_host == internal
    return found if n_compared else np.nan


@pytest.fixture(params=[0, 1, 2])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[tuple[str, int], Visit], Panel]:
    visits = shown(request.param)
    history = History.create(tmp_path / "h")
    history.add(visits.values())
    return visits, build(history, ENDS, 0.0)


def test_new_inlinks_are_those_of_sets_of_urls(made: tuple[dict[tuple[str, int], Visit], Panel]) -> None:
    visits, panel = made
    found = with_new_inlinks(panel)
    for row, url in enumerate(panel.url.to_pylist()):
        for r in range(ROUNDS):
            for internal, counts in ((True, found.n_new_internal), (False, found.n_new_external)):
                expected = slow_inlinks(visits, url, r, internal) if r else np.nan
                assert counts[row, r] == pytest.approx(expected, nan_ok=True), (url, r, internal)


def test_both_sides_count_the_same_links(tmp_path: Path) -> None:
    """Every page is seen in every round and links to known pages only: new outlinks and new inlinks are equal in number."""
    rng = np.random.default_rng(1)
    history = History.create(tmp_path / "h")
    history.add(
        Visit(
            url=url,
            at=START + timedelta(days=7 * r, hours=i + 1),
            links=[link for link in map(str, rng.choice(PAGES, 5)) if link != url],
        )
        for r in range(4)
        for i, url in enumerate(PAGES)
    )
    panel = build(history, ENDS[:4], 0.0)
    found = with_new_inlinks(panel)
    for out, into in ((panel.n_new_internal, found.n_new_internal), (panel.n_new_external, found.n_new_external)):
        np.testing.assert_array_equal(out[:, 1:].sum(axis=0), into[:, 1:].sum(axis=0))
        assert into[:, 1:].sum() > 0


def test_without_links_no_inlinks_are_known(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(Visit(url=url, at=START + timedelta(days=7 * r)) for r in range(3) for url in PAGES)
    found = with_new_inlinks(build(history, ENDS[:3], 0.0))
    assert np.isnan(found.n_new_internal).all()
    assert np.isnan(found.n_new_external).all()
