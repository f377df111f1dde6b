"""Tables read row group by row group, against the same tables read whole."""

import weakref
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import link_sets
from recrawl.core.hashing import hash64
from recrawl.core.ids import IdFilter
from recrawl.errors import HistoryError
from recrawl.history import History
from recrawl.history.link_sets import LinkSets
from recrawl.history.row_groups import RowGroup, row_groups, side_by_side
from recrawl.history.schema import LINK_SETS, URLS
from recrawl.history.url_lookup import look_up
from recrawl.web.visit import Visit

IDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
START = datetime(2026, 1, 1, tzinfo=UTC)


def written(folder: Path, rows: pa.Table, *row_group_sizes: int) -> list[RowGroup]:
    """The rows cut into as many files as there are sizes."""
    n_rows = -(-rows.num_rows // len(row_group_sizes))
    files = [folder / f"{i}.parquet" for i in range(len(row_group_sizes))]
    for i, (file, size) in enumerate(zip(files, row_group_sizes, strict=True)):
        pq.write_table(rows.slice(i * n_rows, n_rows), file, row_group_size=size)
    return row_groups(map(str, files))


def test_link_sets_are_the_same_however_they_are_stored(tmp_path: Path) -> None:
    lists = [[1, 5, 2], [], None, [7], [], [3, 4, 8, 9], None]
    rows = pa.table({"digest": range(7), "n_internal": [2, 0, 0, 1, 0, 4, 0], "links": lists}, schema=LINK_SETS)
    for sizes in ([100], [1], [2, 3], [1, 1, 1]):
        groups = written(tmp_path, rows, *sizes)
        for found in (LinkSets.from_groups(groups), link_sets(rows)):
            assert [found.links[a:b].tolist() for a, b in pairwise(found.start)] == [links or [] for links in lists]
            assert found.digest.tolist() == list(range(7))
            assert found.n_internal.tolist() == [2, 0, 0, 1, 0, 4, 0]


def test_no_link_sets_at_all() -> None:
    for found in (LinkSets.from_groups([]), link_sets(LINK_SETS.empty_table())):
        assert (found.start.tolist(), found.links.tolist()) == ([0], [])
        assert found.find(np.array([3]), np.array([True])).tolist() == [-1]


@given(
    st.lists(IDS),
    st.lists(st.tuples(IDS, st.booleans())),
)
def test_a_digest_is_found_at_its_first_position(digests: list[int], asked: list[tuple[int, bool]]) -> None:
    zeros = np.zeros(len(digests), np.int64)
    sets = LinkSets(np.array(digests, np.int64), np.append(0, zeros), zeros[:0], zeros)
    wanted = np.array([digest for digest, _ in asked], np.int64)
    found = sets.find(wanted, np.array([known for _, known in asked], bool))
    expected = [digests.index(digest) if known and digest in digests else -1 for digest, known in asked]
    assert found.tolist() == expected


@given(
    st.sets(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)),
)
def test_wanted_ids_are_found_among_others(wanted: set[int], others: list[int]) -> None:
    ascending = np.array(sorted(wanted), np.int64)
    at, which = IdFilter(ascending).among(np.array(others, np.int64))
    found = {(int(i), int(ascending[k])) for i, k in zip(at, which, strict=True)}
    assert found == {(i, one) for i, one in enumerate(others) if one in wanted}


@pytest.mark.parametrize("by_id", [False, True])  # as appended, and as compacted
def test_urls_are_looked_up_wherever_they_are(tmp_path: Path, by_id: bool) -> None:
    urls = [f"https://e.org/{i}" for i in range(3_000)]
    names = {hash64(url): url for url in urls}
    order = sorted(names) if by_id else list(names)
    rows = pa.table({"id": order, "url": [names[one] for one in order], "trap": [False] * 3_000}, schema=URLS)
    groups = written(tmp_path, rows, 100, 7)
    chance = np.random.default_rng(0)
    asked = [*chance.choice(order, 50).tolist(), 17, order[3], order[3]]
    assert look_up(np.array(asked), groups).to_pylist() == [names.get(one) for one in asked]
    assert look_up(np.array([], np.int64), groups).to_pylist() == []
    assert look_up(np.array([5]), []).to_pylist() == [None]


def test_only_row_groups_that_can_hold_an_id_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": range(1_000), "url": [str(i) for i in range(1_000)], "trap": [False] * 1_000}, schema=URLS)
    groups = written(tmp_path, rows, 50)
    read: list[int] = []
    plain = RowGroup.read
    monkeypatch.setattr(RowGroup, "read", lambda self, columns: read.append(self.number) or plain(self, columns))
    assert look_up(np.array([120, 5_000]), groups).to_pylist() == ["120", None]
    assert set(read) == {2}


def test_results_come_in_order_and_errors_reach_the_caller(tmp_path: Path) -> None:
    rows = pa.table({"id": range(90), "url": ["x"] * 90, "trap": [False] * 90}, schema=URLS)
    groups = written(tmp_path, rows, 7)
    assert list(side_by_side(lambda group: group.number, groups, 1 << 20)) == list(range(13))

    def work(group: RowGroup) -> int:
        if group.number == 4:
            raise ValueError("the fifth is broken")
        return group.number

    with pytest.raises(ValueError, match="fifth"):
        list(side_by_side(work, groups, 1 << 20))


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add([Visit(url="https://e.org/", at=START, links=["https://e.org/a"])])
    (file,) = history.store.files("link_sets")
    Path(file).write_bytes(b"PAR1 this is none PAR1")
    with pytest.raises(HistoryError, match="link_sets"):
        _ = History.open(tmp_path / "history").timeline


def test_released_tables_are_read_again(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add([Visit(url="https://e.org/", at=START + timedelta(days=n), links=[]) for n in range(3)])
    before = history.slim_timeline
    history.release()
    assert history.slim_timeline is not before
    assert history.slim_timeline.at.tolist() == before.at.tolist()


def test_links_are_in_memory_once_also_where_a_visit_is_stored_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.create(tmp_path)
    once = Visit(url="https://e.org/", at=START, links=["https://e.org/a"])
    history.add([once])
    history.add([replace(once, title="a better one")])
    held: list[weakref.ref[LinkSets]] = []
    made = LinkSets.from_groups.__func__

    def counted(cls: type[LinkSets], groups: list[RowGroup]) -> LinkSets:
        assert not any(one() is not None for one in held)
        sets: LinkSets = made(cls, groups)
        held.append(weakref.ref(sets))
        return sets

    monkeypatch.setattr(LinkSets, "from_groups", classmethod(counted))
    assert History.open(tmp_path).slim_timeline.n_visits == 1
    assert len(held) == 2


def test_visits_after_a_moment(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([Visit(url="https://e.org/", at=START + timedelta(hours=i), links=[]) for i in range(4)])
    later = START + timedelta(hours=1)
    assert history.visits_since(later, ["page", "at"]).num_rows == 2
    assert history.as_of(START + timedelta(hours=2)).visits_since(later, ["at"])["at"].to_pylist() == [
        START + timedelta(hours=2)
    ]
