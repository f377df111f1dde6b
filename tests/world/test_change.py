from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import chi2, chi2_contingency

from making import without_table
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.history.stored_words import all_words, term_counts
from recrawl.web.visit import Visit
from recrawl.world import notions
from recrawl.world.change import changes, changes_at_visits, sketches_of
from recrawl.world.contents import Contents, contents_of
from recrawl.world.notions import ALL, Digest, Notion, Shingles, Significant, Steps, notion_from
from recrawl.world.recorded import World
from recrawl.world.recording import record
from recrawl.world.text_pairs import chi_squared, weighted_jaccard

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = "https://e.org/"
tables = st.integers(1, 8).flatmap(
    lambda n_words: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 2, 7, 40]), min_size=n_words, max_size=n_words), min_size=2, max_size=5
    )
)


def all_pairs(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    before, after = np.divmod(np.arange(n * n), n)
    return before, after


def slow_p(a: NDArray[np.float64], b: NDArray[np.float64], min_expected: float) -> float:
    table = np.stack([a, b])[:, (a + b) > 0]
    if not a.sum() or not b.sum():
        return float(a.sum() == b.sum())
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    rare = (expected < min_expected - 1e-9).any(axis=0)
    pooled = table[:, rare].sum(axis=1, keepdims=True)
    table = np.hstack([table[:, ~rare], pooled]) if rare.any() else table
    return float(chi2_contingency(table, correction=False).pvalue)


@given(tables, st.sampled_from([0.0, 1.0, 5.0]))
def test_p_values_are_those_of_scipy(counts: list[list[int]], min_expected: float) -> None:
    texts = np.array(counts, np.float32)
    before, after = all_pairs(len(texts))
    p = chi_squared(sparse.csr_matrix(texts), before, after, min_expected)
    slow = [
        slow_p(texts[a].astype(float), texts[b].astype(float), min_expected) for a, b in zip(before, after, strict=True)
    ]
    assert p == pytest.approx(slow, abs=1e-9)


def test_a_table_worked_out_by_hand() -> None:
    """20 and 30 words; expected are 6 and 9 of the first, 10 and 15 of the second, 4 and 6 of the third; off by 4, 2 and 2."""
    texts = sparse.csr_matrix(np.array([[10, 8, 2], [5, 17, 8]], np.float32))
    pair = np.array([0]), np.array([1])
    p = chi_squared(texts, *pair)
    statistic = 16 / 6 + 16 / 9 + 4 / 10 + 4 / 15 + 4 / 4 + 4 / 6
    assert p[0] == pytest.approx(np.exp(-statistic / 2))  # what the distribution is at two degrees of freedom
    assert chi_squared(texts, *pair, 5.0) == p  # the third alone is pooled
    pooled = statistic - 4 / 10 - 4 / 15 - 4 / 4 - 4 / 6 + 16 / 14 + 16 / 21
    assert chi_squared(texts, *pair, 10.5)[0] == 1.0  # all are
    texts = sparse.csr_matrix(np.array([[10, 4, 4, 2], [5, 9, 8, 8]], np.float32))  # now the last three: 14 and 21
    assert chi_squared(texts, *pair, 5.5)[0] == pytest.approx(chi2.sf(pooled, 1))


def test_ten_new_words_for_ten_old_ones_are_significant_unless_they_are_pooled() -> None:
    before, after = np.zeros(21), np.zeros(21)
    before[0], before[1:11], after[0], after[11:] = 50, 3, 50, 3
    texts, pair = sparse.csr_matrix(np.stack([before, after])), (np.array([0]), np.array([1]))
    assert chi_squared(texts, *pair)[0] < 1e-4
    assert chi_squared(texts, *pair, 5.0)[0] == 1.0


def test_texts_without_words_differ_from_all_others_and_not_from_each_other() -> None:
    texts = sparse.csr_matrix(np.array([[0, 0], [0, 0], [3, 0], [5, 0]], np.float32))
    p = chi_squared(texts, np.array([0, 0, 2, 2]), np.array([1, 2, 0, 3]))
    assert p.tolist() == [1.0, 0.0, 0.0, 1.0]  # the last: one word, no distribution to speak of


def test_counts_that_are_stored_as_zero_or_in_any_order_do_not_matter() -> None:
    messy = sparse.csr_matrix((np.array([4.0, 9, 0, 6, 0]), np.array([2, 0, 1, 0, 1]), np.array([0, 3, 5])), (2, 3))
    tidy = sparse.csr_matrix(np.array([[9, 0, 4], [6, 0, 0]]))
    pair = np.array([0]), np.array([1])
    assert chi_squared(messy, *pair) == pytest.approx(chi_squared(tidy, *pair))
    assert weighted_jaccard(messy, *pair) == weighted_jaccard(tidy, *pair) == 6 / 13


def test_a_hundred_thousand_words_are_compared() -> None:
    rng = np.random.default_rng(3)
    texts = rng.integers(1, 6, (3, 100_000)).astype(np.float32)
    p = chi_squared(sparse.csr_matrix(texts), np.array([0, 1, 2]), np.array([1, 2, 2]))
    slow = [slow_p(texts[a].astype(float), texts[b].astype(float), 0) for a, b in ((0, 1), (1, 2))]
    assert p == pytest.approx([*slow, 1.0])


@given(tables)
def test_weighted_jaccard_is_the_smaller_counts_by_the_larger(counts: list[list[int]]) -> None:
    texts = np.array(counts, np.float32)
    before, after = all_pairs(len(texts))
    larger = np.maximum(texts[before], texts[after]).sum(axis=1)
    slow = np.where(larger > 0, np.minimum(texts[before], texts[after]).sum(axis=1) / np.maximum(larger, 1), 1)
    assert weighted_jaccard(sparse.csr_matrix(texts), before, after) == pytest.approx(slow)


# -- whole histories --------------------------------------------------------------------------------------------------


def made(
    text: list[list[int]], counts: list[list[int]], digest: list[list[int]] | None = None, **baseline: list[list[int]]
) -> Contents:
    """Contents of pages that show these texts; -1 where a page was not seen."""
    shown = np.array(text, np.int32)
    newest = np.maximum.accumulate(np.where(shown >= 0, np.arange(shown.shape[1]), -1), axis=1)
    carried = np.where(newest >= 0, np.take_along_axis(shown, np.maximum(newest, 0), axis=1), -1).astype(np.int32)
    return Contents(
        page=np.arange(len(shown)),
        url=pa.array([f"https://e.org/{i}" for i in range(len(shown))]),
        rounds=np.arange(shown.shape[1]).astype("datetime64[D]"),
        text=carried,
        seen=shown >= 0,
        is_baseline=np.array(baseline.get("baseline", np.zeros(shown.shape)), np.bool_),
        digest=np.array(digest, np.int64) if digest else np.zeros(shown.shape, np.int64),
        counts=sparse.csr_matrix(np.array(counts, np.float32)),
        vocabulary=np.arange(len(counts[0])),
    )


COUNTS = [[30, 10, 0], [10, 30, 0], [30, 9, 1]]  # the first two differ significantly, the first and the last do not


def test_every_page_is_compared_with_what_it_showed_when_last_seen() -> None:
    contents = made([[0, 1, 1, 2], [-1, 0, -1, 1], [0, -1, -1, 2], [-1, -1, -1, 0], [-1, -1, -1, -1]], COUNTS)
    assert changes(contents, Significant()).tolist() == [
        [-1, 1, 0, 1],
        [-1, -1, -1, 1],
        [-1, -1, -1, 0],
        [-1, -1, -1, -1],
        [-1, -1, -1, -1],
    ]


def test_a_baseline_is_compared_with_nothing_and_parts_what_is_around_it() -> None:
    contents = made([[0, 1, 0, 1], [0, -1, 1, 0]], COUNTS, baseline=[[0, 1, 0, 0], [0, 1, 0, 0]])
    assert changes(contents, Significant()).tolist() == [[-1, -1, 1, 1], [-1, -1, -1, 1]]


def test_a_window_knows_what_was_shown_before_it_except_in_its_first_round() -> None:
    contents = made([[0, -1, -1, 1]], COUNTS)
    assert changes(contents.window(1, 4), Significant()).tolist() == [[-1, -1, 1]]


def test_digests_count_where_they_are_known_and_words_where_not() -> None:
    contents = made([[0, 0, 1, 1, 2]], COUNTS, digest=[[7, 8, 8, 0, 0]])
    assert changes(contents, Digest()).tolist() == [[-1, 1, 0, 0, 1]]


def test_without_sketches_the_common_share_of_the_counts_decides() -> None:
    contents = made([[0, 1, 0, 2]], COUNTS)  # 20 of 60 and 39 of 41 in common
    assert changes(contents, Shingles()).tolist() == [[-1, 1, 1, 0]]
    assert changes(contents, Shingles(0.96)).tolist() == [[-1, 1, 1, 1]]
    assert changes(contents, Shingles(0.3)).tolist() == [[-1, 0, 0, 0]]


@pytest.mark.parametrize("notion", [notion() for notion in ALL])
def test_a_page_that_always_says_the_same_never_changes(notion: Notion) -> None:
    for counts in ([[5, 1]], [[1, 0]], [[0, 0]]):
        assert changes(made([[0] * 5], counts), notion).tolist() == [[-1, 0, 0, 0, 0]]


@pytest.mark.parametrize("notion", [notion() for notion in ALL])
def test_a_text_that_vanishes_or_comes_is_a_change(notion: Notion) -> None:
    assert changes(made([[0, 1, 1, 0]], [[5, 1], [0, 0]]), notion).tolist() == [[-1, 1, 0, 1]]


@pytest.mark.parametrize("notion", [notion() for notion in ALL])
def test_nothing_at_all_has_no_changes(notion: Notion) -> None:
    empty = made([[-1, -1]], [[0]]).select(np.zeros(1, np.bool_))
    assert changes(empty, notion).shape == (0, 2)
    assert changes(made([[-1]], [[0]]).window(0, 0), notion).shape == (1, 0)


@given(
    st.lists(st.lists(st.integers(-1, 4), min_size=6, max_size=6), min_size=1, max_size=4),
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=4, max_size=4),
)
def test_all_steps_at_once_are_as_one_by_one(shown: list[list[int]], baseline: list[list[bool]]) -> None:
    counts = np.random.default_rng(1).integers(0, 30, (5, 4)).tolist()
    flags = [[int(flag) for flag in row] for row in baseline[: len(shown)]]
    found = changes(made(shown, counts, baseline=flags), Significant())
    for page, texts in enumerate(shown):
        last = None
        for at, text in enumerate(texts):
            last = None if flags[page][at] else last
            known = text >= 0 and last is not None
            rows = np.array(counts, float)
            assert found[page, at] == (slow_p(rows[last], rows[text], 0) < 0.05 if known else -1)
            last = text if text >= 0 else last


# -- from visits ------------------------------------------------------------------------------------------------------


def shown_on(folder: Path, *days: Mapping[str, object]) -> tuple[Contents, History]:
    """One page with this content on one day after the other."""
    history = History.create(folder / "h")
    history.add([Visit(url=PAGE, at=START + timedelta(days=n), **day) for n, day in enumerate(days)])  # type: ignore[arg-type]
    return contents_of(history, "1d"), history


def test_text_and_its_term_counts_show_the_same_changes(tmp_path: Path) -> None:
    texts = ["rain rain rain rain rain sun", "sun sun sun sun sun rain", "sun sun sun sun sun rain"]
    for name, days in (
        ("text", [{"text": text} for text in texts]),
        ("terms", [{"terms": {w: text.split().count(w) for w in text.split()}} for text in texts]),
    ):
        contents, _ = shown_on(tmp_path / name, *days)
        assert changes(contents, Significant()).tolist() == [[-1, 1, 0]]
        assert changes(contents, Digest()).tolist() == [[-1, 1, 0]]


def rates(seed: int) -> str:
    """A bank's page: other rates every day, and nothing else."""
    chance = np.random.default_rng(seed)
    loans = [f"{years} year {kind}" for years in (10, 15, 20, 30) for kind in ("fixed", "jumbo", "loan")]
    return " ".join(f"{loan} rate {chance.uniform(2, 9):.3f} % apr {chance.uniform(2, 9):.3f}" for loan in loans)


def test_numbers_are_words_where_changes_are_detected(tmp_path: Path) -> None:
    contents, history = shown_on(tmp_path, {"text": rates(1)}, {"text": rates(2)}, {"text": rates(2)})
    p = chi_squared(contents.counts, contents.text[0, :1].astype(np.int64), contents.text[0, 1:2].astype(np.int64))
    assert p < 1  # without numbers it is exactly 1
    sketches = sketches_of(history, contents)
    assert changes(contents, Shingles(), sketches).tolist() == [[-1, 1, 0]]
    assert changes(contents, Digest()).tolist() == [[-1, 1, 0]]
    assert term_counts(history, contents.terms)[1].toarray()[0].sum() == 12 * 4  # long words alone: as ever


def test_texts_in_scripts_without_spaces_change_by_their_letters(tmp_path: Path) -> None:
    before, after = "今日の天気は晴れです。" * 6, "今日の天気は大雨です。" * 6
    contents, history = shown_on(tmp_path, {"text": before}, {"text": after})
    assert changes(contents, Significant()).tolist() == [[-1, 1]]
    assert changes(contents, Shingles(), sketches_of(history, contents)).tolist() == [[-1, 1]]


@pytest.mark.parametrize("notion", [Significant(), Shingles()])
def test_texts_of_earlier_versions_are_compared_by_their_long_words(notion: Notion, tmp_path: Path) -> None:
    """They have no short words: if all of them counted as new, every page would seem to have changed."""
    words = Counter(word for word in rates(1).split() if len(word) > 2 and "." not in word)
    contents, history = shown_on(tmp_path, {"terms": words}, {"text": rates(1)}, {"text": rates(2)})
    found = changes(contents, notion, sketches_of(history, contents))
    assert found[0, :2].tolist() == [-1, 0]
    assert changes_at_visits(history, history.timeline, np.arange(3), notion).tolist() == found[0].tolist()


def test_a_history_made_before_short_words_were_kept_stays_readable(tmp_path: Path) -> None:
    _, history = shown_on(tmp_path, {"text": rates(1)}, {"text": rates(1)})
    without_table(tmp_path / "h", "short_terms")
    older = History.open(history.folder)
    assert not all_words(older, contents_of(older, "1d").terms).has_short.any()
    older.add([Visit(url=PAGE, at=START + timedelta(days=5), text=rates(3))])
    assert changes(contents_of(older, "1d"), Significant())[0, -1] == 0
    older.compact()
    assert all_words(older, contents_of(older, "1d").terms).has_short.tolist().count(True) == 1


def test_sketches_see_sentences_broken_up_where_the_words_stay(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(60)]
    broken = [w for pair in zip(words[::2], words[1::2], strict=True) for w in reversed(pair)] + ["more"]
    contents, history = shown_on(
        tmp_path, {"text": " ".join(words)}, {"text": " ".join(broken)}, {"text": " ".join(broken)}
    )
    assert changes(contents, Shingles()).tolist() == [[-1, 0, 0]]  # 60 of 61 words are common
    assert changes(contents, Shingles(), sketches_of(history, contents)).tolist() == [[-1, 1, 0]]


def test_a_front_page_that_only_changes_its_links_changes_its_shingles(tmp_path: Path) -> None:
    pages = [{"html": f"<p>All the news</p><a href='/x'>{title}</a>"} for title in ("rain is coming", "sun has gone")]
    contents, history = shown_on(tmp_path, *pages)
    assert changes(contents, Shingles(), sketches_of(history, contents)).tolist() == [[-1, 1]]
    assert changes(contents, Digest()).tolist() == [[-1, 0]]  # it leaves the words of links out


def test_a_sketch_on_one_side_only_leaves_the_decision_to_the_counts(tmp_path: Path) -> None:
    contents, history = shown_on(
        tmp_path, {"text": "one two three four"}, {"terms": {"one": 1, "two": 1, "three": 1, "four": 1, "five": 1}}
    )
    sketches = sketches_of(history, contents)
    assert sorted(map(bool, np.any(sketches >= 0, axis=1))) == [False, True]
    assert changes(contents, Shingles(0.9), sketches).tolist() == [[-1, 1]]
    assert changes(contents, Shingles(0.8), sketches).tolist() == [[-1, 0]]


def test_pages_without_text_of_one_word_and_in_other_scripts_are_compared(tmp_path: Path) -> None:
    texts = ["", "word", "word", "网络爬虫技术研究", "网络爬虫技术研究", "Привет большой мир"]
    contents, history = shown_on(tmp_path, *({"text": text} for text in texts))
    for notion in (Significant(), Digest(), Shingles()):
        found = changes(contents, notion, sketches_of(history, contents))
        assert found[0, [2, 4]].tolist() == [0, 0]
        assert found[0, 1] == 1
    assert changes(contents, Significant()).tolist() == [[-1, 1, 0, 0, 0, 0]]  # a word or four are no evidence


# -- by name ----------------------------------------------------------------------------------------------------------


def test_every_notion_is_found_by_its_name() -> None:
    assert [notion_from(notion.name) for notion in ALL] == [notion() for notion in ALL]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "signifcant",
            r"No notion of change named 'signifcant'\. Did you mean 'significant'\? Known: significant, digest, sh",
        ),
        ("", "No notion of change named ''. Known"),
        ("Digest", "Did you mean 'digest'"),
        ("digest:1", "digest: 'digest:1' has too many settings"),
        ("shingles:0.8:3", "has too many settings; it takes: shingles:threshold"),
        ("significant:five", "not a number"),
        ("significant:", "not a number"),
        ("significant:1", "the level 1 is not between 0 and 1"),
        ("significant:nan", "the level nan"),
        ("significant:0.05:-1", "expected -1 times"),
        ("shingles:90", "the similarity 90 is not between 0 and 1"),
    ],
)
def test_an_unknown_notion_is_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(RecrawlError, match=message):
        notion_from(text)


# -- a notion of your own ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grown:
    """A toy: the text has at least `words` words more than before."""

    name: ClassVar[str] = "grown"
    words: float = 1.0

    def changed(self, steps: Steps) -> NDArray[np.bool_]:
        """Which of the steps are changes."""
        n_words = np.asarray(steps.counts.sum(axis=1)).ravel()
        return n_words[steps.after] - n_words[steps.before] >= self.words


def test_a_notion_is_added_by_its_class_and_its_name_in_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notions, "ALL", (*ALL, Grown))
    assert notion_from("grown:2") == Grown(2.0)
    with pytest.raises(RecrawlError, match=r"No notion of change named 'grow'\. Did you mean 'grown'\?"):
        notion_from("grow")
    texts = ("rain sun", "rain sun wind", "rain", "rain sun wind snow")
    contents, history = shown_on(tmp_path, *({"text": text, "links": []} for text in texts))
    assert changes(contents, notion_from("grown")).tolist() == [[-1, 1, 0, 1]]
    assert changes(contents, notion_from("grown:2")).tolist() == [[-1, 0, 0, 1]]
    world = record(history, "1d", notion=notion_from("grown:2"))
    world.save(tmp_path)
    for each in (world, World.load(tmp_path)):  # the workers of a replay load it
        assert each.wordings is not None
        assert each.wordings.notion == Grown(2.0)
        assert each.alike(each.version[:-1], each.version[1:]).tolist() == [True, True, False]
