"""Other archives than the Internet Archive, whole sites instead of pages, and an archive that has had enough."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadOption, BadUrl
from recrawl.sources.response import response_visit
from recrawl.sources.wayback import INTERFACES, Archive, Client, Clock, Filters
from recrawl.sources.wayback import state as states
from recrawl.sources.wayback.captures import DOMAIN, EXACT, PREFIX, Capture, IndexPage, IndexRequest
from recrawl.sources.wayback.question import Question
from recrawl.sources.wayback.windows import ask_by_time
from recrawl.web.visit import Visit

sys.path.insert(0, str(Path(__file__).parent))
from archive_server import NOW, ArchiveServer, FastClock
from other_archives import Busy, MapsOnly, Outback, Reply, Server


def archive(server: str, folder: Path, clock: Clock | None = None, **options: Any) -> Archive:
    waits = {name: options.pop(name) for name in ("patience", "on_wait") if name in options}
    client = Client("t me@e.org", base_url=server, clock=clock or FastClock(), tries=3, **waits)
    return Archive(client, folder, response_visit, **options)


def collect(run: Archive, *urls: str) -> list[Visit]:
    deliveries = list(run.visits(urls))
    run.acknowledge(*deliveries)
    run.client.close()
    return [delivery.visit for delivery in deliveries]


def seen(visits: list[Visit]) -> list[tuple[str, str]]:
    return [(visit.url, visit.at.strftime("%Y%m%d")) for visit in visits]


# -- what a user asks for ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "url", "match"),
    [
        ("https://e.org/a", "https://e.org/a", EXACT),
        ("e.org/~me/*", "http://e.org/~me/", PREFIX),
        ("https://e.org/~me*", "https://e.org/~me", PREFIX),
        ("e.org/*", "http://e.org/", PREFIX),
        ("*.e.org", "http://e.org/", DOMAIN),
        ("https://*.e.org/*", "http://e.org/", DOMAIN),
    ],
)
def test_a_star_at_the_end_is_a_prefix_and_one_in_front_a_domain(text: str, url: str, match: str) -> None:
    assert (Question.of(text).url, Question.of(text).match) == (url, match)


@pytest.mark.parametrize(
    ("text", "way_out"),
    [("e.org*", r"write e\.org/\* for one host"), ("*.e.org/a/*", "ask for e.org/a"), ("*.", "URL")],
)
def test_a_pattern_that_means_nothing_is_refused_with_the_way_out(text: str, way_out: str) -> None:
    with pytest.raises(BadUrl, match=way_out):
        Question.of(text)


def test_the_page_at_a_prefix_is_asked_for_by_itself() -> None:
    """Its key in the index has no slash at its end, so the prefix does not list it."""
    assert Question.of("e.org/~me/*").parts == (("http://e.org/~me/", EXACT), ("http://e.org/~me/", PREFIX))
    assert Question.of("e.org/*").parts == (("http://e.org/", PREFIX),)


@pytest.mark.parametrize(
    ("url", "depth"),
    [
        ("http://foo.edu/~bar", 0),
        ("http://foo.edu/~bar/?page=2", 0),
        ("https://www.foo.edu/%7Ebar/baz", 1),
        ("http://foo.edu:80/~Bar/baz/qux/", 2),
        ("http://foo.edu/~bar/baz/qux/quux", 3),
        ("http://foo.edu/~barbara/", None),
        ("http://foo.edu.example/~bar/", None),
    ],
)
def test_depth_is_counted_in_path_segments_below_the_prefix(url: str, depth: int | None) -> None:
    """The paper's own example: ``foo.edu/~bar/baz`` is at depth 1, ``foo.edu/~bar/baz/qux/quux`` at depth 3."""
    asked = Question.of("foo.edu/~bar/*")
    assert asked.holds(url) == (depth is not None)
    assert depth is None or asked.depth(url) == depth


def test_depth_of_a_domain_is_counted_from_each_host() -> None:
    asked = Question.of("*.foo.edu")
    assert [asked.depth(f"http://{host}/a/b") for host in ("foo.edu", "cs.foo.edu")] == [2, 2]
    assert asked.holds("https://cs.foo.edu/x")
    assert not asked.holds("https://barfoo.edu/x")


# -- whole sites from the Internet Archive ----------------------------------------------------------------------------


@pytest.fixture
def site() -> Iterator[Any]:
    """``foo.edu/~bar/`` with a page, a paper and a page far below, a neighbour, and another host of the domain."""
    with ArchiveServer() as remote:
        at = iter(range(1, 29))
        pages = ("http://foo.edu/~bar/", "http://foo.edu/~bar/cv.html", "http://foo.edu/~bar/a/b/c.html")
        for url in (*pages, "http://foo.edu/~barbara/", "http://lab.foo.edu/"):
            for version in ("1", "2"):
                remote.capture(f"202501{next(at):02d}000000", url, version * 32, body=b"<a href='/x'>x</a>")
        for day, status in ((20, "200"), (21, "404")):
            mime = "application/pdf" if status == "200" else "text/html"
            remote.capture(f"202501{day}000000", "http://foo.edu/~bar/paper", status * 10, mime=mime, status=status)
        yield remote


def test_everything_below_a_prefix_up_to_a_depth(site: Any, tmp_path: Path) -> None:
    run = archive(site.base_url, tmp_path, interface="internet-archive", filters=Filters(depth=2))
    pages = ["http://foo.edu/~bar/", "http://foo.edu/~bar/cv.html", "http://foo.edu/~bar/paper"]
    visits = collect(run, "foo.edu/~bar/*")
    assert seen(visits) == [
        (pages[0], "20250101"), (pages[0], "20250102"), (pages[1], "20250103"), (pages[1], "20250104"),
        (pages[2], "20250120"), (pages[2], "20250121"),
    ]  # fmt: skip
    assert [visit.links for visit in visits[:4]] == [["/x"]] * 4
    assert run.report.skipped == {"deeper than 2": 2}
    assert ["matchType=exact" in path for path in site.index_requests] == [True, False]


def test_a_domain_has_all_its_hosts(site: Any, tmp_path: Path) -> None:
    run = archive(site.base_url, tmp_path, interface="internet-archive", mementos=False)
    hosts = {visit.url.split("/")[2] for visit in collect(run, "*.foo.edu")}
    assert hosts == {"foo.edu", "lab.foo.edu"}
    assert len(site.rows) == run.report.captures == run.report.visits


@pytest.mark.parametrize(
    ("pdf", "n_visits", "left_out"),
    [("only", 2, {"not a PDF file": 6}), ("without", 6, {"PDF file": 2}), ("with", 8, {})],
)
def test_pdf_files_can_be_all_or_none_of_it(
    pdf: str, n_visits: int, left_out: dict[str, int], site: Any, tmp_path: Path
) -> None:
    """A file that is missing at times is still that file: its 404 belongs to its history."""
    options = {"interface": "internet-archive", "mementos": False, "filters": Filters(pdf=pdf)}
    run = archive(site.base_url, tmp_path, **options)
    assert len(collect(run, "foo.edu/~bar/*")) == n_visits
    assert run.report.skipped == left_out
    other = archive(site.base_url, tmp_path, interface="internet-archive", mementos=False)
    assert len(collect(other, "foo.edu/~bar/*")) == 8 - n_visits  # what was left out is not lost
    assert len(site.index_requests) == 2  # and the index is not asked again


def test_filters_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadOption, match="known: with, only, without"):
        Filters(pdf="some")
    with pytest.raises(BadOption, match="0 is the page"):
        Filters(depth=-1)


@pytest.mark.parametrize("long", [1, 10**9])
@pytest.mark.parametrize("page_size", [1, 3, 100])
def test_a_site_goes_on_where_the_last_run_was_killed(
    page_size: int, long: int, site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With short states, which are written whole, and with long ones, which have a journal."""
    monkeypatch.setattr(states, "LONG", long)
    whole = collect(archive(site.base_url, tmp_path / "whole", interface="internet-archive"), "foo.edu/~bar/*")
    asked = len(site.log)
    found: list[Visit] = []
    for _ in range(40):
        run = archive(site.base_url, tmp_path / "killed", interface="internet-archive", page_size=page_size)
        for delivery in run.visits(["foo.edu/~bar/*"]):  # one visit for each life
            run.acknowledge(delivery)
            found.append(delivery.visit)
            break
    assert found == whole
    more = [path for path in site.log[asked:] if path.startswith("/cdx/")]
    assert len(more) == len(set(more))  # no page of the index was asked for twice


def test_half_a_line_at_the_end_of_a_journal_costs_one_step(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "LONG", 1)
    run = archive(site.base_url, tmp_path, interface="internet-archive", mementos=False)
    for delivery in run.visits(["foo.edu/~bar/*"]):
        run.acknowledge(delivery)
    (journal,) = tmp_path.glob("*.journal")
    journal.write_bytes(journal.read_bytes()[:-4])
    again = archive(site.base_url, tmp_path, interface="internet-archive", mementos=False)
    assert seen(collect(again, "foo.edu/~bar/*")) == [("http://foo.edu/~bar/paper", "20250121")]
    assert len(site.index_requests) == 2
    for damaged in (b"", b"\xff\n", b"[]\n", b'{"captures": 3}\n', b'{"stored": [1]}\n', b'{"half'):
        journal.write_bytes(journal.read_bytes() + damaged if journal.exists() else damaged)
        later = archive(site.base_url, tmp_path, interface="internet-archive", mementos=False)
        assert collect(later, "foo.edu/~bar/*") == []


def test_the_state_of_an_earlier_version_is_continued(site: Any, tmp_path: Path) -> None:
    """It has no parts, and no addresses of copies; its name is the same."""
    url = "http://foo.edu/~bar/"
    assert len(collect(archive(site.base_url, tmp_path, interface="internet-archive"), url)) == 2
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    del record["part"]
    record |= {"resume_key": None, "complete_at": None}
    record["captures"] = record["captures"][:1]
    path.write_text(json.dumps(record))
    assert [visit.at.day for visit in collect(archive(site.base_url, tmp_path, interface="internet-archive"), url)] == [
        2
    ]
    assert path == states.state_path(tmp_path, url, site.base_url, True)


# -- paging by time ---------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 400)), max_size=60),
    st.integers(2, 9),
    st.sampled_from([EXACT, PREFIX]),
)
def test_spans_of_time_find_every_capture_once_or_more(
    given_captures: list[tuple[str, int]], size: int, match: str
) -> None:
    """Against an index that answers with the first captures of a span, in the order of page and time, and drops the rest."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    pages = {"a"} if match == EXACT else {"a", "b", "c"}
    rows = sorted(
        (page, (start + timedelta(seconds=second)).strftime("%Y%m%d%H%M%S"))
        for page, second in given_captures
        if page in pages
    )

    def ask(window: tuple[str, str], limit: int) -> IndexPage:
        inside = [row for row in rows if window[0] <= row[1] <= window[1]][:limit]
        return IndexPage([Capture(at, f"http://e.org/{page}", "text/html", 200, "A") for page, at in inside], None)

    found: set[tuple[str, str]] = set()
    key: str | None = None
    for _ in range(2000):
        request = IndexRequest("http://e.org/", match, resume_key=key, page_size=size)
        page = ask_by_time(request, NOW, ask)
        found |= {(capture.original[-1], capture.timestamp) for capture in page.captures}
        key = page.resume_key
        if key is None:
            break
    assert key is None
    assert found == set(rows)


# -- OutbackCDX -------------------------------------------------------------------------------------------------------


@pytest.fixture
def outback() -> Iterator[Any]:
    with Outback() as running:
        for day in range(1, 8):
            running.capture(f"2025010{day}000000", "http://e.org/a/", f"{day // 2:032d}===")
        running.capture("20250108000000", "http://e.org/a/", "3".zfill(32), mime="warc/revisit", status="0")
        for name in "bcd":
            running.capture("20250110000000", f"http://e.org/a/{name}", name * 32)
        running.capture("20250110000000", "http://e.org/apple", "E" * 32)
        running.capture("20250110000000", "http://sub.e.org/", "F" * 32)
        running.capture("20250110000000", "http://e.organic.example/", "G" * 32)
        running.capture("20250110000000", "http://zz.org/", "H" * 32)
        yield running


def test_outbackcdx_is_recognised_and_its_lines_are_visits(outback: Any, tmp_path: Path) -> None:
    run = archive(f"{outback.base_url}/index", tmp_path)
    visits = collect(run, "http://e.org/a/")
    assert run.report.failed == {}
    assert [visit.status for visit in visits] == [200, 200, 304, 200, 304, 200, 304, 304]
    assert visits[0].payload_digest == f"sha1:{0:032d}"  # without the signs that fill it up
    assert run.report.without_links == {"unchanged": 4, "the archive shows no raw copy": 4}


@pytest.mark.parametrize("page_size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("e.org/a/*", {"http://e.org/a/", "http://e.org/a/b", "http://e.org/a/c", "http://e.org/a/d"}),
        ("e.org/a*", {f"http://e.org/{path}" for path in ("a/", "a/b", "a/c", "a/d", "apple")}),
        ("*.e.org", {f"http://e.org/{path}" for path in ("a/", "a/b", "a/c", "a/d", "apple")} | {"http://sub.e.org/"}),
    ],
)
def test_prefixes_and_domains_of_outbackcdx_are_read_to_the_end(
    asked: str, expected: set[str], page_size: int, outback: Any, tmp_path: Path
) -> None:
    run = archive(f"{outback.base_url}/index", tmp_path, interface="outbackcdx", page_size=page_size)
    visits = collect(run, asked)
    assert run.report.failed == {}
    assert {visit.url for visit in visits} == expected
    assert len(visits) == 8 + len(expected) - 1


def test_copies_of_an_index_without_copies_are_where_the_user_says(outback: Any, tmp_path: Path) -> None:
    with MapsOnly() as copies:
        copies.capture("20250110000000", "http://e.org/a/b", b"<a href='/new'>n</a>")
        where = {"interface": "outbackcdx", "copies": f"{copies.base_url}/archive"}
        (visit,) = collect(archive(f"{outback.base_url}/index", tmp_path, **where), "http://e.org/a/b")
    assert visit.links == ["/new"]


# -- TimeMaps ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def maps() -> Iterator[Any]:
    with MapsOnly() as running:
        for day in range(1, 9):
            running.capture(f"2025010{day}000000", "http://e.org/", f"<a href='/{day}'>x</a>".encode())
        running.capture("20250109000000", "http://e.org/", b"gone", status=404)
        running.capture("20250110000000", "http://e.org/", status=301, Location="http://e.org/new")
        yield running


def test_all_pages_of_a_timemap_are_read_and_copies_say_what_they_are(maps: Any, tmp_path: Path) -> None:
    run = archive(maps.base_url, tmp_path)
    visits = collect(run, "http://e.org/")
    assert run.report.failed == {}
    assert [visit.status for visit in visits] == [200] * 8 + [404, 301]
    assert [visit.links for visit in visits[:8]] == [[f"/{day}"] for day in range(1, 9)]
    pages = [path for path in maps.log if path.startswith("/timemap/link/")]
    assert len(set(pages)) == 4  # ten mementos, three a page
    again = archive(maps.base_url, tmp_path)
    before = len(maps.log)
    assert collect(again, "http://e.org/") == []
    assert len(maps.log) == before


def test_a_page_without_a_timemap_has_no_captures(maps: Any, tmp_path: Path) -> None:
    run = archive(maps.base_url, tmp_path)
    assert collect(run, "http://nothing.example/") == []
    assert run.report.failed == {}


def test_timemaps_know_single_pages_only_and_say_so(maps: Any, tmp_path: Path) -> None:
    run = archive(maps.base_url, tmp_path, interface="timemap")
    assert collect(run, "e.org/*", "http://e.org/") != []
    assert "give pages instead of a pattern" in run.report.failed["e.org/*"]


def test_the_span_of_a_question_holds_for_timemaps_too(maps: Any, tmp_path: Path) -> None:
    span = {"since": datetime(2025, 1, 3, tzinfo=UTC), "until": datetime(2025, 1, 5, tzinfo=UTC)}
    visits = collect(archive(maps.base_url, tmp_path, interface="timemap", **span), "http://e.org/")
    assert [visit.at.day for visit in visits] == [3, 4, 5]


def test_a_map_that_leads_to_another_server_is_not_followed(tmp_path: Path) -> None:
    class Aggregator(Server):
        def reply(self, path: str) -> Reply:
            text = (
                '<http://e.org/>; rel="original", <http://127.0.0.1:9/x>; rel="timemap"; type="application/link-format", '
                '<http://127.0.0.1:9/20250101000000/http://e.org/>; rel="memento"; datetime="Wed, 01 Jan 2025 00:00:00 GMT"'
            )
            is_map = path.startswith("/timemap/link/")
            return (200, {"Content-Type": "application/link-format"}, text.encode()) if is_map else (404, {}, b"")

    with Aggregator() as server:
        run = archive(server.base_url, tmp_path)
        (visit,) = collect(run, "http://e.org/")
    assert visit.links is None
    assert run.report.skipped == {"page of a TimeMap on another server": 1}
    assert run.report.without_links == {"the archive shows no raw copy": 1}


# -- what a server speaks ---------------------------------------------------------------------------------------------


def test_a_server_is_asked_what_it_speaks_once_and_politely(outback: Any, tmp_path: Path) -> None:
    clock = FastClock()
    server = f"{outback.base_url}/index"
    collect(archive(server, tmp_path, clock), "http://e.org/a/b")
    probes = len(outback.log) - 1
    assert probes == 3  # the Internet Archive's path, pywb's, its own
    assert clock.passed == pytest.approx(probes * 2.5)
    collect(archive(server, tmp_path), "http://e.org/a/c")
    assert len(outback.log) == probes + 2


def test_the_default_archive_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recrawl.sources.wayback import BASE_URL
    from recrawl.sources.wayback.probe import find_interface

    with Client("t me@e.org") as client:
        monkeypatch.setattr(client, "ask", None)
        found = find_interface(client, tmp_path, "http://e.org/")
    assert (found.name, found.index) == ("internet-archive", f"{BASE_URL}/cdx/search/cdx")


def test_a_server_that_speaks_nothing_known_is_named_with_the_way_out(tmp_path: Path) -> None:
    class Shop(Server):
        def reply(self, path: str) -> Reply:
            return 200, {"Content-Type": "text/html"}, b"<html><body>Welcome!</body></html>"

    with Shop() as shop:
        run = archive(shop.base_url, tmp_path)
        assert collect(run, *(f"http://{name}.org/" for name in "abcdef")) == []
        assert len(shop.log) == 6  # not again for every page
    assert len(run.report.failed) == 6
    (reason,) = set(run.report.failed.values())
    assert all(name in reason for name in INTERFACES)
    assert "--interface" in reason


def test_a_server_that_speaks_something_else_now_is_asked_again_by_the_next_run(outback: Any, tmp_path: Path) -> None:
    server = f"{outback.base_url}/index"
    collect(archive(server, tmp_path), "http://e.org/a/b")
    known = tmp_path / "servers.json"
    known.write_text(known.read_text().replace("outbackcdx", "pywb"))
    run = archive(server, tmp_path)
    assert collect(run, "http://e.org/a/c") == []
    assert len(run.report.failed) == 1
    assert len(collect(archive(server, tmp_path), "http://e.org/a/c")) == 1
    for damaged in ("", "[]", json.dumps({server: 3}), json.dumps({server: {"interface": "x"}})):
        known.write_text(damaged)
        collect(archive(server, tmp_path), "http://e.org/a/d")
        assert "outbackcdx" in known.read_text()


def test_an_unknown_interface_is_refused_with_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="Did you mean 'pywb'"):
        archive("http://127.0.0.1:9", tmp_path, interface="pyvb")


# -- an archive that has had enough -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 503])
def test_an_archive_that_refuses_for_an_hour_ends_the_run_and_keeps_what_was_fetched(
    code: int, maps: Any, tmp_path: Path
) -> None:
    clock, lines = FastClock(), list[str]()
    with Busy(behind=maps, answer=(code, {"Retry-After": "120"}, b"")) as busy:
        maps.base_url = busy.base_url  # so that maps name copies on this server
        busy.refuses = lambda path: "20250104" in path and clock.passed < 3600
        run = archive(busy.base_url, tmp_path, clock, interface="timemap", on_wait=lines.append)
        stored = collect(run, "http://e.org/", "http://f.org/")
        assert [visit.at.day for visit in stored] == [1, 2, 3]
        assert run.report.stopped == f"the archive answers {code} for 30 min and asks to come back in 2 min"
        assert list(run.report.failed) == ["http://e.org/"]  # f.org was not even asked for
        waits = [seconds for seconds in clock.slept if seconds >= 60]
        assert waits == [120.0] * 15  # half an hour, as asked for, and no longer
        assert lines == [f"the archive answers {code}; waiting 2 min"] * 15
        clock.passed = 3600.0
        again = archive(busy.base_url, tmp_path, clock, interface="timemap")
        assert [visit.at.day for visit in collect(again, "http://e.org/")] == [4, 5, 6, 7, 8, 9, 10]
        assert again.report.stopped is None


def test_a_busy_index_ends_the_run_before_all_other_urls_wait_as_well(tmp_path: Path) -> None:
    clock = FastClock()
    with Busy() as busy:
        run = archive(busy.base_url, tmp_path, clock, interface="pywb")
        assert collect(run, *(f"http://{i}.org/" for i in range(100))) == []
    assert run.report.urls == 1
    assert clock.passed <= 1800
    assert len(busy.log) == 16


def test_patience_is_counted_from_the_last_answer(maps: Any, tmp_path: Path) -> None:
    """An archive that refuses every other request is slow, not gone."""
    clock, refused = FastClock(), set[str]()

    def once(path: str) -> bool:
        return path not in refused and not refused.add(path)  # type: ignore[func-returns-value]

    with Busy(behind=maps, refuses=once, answer=(429, {"Retry-After": "1000"}, b"")) as busy:
        maps.base_url = busy.base_url
        run = archive(busy.base_url, tmp_path, clock, interface="timemap")
        assert len(collect(run, "http://e.org/")) == 10
    assert clock.passed > 14_000
    assert run.report.stopped is None


def test_a_refusal_that_asks_for_no_wait_is_waited_for_longer_and_longer(tmp_path: Path) -> None:
    clock = FastClock()
    with Busy(answer=(503, {"Retry-After": "0"}, b"")) as busy:
        run = archive(busy.base_url, tmp_path, clock, interface="pywb", patience=600.0)
        collect(run, "http://e.org/")
    assert "and asks to come back" in (run.report.stopped or "")
    assert len(busy.log) < 20
