"""Made-up links agree with any counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recrawl.sources.lbla.stand_ins import StandIns, sizes

counts = st.integers(0, 12)
crawls = st.lists(st.tuples(counts, st.none() | counts), min_size=1, max_size=10)


@given(crawls)
def test_new_links_are_as_counted_and_totals_as_stated_unless_they_contradict(
    found: list[tuple[int, int | None]],
) -> None:
    n_new = [0, *(new for new, _ in found[1:])]
    stated = [total for _, total in found]
    links, shown = StandIns("https://e.org/"), []
    for n, new in zip(sizes(n_new, stated), n_new, strict=True):
        shown.append(set(links.next(n, new)))
    for before, now, new, total in zip(shown, shown[1:], n_new[1:], stated[1:], strict=False):
        assert len(now - before) == new
        if total is not None and total >= new and total - new <= len(before):
            assert len(now) == total


@given(crawls)
def test_where_one_total_is_stated_it_is_kept_if_it_can_be(found: list[tuple[int, int | None]]) -> None:
    n_new = [0, *(new for new, _ in found[1:])]
    for place in range(len(found)):
        total = n_new[place] + 3
        n = sizes(n_new, [total if i == place else None for i in range(len(found))])
        links = StandIns("https://e.org/")
        assert [len(links.next(*pair)) for pair in zip(n, n_new, strict=True)] == n
        assert n[place] == total
