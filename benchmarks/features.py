"""All features of all pages at the papers' size, and side by side with a loop over pages in pandas."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.measure import Row, best_of, peak_gigabytes
from benchmarks.novelty import PAPERS_PAGES
from benchmarks.slow_features import slow_features
from recrawl.insight.features import FeatureInputs, Features, default, everything, summaries
from recrawl.insight.graph import Graph
from recrawl.insight.targets import HasNewLinks
from recrawl.world.panel import BASE, Panel
from recrawl.world.related import Related

Floats = NDArray[np.float32]
ROUNDS = 10
SIDE_BY_SIDE = 2_000  # pages; the loop over them needs a minute


def all_features() -> Features:
    """Those of the papers, the default ones and the summaries, for internal and external links."""
    targets = (HasNewLinks("internal"), HasNewLinks("external"))
    more = [column for target in targets for column in default(target) + summaries(target)]
    return tuple(dict.fromkeys([*everything(), *more]))


ALL = all_features()


def run(n_pages: int = PAPERS_PAGES) -> Iterator[Row]:
    matrix(made_up(500))  # compiles
    yield from by_itself(n_pages)
    yield from side_by_side(min(n_pages, SIDE_BY_SIDE))


def by_itself(n_pages: int) -> Iterator[Row]:
    cost = []  # seconds of all cores together: they are comparable, whoever else uses the machine
    for part in (10, 3, 1):
        known = made_up(n_pages // part)
        given = peak_gigabytes()
        start, start_cpu = time.perf_counter(), time.process_time()
        shape = matrix(known).shape
        seconds = time.perf_counter() - start
        cost.append(time.process_time() - start_cpu)
        full = part == 1 and n_pages == PAPERS_PAGES
        what = f"{shape[1]} features of {shape[0]:,} pages × {ROUNDS} rounds"
        note = f"after the neighbours are known; {cost[-1]:.1f} s of processor time"
        yield Row(what, seconds, "s", "< 60" if full else "", seconds < 60 if full else None, note)
    growth = cost[2] / cost[0]
    yield Row("  processor time against that for a tenth of the pages", growth, "×", note="a tenth fits the cache")
    peak = peak_gigabytes()
    yield Row("  peak memory", peak, "GB", "< 12", peak < 12, f"{given:.1f} GB of it to make up what is given")


def side_by_side(n_pages: int) -> Iterator[Row]:
    known = made_up(n_pages, missing=0.1)
    start = time.perf_counter()
    slow = slow_features(known, ROUNDS - 1, links=("internal", "external"), page_rank=False)
    theirs = time.perf_counter() - start
    # What was averaged once is kept: each run begins with nothing.
    ours = best_of(3, lambda: matrix(FeatureInputs(known.panel, known.related, known.graph)))
    assert sorted(slow.columns) == sorted(map(str, ALL)), "the loop makes the same columns"
    np.testing.assert_allclose(matrix(known), slow[[*map(str, ALL)]].to_numpy(), rtol=1e-4, atol=1e-6)
    what = f"{len(ALL)} features of {n_pages:,} pages, a tenth of the visits missing"
    yield Row(what, n_pages / ours, "pages/s")
    yield Row("  loop over pages in pandas", n_pages / theirs, "pages/s", note="same run, equal numbers")
    full = n_pages == SIDE_BY_SIDE
    yield Row("  speed-up", theirs / ours, "×", ">= 50" if full else "", theirs / ours >= 50 if full else None)


def matrix(known: FeatureInputs) -> Floats:
    return known.matrix(ALL, ROUNDS - 1)


# -- made up, without a history ---------------------------------------------------------------------------------------


def made_up(
    n_pages: int, n_rounds: int = ROUNDS, *, k: int = 30, missing: float = 0.0, n_vector: int = 0, seed: int = 0
) -> FeatureInputs:
    """Random numbers in place of a panel, related pages, a graph and vectors; `missing` is the share of visits not made."""
    rng = np.random.default_rng(seed)
    panel = made_up_panel(rng, n_pages, n_rounds, missing)
    unseen = np.isnat(panel.at)
    places = [rng.poisson(mean, panel.shape).astype(np.float32) for mean in (5, 1)]
    places += [rng.random(panel.shape, np.float32) for _ in range(2)]
    for place in places:
        place[unseen] = np.nan
    internal, external, pagerank, trustrank = places
    graph = Graph(
        n_inlinks_internal=internal,
        n_inlinks_external=external,
        pagerank=pagerank,
        trustrank=trustrank,
        trusted=np.empty(0, np.int64),
        unknown_trusted=(),
        residual=0.0,
    )
    vectors = rng.random((n_pages, n_vector), np.float32) if n_vector else None
    return FeatureInputs(panel, made_up_related(rng, n_pages, min(k, n_pages)), graph, vectors)


def made_up_panel(rng: np.random.Generator, n_pages: int, n_rounds: int, missing: float) -> Panel:
    """In the first round that a page is seen in nothing is new."""
    shape = (n_pages, n_rounds)
    seen = rng.random(shape) >= missing
    compared = seen & (np.cumsum(seen, axis=1) > 1)
    rounds = np.datetime64("2020-07-13", "us") + np.arange(n_rounds) * np.timedelta64(7, "D")

    def shown(values: NDArray[np.generic], where: NDArray[np.bool_] = seen) -> Floats:
        return np.where(where, values, np.nan).astype(np.float32)

    rates = (rng.gamma(0.3, 5.0, (n_pages, 1)), rng.gamma(0.1, 5.0, (n_pages, 1)))
    internal, external = (shown(rng.poisson(rate, shape), compared) for rate in rates)
    return Panel(
        page=np.arange(n_pages),
        url=pa.array(
            [f"https://site{site}.org/{i}" for i, site in enumerate(rng.integers(0, n_pages // 6 + 1, n_pages))]
        ),
        rounds=rounds,
        at=np.where(seen, rounds, np.datetime64("NaT", "us")),
        n_new_internal=internal,
        n_new_external=external,
        content_changed=shown(rng.random(shape) < 0.3, compared),
        base={name: shown(rng.random(shape, np.float32) * 100) for name in BASE},
    )


def made_up_related(rng: np.random.Generator, n_pages: int, k: int) -> Related:
    """Random neighbours, a few less for some pages, and none for the last one."""
    neighbour = ((np.arange(n_pages) + 1)[:, None] + rng.integers(0, max(n_pages - 1, 1), (n_pages, k))) % max(
        n_pages, 1
    )
    weight = rng.random((n_pages, k), np.float32) + np.float32(0.1)
    none = np.arange(k) >= rng.integers(k // 2, k + 1, (n_pages, 1))
    none[-1:] = True
    neighbour[none], weight[none] = -1, 0
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), np.float32(1e-9))
    return Related(neighbour.astype(np.int32), weight, "exact", 1.0)
