"""A living web is fetched over real connections and compared with the truth that it states."""

import gzip
import http.client
import io
import socket
import threading
import time
import urllib.robotparser
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patience import patience
from recrawl.errors import RecrawlError
from recrawl.synth.living.http import HttpRequest, http_date
from recrawl.synth.living.web import Fault, Faults, Living, LivingWeb
from recrawl.web import html as parse
from recrawl.web import urls

STEPS = 28  # a week
CALM = Living(sites=5, pages=100, steps=STEPS, seed=1, faults=Faults())
_LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
_LASTMOD = "{http://www.sitemaps.org/schemas/sitemap/0.9}lastmod"


@pytest.fixture(scope="module")
def calm() -> Iterator[LivingWeb]:
    """A web without faults; tests set its clock themselves."""
    with LivingWeb(CALM) as web:
        yield web


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=patience(10), trust_env=False) as client:
        yield client


def links_on(answer: httpx.Response) -> set[str]:
    seen = parse.page(
        answer.content, answer.headers.get("content-type"), str(answer.url), answer.headers.get("location")
    )
    return {urls.canonical(href, seen.base) for href in seen.hrefs or ()}


def crawled(web: LivingWeb, client: httpx.Client) -> dict[str, httpx.Response]:
    """All that can be reached from the home pages at the step at hand."""
    answers: dict[str, httpx.Response] = {}
    waiting = list(web.seeds)
    while waiting:
        url = waiting.pop()
        if url not in answers:
            answers[url] = client.get(url)
            waiting += links_on(answers[url])
    return answers


def sitemap(client: httpx.Client, home: str, name: str = "sitemap.xml") -> dict[str, datetime]:
    """URL → lastmod of a sitemap, or of all that an index names."""
    root = ET.fromstring(client.get(home + name).content)
    entries = {entry.findtext(_LOC): datetime.fromisoformat(entry.findtext(_LASTMOD) or "") for entry in root}
    if root.tag.endswith("sitemapindex"):
        return {k: v for url in entries for k, v in sitemap(client, home, str(url).rpartition("/")[2]).items()}
    return {str(url): at for url, at in entries.items()}


def is_public(url: str) -> bool:
    return "/private/" not in url


def head_of(web: LivingWeb, path: str, size: int = 1 << 20) -> bytes:
    """The first bytes of an answer by the last site, read without any help."""
    where = urlsplit(web.seeds[-1])
    with socket.create_connection((where.hostname, where.port), timeout=patience(5)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while len(data) < size and (part := raw.recv(65536)):
            data += part
    return data


def test_every_page_of_the_sitemaps_is_reached_from_the_home_pages_by_links(calm, client):
    calm.step = 0
    answers = crawled(calm, client)
    assert {answer.status_code for answer in answers.values()} == {200, 301}
    assert set(calm.pages) <= set(answers)
    assert {url for home in calm.seeds for url in sitemap(client, home)} >= set(filter(is_public, calm.pages))


@pytest.mark.parametrize("step", [0, 5, STEPS])
def test_a_page_shows_the_links_that_the_truth_says(calm, client, step):
    calm.step = step
    for home in calm.seeds:
        some = [home, *sorted(calm.shown(home))[::3]]
        assert [links_on(client.get(url)) for url in some] == [calm.shown(url) for url in some]


def test_an_address_that_redirects_shows_its_target(calm, client):
    url = calm.seeds[0] + "index.html"
    assert client.get(url).headers["location"] == "/"
    assert calm.shown(url) == {calm.seeds[0]}


def test_new_links_are_those_that_no_page_showed_before(calm):
    seen: set[str] = set()
    pages = calm.pages
    for step in range(6):
        calm.step = step
        now = {link for url in pages for link in calm.shown(url)}
        if step:
            assert calm.new_links(step - 1, step) == now - seen
        seen |= now
    assert calm.new_links(0, 3) | calm.new_links(3, 5) == calm.new_links(0, 5)


def test_an_article_exists_from_the_step_on_at_which_it_is_first_shown(calm, client):
    for url in sorted(calm.new_links(3, 4))[:20]:
        assert calm.first_shown(url) == 4
        calm.step = 3
        assert client.get(url).status_code == 404
        assert calm.shown(url) == set()
        calm.step = 4
        answer = client.get(url)
        assert answer.status_code == 200
        assert urls.origin(url) + "/" in links_on(answer)
        calm.step = STEPS
        assert client.get(url).content == answer.content


def test_pages_lose_links_as_well(calm):
    calm.step = 0
    then = [calm.shown(home) for home in calm.seeds]
    calm.step = STEPS
    lost = [bool(old - calm.shown(home)) for old, home in zip(then, calm.seeds, strict=True)]
    assert sum(lost) >= 3  # some pages only grow


def test_hubs_gain_links_at_the_rate_of_the_settings():
    settings = replace(CALM, sites=8, hub_links=40.0)
    gained: Counter[str] = Counter()
    with LivingWeb(settings) as web:
        before = {home: web.shown(home) for home in web.seeds}
        for step in range(1, STEPS + 1):
            web.step = step
            for home in web.seeds:
                now = web.shown(home)
                gained[home] += sum(urls.origin(home) == urls.origin(link) for link in now - before[home])
                before[home] = now
    a_day = [count / 7 for count in gained.values()]
    assert sum(a_day) / len(a_day) == pytest.approx(40, rel=0.1)
    assert all(count == pytest.approx(40, rel=0.35) for count in a_day)


def test_many_pages_do_not_change_in_a_week_and_many_do(calm):
    calm.step = 0
    then = [calm.shown(url) for url in calm.pages]
    calm.step = STEPS
    same = sum(calm.shown(url) == links for url, links in zip(calm.pages, then, strict=True))
    assert 0.2 < same / len(then) < 0.7


def test_the_same_seed_makes_the_same_web_on_any_port(client):
    settings = Living(sites=3, pages=40, steps=8, seed=5)
    bodies = []
    for each in (settings, settings, replace(settings, seed=6)):
        with LivingWeb(each) as web:
            port = f":{urlsplit(web.seeds[0]).port}"
            web.step = 8
            answers = [client.get(url) for home in web.seeds for url in (home, home + "feed.xml", home + "sitemap.xml")]
            bodies.append([answer.text.replace(port, "") for answer in answers])
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


HABITS = Faults(no_validators=0.2, dated_only=0.2, weak_etags=0.2, lying_etags=0.1, changing_etags=0.1)


def test_304_means_the_same_page_except_where_the_etag_lies(client):
    kinds: Counter[str] = Counter()
    with LivingWeb(replace(CALM, faults=HABITS)) as web:
        copies = {url: client.get(url) for url in web.pages}
        web.step = STEPS
        for url, copy in copies.items():
            known = {"If-None-Match": copy.headers.get("etag"), "If-Modified-Since": copy.headers.get("last-modified")}
            again = client.get(url, headers={name: value for name, value in known.items() if value})
            lies = web.log[-1].fault is Fault.LYING_ETAG
            same = client.get(url).content == copy.content
            if again.status_code == 304:
                assert again.content == b""
                assert lies is not same
                kinds["lied" if lies else "same"] += 1
            else:
                assert again.content != copy.content or "last-modified" not in copy.headers
                kinds["changed" if again.content != copy.content else "not said"] += 1
    assert set(kinds) == {"lied", "same", "changed", "not said"}


def test_pages_have_the_habits_of_validators_at_their_shares(client):
    def habit(url: str) -> str:
        first, second = (client.get(url).headers for _ in range(2))
        etag, dated = first.get("etag"), "last-modified" in first
        if etag is None:
            return "dated only" if dated else "none"
        if etag != second["etag"]:
            return "changing"
        return ("weak" if etag.startswith("W/") else "honest") if dated else "lying"

    with LivingWeb(replace(CALM, faults=HABITS)) as web:
        found = Counter(map(habit, web.pages))
    shares = {"none": 0.2, "dated only": 0.2, "weak": 0.2, "lying": 0.1, "changing": 0.1, "honest": 0.2}
    assert {name: count / CALM.pages for name, count in found.items()} == shares


def test_robots_txt_forbids_private_pages_that_public_ones_link_to(calm, client):
    calm.step = 0
    links = set(crawled(calm, client))
    forbidden = {url for url in links if not calm.is_allowed(url)}
    assert forbidden
    for site, home in enumerate(calm.seeds):
        answer = client.get(home + "robots.txt")
        rules = urllib.robotparser.RobotFileParser()
        rules.parse(answer.text.splitlines() if answer.status_code == 200 else [])
        assert answer.status_code == (404 if site == 2 else 200)
        assert rules.crawl_delay("any") == (1 if site == 1 else None)
        for url in links:
            if url.startswith(home):
                assert rules.can_fetch("any", url) == calm.is_allowed(url)
                assert calm.is_allowed(url) or "/private/" in url


def test_robots_txt_of_the_fourth_site_can_be_down_for_a_while(client):
    with LivingWeb(replace(CALM, steps=3, faults=Faults(robots_down=2))) as web:
        statuses = []
        for step in range(4):
            web.step = step
            statuses.append([client.get(home + "robots.txt").status_code for home in web.seeds])
    assert [row[3] for row in statuses] == [503, 503, 200, 200]
    assert all(row[:3] == [200, 200, 404] for row in statuses)


def test_sitemaps_tell_when_pages_changed_and_lying_ones_say_now(client):
    with LivingWeb(replace(CALM, faults=Faults(lying_sitemaps=0.4, gone=0.1))) as web:
        web.step = 10
        pages = [url for home in web.seeds[:3] for url in sitemap(client, home) if url in web.pages]
        then, at = {url: client.get(url).content for url in pages}, web.now
        web.step = STEPS
        entries = {url: modified for home in web.seeds[:3] for url, modified in sitemap(client, home).items()}
        for url in pages:
            answer = client.get(url)
            assert answer.status_code == (200 if url in entries else 404)
            if url in entries:
                assert answer.headers["last-modified"] == http_date(entries[url])
                assert (entries[url] <= at) == (answer.content == then[url])
        assert {modified <= at for modified in entries.values()} == {True, False}
        assert any(url not in entries for url in pages)
        for home in web.seeds[3:]:
            assert set(sitemap(client, home).values()) == {web.now}


def test_feeds_hold_the_newest_articles_first(calm, client):
    calm.step = STEPS
    for home in calm.seeds:
        channel = ET.fromstring(client.get(home + "feed.xml").content).find("channel")
        items = [item.findtext("link") for item in channel.findall("item")]
        steps = [calm.first_shown(url) for url in items]
        assert steps == sorted(steps, reverse=True)
        newest = {url for url in calm.new_links(STEPS - 1, STEPS) if url.startswith(home)}
        assert newest >= set(items) or newest <= set(items)
        assert {client.get(url).status_code for url in items} == {200}


def test_moved_pages_redirect_and_gone_ones_are_not_found_from_some_step_on(client):
    with LivingWeb(replace(CALM, faults=Faults(moved=0.1, gone=0.2))) as web:
        moved = [url for url in crawled(web, client) if "/old/" in url]
        assert len(moved) == 10
        assert all(client.get(url, follow_redirects=True).status_code == 200 for url in moved)
        web.step = STEPS // 2
        half = {url for url in web.pages if client.get(url).status_code == 404}
        web.step = STEPS
        end = {url for url in web.pages if client.get(url).status_code == 404}
        assert len(end) == 20
        assert set() < half < end
        assert all(web.shown(url) == set() for url in end)


def test_answers_fail_at_the_shares_of_the_settings(client):
    faults = Faults(server_errors=0.1, resets=0.1, short_bodies=0.1, long_bodies=0.1, slow=0.1, slow_seconds=0.0)
    statuses: Counter[str] = Counter()
    with LivingWeb(replace(CALM, faults=faults)) as web:
        for home in web.seeds[:2] * 400:
            try:
                statuses[str(client.get(home, headers={"Connection": "close"}).status_code)] += 1
            except httpx.TransportError:
                statuses["broken"] += 1
        found = Counter(request.fault for request in web.log)
    assert len(web.log) == 800
    kinds = (Fault.SERVER_ERROR, Fault.RESET, Fault.SHORT, Fault.LONG, Fault.SLOW)
    assert all(found[kind] == pytest.approx(80, abs=30) for kind in kinds)
    assert statuses["500"] + statuses["503"] == found[Fault.SERVER_ERROR]
    # A client that sees the announced length ignores everything after it.
    assert statuses["broken"] >= found[Fault.RESET] + found[Fault.SHORT]


def test_a_long_body_goes_on_after_the_announced_length():
    with LivingWeb(replace(CALM, faults=Faults(long_bodies=1.0))) as web:
        head, _, body = head_of(web, "/").partition(b"\r\n\r\n")
    announced = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert len(body) > announced == body.index(b"</html>\n") + 8


def test_slow_answers_wait(client):
    with LivingWeb(replace(CALM, faults=Faults(slow=1.0, slow_seconds=0.2))) as web:
        client.get(web.seeds[0])
    assert 0.2 <= web.log[0].took < 2


def test_many_clients_are_answered_at_once(calm):
    calm.step = 1
    calm.log.clear()
    pages = [url for home in calm.seeds for url in sorted(calm.shown(home))[:20]]
    all_connected = threading.Barrier(50)

    def visit(first: int) -> bool:
        where = urlsplit(calm.seeds[first % 5])
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=patience(30))
        connection.connect()
        all_connected.wait()
        wanted = [url for url in pages if url.startswith(calm.seeds[first % 5])]
        answers = []
        for url in wanted:
            connection.request("GET", url.removeprefix(urls.origin(url)))
            answer = connection.getresponse()
            seen = parse.page(answer.read(), answer.headers["content-type"], url, answer.headers["location"])
            answers.append({urls.canonical(href, seen.base) for href in seen.hrefs or ()})
        connection.close()
        return answers == [calm.shown(url) for url in wanted]

    with ThreadPoolExecutor(50) as clients:
        assert all(clients.map(visit, range(50)))
    assert len(calm.log) > 500


def test_a_connection_serves_many_requests(calm):
    where = urlsplit(calm.seeds[0])
    connection = http.client.HTTPConnection(where.hostname, where.port)
    ports = set()
    for _ in range(5):
        connection.request("GET", "/")
        connection.getresponse().read()
        ports.add(connection.sock.getsockname()[1])
    connection.close()
    assert len(ports) == 1


def test_hosts_answer_429_above_their_limit():
    with LivingWeb(replace(CALM, max_per_second=20)) as web, httpx.Client(trust_env=False) as client:
        client.get(web.seeds[0])
        begin = time.monotonic()
        answers = [client.get(web.seeds[0]) for _ in range(40)]
        took = time.monotonic() - begin
        other = client.get(web.seeds[1])
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(answers) - len(refused) <= 20 * (1 + took)
    assert refused or took > 1  # a machine that slow never reaches the limit
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert [request.fault for request in web.log].count(Fault.THROTTLED) == len(refused)
    assert other.status_code == 200


def test_the_log_tells_what_was_asked_and_answered(calm, client):
    calm.step = 3
    copy = client.get(calm.seeds[1], headers={"User-Agent": "tester"})
    client.get(calm.seeds[1], headers={"If-None-Match": copy.headers["etag"]})
    client.head(calm.seeds[1] + "nothing?here=1")
    client.post(calm.seeds[1])
    first, second, third, fourth = calm.log[-4:]
    assert (first.status, first.host, first.path, first.agent) == (200, "127.0.1.2", "/", "tester")
    assert (first.n_bytes, first.now, first.has_validators) == (len(copy.content), calm.now, False)
    assert (second.status, second.n_bytes, second.has_validators) == (304, 0, True)
    assert (third.status, third.n_bytes, third.path) == (404, 0, "/nothing?here=1")
    assert fourth.status == 405
    assert first.at < second.at <= time.monotonic()


def test_traps_are_linked_only_on_request(calm, client):
    assert not any("/trap/" in url for url in links_on(client.get(calm.seeds[-1])))
    with LivingWeb(replace(CALM, traps=True)) as web:
        assert set(web.traps) <= links_on(client.get(web.seeds[-1]))
        assert len(web.traps) == 13


def test_traps_that_redirect(calm, client):
    trap = calm.seeds[-1] + "trap/"
    with pytest.raises(httpx.TooManyRedirects):
        client.get(trap + "loop", follow_redirects=True)
    assert client.get(trap + "inward").headers["location"].startswith("http://169.254.169.254/")
    with httpx.Client(trust_env=False) as forgetful:
        wall = forgetful.get(trap + "cookie")
    assert wall.headers["location"] == "/trap/cookie"
    assert client.get(trap + "cookie", follow_redirects=True).status_code == 200
    assert client.get(trap + "unknown").status_code == 404


def test_traps_that_look_like_pages(calm, client):
    trap = calm.seeds[-1] + "trap/"
    soft = client.get(trap + "soft-404")
    assert soft.status_code == 200
    assert "not found" in soft.text
    assert links_on(client.get(trap + "calendar")) == {trap + "calendar/1"}
    assert links_on(client.get(trap + "calendar/41")) == {trap + "calendar/42"}
    with pytest.raises(UnicodeDecodeError):
        client.get(trap + "charset").content.decode("utf-8")


def test_traps_that_are_too_large(calm, client):
    trap = calm.seeds[-1] + "trap/"
    size = 0
    with client.stream("GET", trap + "endless") as answer:
        for part in answer.iter_raw():
            size += len(part)
            if size > 5_000_000:
                break
    assert size > 5_000_000
    with client.stream("GET", trap + "large") as answer:
        assert int(answer.headers["content-length"]) == 50 << 20
        assert sum(map(len, answer.iter_raw())) == 50 << 20
    with client.stream("GET", trap + "bomb") as answer:
        packed = b"".join(answer.iter_raw())
    assert len(packed) < 1_000_000
    with gzip.open(io.BytesIO(packed)) as unpacked:
        assert sum(map(len, iter(lambda: unpacked.read(1 << 22), b""))) == 256 << 20
    head = head_of(calm, "/trap/header").partition(b"\r\n\r\n")[0]
    assert len(head) > 200_000


def test_traps_that_break_off(calm, client):
    trap = calm.seeds[-1] + "trap/"
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(trap + "short")
    with pytest.raises(httpx.ReadError):
        client.get(trap + "reset")


def test_a_drip_is_one_byte_a_second_and_ends_with_the_web():
    with LivingWeb(CALM) as web:
        where = urlsplit(web.seeds[-1])
        raw = socket.create_connection((where.hostname, where.port), timeout=patience(5))
        data, begin = b"", time.monotonic()
        raw.sendall(b"GET /trap/drip HTTP/1.1\r\n\r\n")
        while len(data.partition(b"\r\n\r\n")[2]) < 3:
            data += raw.recv(100)
        took = time.monotonic() - begin
    assert took > 1.9  # however late a byte is read, it is not sent before its second
    raw.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((where.hostname, where.port), timeout=patience(1))


def test_errors_name_the_value_and_the_way_out(calm):
    with pytest.raises(RecrawlError, match=r"steps 0 to 28, not 29\. Make it with more steps"):
        calm.step = 29
    with pytest.raises(RecrawlError, match="with LivingWeb"):
        LivingWeb(CALM).seeds  # noqa: B018
    port = urlsplit(calm.seeds[0]).port
    with (
        pytest.raises(RecrawlError, match=rf"127\.0\.1\.1, port {port}.*Choose another port"),
        LivingWeb(replace(CALM, port=port)),
    ):
        pass
    with pytest.raises(RecrawlError, match="resets"):
        Faults(server_errors=0.7, resets=0.7)


TAG = st.text("abc123-", min_size=1, max_size=5).map(lambda text: f'"{text}"')


@given(TAG, st.lists(TAG, max_size=4), st.booleans(), st.booleans())
def test_a_tag_matches_if_it_is_in_the_list_weak_or_not(tag, others, is_known, is_weak):
    listed = ", ".join(others + ([f"W/{tag}"] if is_known else []))
    request = HttpRequest("GET", "/", {"if-none-match": listed})
    assert request.has_copy(f"W/{tag}" if is_weak else tag, None) == (is_known or tag in others)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)), st.integers(-5, 5))
def test_a_date_matches_if_the_page_is_not_newer(at, seconds):
    at = at.replace(microsecond=0, tzinfo=UTC)
    seen = datetime.fromtimestamp(at.timestamp() + seconds, UTC)
    request = HttpRequest("GET", "/", {"if-modified-since": http_date(seen)})
    assert request.has_copy(None, at) == (seconds >= 0)
    # A tag, where there is one, decides alone.
    assert not HttpRequest("GET", "/", {**request.headers, "if-none-match": '"other"'}).has_copy('"own"', at)
