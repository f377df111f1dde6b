from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.core.hashing import hash64
from recrawl.web.terms import collapsed, count_terms
from slow_terms import all_counts, term_counts


@given(st.text(max_size=300) | st.text("abc dé_1٣२ß–“中文ไİ\ud800\x00", max_size=300))
@example("")
@example("今日は good 天気ですね123 ไทย中")
@example("x" * 100 + " ab abc ABC 123 12a __ ___ İstanbul ΑΣ")
def test_words_are_those_of_the_simple_definition(text: str) -> None:
    for terms, counts in ((count_terms(text), all_counts(text)), (count_terms(text).long(), term_counts(text))):
        assert {terms.word(i): int(terms.count[i]) for i in range(len(terms.id))} == counts
        assert terms.id.tolist() == sorted(map(hash64, counts))


def test_only_the_most_frequent_words_are_kept_where_there_are_too_many() -> None:
    terms = count_terms("aaa " * 3 + "bbb " * 2 + "ccc ddd").most_frequent(2)
    assert {terms.word(i) for i in range(2)} == {"aaa", "bbb"}
    assert terms.id.tolist() == sorted(terms.id.tolist())


spaces = "".join(chr(c) for c in range(0x10000) if chr(c).isspace())


@given(st.text(max_size=100) | st.text("ab é中\U0001f600" + spaces, max_size=100))
@example(spaces)
@example("a" + "b".join(spaces))
def test_white_space_is_collapsed_as_split_and_join_do_it(text: str) -> None:
    plain = " ".join(text.encode("utf-8", "replace").decode().split())
    assert collapsed(text) == (hash64(plain), len(plain.encode()))
