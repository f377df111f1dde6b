from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import HistoryError, NotEnoughData
from recrawl.history import BatchBuilder, History, summary
from recrawl.history.hints import HINTS
from recrawl.history.page_timeline import page_timeline
from recrawl.history.store import _find
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = "https://e.org/"


def day(n: float) -> datetime:
    return START + timedelta(days=n)


def visit(n: float, *links: str, **more: object) -> Visit:
    return Visit(url=PAGE, at=day(n), links=[f"https://e.org/{link}" for link in links], **more)  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History.create(tmp_path / "history")


def test_the_same_visits_twice_add_nothing(history: History) -> None:
    visits = [visit(n, "a", str(n)) for n in range(5)]
    assert history.add(visits).added == 5
    again = history.add(visits)
    assert (again.added, again.duplicates, again.replaced) == (0, 5, 0)
    assert history.timeline.n_visits == 5
    assert History.open(history.store.folder).add(visits).added == 0


def test_repeats_within_one_batch_count_once(history: History) -> None:
    receipt = history.add([visit(1, "a"), visit(1, "a")])
    assert (receipt.added, receipt.duplicates) == (1, 1)
    assert history.timeline.n_visits == 1


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_visits_at_one_moment_the_one_that_holds_more_counts(history: History, first: int) -> None:
    pair = [Visit(url=PAGE, at=day(1), status=503), visit(1, "a", "b")]
    history.add([pair[first]])
    receipt = history.add([pair[1 - first]])
    assert (receipt.added, receipt.duplicates, receipt.replaced) == (0, 1, 1 - first)
    assert history.timeline.n_visits == 1
    assert history.timeline.n_links()[0].tolist() == [2]
    history.compact()
    assert history.store.read("visits").num_rows == 1
    assert History.open(history.store.folder).timeline.n_links()[0].tolist() == [2]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_and_grouping_of_appends_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, random: object, n_groups: int
) -> None:
    visits = [visit(n % 7, *(str(random.randrange(6)) for _ in range(3))) for n in range(14)]  # type: ignore[attr-defined]
    one = History.create(tmp_path_factory.mktemp("one"))
    one.add(visits)
    random.shuffle(visits)  # type: ignore[attr-defined]
    many = History.create(tmp_path_factory.mktemp("many"))
    for i in range(n_groups):
        many.add(visits[i::n_groups])
    for name in ("page", "at", "status", "outcome"):
        assert np.array_equal(getattr(one.timeline, name), getattr(many.timeline, name))
    for meaning in ("previous", "page", "anywhere"):
        assert np.array_equal(one.novelty.total(meaning), many.novelty.total(meaning))


def test_as_of_sees_nothing_later(history: History) -> None:
    history.add([visit(n, str(n)) for n in range(6)])
    assert history.as_of(day(2)).timeline.n_visits == 3
    assert history.as_of(day(2.5)).as_of(day(9)).timeline.n_visits == 3
    assert history.as_of(day(-1)).timeline.n_visits == 0
    assert summary(history.as_of(day(-1))).visits == 0
    with pytest.raises(ValueError, match="aware"):
        history.as_of(datetime(2026, 1, 2))


def test_a_304_and_an_equal_digest_carry_the_links_forward(history: History) -> None:
    history.add(
        [
            visit(0, "a", text_digest="x"),
            Visit(url=PAGE, at=day(1), status=304),
            visit(2, "a", "b", text_digest="y"),
            Visit(url=PAGE, at=day(3), text_digest="y"),
            Visit(url=PAGE, at=day(4), text_digest="x"),  # back to an older copy
            Visit(url=PAGE, at=day(5), text_digest="new"),  # changed, links not known
            Visit(url=PAGE, at=day(6), status=500),
            visit(7, "a", "c"),
        ]
    )
    assert history.timeline.n_links()[0].tolist() == [1, 1, 2, 2, 1, -1, -1, 2]
    assert history.novelty.total("previous").tolist() == [-1, 0, 1, 0, 0, -1, -1, 1]
    assert history.timeline.text_changed.tolist() == [-1, 0, 1, 0, 1, 1, -1, -1]


def test_a_page_that_was_gone_is_compared_with_its_last_copy(history: History) -> None:
    history.add([visit(0, "a"), Visit(url=PAGE, at=day(1), status=410), visit(2, "a", "b")])
    assert history.novelty.total("previous").tolist() == [-1, -1, 1]


def test_a_baseline_is_compared_with_nothing_and_everything_later_with_it(history: History) -> None:
    history.add([visit(0, "a"), visit(1, "a", "b", baseline=True), visit(2, "a", "b", "c")])
    assert history.novelty.total("previous").tolist() == [-1, -1, 1]
    assert history.novelty.total("page").tolist() == [-1, -1, 1]


def test_compaction_changes_nothing_but_the_files(history: History) -> None:
    for n in range(12):
        history.add([visit(n, "a", str(n), text=f"words number {n}"), visit(n, "a", str(n))])
    before, files = summary(history), history.store.n_files()
    history.compact()
    again = History.open(history.store.folder)
    assert summary(again) == before
    assert again.store.n_files()["visits"] == 1 < files["visits"]
    assert again.add([visit(3, "a", "3")]).added == 0
    assert again.add([visit(99, "z")]).added == 1


def test_rows_appended_during_a_compaction_survive_it(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.add([visit(0, "a")])
    other = History.open(history.store.folder)
    sorted_batches = history.store._sorted_batches
    days = iter(range(1, 100))

    def and_meanwhile(name: str, files: list[str]) -> object:
        other.add([visit(next(days), "b")])
        return sorted_batches(name, files)

    monkeypatch.setattr(history.store, "_sorted_batches", and_meanwhile)
    history.compact()
    n_tables = next(days) - 1
    assert History.open(history.store.folder).timeline.n_visits == 1 + n_tables


def test_an_unchanged_visit_stores_one_row_and_nothing_else(history: History) -> None:
    same = {"text": "the very same words", "title": "t"}
    history.add([visit(0, "a", "b", **same)])
    counts = {name: history.store.read(name).num_rows for name in ("link_sets", "texts", "terms", "urls")}
    history.add([visit(1, "a", "b", **same)])
    assert {name: history.store.read(name).num_rows for name in counts} == counts
    assert history.store.read("visits").num_rows == 2


def test_equal_texts_with_different_link_words_keep_their_own_terms(history: History) -> None:
    """The text digest leaves link text out, so it must not decide which words a visit has."""
    html = "<p>same</p><a href='/x'>{}</a>"
    history.add([Visit(url=PAGE, at=day(n), html=html.format(word)) for n, word in enumerate(["apples", "pears"])])
    assert history.timeline.text_changed.tolist() == [-1, 0]
    assert history.store.read("texts").num_rows == 2


def test_missing_newer_and_damaged_histories_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="recrawl import FILE --history"):
        History.open(tmp_path / "nothing")
    folder = History.create(tmp_path / "h").store.folder
    (folder / "recrawl.json").write_text('{"format": 99, "written_by": "recrawl 9.1"}')
    with pytest.raises(HistoryError, match=r"written by recrawl 9.1 \(format 99\).*Upgrade"):
        History.open(folder)
    (folder / "recrawl.json").write_text("{")
    with pytest.raises(HistoryError, match="damaged"):
        History.open(folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="is a file"):
        History.create(tmp_path / "file")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("x")
    with pytest.raises(HistoryError, match="other files"):
        History.create(tmp_path / "photos")


def test_a_history_that_was_begun_but_not_finished_can_be_created_again(tmp_path: Path) -> None:
    """As after a kill between two tables."""
    folder = History.create(tmp_path / "h").store.folder
    (folder / "recrawl.json").unlink()
    assert History.create(folder).add([visit(0, "a")]).added == 1


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), unique=True),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3))),
)
def test_keys_are_found_as_in_a_dictionary(known: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    known = sorted(known)
    rank = {key: i + 10 for i, key in enumerate(known)}
    keys = (
        np.array([k[0] for k in known], np.int64),
        np.array([k[1] for k in known], np.int64),
        np.array([rank[k] for k in known], np.int64),
    )
    found, ranks = _find(keys, np.array([a[0] for a in asked], np.int64), np.array([a[1] for a in asked], np.int64))
    assert found.tolist() == [a in rank for a in asked]
    assert ranks.tolist() == [rank.get(a, 0) for a in asked]


def test_a_page_timeline_shows_new_and_gone_links(history: History) -> None:
    history.add([visit(0, "a", "b"), visit(2, "b", "c", "d"), Visit(url=PAGE, at=day(3), status=503, note="busy")])
    story = page_timeline(history, "HTTPS://e.org:443/#top", with_links=True)
    assert [v.n_new_previous for v in story.visits] == [None, 2, None]
    assert [v.n_left for v in story.visits] == [None, 1, None]
    assert set(story.new_links[day(2).isoformat()]) == {"https://e.org/c", "https://e.org/d"}
    assert story.new_links_per_day == pytest.approx(2 / 3)
    assert story.visits[2].note == "busy"
    with pytest.raises(NotEnoughData, match="never visited"):
        page_timeline(history, "https://e.org/other")


def test_the_tables_are_plain_parquet_for_others(history: History) -> None:
    history.add([visit(0, "a")])
    urls = pq.read_table(next((history.store.folder / "urls").glob("*.parquet")))
    assert set(urls["url"].to_pylist()) == {PAGE, "https://e.org/a"}


def test_traps_are_flagged_and_kept(history: History) -> None:
    history.add([visit(0, "x/x/x/x", "fine")])
    history.add([Visit(url="https://e.org/y/y/y", at=day(5), links=[])])
    assert summary(history).traps == 2
    assert summary(history.as_of(day(1))).traps == 1
    assert summary(history.as_of(day(-1))).traps == 0
    assert summary(history).links == 2


def test_relative_links_without_a_base_are_left_out_and_counted() -> None:
    builder = BatchBuilder()
    builder.add(Visit(url=PAGE, at=START, links=["/a", "javascript:x", "https://e.org/b"]))
    assert dict(builder.dropped_links) == {"not a URL": 1, "not an http or https URL": 1}
    assert len(builder.take()["link_sets"]["links"].to_pylist()[0]) == 1


def captured(n: float, digest: str, *links: str, **more: object) -> Visit:
    known = [f"https://e.org/{link}" for link in links] if links else None
    return Visit(url=PAGE, at=day(n), links=known, payload_digest=digest, **more)  # type: ignore[arg-type]


def test_a_revisit_shows_the_copy_it_equals_not_the_last_one(history: History) -> None:
    history.add(
        [
            captured(0, "d0", "a", content_bytes=10),
            captured(1, "d1", "a", "b", content_bytes=20),
            captured(2, "d0", status=304),  # back to the first copy
            captured(3, "d9", status=304),  # equal to a copy that is not here
            captured(4, "d2"),  # changed, links not known
            captured(5, "d2", status=304),
            Visit(url=PAGE, at=day(6), status=304),  # a server's word, without a digest
        ]
    )
    assert history.timeline.n_links()[0].tolist() == [1, 2, 1, -1, -1, -1, 1]
    assert history.timeline.latest[:4].tolist() == [0, 1, 0, -1]
    assert history.timeline.text_changed.tolist() == [-1, 1, 1, -1, 1, 0, 0]


def test_a_copy_is_found_behind_any_number_of_plain_304s(history: History) -> None:
    plain = [Visit(url=PAGE, at=day(2 + n), status=304) for n in range(70)]
    history.add([captured(0, "d0", "a"), captured(1, "d1", "a", "b"), *plain, captured(99, "d0", status=304)])
    assert history.timeline.n_links()[0].tolist()[-2:] == [2, 1]


@pytest.mark.parametrize("parting", [{"status": 500}, {"text_digest": "z"}])
def test_a_baseline_without_links_parts_what_came_before_from_what_comes_after(
    history: History, parting: dict[str, object]
) -> None:
    history.add([visit(0, "a"), Visit(url=PAGE, at=day(1), baseline=True, **parting), visit(2, "a", "b")])  # type: ignore[arg-type]
    assert history.novelty.total("previous").tolist() == [-1, -1, -1]


def test_of_two_rows_for_one_moment_the_one_with_more_columns_counts(history: History) -> None:
    history.add([visit(n, "a") for n in range(50)])
    receipt = history.add([visit(n, "a", title="t", relevance=0.5) for n in range(50)])
    assert (receipt.added, receipt.replaced) == (0, 50)
    assert history.add([visit(n, "a", title="t") for n in range(50)]).replaced == 0


def test_links_that_begin_with_http_but_are_relative_are_kept(history: History) -> None:
    history.add([Visit(url=PAGE, at=START, html="<a href='httpd.html'>x</a><a href='http2.html'>y</a>")])
    assert summary(history).links == 2


@pytest.mark.parametrize("name", ["two words", "50% off", "a,b & c", "ä é 日本", "plus+sign"])
def test_a_history_may_lie_in_any_folder(tmp_path: Path, name: str) -> None:
    history = History.create(tmp_path / name / "history")
    at = datetime(2026, 1, 5, tzinfo=UTC)
    history.add([Visit(url="https://e.org/", at=at, links=["https://e.org/a"], text="words")])
    assert History.open(tmp_path / name / "history").timeline.n_visits == 1
    history.compact()
    history.add([Visit(url="https://e.org/", at=at.replace(day=6), links=["https://e.org/b"], text="words")])
    opened = History.open(tmp_path / name / "history")
    assert opened.novelty.total("previous").tolist() == [-1, 1]
    HINTS.append(opened.beside, HINTS.schema.empty_table())
    row = {"kind": "feed", "source": "s", "host": "e.org", "page": 1, "read_at": at, "changed_at": at}
    HINTS.append(opened.beside, pa.Table.from_pylist([row], schema=HINTS.schema))
    assert HINTS.read(opened.beside).num_rows == 1
