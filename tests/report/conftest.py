"""Made-up panels for the tests of the reports."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recrawl.report.stats.analysis import LinkStatistics, analyse
from recrawl.world.panel import Panel

WEEK = np.timedelta64(7, "D")


def make_panel(internal: object, external: object, urls: list[str] | None = None) -> Panel:
    new_internal, new_external = (np.asarray(counts, dtype=np.float32) for counts in (internal, external))
    n_pages, n_rounds = new_internal.shape
    rounds = np.datetime64("2020-07-13", "us") + np.arange(n_rounds) * WEEK
    return Panel(
        page=np.arange(n_pages, dtype=np.int64),
        url=pa.array(urls or [f"https://site{i % 7}.example/{i}" for i in range(n_pages)], pa.string()),
        rounds=rounds,
        at=np.tile(rounds, (n_pages, 1)),
        n_new_internal=new_internal,
        n_new_external=new_external,
        content_changed=np.zeros((n_pages, n_rounds), dtype=np.float32),
        base={
            "n_internal": np.full((n_pages, n_rounds), 29, dtype=np.float32),
            "n_external": np.full((n_pages, n_rounds), 5, dtype=np.float32),
        },
    )


def make_visits(panel: Panel) -> tuple[NDArray[np.int64], NDArray[np.datetime64]]:
    """Every page visited in every round, sorted by (page, at)."""
    return np.repeat(panel.page, panel.at.shape[1]), panel.at.reshape(-1)


@pytest.fixture
def panel_of() -> Callable[..., Panel]:
    """A panel with these numbers of new links [page, round]; NaN where the page was not visited."""
    return make_panel


@pytest.fixture
def analysed() -> Callable[[Panel], LinkStatistics]:
    """The analysis of a panel whose pages were visited in every round."""
    return lambda panel: analyse(panel, *make_visits(panel), seed=0)


@pytest.fixture(scope="session")
def skewed() -> Panel:
    """Most pages gain nothing, a few gain very many links; the first round and some cells are unknown."""
    random = np.random.default_rng(0)
    n_pages, n_rounds = 3000, 6
    eager = np.where(random.random(n_pages) < 0.45, 0, random.beta(0.5, 0.6, n_pages))
    unknown = random.random((n_pages, n_rounds)) < 0.05
    unknown[:, 0] = True
    counts = []
    for share, size in ((1.0, 4.0), (0.2, 1.0)):
        gains = random.random((n_pages, n_rounds)) < share * eager[:, None]
        shape = 0.4 / (0.4 + size * random.lognormal(0, 1.2, (n_pages, 1)))
        amount = 1 + random.negative_binomial(0.4, shape, (n_pages, n_rounds))
        counts.append(np.where(unknown, np.nan, np.where(gains, amount, 0)))
    return make_panel(*counts)


@pytest.fixture(scope="session")
def skewed_statistics(skewed: Panel) -> LinkStatistics:
    return analyse(skewed, *make_visits(skewed), seed=0)
