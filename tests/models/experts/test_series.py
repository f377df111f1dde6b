"""Words as series over time, the content filter, and the choice of the best."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from made_contents import carried, dynamics, made_contents, random_texts, slow_idf, slow_weights
from recrawl.errors import NotEnoughData
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.series import candidates, most_similar, tfidf, word_series
from recrawl.models.experts.warping import warped
from recrawl.world.contents import Contents


def names(contents: Contents, texts: list) -> list[str]:
    found = sorted({word for page in texts for text in page if text for word in text})
    assert len(found) == contents.counts.shape[1]
    return found


@pytest.mark.parametrize("n_words", [0, 1, 4, 50])
def test_a_page_is_known_by_its_heaviest_last_words(n_words: int) -> None:
    texts = random_texts(1)
    contents = made_contents(texts)
    name, words = names(contents, texts), word_series(contents, n_words=n_words).words
    for page in range(len(texts)):
        rows = slice(words.start[page], words.start[page + 1])
        expected = slow_weights(texts, page, n_words)
        assert [name[word] for word in words.word[rows]] == list(expected)
        assert words.weight[rows] == pytest.approx(list(expected.values()))
        assert words.weight[rows].sum() == pytest.approx(1)


def test_the_series_of_a_page_are_the_papers_dynamics() -> None:
    texts = random_texts(2)
    contents = made_contents(texts)
    name, series = names(contents, texts), word_series(contents)
    rows, which = series.words.rows_of(np.arange(len(texts)))
    for row, page in zip(rows, which, strict=True):
        assert series.values[row] == pytest.approx(dynamics(texts, page, name[series.words.word[row]]))


def test_any_page_can_be_asked_for_any_words() -> None:
    texts = random_texts(3)
    contents = made_contents(texts)
    name, series = names(contents, texts), word_series(contents, n_words=2)
    wanted = [7, 0, len(name) - 1]
    expected = [dynamics(texts, 4, name[word]) for word in wanted]
    assert series.of(4, wanted) == pytest.approx(np.array(expected))
    assert series.of(4, []).shape == (0, contents.shape[1])


def test_a_window_sees_nothing_of_the_rounds_around_it() -> None:
    texts = random_texts(4)
    within = word_series(made_contents(texts), 5, 12)
    cut = word_series(made_contents(texts).window(5, 12))
    assert np.array_equal(within.values, cut.values)
    assert np.array_equal(within.words.weight, cut.words.weight)
    assert within.values.shape[1] == 7


def test_idf_counts_the_pages_that_show_words_in_the_last_round() -> None:
    texts = [[{"a": 1, "b": 3}], [{"a": 2}], [None], [{}]]
    weights = tfidf(made_contents(texts)).toarray()
    assert slow_idf(texts, "a") == 1.0  # on all pages that have words: ln(3 / 3) + 1
    assert weights[0] == pytest.approx([1 / 4, 3 / 4 * (np.log(3 / 2) + 1)])
    assert not weights[2:].any()


def test_a_page_without_words_has_no_series_and_no_similarity() -> None:
    contents = made_contents([[{"a": 1}, {"b": 1}, {"a": 2}], [None, None, None], [{}, {}, {}], [{"a": 1}, {}, {}]])
    series = word_series(contents)
    assert np.diff(series.words.start).tolist() == [1, 0, 0, 0]
    page, expert = candidates(contents)
    assert len(page) == 12
    for similarity in (cross_correlation(series, page, expert), warped(series, page, expert)):
        assert np.isfinite(similarity).all()
        assert not similarity[page > 0].any()


def test_contents_without_any_word_are_fine() -> None:
    contents = made_contents([[{}, None], [{}, {}]])
    page, expert = candidates(contents)
    assert not cross_correlation(word_series(contents), page, expert).any()
    assert not warped(word_series(contents), page, expert).any()


def test_a_hundred_thousand_words_on_a_page_are_fine() -> None:
    n = 100_000
    counts = {f"w{i:06}": 1 + i % 3 for i in range(n)}
    other = {f"w{i:06}": 1 for i in range(0, n, 2)}
    contents = made_contents([[counts, other, counts], [other, counts, other]])
    series = word_series(contents, n_words=0)
    assert len(series.values) == n + n // 2
    for similarity in (cross_correlation(series, [0, 1], [1, 0]), warped(series, [0, 1], [1, 0])):
        assert np.isfinite(similarity).all()
        assert similarity.all()


@pytest.mark.parametrize(("since", "until"), [(0, 4), (-1, 2), (2, 2), (0, 0)])
def test_a_window_that_is_not_there_is_an_error_that_names_it(since: int, until: int) -> None:
    contents = made_contents([[{"a": 1}] * 3])
    with pytest.raises(NotEnoughData, match=f"rounds {since} to {until} .* there are 3"):
        word_series(contents, since, until)


def test_bad_numbers_are_named() -> None:
    contents = made_contents([[{"a": 1}] * 3] * 3)
    series = word_series(contents)
    with pytest.raises(ValueError, match="n_words is -1"):
        word_series(contents, n_words=-1)
    with pytest.raises(ValueError, match="n is 0"):
        candidates(contents, n=0)
    with pytest.raises(ValueError, match="k is 0"):
        most_similar([0], [1], [0.5], 0)
    with pytest.raises(ValueError, match="there is no page 3"):
        cross_correlation(series, [0], [3])
    with pytest.raises(ValueError, match="there is no page -1"):
        cross_correlation(series, [-1], [0])
    with pytest.raises(ValueError, match="2 pages, but 1 experts"):
        cross_correlation(series, [0, 1], [0])


def test_no_pairs_have_no_similarities() -> None:
    series = word_series(made_contents(random_texts(5)))
    assert len(cross_correlation(series, [], [])) == len(warped(series, [], [])) == 0


@pytest.mark.parametrize("n", [1, 3, 10, 24])
def test_candidates_are_the_most_similar_by_cosine(n: int) -> None:
    texts = random_texts(6, n_pages=25, n_rounds=3)
    contents = made_contents(texts)
    cosine = cosine_similarity(tfidf(contents).toarray())
    page, expert = candidates(contents, n=n)
    for p in range(25):
        others = sorted((q for q in range(25) if q != p), key=lambda q: (-round(cosine[p, q], 12), q))
        assert sorted(expert[page == p].tolist()) == sorted(others[:n])
    assert np.array_equal(np.lexsort((expert, page)), np.arange(len(page)))


def test_of_equal_candidates_those_of_lower_number_are_taken() -> None:
    contents = made_contents([[{"a": 1, "b": 2}]] * 6 + [[{"c": 1}]])
    page, expert = candidates(contents, n=2)
    assert expert.reshape(-1, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]
    assert page.tolist() == np.repeat(np.arange(7), 2).tolist()


def test_candidates_look_at_the_last_round_before_until() -> None:
    contents = made_contents([[{"a": 1}, {"b": 1}], [{"a": 1}, {"a": 1}], [{"b": 1}, {"b": 1}]])
    assert candidates(contents, until=1, n=1)[1][0] == 1
    assert candidates(contents, until=2, n=1)[1][0] == 2


def test_few_pages_are_all_compared() -> None:
    page, expert = candidates(made_contents([[{"a": 1}], [{"b": 1}], [None]]))
    assert list(zip(page.tolist(), expert.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert len(candidates(made_contents([[{"a": 1}]]))[0]) == 0


def test_the_most_similar_are_those_of_a_full_sort() -> None:
    random = np.random.default_rng(7)
    page, expert = np.nonzero(random.random((12, 12)) < 0.4)
    similarity = random.integers(-3, 4, len(page)) / 4
    neighbour, weight = most_similar(page, expert, similarity, 3, n_pages=14)
    assert neighbour.dtype == np.int32
    for p in range(14):
        best = sorted((-s, e) for q, e, s in zip(page, expert, similarity, strict=True) if q == p)[:3]
        assert neighbour[p].tolist() == [e for _, e in best] + [-1] * (3 - len(best))
        assert weight[p].tolist() == [-s for s, _ in best] + [0.0] * (3 - len(best))


def test_of_no_pairs_none_is_similar() -> None:
    neighbour, weight = most_similar([], [], [], 2, n_pages=3)
    assert (neighbour == -1).all()
    assert not weight.any()
    assert neighbour.shape == weight.shape == (3, 2)


def test_unseen_rounds_show_what_was_last_seen() -> None:
    texts = [[{"a": 1}, None, {"a": 1, "b": 1}], [None, {"a": 1}, None]]
    assert carried(texts[1]) == [{}, {"a": 1}, {"a": 1}]
    series = word_series(made_contents(texts))
    assert series.of(0, [0])[0].tolist() == [1.0, 1.0, 0.5]
    assert series.of(1, [0])[0].tolist() == [0.0, 1.0, 1.0]
