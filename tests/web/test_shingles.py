import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import without_table
from recrawl.core.arrays import Ints32
from recrawl.core.hashing import hash64
from recrawl.errors import HistoryError
from recrawl.history import History
from recrawl.web.shingles import EMPTY, N_BUCKETS, sketch_similarities
from recrawl.web.terms import count_terms
from recrawl.web.visit import Visit
from slow_terms import tokens

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = "https://e.org/"


def sketch(text: str) -> Ints32:
    return count_terms(text).sketch


def similarity(a: Ints32, b: Ints32) -> float:
    return float(sketch_similarities(np.stack([a, b]), np.array([0]), np.array([1]))[0])


def shingles(text: str) -> set[tuple[str, ...]]:
    words = tokens(text)
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))} if words else set()


def jaccard(a: str, b: str) -> float:
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


def prose(rng: random.Random, n_words: int) -> list[str]:
    """Words as often as in real texts: the n-th most frequent one 1/n times as often as the first."""
    vocabulary = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3_000)]
    return rng.choices(vocabulary, [1 / (rank + 1) for rank in range(3_000)], k=n_words)


def edited(rng: random.Random, words: list[str], share: float) -> list[str]:
    """The same text with a passage of it rewritten."""
    length = int(share * len(words))
    at = rng.randrange(len(words) - length + 1)
    return words[:at] + prose(rng, length) + words[at + length :]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.3])
def test_the_similarity_of_an_edited_text_is_estimated_within_twice_the_standard_error(share: float) -> None:
    rng = random.Random(5)
    texts = [prose(rng, n_words) for n_words in (200, 1_000, 5_000)]
    for words in texts:
        before, after = " ".join(words), " ".join(edited(rng, words, share))
        assert similarity(sketch(before), sketch(after)) == pytest.approx(jaccard(before, after), abs=0.12)


def test_the_estimate_is_right_on_average() -> None:
    rng = random.Random(8)
    pairs = [(words, edited(rng, words, rng.random())) for words in (prose(rng, 400) for _ in range(200))]
    errors = [
        similarity(sketch(" ".join(a)), sketch(" ".join(b))) - jaccard(" ".join(a), " ".join(b)) for a, b in pairs
    ]
    assert abs(np.mean(errors)) < 0.01
    assert np.std(errors) < 0.063


def test_unrelated_texts_are_hardly_similar() -> None:
    rng = random.Random(9)
    assert similarity(sketch(" ".join(prose(rng, 2_000))), sketch(" ".join(prose(rng, 2_000)))) < 0.05


@given(st.text("abc dé1中", max_size=200))
def test_a_text_is_like_itself_and_like_itself_spaced_otherwise(text: str) -> None:
    assert similarity(sketch(text), sketch(text)) == 1.0
    assert np.array_equal(sketch(text), sketch(f"  {text.replace(' ', ', ')} .".upper()))


def slow_sketch(words: list[str]) -> list[int]:
    """The same in plain numbers, shingle by shingle."""
    primes, mask = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9), (1 << 64) - 1
    buckets: dict[int, int] = {}
    padded = ["", ""][: max(0, 3 - len(words))] + words if words else []
    for i in range(len(padded) - 2):
        mixed = 0
        for word, prime in zip(padded[i : i + 3], primes, strict=True):
            mixed = (mixed + (hash64(word) if word else 0)) * prime & mask
            mixed ^= mixed >> 32
        buckets[mixed & 63] = min(buckets.get(mixed & 63, 1 << 31), mixed >> 33)
    return [buckets.get(bucket, EMPTY) for bucket in range(N_BUCKETS)]


@given(st.lists(st.sampled_from(["one", "two", "six", "ten", "été", "网络爬虫", "7", "a"]), max_size=40))
def test_sketches_are_those_of_the_simple_version(words: list[str]) -> None:
    assert sketch(" ".join(words)).tolist() == slow_sketch(tokens(" ".join(words)))


def test_texts_of_one_or_two_words_are_one_shorter_shingle() -> None:
    for a, b in (("alone", "alone"), ("two words", "two words"), ("网络爬虫技术研究", "网络爬虫技术研究")):
        assert similarity(sketch(a), sketch(b)) == 1.0
    for a, b in (("alone", "other"), ("two words", "words two"), ("two words", "words"), ("", "words")):
        assert similarity(sketch(a), sketch(b)) == 0.0
    assert sketch("").tolist() == sketch("– …").tolist() == [EMPTY] * N_BUCKETS


def test_the_stored_form_of_a_sketch_stays_as_it_is() -> None:
    """Sketches of different years are compared with each other."""
    found = sketch("one two three four")
    assert {int(bucket): int(found[bucket]) for bucket in np.flatnonzero(found >= 0)} == {8: 1065009270, 60: 2127885666}


def test_many_pairs_are_compared_as_one_by_one() -> None:
    rng = random.Random(10)
    rows = np.stack([sketch(" ".join(rng.choices(["aaa", "bbb", "ccc"], k=8))) for _ in range(20)])
    before, after = np.divmod(np.arange(400), 20)
    expected = [similarity(rows[a], rows[b]) for a, b in zip(before, after, strict=True)]
    assert sketch_similarities(rows, before, after).tolist() == expected


def test_a_hundred_thousand_different_words_are_sketched() -> None:
    words = [f"word{i}" for i in range(100_000)]
    half = sketch(" ".join(words[:50_000] + [word + "x" for word in words[50_000:]]))
    assert similarity(sketch(" ".join(words)), half) == pytest.approx(1 / 3, abs=0.12)


# -- in the history ---------------------------------------------------------------------------------------------------


def visit(n: int, **what: object) -> Visit:
    return Visit(url=PAGE, at=START + timedelta(days=n), **what)  # type: ignore[arg-type]


def stored(history: History) -> dict[int, list[int]]:
    table = history.store.read("sketches")
    return dict(zip(table["digest"].to_pylist(), table["sketch"].to_pylist(), strict=True))


def test_text_and_html_are_sketched_and_term_counts_are_not(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(
        [
            visit(0, text="some words in order"),
            visit(1, html="<p>some words <a href='/x'>in order</a>"),  # the same visible text
            visit(2, terms={"other": 1, "words": 2}),
            visit(3, links=[]),
            visit(4, text=""),
        ]
    )
    terms = history.store.read("visits").sort_by("at")["terms"].to_pylist()
    found = stored(history)
    assert found == {terms[0]: sketch("some words in order").tolist(), terms[4]: [EMPTY] * N_BUCKETS}
    assert terms[0] == terms[1]
    history.compact()
    assert stored(History.open(tmp_path / "h")) == found


def test_equal_texts_around_different_links_have_sketches_of_their_own(tmp_path: Path) -> None:
    """A front page says what is new in its links: the digest of the text without them would mix the sketches up."""
    history = History.create(tmp_path / "h")
    history.add(
        [visit(n, html=f"<p>our news <a href='/x'>{title}</a>") for n, title in enumerate(("rain", "sunshine"))]
    )
    assert sorted(stored(history).values()) == sorted(sketch(f"our news {t}").tolist() for t in ("rain", "sunshine"))


def test_a_history_without_the_table_of_sketches_is_read_written_and_compacted(tmp_path: Path) -> None:
    folder = tmp_path / "h"
    History.create(folder).add([visit(0, text="words of long ago")])
    without_table(folder, "sketches")
    history = History.open(folder)
    assert stored(history) == {}
    assert history.timeline.n_visits == 1
    assert history.store.n_files()["sketches"] == history.store.size_in_bytes()["sketches"] == 0
    history.compact()
    assert history.add([visit(1, terms={"word": 1})]).added == 1
    assert not (folder / "sketches").exists()
    assert history.add([visit(2, text="words of today")]).added == 1
    assert list(stored(history).values()) == [sketch("words of today").tolist()]


def test_importing_again_adds_the_sketches_that_were_missing(tmp_path: Path) -> None:
    folder, old = tmp_path / "h", [visit(0, text="words of long ago")]
    History.create(folder).add(old)
    without_table(folder, "sketches")
    assert History.open(folder).add(old).added == 0
    assert list(stored(History.open(folder)).values()) == [sketch("words of long ago").tolist()]


def test_any_other_missing_table_is_still_damage(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    shutil.rmtree(tmp_path / "h" / "texts")
    with pytest.raises(HistoryError, match="cannot read the table"):
        history.store.read("texts")
