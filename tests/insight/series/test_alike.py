"""Pages whose new links move alike, against plain loops; and nothing of the future in them."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.insight.series.alike import MIN_KNOWN, alike_pages

SERIES = np.random.default_rng(3).poisson(1.5, size=(40, 14)).astype(np.float32)


def plain_levels(row: np.ndarray) -> np.ndarray:
    """ln(1 + n), unknown rounds at the mean, mean 0 and length 1."""
    levels = [None if np.isnan(n) else np.log(1 + float(n)) for n in row]
    known = [level for level in levels if level is not None]
    mean = sum(known) / len(known)
    centred = np.array([0.0 if level is None else level - mean for level in levels])
    return centred / np.sqrt((centred**2).sum())


def plain_correlation(x: np.ndarray, y: np.ndarray, max_delay: int) -> float:
    n = len(x)
    return max(sum(x[i] * y[i - d] for i in range(d, n)) for d in range(min(max_delay, n - 1) + 1))


def plain_warping(x: np.ndarray, y: np.ndarray, band: int) -> float:
    n = len(x)
    cost = np.full((n + 1, n + 1), np.inf)
    cost[0, 0] = 0
    for i in range(n):
        for j in range(max(0, i - band), min(n, i + band + 1)):
            cost[i + 1, j + 1] = abs(x[i] - y[j]) + min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
    return float(cost[n, n])


def plain_similarities(series: np.ndarray, by: str) -> np.ndarray:
    levels = [plain_levels(row) for row in series]
    scale = np.sqrt(series.shape[1])
    return np.array(
        [
            [
                plain_correlation(x, y, 8) if by == "correlation" else 1 / (1 + plain_warping(x * scale, y * scale, 4))
                for y in levels
            ]
            for x in levels
        ]
    )


def with_gaps(series: np.ndarray) -> np.ndarray:
    holey = series.copy()
    holey[np.random.default_rng(4).random(series.shape) < 0.2] = np.nan
    return holey


@pytest.mark.parametrize("by", ["correlation", "dtw"])
@pytest.mark.parametrize("series", [SERIES, with_gaps(SERIES)], ids=["complete", "with gaps"])
def test_the_most_similar_pages_are_those_of_plain_loops(by: str, series: np.ndarray) -> None:
    found = alike_pages(series, 5, by)
    similar = plain_similarities(series, by)
    np.fill_diagonal(similar, -np.inf)
    order = np.argsort(-similar, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(found.neighbour, order)
    weights = np.take_along_axis(similar, order, axis=1)
    np.testing.assert_allclose(found.weight, weights / weights.sum(axis=1, keepdims=True), rtol=1e-5)
    assert (found.method, found.recall) == ("exact", 1.0)


@pytest.mark.parametrize("by", ["correlation", "dtw"])
def test_candidates_instead_of_all_pages_say_how_many_of_the_true_ones_they_found(by: str) -> None:
    series = np.random.default_rng(5).poisson(1.5, size=(300, 12)).astype(np.float32)
    exact, found = (alike_pages(series, 5, by, method, n_candidates=40) for method in ("exact", "approximate"))
    assert found.method == "approximate"
    hits = [len(set(a) & set(b)) for a, b in zip(exact.neighbour, found.neighbour, strict=True)]
    assert found.recall == pytest.approx(np.mean(hits) / 5, abs=0.1)


def test_a_page_that_follows_another_is_related_to_it_by_delay() -> None:
    random = np.random.default_rng(6)
    leader = random.poisson(2.0, 30)
    series = np.vstack([leader, np.roll(leader, 2), random.poisson(2.0, (20, 30))]).astype(np.float32)
    assert alike_pages(series, 1, "correlation").neighbour[1, 0] == 0
    assert alike_pages(series, 1, "dtw").neighbour[1, 0] == 0


def test_pages_that_do_not_move_or_were_hardly_seen_are_related_to_none() -> None:
    series = np.vstack([SERIES, np.full(14, 3.0), np.zeros(14), np.full(14, np.nan)]).astype(np.float32)
    series[0, MIN_KNOWN - 1 :] = np.nan
    for by in ("correlation", "dtw"):
        found = alike_pages(series, 3, by)
        for page in (0, 40, 41, 42):
            assert (found.neighbour[page] == -1).all()
            assert not (found.neighbour == page).any()


def test_no_pages_and_no_rounds_have_no_related_pages() -> None:
    for shape in ((0, 9), (3, 0), (1, 9)):
        for by in ("correlation", "dtw"):
            assert alike_pages(np.ones(shape, np.float32), 2, by).neighbour.tolist() == [[-1, -1]] * shape[0]


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="Did you mean 'dtw'"):
        alike_pages(SERIES, by="dtv")
    with pytest.raises(ValueError, match="Did you mean 'exact'"):
        alike_pages(SERIES, method="exakt")
