from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.hashing import hash64
from recrawl.parse import term_counts
from recrawl.terms import count_terms


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
