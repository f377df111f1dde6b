import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.hashing import hash64
from recrawl.parse import term_counts
from recrawl.terms import UnseenIds, collapsed, count_terms


@given(st.text(max_size=300) | st.text("abc dé_1٣२ß–“中İ\ud800\x00", max_size=300))
@example("")
@example("x" * 100 + " ab abc ABC 123 12a __ ___ İstanbul ΑΣ")
def test_words_are_those_of_the_simple_definition(text: str) -> None:
    found = count_terms(text)
    assert {found.word(i): int(found.count[i]) for i in range(len(found.id))} == term_counts(text)
    assert found.id.tolist() == sorted(hash64(word) for word in term_counts(text))


def test_only_the_most_frequent_words_are_kept_where_there_are_too_many() -> None:
    found = count_terms("aaa " * 3 + "bbb " * 2 + "ccc ddd").most_frequent(2)
    assert {found.word(i) for i in range(2)} == {"aaa", "bbb"}
    assert found.id.tolist() == sorted(found.id.tolist())


spaces = "".join(chr(c) for c in range(0x10000) if chr(c).isspace())


@given(st.text(max_size=100) | st.text("ab é中\U0001f600" + spaces, max_size=100))
@example(spaces)
@example("a" + "b".join(spaces))
def test_white_space_is_collapsed_as_split_and_join_do_it(text: str) -> None:
    plain = " ".join(text.encode("utf-8", "replace").decode().split())
    assert collapsed(text) == (hash64(plain), len(plain.encode()))


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1).filter(bool), max_size=50), max_size=20))
def test_an_id_is_unseen_once(groups: list[list[int]]) -> None:
    unseen, seen = UnseenIds(), set[int]()
    for group in groups:
        found = [group[i] for i in unseen.unseen(np.array(group, np.int64)).tolist()]
        assert set(found) == set(group) - seen
        assert len(found) == len(set(found))
        seen |= set(group)


def test_the_table_of_seen_ids_grows() -> None:
    unseen = UnseenIds()
    assert len(unseen.unseen(np.arange(1, 10_001))) == 10_000
    assert len(unseen.unseen(np.arange(5_000, 20_001))) == 10_000
    assert len(unseen) == 20_000
