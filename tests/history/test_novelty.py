"""What was new, compared with a version of a few lines that reads like the definition."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from making import link_sets
from recrawl.history import BatchBuilder, count_new
from recrawl.history.timeline import build, ordered
from recrawl.web.urls import origin, page_id
from recrawl.web.visit import Outcome, Visit

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = [f"http://{host}.org/{i}" for host in "ab" for i in range(3)]
LINKS = [f"http://{host}.org/link/{i}" for host in "abc" for i in range(6)]

visits = st.builds(
    Visit,
    url=st.sampled_from(PAGES),
    at=st.integers(0, 12).map(lambda hour: START + timedelta(hours=hour)),
    status=st.sampled_from([200, 200, 200, 304, 304, 404, 410, 500, 0, 301]),
    links=st.none() | st.lists(st.sampled_from(LINKS), max_size=8),
    text_digest=st.none() | st.sampled_from(["x", "y", "z"]),
    baseline=st.integers(0, 5).map(lambda n: n == 0),
)
histories = st.lists(visits, max_size=40, unique_by=lambda visit: (visit.url, visit.at))


def shown(past: Sequence[Visit], visit: Visit, sets: dict[int, set[str] | None]) -> set[str] | None:
    """The links a visit shows: its own, those of the newest copy with its digest, or for a plain 304 the last known ones."""
    if Outcome.of(visit.status) in (Outcome.GONE, Outcome.FAILED):
        return None
    if visit.links is not None:
        return set(visit.links)
    with_digest = [v for v in reversed(past) if Outcome.of(v.status) is Outcome.OK and v.text_digest]
    if visit.text_digest and with_digest:
        return next((sets[id(v)] for v in with_digest if v.text_digest == visit.text_digest), None)
    known = [sets[id(v)] for v in reversed(past) if sets[id(v)] is not None]
    return known[0] if known and visit.status == 304 else None


def definition(history: Sequence[Visit]) -> dict[tuple[str, datetime], dict[str, set[str]] | None]:
    """Per visit the new links in each meaning, straight from the definitions; None where undefined."""
    ordered = sorted(history, key=lambda v: v.at)
    sets: dict[int, set[str] | None] = {}
    for visit in ordered:
        sets[id(visit)] = shown([v for v in ordered if v.url == visit.url and v.at < visit.at], visit, sets)
    answer: dict[tuple[str, datetime], dict[str, set[str]] | None] = {}
    for visit in ordered:
        links = sets[id(visit)]
        past = [v for v in ordered if v.url == visit.url and v.at < visit.at]
        since = max((v.at for v in past if v.baseline), default=START)
        before = [sets[id(v)] or set() for v in past if sets[id(v)] is not None]
        to_compare = [sets[id(v)] or set() for v in past if sets[id(v)] is not None and v.at >= since]
        if links is None or not to_compare or visit.baseline:
            answer[visit.url, visit.at] = None
            continue
        elsewhere = [sets[id(v)] or set() for v in ordered if v.at < visit.at]
        answer[visit.url, visit.at] = {
            "previous": links - to_compare[-1],
            "page": links.difference(*before),
            "anywhere": links.difference(*elsewhere),
        }
    return answer


@settings(max_examples=300, deadline=None)
@given(histories)
def test_new_links_are_those_of_the_definitions(history: list[Visit]) -> None:
    builder = BatchBuilder()
    for visit in history:
        builder.add(visit)
    batch = builder.take()
    timeline = build(ordered(batch["visits"]), link_sets(batch["link_sets"]))
    new = count_new(timeline)
    urls = {page_id(url): url for url in PAGES}
    expected = definition(history)
    distinct: set[str] = set()
    for v in range(timeline.n_visits):
        url = urls[timeline.page[v]]
        answer = expected[url, START + timedelta(microseconds=int(timeline.at[v]) - int(START.timestamp()) * 1_000_000)]
        for meaning in ("previous", "page", "anywhere"):
            counts = (getattr(new, f"{meaning}_internal")[v], getattr(new, f"{meaning}_external")[v])
            if answer is None:
                assert counts == (-1, -1)
                assert new.total(meaning)[v] == -1
            else:
                internal = sum(origin(url) == origin(link) for link in answer[meaning])
                assert counts == (internal, len(answer[meaning]) - internal)
                assert new.total(meaning)[v] == len(answer[meaning])
        distinct |= answer["anywhere"] if answer else set()
    assert new.n_distinct_anywhere == len(distinct)


def test_a_long_page_with_many_links_is_counted_right(tmp_path: Path) -> None:
    """More links than the first tables hold, so that they must grow."""
    builder = BatchBuilder()
    for day in range(3):
        links = [f"http://a.org/l/{i}" for i in range(day * 1000, day * 1000 + 5000)]
        builder.add(Visit(url=PAGES[0], at=START + timedelta(days=day), links=links))
    batch = builder.take()
    new = count_new(build(ordered(batch["visits"]), link_sets(batch["link_sets"])))
    assert new.total("previous").tolist() == [-1, 1000, 1000]
    assert new.total("page").tolist() == [-1, 1000, 1000]
    assert new.n_links == 7000
