import numpy as np
import pytest

from recrawl.insight.related import related_pages
from recrawl.world.related import Related, _average


def cosines(vectors):
    """All against all in float64; -1 where there is nothing to compare."""
    vectors = np.asarray(vectors, np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    has_text = np.isfinite(length[:, 0]) & (length[:, 0] > 0)
    unit = np.where(has_text[:, None], vectors, 0) / np.where(has_text[:, None], length, 1)
    table = unit @ unit.T
    table[~has_text] = table[:, ~has_text] = -1
    np.fill_diagonal(table, -1)
    return table


def assert_true_neighbours(found, vectors, k):
    """By their cosines, since those of different pages may be equal but for rounding."""
    table = cosines(vectors)
    wanted = np.maximum(-np.sort(-table, axis=1)[:, :k], 0)
    got = np.where(found.neighbour >= 0, np.take_along_axis(table, np.maximum(found.neighbour, 0), axis=1), 0)
    np.testing.assert_allclose(got[:, : wanted.shape[1]], wanted, atol=1e-6)
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in found.neighbour), "a neighbour twice"


def recall(found, vectors, k):
    table = cosines(vectors)
    least = -np.sort(-table, axis=1)[:, k - 1 : k]
    got = np.where(found.neighbour >= 0, np.take_along_axis(table, np.maximum(found.neighbour, 0), axis=1), -1)
    return (got >= least - 1e-5).mean()


def random_vectors(n, dimensions=24, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dimensions)).astype(np.float32)


def clustered_vectors(n, n_topics=60, dimensions=32, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((n_topics, dimensions))
    own = rng.standard_normal((n, dimensions))
    return (topics[rng.integers(0, n_topics, n)] + 0.5 * own).astype(np.float32)


def slow_average(found, values):
    out = np.full(values.shape, np.nan)
    for p, (neighbours, weights) in enumerate(zip(found.neighbour, found.weight, strict=True)):
        for c in range(values.shape[1]):
            known = [
                (w, values[q, c])
                for q, w in zip(neighbours, weights, strict=True)
                if q >= 0 and not np.isnan(values[q, c])
            ]
            if known:
                out[p, c] = sum(w * x for w, x in known) / sum(w for w, _ in known)
    return out


@pytest.mark.parametrize("make", [random_vectors, clustered_vectors])
def test_exact_search_finds_what_comparing_all_with_all_finds(make):
    vectors = make(700)
    found = related_pages(vectors, k=12, method="exact")
    assert_true_neighbours(found, vectors, 12)
    assert (found.method, found.recall) == ("exact", 1.0)
    assert (found.neighbour != np.arange(700)[:, None]).all(), "a page is not its own neighbour"


def test_exact_search_is_right_beyond_one_block_of_pages():
    vectors = random_vectors(5_000, dimensions=8)
    assert_true_neighbours(related_pages(vectors, k=5, method="exact"), vectors, 5)


def test_approximate_search_finds_99_of_100_on_clustered_pages_and_says_so():
    vectors = clustered_vectors(6_000)
    found = related_pages(vectors, k=30, method="approximate")
    assert found.method == "approximate"
    assert recall(found, vectors, 30) >= 0.99
    assert found.recall == pytest.approx(recall(found, vectors, 30), abs=0.005)


def test_approximate_search_finds_99_of_100_where_there_are_no_clusters():
    vectors = random_vectors(3_000, dimensions=64)
    found = related_pages(vectors, k=10, method="approximate")
    assert min(found.recall, recall(found, vectors, 10)) >= 0.985


def test_approximate_search_finds_all_if_all_are_asked_for():
    vectors = random_vectors(1_500, dimensions=64)
    found = related_pages(vectors, k=10, method="approximate", min_recall=1.0)
    assert recall(found, vectors, 10) > 0.9999


def test_few_pages_can_be_searched_approximately_too():
    for n in (2, 3, 7, 40):
        vectors = np.abs(random_vectors(n))
        assert_true_neighbours(related_pages(vectors, k=5, method="approximate", min_recall=1.0), vectors, 5)


def test_auto_is_exact_for_few_pages_and_approximate_for_many():
    vectors = clustered_vectors(3_000)
    assert related_pages(vectors, k=5).method == "exact"
    assert related_pages(vectors, k=5, exact_up_to=2_000).method == "approximate"


def test_auto_is_exact_where_cells_would_not_help():
    found = related_pages(random_vectors(2_500, dimensions=128), k=30, exact_up_to=1_000, min_recall=0.999)
    assert (found.method, found.recall) == ("exact", 1.0)


def test_the_same_seed_gives_the_same_answer():
    vectors = clustered_vectors(3_000)
    first, second = (related_pages(vectors, k=7, method="approximate", seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.neighbour, second.neighbour)
    np.testing.assert_array_equal(first.weight, second.weight)
    assert first.recall == second.recall


def test_weights_sum_to_one_and_are_proportional_to_cosine():
    vectors = random_vectors(300)
    found = related_pages(vectors, k=8)
    np.testing.assert_allclose(found.weight.sum(axis=1), 1, atol=1e-6)
    cosine = np.take_along_axis(cosines(vectors), found.neighbour, axis=1)
    np.testing.assert_allclose(found.weight, cosine / cosine.sum(axis=1, keepdims=True), atol=1e-6)


def test_the_length_of_a_vector_does_not_matter():
    vectors = random_vectors(200)
    factor = np.float32(2.0) ** np.random.default_rng(1).integers(-60, 60, (200, 1)).astype(np.float32)
    near, far = related_pages(vectors, k=6), related_pages(vectors * factor, k=6)
    np.testing.assert_array_equal(near.neighbour, far.neighbour)
    np.testing.assert_allclose(near.weight, far.weight, atol=1e-6)


def test_the_vectors_are_left_as_they_were():
    vectors = clustered_vectors(500)
    before = vectors.copy()
    related_pages(vectors, k=3, method="approximate")
    np.testing.assert_array_equal(vectors, before)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_identical_pages_are_each_others_first_neighbours_in_order_of_their_numbers(method):
    vectors = clustered_vectors(400)
    vectors[[7, 90, 250, 251]] = vectors[7]
    found = related_pages(vectors, k=5, method=method, min_recall=1.0)
    assert found.neighbour[7, :3].tolist() == [90, 250, 251]
    assert found.neighbour[250, :3].tolist() == [7, 90, 251]
    assert_true_neighbours(found, vectors, 5)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_more_identical_pages_than_k_have_only_each_other(method):
    vectors = clustered_vectors(900)
    vectors[::3] = vectors[0]
    found = related_pages(vectors, k=4, method=method)
    assert found.neighbour[0].tolist() == [3, 6, 9, 12]
    assert found.neighbour[6].tolist() == [0, 3, 9, 12]
    np.testing.assert_allclose(found.weight[::3], 0.25)
    assert_true_neighbours(related_pages(vectors, k=4, method="exact"), vectors, 4)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_pages_without_text_have_no_related_pages_and_are_nobodys(method):
    vectors = clustered_vectors(500)
    without = [0, 3, 77, 499]
    vectors[[0, 77]], vectors[3, 5], vectors[499] = 0, np.nan, np.inf
    found = related_pages(vectors, k=6, method=method, min_recall=1.0)
    assert (found.neighbour[without] == -1).all()
    assert (found.weight[without] == 0).all()
    assert not np.isin(found.neighbour, without).any()
    assert_true_neighbours(found, vectors, 6)
    assert np.isnan(found.average(np.ones(500))[without]).all()


def test_pages_at_right_angles_or_beyond_are_not_related():
    found = related_pages(np.array([[1, 0], [0, 1], [-1, 0], [1, 1]], np.float32), k=3)
    assert found.neighbour.tolist() == [[3, -1, -1], [3, -1, -1], [-1, -1, -1], [0, 1, -1]]
    np.testing.assert_allclose(found.weight, [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0.5, 0.5, 0]], atol=1e-7)


def test_fewer_pages_than_k_have_fewer_neighbours():
    found = related_pages(np.abs(random_vectors(4)), k=30)
    assert found.neighbour.shape == found.weight.shape == (4, 30)
    assert (found.neighbour >= 0).sum(axis=1).tolist() == [3, 3, 3, 3]
    np.testing.assert_allclose(found.weight.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "exact", "approximate"])
@pytest.mark.parametrize("vectors", [np.empty((0, 5)), np.ones((1, 5)), np.zeros((3, 5)), np.full((2, 5), np.nan)])
def test_without_a_pair_of_texts_nothing_is_related(vectors, method):
    found = related_pages(vectors.astype(np.float32), k=2, method=method)
    assert found.neighbour.shape == (len(vectors), 2)
    assert (found.neighbour == -1).all()
    assert (found.weight == 0).all()
    assert np.isnan(found.average(np.ones((len(vectors), 3)))).all()


def test_an_unknown_method_is_named_with_the_choices():
    with pytest.raises(ValueError, match=r"'fast'.*auto, exact, approximate"):
        related_pages(random_vectors(3), method="fast")


@pytest.mark.parametrize(("vectors", "k"), [(np.ones(5, np.float32), 3), (np.ones((5, 2), np.float32), 0)])
def test_what_cannot_be_searched_is_refused(vectors, k):
    with pytest.raises(ValueError, match="give"):
        related_pages(vectors, k=k)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_progress_rises_to_one(method):
    shares = []
    related_pages(clustered_vectors(2_500), k=3, method=method, min_recall=0.5, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_whoever_hears_of_the_progress_can_stop_the_search():
    shares = []

    def stop(share):
        shares.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        related_pages(clustered_vectors(2_500), k=3, method="exact", on_progress=stop)
    assert len(shares) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_averages_leave_out_what_is_not_known(dtype):
    rng = np.random.default_rng(3)
    vectors = random_vectors(250)
    vectors[[4, 9]] = 0
    found = related_pages(vectors, k=6)
    values = (100 * rng.standard_normal((250, 5))).astype(dtype)
    values[rng.random(values.shape) < 0.4] = np.nan
    values[:, 4] = np.nan
    got = found.average(values)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, slow_average(found, values), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(found.average(values[:, 1]), got[:, 1])


def test_averages_by_hand():
    neighbour = np.array([[1, 2], [2, -1], [-1, -1]], np.int32)
    weight = np.array([[0.75, 0.25], [1, 0], [0, 0]], np.float32)
    found = Related(neighbour, weight, "exact", 1.0)
    np.testing.assert_allclose(found.average(np.array([1.0, 4.0, 8.0])), [5, 8, np.nan])
    np.testing.assert_allclose(found.average(np.array([1.0, np.nan, 8.0])), [8, 8, np.nan])


def test_averages_take_every_other_column_of_a_larger_table():
    found = related_pages(random_vectors(60), k=4)
    table = np.random.default_rng(0).random((60, 8))
    np.testing.assert_array_equal(found.average(table[:, ::2]), found.average(table[:, ::2].copy()))


def test_averages_over_the_wrong_number_of_pages_are_refused():
    with pytest.raises(ValueError, match=r"\(4, 2\).*3 pages"):
        related_pages(random_vectors(3), k=1).average(np.ones((4, 2)))


def test_averages_reach_entries_beyond_two_to_the_31st(tmp_path):
    shape = (1_100, 2**21)  # more than 2**31 entries, nearly all of them a hole in a file
    values = np.memmap(tmp_path / "values", np.float32, "w+", shape=shape)
    values[-1, -1] = 8.0
    means = np.zeros((1, shape[1]), np.float32)
    _average(np.asarray(values), np.array([[1_099]], np.int32), np.ones((1, 1), np.float32), means)
    assert means[0, -1] == 8.0
