"""The archive's histories, against a server on loopback and against recorded answers of the real one."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patience import patience
from recrawl.errors import ArchiveError, BadRecord
from recrawl.sources.wayback import Archive, Client, Delivery
from recrawl.sources.wayback.internet_archive import parse_answer
from recrawl.sources.wayback.state import load
from recrawl.web.visit import Visit


def _beside(name: str) -> ModuleType:
    """A module of this folder: with importlib mode tests have no package to import it from."""
    spec = importlib.util.spec_from_file_location(f"recrawl_tests_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


server = _beside("archive_server")
NOW, FastClock = server.NOW, server.FastClock
RECORDED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "fixtures" / "edgi_wayback"
needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded answers in ../shared/data")

URL = "https://e.org/"


def read_page(url: str, at: datetime, status: int, headers: Mapping[str, str], body: bytes) -> Visit:
    links = [word.decode() for word in body.split() if word.startswith(b"http")]
    return Visit(url=url, at=at, status=status, links=links, etag=headers.get("etag"), content_bytes=len(body))


@pytest.fixture
def remote() -> Iterator[Any]:
    with server.ArchiveServer() as running:
        yield running


@pytest.fixture
def clock() -> Any:
    return FastClock()


@pytest.fixture
def archive(remote: Any, clock: Any, tmp_path: Path) -> Iterator[Any]:
    """Makes an archive on the same state folder, as a new process would."""
    opened: list[Archive] = []

    def make(*, tries: int = 3, base_url: str | None = None, **options: Any) -> Archive:
        at = base_url or remote.base_url
        client = Client("test me@e.org", base_url=at, tries=tries, clock=clock, timeout=patience(5), verify=False)
        options.setdefault("interface", "internet-archive")
        made = Archive(client, tmp_path / "state", options.pop("read_page", read_page), **options)
        opened.append(made)
        return made

    yield make
    for one in opened:
        one.client.close()


def collect(archive: Archive, *urls: str) -> list[Visit]:
    visits = []
    for delivery in archive.visits(urls or (URL,)):
        visits.append(delivery.visit)
        archive.acknowledge(delivery)
    return visits


def shown(visits: list[Visit]) -> list[tuple[int, Any]]:
    return [(visit.status, visit.links) for visit in visits]


def test_a_new_copy_has_links_and_an_equal_digest_or_revisit_is_unchanged_without_a_fetch(
    remote: Any, archive: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250103000000", URL, "AAA", mime="warc/revisit", status="-")
    remote.capture("20250104000000", URL, "BBB", body=b"http://b/")
    run = archive()
    visits = collect(run)
    assert shown(visits) == [(200, ["http://a/"]), (304, None), (304, None), (200, ["http://b/"])]
    assert [visit.payload_digest for visit in visits] == ["sha1:AAA", "sha1:AAA", "sha1:AAA", "sha1:BBB"]
    assert {visit.note for visit in visits} == {"archive"}
    assert visits[0].at == datetime(2025, 1, 1, tzinfo=UTC)
    assert len(remote.memento_requests) == 2
    report = run.report
    assert (report.urls, report.captures, report.visits, report.mementos) == (1, 4, 4, 2)
    assert report.without_links == {"unchanged": 2}
    assert not report.failed
    assert not report.skipped


def test_a_revisit_of_an_older_copy_is_a_change_back(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "BBB", body=b"http://b/")
    remote.capture("20250103000000", URL, "AAA", mime="warc/revisit", status="-", body=b"http://a/")
    remote.capture("20250104000000", URL, "CCC", mime="warc/revisit", status="-")
    remote.capture("20250105000000", URL, "CCC", mime="warc/revisit", status="-")
    assert shown(collect(archive())) == [
        (200, ["http://a/"]), (200, ["http://b/"]), (200, ["http://a/"]), (200, None), (304, None),
    ]  # fmt: skip


def test_errors_and_redirects_keep_their_status_and_do_not_hide_that_the_page_stayed_the_same(
    remote: Any, archive: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "EEE", status="503")
    remote.capture("20250103000000", URL, "FFF", status="404")
    remote.capture("20250104000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250105000000", URL, "GGG", status="301")
    remote.capture("20250106000000", URL, "GGG", status="-", mime="warc/revisit")
    run = archive()
    assert [visit.status for visit in collect(run)] == [200, 503, 404, 304, 301, 301]
    assert run.report.without_links == {"status 503": 1, "status 404": 1, "unchanged": 1, "status 301": 2}


def test_other_types_are_visits_without_links_and_without_a_fetch(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", mime="application/pdf", body=b"http://a/")
    visits = collect(archive())
    assert shown(visits) == [(200, None)]
    assert visits[0].content_type == "application/pdf"
    assert remote.memento_requests == []


def test_spellings_of_a_page_share_an_index_but_each_has_its_own_story(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", "http://www.e.org:80/", "AAA", body=b"http://a/")
    remote.capture("20250102000000", "https://e.org/", "AAA", body=b"http://a/")
    visits = collect(archive())
    assert shown(visits) == [(200, ["http://a/"]), (200, ["http://a/"])]
    assert [visit.url for visit in visits] == ["http://www.e.org:80/", "https://e.org/"]


def test_without_mementos_the_history_has_digests_only(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "AAA")
    assert shown(collect(archive(mementos=False))) == [(200, None), (304, None)]
    assert remote.memento_requests == []


def test_links_asked_for_later_are_delivered_for_the_same_captures(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    collect(archive(mementos=False))
    assert shown(collect(archive())) == [(200, ["http://a/"])]


def test_pages_of_the_index_are_followed_to_the_end(remote: Any, archive: Any) -> None:
    times = [f"202501{day:02d}00000{day % 10}" for day in range(1, 29)]
    for at in times:
        remote.capture(at, URL, "AAA", body=b"")
    run = archive(page_size=7, mementos=False)
    assert [visit.at.day for visit in collect(run)] == list(range(1, 29))
    assert len(remote.index_requests) == 5  # the last full page is followed by an empty one
    assert all("collapse" not in path and "matchType=exact" in path for path in remote.index_requests)
    assert remote.agents == {"test me@e.org"}


def test_from_and_to_bound_the_question(remote: Any, archive: Any) -> None:
    for day in range(1, 10):
        remote.capture(f"2025010{day}000000", URL, f"D{day}")
    since, until = datetime(2025, 1, 3, tzinfo=UTC), datetime(2025, 1, 5, tzinfo=UTC)
    visits = collect(archive(mementos=False, since=since, until=until))
    assert [visit.at.day for visit in visits] == [3, 4, 5]
    assert [visit.at.day for visit in collect(archive(mementos=False, since=since))] == [6, 7, 8, 9]


def test_an_empty_answer_means_no_captures(remote: Any, archive: Any) -> None:
    run = archive()
    assert collect(run) == []
    assert not run.report.failed
    assert collect(archive()) == []
    assert len(remote.index_requests) == 1


def test_bad_lines_are_counted_and_the_others_used(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    remote.rows += [
        "org,e)/ 20250102000000 https://e.org/ text/html 200 AAA",
        "org,e)/ 20250231000000 https://e.org/ text/html 200 AAA 1",
        "org,e)/ 2025 https://e.org/ text/html 200 AAA 1",
        "org,e)/ 19890101000000 https://e.org/ text/html 200 AAA 1",
        "org,e)/ 20250103000000 https://e.org/ text/html OK AAA 1",
        "org,e)/ 20250104000000 https://e.org/ text/html - AAA 1",
        "org,e)/ 20250105000000 ftp://e.org/ text/html 200 AAA 1",
    ]
    run = archive(mementos=False)
    assert len(collect(run)) == 1
    assert run.report.skipped == {
        "index line without 7 fields": 1,
        "unreadable time": 2,
        "time before 1990": 1,
        "status is not a number": 1,
        "capture without status": 1,
        "not an http URL": 1,
    }


def test_of_several_captures_at_one_time_the_page_counts(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", mime="application/x-plain")
    remote.capture("20250101000000", URL, "BBB", body=b"http://b/")
    remote.capture("20250101000000", URL, "BBB", body=b"http://b/")
    run = archive()
    (visit,) = collect(run)
    assert (visit.links, visit.payload_digest) == (["http://b/"], "sha1:BBB")
    assert run.report.skipped == {"capture listed before": 2}


BLOCKED = "org.archive.util.io.RuntimeIOException: org.archive.wayback.exception.AdministrativeAccessControlException"
NOT_AN_INDEX = {
    "an HTML page": server.status(200, b"<html><body>Temporarily offline</body></html>\n"),
    "an exception": server.status(200, f"{BLOCKED}\n".encode()),
    "a JSON error": server.status(200, b'{"error": "too many"}\n'),
    "an unfinished line": server.status(200, b"org,e)/ 20250101000000 https://e.org/ text/ht"),
    "fewer bytes than declared": server.short,
    "half a gzip file": server.cut_gzip,
    "a closed connection": server.dropped,
    "500": server.status(500, b"oops"),
    "prose": server.status(200, b"please try again\n"),
    "an error after some captures": server.status(
        200, b"org,e)/ 20250101000000 https://e.org/ text/html 200 AAA 1\norg.archive.wayback.SomeException\n"
    ),
}


@pytest.mark.parametrize("nonsense", NOT_AN_INDEX.values(), ids=NOT_AN_INDEX.keys())
def test_nonsense_from_the_index_is_asked_again_and_never_taken_for_an_answer(
    nonsense: Any, remote: Any, archive: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA")
    remote.trouble("/cdx/", nonsense, nonsense)
    run = archive(mementos=False)
    assert shown(collect(run)) == [(200, None)]
    assert len(remote.index_requests) == 3


@pytest.mark.parametrize("nonsense", NOT_AN_INDEX.values(), ids=NOT_AN_INDEX.keys())
def test_a_url_that_keeps_failing_is_reported_while_the_others_go_on(nonsense: Any, remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    remote.capture("20250101000000", "https://f.org/", "AAA")
    remote.trouble("e.org", *[nonsense] * 3)
    run = archive(mementos=False)
    assert [visit.url for visit in collect(run, URL, "https://f.org/")] == ["https://f.org/"]
    assert list(run.report.failed) == [URL]
    assert "tried 3 times" in run.report.failed[URL]
    assert shown(collect(archive(mementos=False))) == [(200, None)]  # the next run asks again


def test_a_blocked_site_is_asked_once(remote: Any, archive: Any) -> None:
    remote.trouble("/cdx/", server.status(403, BLOCKED.encode(), X_Archive_Wayback_Runtime_Error=BLOCKED))
    run = archive()
    assert collect(run) == []
    assert "AdministrativeAccessControlException" in run.report.failed[URL]
    assert len(remote.index_requests) == 1


def test_a_full_page_without_a_key_to_go_on_is_a_failure(remote: Any, archive: Any) -> None:
    full = b"org,e)/ 20250101000000 https://e.org/ text/html 200 AAA 1\n"
    remote.trouble("/cdx/", *[server.status(200, full)] * 3)
    run = archive(page_size=1)
    assert collect(run) == []
    assert "full page without a resume key" in run.report.failed[URL]


def test_an_index_that_goes_in_circles_is_left(remote: Any, archive: Any) -> None:
    same = server.status(200, b"org,e)/ 20250101000000 https://e.org/ text/html 200 AAA 1\n\nkey\n")
    remote.trouble("/cdx/", *[same] * 5)
    run = archive(page_size=1)
    assert collect(run) == []
    assert "circles" in run.report.failed[URL]
    assert len(remote.index_requests) == 2


def test_text_that_is_not_a_url_is_reported_without_asking(remote: Any, archive: Any) -> None:
    run = archive()
    assert collect(run, "e.org", "mailto:me@e.org", "https://[x/") == []
    assert len(run.report.failed) == 3
    assert remote.log == []


@pytest.mark.parametrize(
    ("header", "wait"),
    [("7", 7.0), (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0), ("soon", 60.0), (None, 60.0)],
)
@pytest.mark.parametrize("code", [429, 503])
def test_too_many_requests_waits_as_long_as_asked_or_a_minute(
    code: int, header: str | None, wait: float, remote: Any, archive: Any, clock: Any
) -> None:
    remote.trouble("/cdx/", server.status(code, b"slow down", **({"Retry_After": header} if header else {})))
    assert collect(archive()) == []
    assert clock.slept[0] == pytest.approx(wait)


def test_a_wait_of_many_hours_is_a_failure_not_a_wait(remote: Any, archive: Any, clock: Any) -> None:
    remote.trouble("/cdx/", server.status(429, b"", Retry_After="86400"))
    run = archive()
    collect(run)
    assert "come back in 24 h" in run.report.failed[URL]
    assert clock.slept == []


def test_failures_are_tried_again_after_ever_longer_waits(remote: Any, archive: Any, clock: Any) -> None:
    remote.trouble("/cdx/", *[server.dropped] * 9)
    collect(archive(tries=5))
    waits = [seconds for seconds in clock.slept if seconds in (1.0, 2.0, 4.0, 8.0)]
    assert waits == [1.0, 2.0, 4.0, 8.0]
    assert len(remote.index_requests) == 5


def test_the_index_is_asked_at_most_24_times_a_minute(remote: Any, archive: Any, clock: Any) -> None:
    collect(archive(), *(f"https://{name}.org/" for name in "abcdefghijklm"))
    assert len(remote.index_requests) == 13
    assert clock.passed == pytest.approx(12 * 2.5)


def test_at_most_8_mementos_are_fetched_in_a_second(remote: Any, archive: Any, clock: Any) -> None:
    for day in range(1, 10):
        remote.capture(f"2025010{day}000000", URL, f"D{day}", body=b"http://a/")
    collect(archive())
    assert len(remote.memento_requests) == 9
    assert clock.passed == pytest.approx(8 / 8)


def test_a_user_agent_without_contact_is_refused() -> None:
    with pytest.raises(ArchiveError, match="names no contact"):
        Client("Mozilla/5.0")


def test_a_server_that_cannot_be_reached_is_a_failure(archive: Any) -> None:
    run = archive(base_url="http://127.0.0.1:9")
    assert collect(run) == []
    assert "no answer from" in run.report.failed[URL]


# Mementos


def test_a_memento_arrives_unpacked_with_the_headers_of_its_own_server(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    extra = {"content_encoding": "gzip", "x_archive_orig_etag": '"v1"', "x_archive_orig_content_length": "7"}
    remote.mementos["20250101000000", URL] = server.memento("20250101000000", gzip.compress(b"http://a/"), **extra)
    (visit,) = collect(archive())
    assert (visit.links, visit.etag) == (["http://a/"], '"v1"')


def test_a_missing_memento_leaves_a_digest_and_the_next_capture_of_that_copy_is_fetched(
    remote: Any, archive: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "BBB")
    remote.capture("20250103000000", URL, "BBB", body=b"http://b/")
    remote.capture("20250104000000", URL, "BBB", body=b"http://b/")
    run = archive()
    visits = collect(run)
    assert shown(visits) == [(200, ["http://a/"]), (200, None), (200, ["http://b/"]), (304, None)]
    assert visits[1].payload_digest == "sha1:BBB"
    assert run.report.without_links == {"memento missing": 1, "unchanged": 1}
    assert collect(archive()) == []  # missing is an answer too: it is not asked for again
    assert len(remote.memento_requests) == 3


ELSEWHEN = {
    "a redirect to another time": server.redirect("/web/20240101000000id_/https://e.org/"),
    "the copy of another time": server.memento("20240101000000", b"http://wrong/"),
}


@pytest.mark.parametrize("answer", ELSEWHEN.values(), ids=ELSEWHEN.keys())
def test_the_nearest_copy_is_not_taken_for_the_one_asked_for(answer: Any, remote: Any, archive: Any) -> None:
    remote.capture("20240101000000", URL, "OLD", body=b"http://old/")
    remote.capture("20250101000000", URL, "AAA")
    remote.mementos["20250101000000", URL] = answer
    run = archive()
    assert shown(collect(run)) == [(200, ["http://old/"]), (200, None)]
    assert run.report.without_links == {"memento of another time": 1}


def test_a_redirect_within_the_same_time_is_followed(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", "http://e.org:80/", "AAA")
    remote.mementos["20250101000000", "http://e.org:80/"] = server.redirect("/web/20250101000000id_/http://e.org/")
    remote.mementos["20250101000000", "http://e.org/"] = server.memento("20250101000000", b"http://a/")
    assert shown(collect(archive())) == [(200, ["http://a/"])]


AWAY = {
    "memento is a redirect": server.redirect("/web/20250101000000id_/http://x/", memento_datetime="any"),
    "memento redirects away from the archive": server.redirect(
        "http://127.0.0.1:9/web/20250101000000id_/https://e.org/"
    ),
    "memento redirects in circles": server.redirect("/web/20250101000000id_/https://e.org/"),
}


@pytest.mark.parametrize("reason", AWAY)
def test_a_memento_that_cannot_be_had_is_counted_by_reason(reason: str, remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    remote.mementos["20250101000000", URL] = AWAY[reason]
    run = archive()
    assert shown(collect(run)) == [(200, None)]
    assert run.report.without_links == {reason: 1}


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_past_the_limit_is_not_read_to_its_end(packed: bool, remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    body = bytes(50_000_000)
    answer = (
        server.memento("20250101000000", gzip.compress(body), content_encoding="gzip")
        if packed
        else server.memento("20250101000000", body)
    )
    remote.mementos["20250101000000", URL] = answer
    run = archive(max_body=100_000)
    assert shown(collect(run)) == [(200, None)]
    assert run.report.without_links == {"body over 100,000 bytes": 1}


def test_a_page_the_parser_refuses_leaves_a_digest(remote: Any, archive: Any) -> None:
    def refuse(*_: object) -> Visit:
        raise BadRecord("tags nested too deep", "a million")

    remote.capture("20250101000000", URL, "AAA", body=b"<b>")
    run = archive(read_page=refuse)
    assert shown(collect(run)) == [(200, None)]
    assert run.report.without_links == {"tags nested too deep": 1}


NOT_A_MEMENTO = {
    "a page of the archive's own": server.status(200, b"<html>Sorry</html>"),
    "fewer bytes than declared": server.short,
    "half a gzip file": server.memento(
        "20250102000000", gzip.compress(b"http://a/ " * 99)[:-5], content_encoding="gzip"
    ),
    "nothing": server.memento("20250102000000", b""),
    "502": server.status(502),
    "a closed connection": server.dropped,
    "a time that is none": server.status(200, b"x", memento_datetime="yesterday"),
}


@pytest.mark.parametrize("nonsense", NOT_A_MEMENTO.values(), ids=NOT_A_MEMENTO.keys())
def test_a_failing_memento_is_left_for_the_next_run_and_later_captures_stay_right(
    nonsense: Any, remote: Any, archive: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "BBB", body=b"http://b/")
    remote.capture("20250103000000", URL, "AAA", body=b"http://a/")
    remote.trouble("20250102000000id_", *[nonsense] * 3)
    run = archive()
    # The third is a copy of its own, not "unchanged": the second, delivered later, lies between.
    assert shown(collect(run)) == [(200, ["http://a/"]), (200, ["http://a/"])]
    assert "1 mementos could not be fetched" in run.report.failed[URL]
    again = archive()
    assert shown(collect(again)) == [(200, ["http://b/"])]
    assert len(remote.index_requests) == 1
    assert not again.report.failed


def test_three_failing_mementos_in_a_row_end_the_url_for_now(remote: Any, archive: Any) -> None:
    for day in range(1, 10):
        remote.capture(f"2025010{day}000000", URL, f"D{day}", body=b"http://a/")
    remote.trouble("id_/", *[server.status(500)] * 9)
    run = archive()
    assert collect(run) == []
    assert len(remote.memento_requests) == 9  # three tries each
    assert len(collect(archive())) == 9


# A kill at any moment


def test_after_a_kill_the_next_run_goes_on_without_repeating_what_was_acknowledged(remote: Any, archive: Any) -> None:
    for day in range(1, 10):
        remote.capture(f"2025010{day}000000", URL, f"D{day}", body=b"http://a/")
    stored: list[Visit] = []
    run = archive(page_size=4)

    def store_four_and_die() -> None:
        for delivery in run.visits([URL]):
            if len(stored) == 4:
                raise KeyboardInterrupt
            stored.append(delivery.visit)
            run.acknowledge(delivery)

    with pytest.raises(KeyboardInterrupt):
        store_four_and_die()
    index_requests, fetched = len(remote.index_requests), len(remote.memento_requests)
    assert (index_requests, fetched) == (3, 5)
    stored += collect(archive(page_size=4))
    assert [visit.at.day for visit in stored] == list(range(1, 10))
    assert len(remote.index_requests) == index_requests
    assert len(remote.memento_requests) == 10  # the fifth, fetched but never stored, is fetched twice
    assert collect(archive(page_size=4)) == []
    assert len(remote.log) == 13


def test_a_kill_between_two_pages_of_the_index_resumes_at_the_key(remote: Any, archive: Any) -> None:
    for day in range(1, 10):
        remote.capture(f"2025010{day}000000", URL, f"D{day}")
    remote.trouble("resumeKey=", *[server.dropped] * 3)
    assert collect(archive(page_size=4, mementos=False)) == []
    before = len(remote.index_requests)
    assert len(collect(archive(page_size=4, mementos=False))) == 9
    assert ["resumeKey=" in path for path in remote.index_requests[before:]] == [True, True]


def test_what_is_not_acknowledged_is_delivered_again(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA", body=b"http://a/")
    remote.capture("20250102000000", URL, "AAA")
    first = [delivery.visit for delivery in archive().visits([URL])]
    assert first == collect(archive())


def test_visits_can_be_acknowledged_in_batches_across_urls(remote: Any, archive: Any) -> None:
    for url in (URL, "https://f.org/"):
        for day in range(1, 4):
            remote.capture(f"2025010{day}000000", url, f"D{day}")
    run = archive(mementos=False)
    batch: list[Delivery] = list(run.visits([URL, "https://f.org/", URL]))
    assert (len(batch), run.report.urls) == (6, 2)
    run.acknowledge(*batch[:2], *batch[3:])
    assert [(visit.url, visit.at.day) for visit in collect(archive(mementos=False), URL, "https://f.org/")] == [
        (URL, 3)
    ]


def test_a_second_look_with_the_same_object_keeps_marks_made_in_between(remote: Any, archive: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    remote.capture("20250102000000", URL, "BBB")
    run = archive(mementos=False)
    first, second = run.visits([URL])
    _, again = run.visits([URL])
    run.acknowledge(first)
    run.acknowledge(again)
    assert second.visit == again.visit
    assert collect(archive(mementos=False)) == []


def test_a_state_that_cannot_be_written_is_an_error_and_the_old_one_stays(
    remote: Any, archive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.capture("20250101000000", URL, "AAA")
    run = archive(mementos=False)
    (delivery,) = run.visits([URL])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(ArchiveError, match="No space left"):
            run.acknowledge(delivery)
    assert len(collect(archive(mementos=False))) == 1
    assert len(remote.index_requests) == 1


@pytest.mark.parametrize("spoil", [b"", b"{", b"[1]", b'{"format": 2}', b"\xff\xfe"])
def test_an_unreadable_state_file_is_set_aside_and_made_again(
    spoil: bytes, remote: Any, archive: Any, tmp_path: Path
) -> None:
    remote.capture("20250101000000", URL, "AAA")
    collect(archive(mementos=False))
    (path,) = (tmp_path / "state").glob("*.json")
    path.write_bytes(spoil)
    run = archive(mementos=False)
    assert len(collect(run)) == 1
    assert "set aside" in run.report.notes[0]
    assert path.with_suffix(".broken").read_bytes() == spoil
    assert collect(archive(mementos=False)) == []


def test_any_part_of_a_state_file_may_be_wrong_without_harm(remote: Any, archive: Any, tmp_path: Path) -> None:
    remote.capture("20250101000000", URL, "AAA")
    collect(archive(mementos=False))
    (path,) = (tmp_path / "state").glob("*.json")
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert len(collect(archive(mementos=False))) == 1
    for wrong in (b'"2025"', b'["20250101000000", 5, "", 200, null, true]', b"null", b'"x"'):
        start = whole.index(b'"captures":[') + len(b'"captures":[')
        path.write_bytes(whole[:start] + wrong + b"]}")
        assert len(collect(archive(mementos=False))) == 1


def test_a_completed_url_is_asked_for_news_after_a_day_from_its_last_capture_on(
    remote: Any, archive: Any, clock: Any
) -> None:
    remote.capture("20250101000000", URL, "AAA")
    collect(archive(mementos=False))
    remote.capture("20260301120000", URL, "AAA")
    assert collect(archive(mementos=False)) == []
    clock.sleep(100_000)
    assert shown(collect(archive(mementos=False))) == [(304, None)]
    assert parse_qs(urlsplit(remote.index_requests[-1]).query)["from"] == ["20250101000000"]
    assert len(remote.index_requests) == 2


def test_a_span_that_lies_in_the_past_has_no_news(remote: Any, archive: Any, clock: Any) -> None:
    remote.capture("20250101000000", URL, "AAA")
    until = datetime(2025, 6, 1, tzinfo=UTC)
    collect(archive(mementos=False, until=until))
    clock.sleep(1_000_000)
    assert collect(archive(mementos=False, until=until)) == []
    assert len(remote.index_requests) == 1


# Anything in place of an answer or a state file


_WORDS = ("org,e)/ ", "20250101000000 ", "https://e.org/ ", "text/html ", "200 ", "- ", "AAA ", "1", "\n", "<", "key")


@given(st.text(max_size=100) | st.lists(st.sampled_from(_WORDS), max_size=20).map("".join))
def test_any_text_is_captures_or_an_archive_error(text: str) -> None:
    with contextlib.suppress(ArchiveError):
        answer = parse_answer(text)
        assert answer.captures or not answer.bad


_ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "2025-01-01", "20250101000000", URL]),
    lambda inner: st.lists(inner, max_size=6),
)


@given(
    st.dictionaries(st.sampled_from(["span", "since", "resume_key", "complete_at", "captures"]), _ANY_JSON), _ANY_JSON
)
def test_any_json_is_a_state_or_set_aside(changes: dict[str, Any], whole: Any) -> None:
    valid = {"format": 1, "url": URL, "span": [None, None], "since": None, "resume_key": None, "complete_at": None}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.json"
        for record in (whole, valid | {"captures": []} | changes):
            path.write_text(json.dumps(record))
            state, note = load(URL, path)
            state.in_order()
            state.save()
            assert path.with_suffix(".broken").exists() or note is None


# Recorded answers of the real server


def _question(path: str) -> tuple[str, ...]:
    """What distinguishes the requests of one recording."""
    asked = parse_qs(urlsplit(path).query)
    return tuple(asked.get(name, [""])[0] for name in ("from", "to", "limit", "resumeKey"))


def _replay(remote: Any, name: str) -> list[Any]:
    recorded: list[Any] = server.recordings(RECORDED / name)
    by_question = {_question(one.uri): one for one in recorded}
    remote._index = lambda handler: by_question[_question(handler.path)](handler)
    return recorded


@needs_recordings
def test_the_recorded_pages_of_cnn_are_read_to_the_end(remote: Any, archive: Any) -> None:
    recorded = _replay(remote, "test_search_multipage.yaml")
    run = archive(
        page_size=25,
        mementos=False,
        since=datetime(2001, 4, 10, tzinfo=UTC),
        until=datetime(2001, 5, 10, tzinfo=UTC),
    )
    visits = collect(run, "http://cnn.com/")
    assert run.report.failed == {}
    assert len(remote.index_requests) == len(recorded) == 15
    lines = [
        line for one in recorded for line in gzip.decompress(one.body).decode().split("\n") if line.count(" ") == 6
    ]
    # The real index lists most captures several times.
    once = {tuple(line.split(" ")[1:3]) for line in lines}
    assert (len(lines), len(once), run.report.skipped) == (350, 96, {"capture listed before": 254})
    assert sorted(once) == [(visit.at.strftime("%Y%m%d%H%M%S"), visit.url) for visit in visits]
    assert {visit.status for visit in visits} == {200, 302}


@needs_recordings
def test_the_recorded_revisits_of_dw_repeat_redirects(remote: Any, archive: Any) -> None:
    _replay(remote, "test_search_with_date.yaml")
    run = archive(since=datetime(2019, 10, 1, tzinfo=UTC), until=datetime(2020, 3, 1, tzinfo=UTC))
    deliveries = list(run.visits(["http://dw.com/"]))
    run.acknowledge(*deliveries)
    visits = [delivery.visit for delivery in deliveries]
    assert (run.report.failed, run.report.skipped) == ({}, {"capture listed before": 40})
    assert (len(visits), len(remote.index_requests)) == (2205, 3)
    statuses = [visit.status for visit in visits]
    assert statuses[0] == 304  # begins with a revisit of a copy from before
    assert set(statuses) == {301, 302, 304}
    assert remote.memento_requests == []


@needs_recordings
def test_every_recorded_index_answer_is_read_without_a_bad_line() -> None:
    for path in sorted(RECORDED.glob("test_search*.yaml")):
        for one in server.recordings(path):
            answer = parse_answer(gzip.decompress(one.body).decode())
            assert not answer.bad
            limit = int(parse_qs(urlsplit(one.uri).query)["limit"][0])
            assert (answer.resume_key is not None) == (len(answer.captures) == limit)


@needs_recordings
def test_the_recorded_memento_is_a_visit(remote: Any, archive: Any) -> None:
    (recorded,) = server.recordings(RECORDED / "test_get_memento.yaml")
    url, at = "https://www.fws.gov/birds/", "20171124151315"
    remote.capture(at, url, "AAA")
    remote.mementos[at, url] = recorded
    (visit,) = collect(archive(), url)
    assert visit.content_bytes == len(gzip.decompress(recorded.body))
    assert visit.at == datetime(2017, 11, 24, 15, 13, 15, tzinfo=UTC)
