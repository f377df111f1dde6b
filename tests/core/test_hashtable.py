import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from recrawl.core.hashtable import EMPTY, HashSet, grown, insert, new_index, new_keys, room_for, slot, slots

any_key = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.lists(any_key.filter(lambda key: key != EMPTY), max_size=50), max_size=20))
def test_a_key_is_new_once(groups: list[list[int]]) -> None:
    keys, seen = HashSet(), set[int]()
    for group in groups:
        new = [group[i] for i in keys.add(np.array(group, np.int64)).tolist()]
        assert set(new) == set(group) - seen
        assert len(new) == len(set(new))
        seen |= set(group)
    assert len(keys) == len(seen)


def test_a_set_grows_and_can_be_cleared() -> None:
    keys = HashSet()
    assert len(keys.add(np.arange(1, 10_001))) == 10_000
    assert len(keys.add(np.arange(5_000, 20_001))) == 10_000
    assert len(keys) == 20_000
    assert len(keys.keys) >= 2 * 20_000
    keys.clear()
    assert len(keys.add(np.arange(1, 4))) == 3


@given(st.lists(any_key.filter(lambda key: key != EMPTY), unique=True, max_size=200))
def test_values_move_with_their_keys_when_a_table_grows(wanted: list[int]) -> None:
    keys = new_keys(len(wanted))
    value = np.zeros(len(keys), np.int64)
    value[insert(keys, np.array(wanted, np.int64))] = np.arange(len(wanted))
    bigger, old, new = grown(keys, 4 * len(keys))
    moved = np.full(len(bigger), -1)
    moved[new] = value[old]
    assert moved[slots(bigger, np.array(wanted, np.int64))].tolist() == list(range(len(wanted)))


@given(st.lists(any_key, max_size=200), st.lists(any_key, max_size=20))
def test_an_index_finds_the_first_position_of_any_key(keys: list[int], others: list[int]) -> None:
    wanted = [*keys, *others]
    expected = [keys.index(key) if key in keys else -1 for key in wanted]
    index = new_index(len(keys))
    assert _positions(np.array(keys, np.int64), index, np.array(wanted, np.int64)).tolist() == expected


@njit
def _positions(keys, index, wanted):  # type: ignore[no-untyped-def]
    for i in range(len(keys)):
        at = slot(keys, keys[i], index)
        if index[at] < 0:
            index[at] = i
    positions = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        positions[i] = index[slot(keys, wanted[i], index)]
    return positions


def test_positions_before_the_first_count_as_free() -> None:
    keys = np.array([4, 4, 9], np.int64)
    index = new_index(len(keys))
    index[slot(keys, 4, index)] = 0
    at = slot(keys, 4, index, 1)
    assert index[at] < 1
    index[at] = 1
    assert index[slot(keys, 4, index, 1)] == 1
    assert index[slot(keys, 9, index, 1)] < 1


def test_at_most_half_of_a_table_is_used() -> None:
    assert [room_for(n) for n in (0, 8, 9, 1000)] == [16, 16, 32, 2048]
    assert room_for(3, 1024) == 1024
