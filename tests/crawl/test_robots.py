"""robots.txt, after RFC 9309; the servers' logs prove what was fetched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl.crawling import NO_ANSWER, Sites, crawled, visits
from patience import slowness
from recrawl.crawl import robots as robots_module
from recrawl.crawl.page_request import CrawlEnded
from recrawl.crawl.robots import MAX_AGE, MAX_AGE_UNREACHABLE, MAX_BYTES, Robots, Rules, product_token, rules_from
from recrawl.synth.living.http import Fault, HttpResponse

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def rules(text: str | bytes, status: int = 200) -> Rules:
    return rules_from(status, text.encode() if isinstance(text, str) else text, NOW)


def allows(text: str | bytes, path: str, agent: str = "Webwatch", status: int = 200) -> bool:
    return rules(text, status).allows(f"https://e.org{path}", agent)


# -- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451])
def test_without_a_file_everything_is_allowed(status: int) -> None:
    assert allows("User-agent: *\nDisallow: /", "/a", status=status)


@pytest.mark.parametrize("status", [0, 429, 500, 502, 503, 504, 599])
def test_if_the_file_is_unreachable_nothing_is_allowed(status: int) -> None:
    assert not allows("User-agent: *\nAllow: /", "/a", status=status)
    assert rules("", status).why == f"robots.txt cannot be reached: {status or 'no answer'}"


def test_rules_are_kept_for_a_day_and_their_absence_for_half_an_hour() -> None:
    for status, age in ((200, MAX_AGE), (404, MAX_AGE), (503, MAX_AGE_UNREACHABLE)):
        found = rules("", status)
        assert found.is_fresh(NOW + age)
        assert not found.is_fresh(NOW + age + timedelta(seconds=1))


# -- what the lines mean ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "path", "allowed"),
    [
        ("Disallow: /private/", "/private/a", False),
        ("Disallow: /private/", "/private", True),
        ("Disallow:", "/a", True),
        ("Disallow: /", "/", False),
        ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),  # the longest match counts, whatever the order
        ("Allow: /a/b\nDisallow: /a", "/a/b/c", True),
        ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
        ("Disallow: /a\nAllow: /a", "/a", True),  # of equal ones the one that allows
        ("Disallow: /*.pdf$", "/x/y.pdf", False),
        ("Disallow: /*.pdf$", "/x/y.pdf?page=1", True),
        ("Disallow: /*/edit", "/x/edit/1", False),
        ("Disallow: /a*b*c", "/axxbyyc", False),
        ("Disallow: /a*b*c", "/axxcyyb", True),
        ("Disallow: /caf%C3%A9", "/caf%c3%a9", False),
        ("Disallow: /café", "/caf%C3%A9", False),
        ("Disallow: /a?b=", "/a?b=1", False),
        ("disallow : /a  # but not /b", "/a", False),
        ("Disallow: /A", "/a", True),  # paths have small and large letters
        ("Disallow: /a", "/robots.txt", True),
        ("Disallow: /", "/robots.txt", True),
    ],
)
def test_rules_mean_what_the_standard_says(lines: str, path: str, allowed: bool) -> None:
    for ends in ("\n", "\r\n", "\r"):
        assert allows(f"User-agent: *\n{lines}\n".replace("\n", ends), path) is allowed


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("Webwatch", "/ours", False), ("webWATCH", "/ours", False), ("Webwatch", "/all", True),
        ("Web", "/ours", True), ("Web", "/all", False), ("Webwatcher", "/ours", True), ("Webwatcher", "/all", False),
        ("News-Bot", "/news", False), ("Bot", "/news", True), ("Bot", "/all", False), ("Webwatch", "/again", False),
    ],
)  # fmt: skip
def test_a_group_applies_to_the_product_token_that_it_names(agent: str, path: str, allowed: bool) -> None:
    text = (
        "User-agent: *\nDisallow: /all\n\nUser-agent: other\nUser-agent: Webwatch/2.1 (and more)\nDisallow: /ours\n"
        "User-agent: news-bot\nDisallow: /news\n\nUser-agent: WEBWATCH\nDisallow: /again\n"
    )
    assert allows(text, path, agent) is allowed


def test_if_no_group_applies_everything_is_allowed() -> None:
    assert allows("User-agent: other\nDisallow: /\n", "/a")
    assert allows("Disallow: /\n", "/a")  # applies to no agent


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a",
        "\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /a".encode("utf-16-be"),
        b"# caf\xe9 \xff\xfe\nUser-agent: *\nDisallow: /a",
        b"\x00\x01\x02\nUser-agent: *\nDisallow: /a\n\x00",
        b"<html>what?\nSitemap\n:::\nUser-agent: *\nDisallow: /a\n",
    ],
)
def test_byte_order_marks_and_wrong_encodings_hide_no_rule(body: bytes) -> None:
    assert not allows(body, "/a")
    assert allows(body, "/b")


def test_of_a_long_file_the_first_500_kb_count_in_whole_lines() -> None:
    head = "User-agent: *\nDisallow: /first\n"
    filler = "# and so on\n" * ((600 << 10) // 12)
    assert not allows(head + filler, "/first")
    assert allows(head + filler + "Disallow: /last\n", "/last")
    cut = head + "#" * (MAX_BYTES - len(head) - len("\nAllow: /")) + "\nAllow: /private-no-more\nDisallow: /x\n"
    assert not allows(cut, "/first")
    assert len(cut) > MAX_BYTES


def test_many_wildcards_cost_no_time() -> None:
    assert allows("User-agent: *\nDisallow: /" + "*a" * 500 + "*b$", "/" + "a" * 2000)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2", 2.0), ("0.5", 0.5), ("-1", 0.0), ("nan", 0.0), ("inf", 0.0), ("x", 0.0)]
)
def test_a_delay_is_a_number_of_seconds_or_none(text: str, seconds: float) -> None:
    assert rules(f"User-agent: *\nCrawl-delay: {text}").delay("Webwatch") == seconds


@given(st.binary(max_size=300))
def test_every_file_can_be_read(body: bytes) -> None:
    found = rules(body)
    assert found.allows("https://e.org/robots.txt", "Webwatch")
    assert found.allows("https://e.org/a", "Webwatch") in (True, False)
    assert found.delay("Webwatch") >= 0


@pytest.mark.parametrize(
    ("agent", "token"),
    [("Webwatch/2.1 (+https://e.org)", "Webwatch"), ("Webwatch", "Webwatch"), ("", "*"), (" a b/1", "a")],
)
def test_the_product_token_is_the_first_word(agent: str, token: str) -> None:
    assert product_token(agent) == token


# -- in a crawl -------------------------------------------------------------------------------------------------------

FORBID = b"User-agent: *\nDisallow: /no"
PLAIN = {"Content-Type": "text/plain"}
SITES: dict[str, dict[str, Any]] = {
    "forbids": {
        "/robots.txt": HttpResponse(200, FORBID, PLAIN), "/rules": HttpResponse(200, FORBID, PLAIN),
        "/sends-on": HttpResponse(302, headers={"Location": "/no/way"}),
    },
    "has none": {},
    "is down": {"/robots.txt": HttpResponse(503, FORBID, PLAIN | {"Retry-After": "0"})},
    "throttles": {"/robots.txt": HttpResponse(429, FORBID, PLAIN | {"Retry-After": "0"})},
    "resets": {"/robots.txt": HttpResponse(200, FORBID * 10, PLAIN, Fault.RESET)},
    "is cut short": {"/robots.txt": HttpResponse(200, FORBID * 10, PLAIN, Fault.SHORT)},
    "stalls": {"/robots.txt": NO_ANSWER},
    "sends on": {
        "/robots.txt": HttpResponse(301, headers={"Location": "/2"}), "/2": HttpResponse(302, headers={"Location": "/3"}),
        "/3": HttpResponse(200, FORBID, PLAIN),
    },
    "sends far": {  # five times, and the last time to another host
        "/robots.txt": HttpResponse(301, headers={"Location": "/1"}), **{
            f"/{hop}": HttpResponse(302, headers={"Location": f"/{hop + 1}"}) for hop in range(1, 4)
        },
    },
    "sends round": {"/robots.txt": HttpResponse(302, headers={"Location": "/robots.txt"})},
    "sends inside": {"/robots.txt": HttpResponse(302, headers={"Location": "http://169.254.169.254/"})},
    "is slow": {"/robots.txt": HttpResponse(200, FORBID + b"\nCrawl-delay: 0.3\n", PLAIN)},
    "packs": {"/robots.txt": HttpResponse(200, b"\x1f\x8b rubbish", PLAIN | {"Content-Encoding": "gzip"})},
}  # fmt: skip
CLOSED = ("is down", "throttles", "resets", "is cut short", "stalls", "sends inside", "packs")


@dataclass
class Done:
    sites: Sites
    found: dict[str, Any]
    visits: dict[str, list[tuple[int, str | None]]]

    def site(self, name: str) -> int:
        return list(SITES).index(name)

    def asked(self, name: str) -> list[str]:
        return self.sites.asked(self.site(name))

    def note(self, name: str, path: str = "/yes/0") -> str | None:
        ((_, note),) = self.visits[self.sites.url(path, self.site(name))]
        return note


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Eight pages of every site, two of which most of them forbid."""
    history = tmp_path_factory.mktemp("robots") / "h"
    with Sites(*SITES.values()) as sites:
        sites.answers[list(SITES).index("sends far")]["/4"] = HttpResponse(
            307, headers={"Location": sites.url("/rules")}
        )
        paths = [*(f"/yes/{number}" for number in range(6)), "/no/0", "/no/1"]
        plan = [sites.url(path, site) for site in range(len(SITES)) for path in paths] + [sites.url("/sends-on")]
        found = crawled(history, plan=plan, fetch={"timeout": 1.5 * slowness(), "concurrency": 100})
    return Done(sites, found, visits(history))


def test_nothing_is_fetched_that_robots_txt_forbids(done: Done) -> None:
    assert not [path for path in done.asked("forbids") if path.startswith("/no")]
    assert done.note("forbids", "/no/0") == "forbidden by robots.txt"
    assert sum(path.startswith("/yes") for path in done.asked("forbids")) == 6


def test_a_redirect_to_what_is_forbidden_is_not_followed(done: Done) -> None:
    assert done.visits[done.sites.url("/sends-on")] == [(302, None)]
    assert done.visits[done.sites.url("/no/way")] == [(0, "forbidden by robots.txt")]


def test_without_robots_txt_everything_is_fetched(done: Done) -> None:
    assert len(done.asked("has none")) == 9


@pytest.mark.parametrize("name", CLOSED)
def test_if_robots_txt_cannot_be_read_nothing_is_fetched(done: Done, name: str) -> None:
    assert set(done.asked(name)) == {"/robots.txt"}
    assert len(done.asked(name)) <= 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("is down", "robots.txt cannot be reached: 503"), ("throttles", "robots.txt cannot be reached: 429"),
        ("is cut short", "robots.txt cannot be reached: cut short"), ("stalls", "timeout: no robots.txt"),
        ("sends inside", "address not public: no robots.txt"),
    ],
)  # fmt: skip
def test_each_page_that_is_not_fetched_says_why(done: Done, name: str, kind: str) -> None:
    assert (done.note(name) or "").startswith(kind)


def test_redirects_lead_to_the_rules(done: Done) -> None:
    assert not [path for path in done.asked("sends on") if path.startswith("/no")]
    assert sum(path.startswith("/yes") for path in done.asked("sends on")) == 6


def test_five_redirects_are_followed_also_to_another_host(done: Done) -> None:
    asked = done.asked("sends far")
    assert asked[:5] == ["/robots.txt", "/1", "/2", "/3", "/4"]
    assert sorted(asked[5:]) == [f"/yes/{number}" for number in range(6)]
    assert done.note("sends far", "/no/0") == "forbidden by robots.txt"


def test_after_too_many_redirects_robots_txt_counts_as_missing(done: Done) -> None:
    asked = done.asked("sends round")
    assert asked.count("/robots.txt") > 5
    assert sum(path.startswith(("/yes", "/no")) for path in asked) == 8


def test_robots_txt_is_fetched_once_for_concurrent_requests(done: Done) -> None:
    for name in ("forbids", "has none", "sends on", "is slow"):
        assert done.asked(name).count("/robots.txt") == 1
        assert done.asked(name)[0] == "/robots.txt"


def test_the_crawl_delay_is_kept(done: Done) -> None:
    gaps = done.sites.gaps(done.site("is slow"))
    assert len(gaps) == 6
    lag = 0.1 * slowness()  # a request may be on its way longer than the next
    assert min(gaps) > 0.3 - lag
    assert sum(gaps) > 6 * 0.3 - lag
    assert sum(gaps) > 6 * 0.3 - 0.1


def test_all_is_counted(done: Done) -> None:
    summary = done.found["summary"]
    # Eight pages of each closed site, two of the others that can be read and forbid, and one redirect.
    assert summary["forbidden"] == len(CLOSED) * 8 + 4 * 2 + 1
    assert summary["failed"] == summary["forbidden"]
    assert summary["written"] == summary["visits"] == len(SITES) * 8 + 2
    assert all(len(seen) == 1 for seen in done.visits.values())


@pytest.mark.slow
def test_robots_txt_is_read_again_after_a_day_and_sooner_if_it_was_unreachable(tmp_path: Path) -> None:
    with Sites({}, {"/robots.txt": HttpResponse(503)}) as sites:
        plan = [sites.url("/a", 0), sites.url("/a", 1)]
        crawled(tmp_path / "h", plan=plan, cycles=4, hours=[0, 1, 23, 25], RETRY_TIMES=0)
        assert sites.asked(0) == ["/robots.txt", "/a", "/a", "/a", "/robots.txt", "/a"]
        assert sites.asked(1) == ["/robots.txt"] * 4


def test_a_stopped_crawl_says_nothing_about_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ended(*_: object) -> None:
        raise CrawlEnded("the crawl was ended")

    monkeypatch.setattr(robots_module, "download", ended)
    robots = object.__new__(Robots)
    robots.crawler, robots.agent, robots._pending, robots._delay_from = SimpleNamespace(engine=None), "webwatch", {}, {}
    robots.session = SimpleNamespace(now=lambda: NOW, stats=SimpleNamespace(inc_value=lambda *_: None))  # type: ignore[assignment]
    with pytest.raises(CrawlEnded):
        asyncio.run(robots.rules("https://ended.org/a"))
    assert not any(origin == "https://ended.org" for origin, _ in Robots.kept)
    assert not robots._pending
