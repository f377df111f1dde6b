import numpy as np
import pytest
from sklearn.base import clone

from recrawl.models.baselines import AlwaysZero, Itself, PresenceByValue

VALUES = np.array([[0.0], [0.0], [0.0], [3.0], [5.0], [np.nan]])
COUNTS = np.array([0, 0, 2, 1, 4, 0])


def test_itself_is_its_column_and_the_mean_of_training_where_it_is_not_known():
    assert clone(Itself()).fit(VALUES, COUNTS).predict([[0.0], [2.5], [np.nan]]).tolist() == [0, 2.5, 7 / 6]


def test_the_chance_of_anything_new_is_the_share_after_zero_after_more_and_after_nothing_known():
    overall = (3 + 1) / (6 + 2)
    expected = [(1 + overall) / 4, (2 + overall) / 3, (0 + overall) / 2]
    assert Itself().fit(VALUES, COUNTS).predict_positive([[0.0], [9.0], [np.nan]]).tolist() == pytest.approx(expected)


def test_weights_count_as_rows_do():
    weighted = Itself().fit(VALUES, COUNTS, [2, 1, 1, 1, 1, 0])
    repeated = Itself().fit(VALUES[[0, 0, 1, 2, 3, 4]], COUNTS[[0, 0, 1, 2, 3, 4]])
    assert weighted.predict_positive(VALUES) == pytest.approx(repeated.predict_positive(VALUES))
    assert weighted.predict([[np.nan]]) == repeated.predict([[np.nan]])


def test_presence_is_a_value_above_zero_even_where_it_is_not_the_likelier():
    rare = PresenceByValue(Itself()).fit(np.repeat([[0.0], [1.0]], 50, axis=0), np.arange(100) % 10 == 9)
    assert rare.predict([[0.0], [2.0], [np.nan]]).tolist() == [0, 1, 0]
    assert rare.predict_proba([[2.0]])[0, 1] == pytest.approx(0.1, abs=0.01)


def test_always_zero_is_always_zero():
    assert AlwaysZero().fit(np.ones((3, 2)), [1, 2, 3]).predict(np.ones((2, 2))).tolist() == [0, 0]
    presence = PresenceByValue(AlwaysZero()).fit(np.ones((3, 2)), [1, 1, 1])
    assert presence.predict(np.ones((2, 2))).tolist() == [0, 0]
    assert presence.predict_proba(np.ones((1, 2))).tolist() == [[1, 0]]


def test_more_than_one_column_is_refused():
    with pytest.raises(ValueError, match=r"single column .* shape \(2, 3\)"):
        Itself().fit(np.ones((2, 3)), [0, 1])
