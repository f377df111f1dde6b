import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_visits import laid_out
from making import imported, jsonl
from planning import surveyed
from recrawl.history import History
from recrawl.plan.default import default_policy
from recrawl.policies import named
from recrawl.policies.overlap import Overlap
from recrawl.testing import tiny_world
from recrawl.web.hosts import hosts_and_sites
from recrawl.web.visit import Visit
from recrawl.world import kernels as world_kernels
from recrawl.world.batches import CrawlPace, rule_for
from recrawl.world.crawler import Crawler
from recrawl.world.notions import notion_or_any
from recrawl.world.page_names import folders_and_namesakes
from recrawl.world.pages import Need
from recrawl.world.readings import ONLY_RECORDED
from recrawl.world.recorded import FAILED, UNREAD
from recrawl.world.recording import record
from recrawl.world.related import Related
from recrawl.world.showings import Showings
from recrawl.world.stream import Stream, next_segment

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def visit(page: str, hours: float, links: list[int] | None = None, **more: Any) -> dict[str, Any]:
    record_of = {"url": f"https://e.org/{page}", "at": (NOW + timedelta(hours=hours)).isoformat()} | more
    return record_of | ({} if links is None else {"links": [f"https://e.org/l{i}" for i in links]})


def history_of(folder: Path, records: list[dict[str, Any]]) -> History:
    return imported(folder, jsonl(records))[1]


ENDS = [NOW + timedelta(hours=hours) for hours in (1, 2, 3)]


def test_cycle_0_holds_most_pages_not_most_visits(tmp_path: Path) -> None:
    early = [visit("a", 0.1 * i, [1]) for i in range(4)]
    later = [visit(page, hours, [1, 2]) for hours in (1.5, 2.5) for page in "abc"]
    assert record(history_of(tmp_path, early + later), ENDS).n_cycles == 1


def test_what_stragglers_showed_is_known_to_all(tmp_path: Path) -> None:
    records = [visit("a", 0.5, [9]), *(visit(page, 1.5, [1]) for page in "abc")]
    world = record(history_of(tmp_path, [*records, *(visit(page, 2.5, [1, 9]) for page in "abc")]), ENDS)
    assert world.discoverable == 0
    crawler = Crawler(world)
    assert crawler.visit(np.arange(3)).visits.n_found == 0


def test_a_visit_whose_links_are_not_known_is_a_visit_and_shows_changes(tmp_path: Path) -> None:
    records = [
        visit(page, 0.5, text_digest="x" if page == "b" else None, links=None if page == "b" else [1]) for page in "abc"
    ]
    records += [visit(page, 1.5, links=None, text_digest=page) for page in "abc"]
    records += [visit("b", 2.5, links=None, text_digest="b")]
    history, stream = history_of(tmp_path, records), Stream()
    world = record(history, ENDS)
    assert world.url.to_pylist() == ["https://e.org/a", "https://e.org/c"]  # the other one never shows its links
    assert laid_out(world, world.shows)[1].tolist() == [UNREAD, UNREAD]
    rule, until = rule_for(ENDS, CrawlPace()), int(history.timeline.at.max())
    segment = next_segment(stream, history, Showings.of(history, history.timeline, until=until), rule)
    batches = stream.follow(segment)
    first, _ = next(batches)
    assert first.answered.tolist() == [True, False, True]
    assert not first.failed.any()
    assert stream.pages.n_visits.tolist() == [1, 1, 1]
    (second, _), (third, _) = batches
    assert second.answered.tolist() == [False, False, False]
    assert not second.failed.any()
    assert second.changed[1] == 1
    assert third.changed.tolist() == [0]


def test_visits_followed_as_they_come_are_those_that_are_made_in_the_recorded_world(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    marks = [{"status": 503}, {"status": 404}, {"links": None, "text_digest": "x"}, None]
    records = [visit(page, 0.0, [1, 2]) for page in "abcdef"]
    for hours in range(1, 9):
        for page in "abcdefgh"[: 6 + hours // 3]:
            mark = marks[chance.integers(4)] if chance.random() < 0.3 else {"links": chance.integers(0, 40, 5).tolist()}
            records += [] if mark is None else [visit(page, float(hours), **mark)]
    history = history_of(tmp_path, records)
    rule = rule_for([NOW + timedelta(hours=hours) for hours in range(9)], CrawlPace())
    world, stream = record(history, [NOW + timedelta(hours=hours) for hours in range(9)]), Stream()
    needs, until = frozenset({Need.UPDATES}), int(history.timeline.at.max())
    crawler = Crawler(world, needs, between=ONLY_RECORDED)
    n_known = 0
    showings = Showings.of(history, history.timeline, until=until, needs=needs)
    for cycle, (visits, n_before) in enumerate(
        stream.follow(next_segment(stream, history, showings, rule, needs=needs))
    ):
        other = crawler.visit_recorded().visits if cycle else crawler.first.visits
        assert n_before == n_known
        n_known = len(stream.pages)
        assert stream.page[:n_known].tolist() == world.page[: len(crawler.pages)].tolist()
        for name in (
            "at",
            "ended_at",
            "page",
            "age_hours",
            "is_first",
            "answered",
            "gone",
            "failed",
            "changed",
            "n_new_since",
            "updated",
            "n_found",
        ):
            np.testing.assert_array_equal(getattr(visits, name), getattr(other, name), name)
        for name in ("shown", "new"):
            found, expected = getattr(visits, name), getattr(other, name)
            assert found.sizes.tolist() == expected.sizes.tolist()
            for i in range(len(visits)):
                assert sorted(np.concatenate(stream.links)[found[i]]) == sorted(world.link[expected[i]])
    assert cycle == world.n_cycles == 8


def test_a_failed_visit_says_nothing_about_overlap() -> None:
    world = tiny_world([[{0}, {0}], [{0, 1, 2}, {0, 1, 2}], [{3, 4}, FAILED], [{5}, {6}]], site=[0, 0])
    crawler, overlap = Crawler(world), Overlap(world.site)
    overlap.observe(crawler.first.visits)
    shares = []
    for _ in range(3):
        overlap.observe(crawler.visit(np.array([0, 1])).visits)
        shares.append(overlap.get(0, 1))
    assert shares == [1.0, 1.0, 0.0]


def test_what_is_read_in_a_new_way_is_known_and_not_new(tmp_path: Path) -> None:
    records = [visit(page, 0.5, [1]) for page in "ab"]
    records += [visit("a", 1.5, [1, 5], baseline=True), visit("b", 1.5, [1])]
    records += [visit("a", 2.5, [1, 5, 6]), visit("b", 2.5, [1])]
    world = record(history_of(tmp_path, records), ENDS)
    assert world.discoverable == 1
    crawler = Crawler(world)
    crawler.visit(np.array([1]))
    seen = crawler.visit(np.array([0])).visits
    assert seen.n_found == 1
    assert seen.n_new_since.tolist() == [-1]  # its last copy was read otherwise


def test_a_slim_timeline_gives_the_same_world(tmp_path: Path) -> None:
    records = [visit(page, hours, [1, int(hours)]) for page in "abc" for hours in (0.5, 1.5, 2.5)]
    history = history_of(tmp_path, records)
    slim = History.open(history.store.folder).slim_timeline
    for name in ("page", "at", "links", "latest", "text_changed", "compared_with"):
        np.testing.assert_array_equal(getattr(slim, name), getattr(history.timeline, name))


def test_hosts_are_those_of_the_urls() -> None:
    from recrawl.web import urls

    spelled = [
        "http://e.org/",
        "https://e.org:8443/a?b=http://x.org/",
        "http://[::1]:80/x",
        "https://sub.e.co.uk/p@q",
        "http://127.0.0.1/",
        "https://xn--bcher-kva.example/%40",
        "http://user:pw@e.org/x",
        "https://e.org/a#b",
    ]
    canonical = [urls.canonical(url) for url in spelled]
    host, site = hosts_and_sites(pa.array(canonical))
    names = [urls.host(url) for url in canonical]
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            assert (host[i] == host[j]) == (one == other)
            assert (site[i] == site[j]) == (urls.site(one) == urls.site(other))


def spelt(url: str) -> tuple[str, str]:
    """The folder of a URL, and its host with its name, slowly."""
    path, mark, query = url.partition("?")
    folder, _, name = path.rpartition("/")
    names = [part.partition("=")[0] for part in query.split("&")]
    return folder, path.split("/")[2] + "/" + re.sub(
        "(%..)|[0-9]+", lambda found: found[1] or "#", name + mark + "&".join(names)
    )


@given(
    st.lists(
        st.builds(
            lambda host, folder, name, query: f"http://{host}.org/{folder}{name}{query}",
            st.sampled_from(["a", "b", "a1"]),
            st.sampled_from(["", "x/", "x/1/", "x/y/", "1/"]),
            st.lists(st.sampled_from([*"ab19.-", "%D0%B0", "%D0%B1", "%201"]), max_size=4).map("".join),
            st.sampled_from(
                ["", "?", "?a=1", "?a=22", "?a=/x/1", "?b=1", "?a=1&b=2", "?a&b", "?1=a", "?11=b", "?a=b=c&d", "?a=?"]
            ),
        ),
        max_size=12,
    )
)
def test_pages_are_alike_that_share_a_folder_or_a_name_but_for_numbers(urls: list[str]) -> None:
    found = folders_and_namesakes(pa.array(["http://e.org/", *urls], pa.string())[1:])  # also if they begin further on
    expected = [spelt(url) for url in urls]
    for i, one in enumerate(expected):
        for j, other in enumerate(expected):
            assert [part[i] == part[j] for part in found] == [one[k] == other[k] for k in (0, 1)]


def test_schedulers_learn_from_visits_that_show_only_whether_a_page_changed(tmp_path: Path) -> None:
    """As a CDX index has them: digests, and no links."""
    ends = [NOW + timedelta(days=day) for day in range(1, 13)]
    records = []
    for day in range(12):
        for page, digest in (("busy", f"v{day}"), ("quiet", "same")):
            records.append(visit(page, 24 * day + 1, links=None, text_digest=digest))
    history = history_of(tmp_path, records)
    situation = {
        name: surveyed(history, named(name), ends)
        for name in ("lambda-crawl", "nutch-adaptive", "stormcrawler-adaptive")
    }
    rates = situation["lambda-crawl"].policy.rates_.per_day  # type: ignore[attr-defined]
    assert rates[0] > 5 * rates[1]
    for name in ("nutch-adaptive", "stormcrawler-adaptive"):
        interval = situation[name].policy.interval_  # type: ignore[attr-defined]
        assert interval[0] < interval[1]
        assert not situation[name].pages.n_failures.any()


def test_a_world_with_its_pages_in_another_order_shows_the_same() -> None:
    world = tiny_world([[{1}, {2}, {3}], [{1, 4}, FAILED, {5}]])
    moved = world.reordered(np.array([2, 0, 1]))
    assert moved.url.to_pylist() == [world.url[i].as_py() for i in (2, 0, 1)]
    shows, moved_shows = (laid_out(each, each.shows) for each in (world, moved))
    assert moved_shows.T.tolist() == [shows[:, i].tolist() for i in (2, 0, 1)]
    assert (moved.site[0], moved.page[2]) == (world.site[2], world.page[1])
    assert moved.discoverable == world.discoverable


def test_related_pages_keep_pointing_at_each_other_in_another_order() -> None:
    neighbour, weight = np.array([[1], [0], [-1]], np.int32), np.array([[1.0], [1.0], [0.0]], np.float32)
    world = replace(tiny_world([[{1}, {2}, {3}]]), related=Related(neighbour, weight, "exact", 1.0))
    assert world.reordered(np.array([2, 0, 1])).related.neighbour.tolist() == [[-1], [2], [1]]


@given(
    lists=st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=12, unique=True), max_size=8
    ),
    keep=st.lists(st.booleans(), min_size=8, max_size=8),
    internal=st.lists(st.integers(0, 12), min_size=8, max_size=8),
    before=st.lists(st.integers(-1, 7), min_size=8, max_size=8),
    is_sorted=st.booleans(),
    part=st.sampled_from([1, 3, world_kernels.PART]),
)
def test_links_are_numbered_in_the_order_of_first_sight(
    lists: list[list[int]],
    keep: list[bool],
    internal: list[int],
    before: list[int],
    is_sorted: bool,
    part: int,
) -> None:
    n_internal = [min(n, len(links)) for n, links in zip(internal, lists, strict=False)]
    if is_sorted:  # as they are stored: the internal ones ascending, then the external ones
        lists = [sorted(links[:n]) + sorted(links[n:]) for n, links in zip(n_internal, lists, strict=True)]
    start = np.append(0, np.cumsum([len(links) for links in lists])).astype(np.int64)
    links = np.array([link for one in lists for link in one], np.int64)
    used = np.flatnonzero(np.array(keep[: len(lists)], bool))
    earlier = np.array([min(before[i], i - 1) for i in range(len(used))], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world_kernels, "PART", part)
        found_start, numbers, stands_for = world_kernels.numbered(
            start, links, np.array(n_internal, np.int64), used, earlier
        )
    seen: dict[int, int] = {}
    expected = [sorted(seen.setdefault(link, len(seen)) for link in lists[i]) for i in used]
    assert [numbers[a:b].tolist() for a, b in pairwise(found_start)] == expected
    assert stands_for.tolist() == list(seen)


def test_a_plan_is_made_of_one_reading_of_the_history_though_others_add_to_it(tmp_path: Path) -> None:
    records = [
        visit(page, 24 * day, list(range(day + 1)), text=f"word{day} of {page}") for page in "abc" for day in range(4)
    ]
    history = history_of(tmp_path, records)
    assert default_policy(history).policy == "expected-harvest"  # it reads the visits
    History.open(history.store.folder).add(
        [Visit(url="https://e.org/a", at=NOW + timedelta(days=4), links=[], text="z")]
    )
    assert len(surveyed(history, named("round-robin"), notion=notion_or_any("significant")).pages) == 3
