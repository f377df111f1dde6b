"""A crawler that is lured inside stays outside: real crawls, with a server on 127.0.0.2 for the public web and one inside.

Each crawl is a process of its own, as a reactor runs only once; started as a program this file is that process.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.utils.defer import maybe_deferred_to_future

from recrawl.crawl.addresses import Networks
from recrawl.crawl.guard import Guard
from recrawl.crawl.resolver import PublicOnlyResolver

OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"
NAMES = {  # → what one lookup after the other answers; the last answer stays
    "site.example": [[OUTSIDE]],
    "rebound.example": [[OUTSIDE], [INSIDE]],
    "inside.example": [[INSIDE]],
    "mixed.example": [[OUTSIDE, INSIDE]],
    "mixed6.example": [[OUTSIDE, "::1"]],
    "both.example": [["2001:db8::2", OUTSIDE]],
    "healed.example": [[INSIDE], [OUTSIDE]],
    "xn--bcher-kva.example": [[INSIDE]],
    "xn--fa-hia.example": [[OUTSIDE]],  # faß.example; fass.example is another
    "slow.example": [["never"]],
}
LURES = {"/to-address": "http://127.0.0.1:{port}/secret", "/to-odd": "http://0x7f.1:{port}/secret",
         "/to-name": "http://inside.example:{port}/secret", "/to-site": "http://site.example:{port}/end"}  # fmt: skip


# -- the process that crawls ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pretended(Networks):
    """Takes one address of this machine for the public web."""

    def allows(self, address: str) -> bool:
        return address in (OUTSIDE, "2001:db8::2")


class Server(ThreadingHTTPServer):
    def __init__(self, address: str, port: int = 0) -> None:
        self.asked: list[str] = []
        super().__init__((address, port), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        lure = LURES.get(self.path)
        self.send_response(302 if lure else 200)
        if lure:
            self.send_header("Location", lure.format(port=self.server.server_port))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


ENDED = threading.Event()  # the crawl is over


class Names:
    """A lookup whose answers change."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, family: int = 0, kind: int = 0) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        if host not in NAMES:
            return list(socket.getaddrinfo(host, port, family, kind, 0, socket.AI_NUMERICHOST))
        answers = NAMES[host]
        addresses = answers[min(self.asked.count(host), len(answers)) - 1]
        if addresses == ["never"]:
            ENDED.wait()
            addresses = [INSIDE]
        return [(None, kind, 0, "", (address, port)) for address in addresses]


class PretendedResolver(PublicOnlyResolver):
    names = Names()

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> Self:
        timeout = crawler.settings.getfloat("DNS_TIMEOUT")
        return cls(reactor, Pretended(), timeout, cls.names, crawler.settings.getfloat("CACHE_SECONDS"))


class Lured(scrapy.Spider):
    name = "lured"
    outcomes: dict[str, str]
    urls: list[str]
    resolved: list[str]

    async def start(self) -> AsyncIterator[Any]:
        from twisted.internet import reactor

        for host in self.resolved:
            try:
                self.outcomes[host] = await maybe_deferred_to_future(reactor.resolve(host))  # type: ignore[attr-defined]
            except Exception as error:
                self.outcomes[host] = type(error).__name__
        for url in self.urls:
            yield self.request(url)

    def request(self, url: str) -> scrapy.Request:
        return scrapy.Request(url, self.parse, errback=self.failed, dont_filter=True, cb_kwargs={"start": url})

    def parse(self, response: Any, start: str) -> Iterator[Any]:
        self.outcomes[start] = str(response.status)
        if start.endswith("/first"):
            yield self.request(start.replace("/first", "/second"))

    def failed(self, failure: Any) -> Iterator[Any]:
        start = failure.request.cb_kwargs["start"]
        self.outcomes[start] = f"{type(failure.value).__name__}: {failure.value}"
        if start.endswith("/first"):
            yield self.request(start.replace("/first", "/second"))


def main(urls: list[str], resolved: list[str], guarded: bool, settings: dict[str, Any]) -> dict[str, Any]:
    outside = Server(OUTSIDE)
    port = outside.server_port
    inside = Server(INSIDE, port)
    outcomes: dict[str, str] = {}
    base = {
        "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "RETRY_TIMES": 1, "DOWNLOAD_TIMEOUT": 300, "DNS_TIMEOUT": 300,
        "DOWNLOADER_MIDDLEWARES": {Guard: Guard.ORDER} if guarded else {}, "TWISTED_DNS_RESOLVER": PretendedResolver,
    }  # fmt: skip
    process = CrawlerProcess({**base, **settings})
    crawler = process.create_crawler(Lured)
    process.crawl(crawler, outcomes=outcomes, urls=[url.replace("PORT", str(port)) for url in urls], resolved=resolved)
    from twisted.internet import reactor

    reactor.addSystemEventTrigger("before", "shutdown", ENDED.set)  # type: ignore[attr-defined]
    process.start()
    stats = {key: value for key, value in crawler.stats.get_stats().items() if key.startswith(("recrawl/", "retry/"))}
    return {
        "outcomes": {url.replace(str(port), "PORT"): outcome.replace(str(port), "PORT") for url, outcome in outcomes.items()},
        "outside": outside.asked, "inside": inside.asked, "lookups": PretendedResolver.names.asked, "stats": stats,
    }  # fmt: skip


def crawled(
    *urls: str, resolved: tuple[str, ...] = (), guarded: bool = True, env: dict[str, str] | None = None, **settings: Any
) -> dict[str, Any]:
    given = json.dumps({"urls": urls, "resolved": resolved, "guarded": guarded, "settings": settings})
    from patience import patience  # not needed, nor found, where this file is the program

    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, __file__, given],
        capture_output=True,
        text=True,
        timeout=patience(60),
        env={**clean, **(env or {})},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


# -- what it is lured with --------------------------------------------------------------------------------------------


def at(host: str, path: str = "/") -> str:
    return f"http://{host}:PORT{path}"


@cache
def lured() -> dict[str, Any]:
    """One crawl that meets everything."""
    lures = [at("site.example", path) for path in LURES]
    names = [
        at(name) for name in NAMES if name not in ("rebound.example", "healed.example", "both.example", "slow.example")
    ]
    refused = [
        "file:///etc/hostname",
        "data:,x",
        at("me:secret@site.example"),
        at("localhost"),
        at("127.0.0.1"),
        at("[::1]"),
    ]
    changing = [at("rebound.example", "/first"), at("healed.example", "/first")]
    return crawled(*lures, *names, *refused, *changing, at("unknown.example"),
                   resolved=("site.example", "inside.example", "both.example", "mixed6.example"))  # fmt: skip


def test_no_private_server_ever_gets_a_request() -> None:
    assert lured()["inside"] == []
    assert "/end" in lured()["outside"]


def test_the_public_web_is_fetched() -> None:
    assert lured()["outcomes"][at("site.example")] == "200"
    assert lured()["outcomes"][at("site.example", "/to-site")] == "200"


@pytest.mark.parametrize("path", ["/to-address", "/to-odd"])
def test_a_redirect_to_a_private_address_is_refused(path: str) -> None:
    outcomes = lured()["outcomes"][at("site.example", path)]
    assert outcomes.startswith("IgnoreRequest: address not public: 127.0.0.1, the host of 'http://")


def test_a_redirect_to_a_name_with_a_private_address_is_refused() -> None:
    outcomes = lured()["outcomes"][at("site.example", "/to-name")]
    assert outcomes == "IgnoreRequest: address not public: inside.example has the address 127.0.0.1"


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("inside.example", "127.0.0.1"),
        ("mixed.example", "127.0.0.1"),
        ("mixed6.example", "::1"),
        ("xn--bcher-kva.example", "127.0.0.1"),
    ],
)
def test_one_private_address_is_enough_to_refuse_a_name(name: str, address: str) -> None:
    assert lured()["outcomes"][at(name)] == f"IgnoreRequest: address not public: {name} has the address {address}"
    assert lured()["lookups"].count(name) <= 3  # nothing is tried again; some names are asked for more than once


def test_a_name_that_changes_its_address_is_connected_to_the_checked_one() -> None:
    found = lured()
    assert found["outcomes"][at("rebound.example", "/first")] == "200"
    assert found["lookups"].count("rebound.example") == 2  # one for each connection, none between check and connection
    refused = "IgnoreRequest: address not public: rebound.example has the address 127.0.0.1"
    assert found["outcomes"][at("rebound.example", "/second")] == refused


def test_a_refused_name_may_become_public() -> None:
    assert lured()["outcomes"][at("healed.example", "/first")].startswith("IgnoreRequest: address not public")
    assert lured()["outcomes"][at("healed.example", "/second")] == "200"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/hostname", "not http or https"),
        ("data:,x", "not http or https"),
        (at("me:secret@site.example"), "user name or password in the URL"),
        (at("localhost"), "name of this machine"),
        (at("127.0.0.1"), "address not public"),
        (at("[::1]"), "address not public"),
    ],
)
def test_a_url_outside_the_web_is_refused(url: str, reason: str) -> None:
    assert lured()["outcomes"][url].startswith(f"IgnoreRequest: {reason}: ")


def test_a_name_that_cannot_be_resolved_does_not_count_as_refused() -> None:
    assert lured()["outcomes"][at("unknown.example")].startswith("CannotResolveHostError: ")


def test_a_lookup_that_takes_too_long_is_given_up() -> None:
    found = crawled(at("slow.example"), DNS_TIMEOUT=0.2, RETRY_ENABLED=False)
    assert found["outcomes"][at("slow.example")].startswith("CannotResolveHostError: ")
    assert "recrawl/refused" not in found["stats"]  # it would have been, had its answer been waited for


def test_refusals_are_counted_and_not_tried_again() -> None:
    stats = lured()["stats"]
    assert stats["recrawl/refused"] == sum(
        outcome.startswith("IgnoreRequest") for outcome in lured()["outcomes"].values()
    )
    assert stats["recrawl/refused/not http or https"] == 2
    assert stats["recrawl/refused"] == sum(n for key, n in stats.items() if key.startswith("recrawl/refused/"))
    assert stats["retry/count"] == 1  # unknown.example


def test_an_international_name_is_looked_up_as_the_url_spells_it() -> None:
    names = set(lured()["lookups"])
    assert names >= {"xn--bcher-kva.example", "xn--fa-hia.example"}
    assert lured()["outcomes"][at("xn--fa-hia.example")] == "200"


def test_older_ways_to_resolve_a_name_are_checked_too() -> None:
    outcomes = lured()["outcomes"]
    assert (outcomes["site.example"], outcomes["both.example"]) == (OUTSIDE, OUTSIDE)
    assert outcomes["inside.example"] == outcomes["mixed6.example"] == "DNSLookupError"


def test_checked_addresses_are_cached_for_a_while() -> None:
    found = crawled(at("rebound.example", "/first"), CACHE_SECONDS=60)
    assert found["outcomes"][at("rebound.example", "/second")] == "200"
    assert (found["lookups"], found["outside"], found["inside"]) == (["rebound.example"], ["/first", "/second"], [])


REAL = "recrawl.crawl.resolver.PublicOnlyResolver"


def test_the_resolver_alone_refuses_addresses() -> None:
    hosts = ["127.0.0.1", "127.1", "0x7f000001", "[::ffff:127.0.0.1]", "localhost", "127.0.0.2"]
    found = crawled(*map(at, hosts), guarded=False, TWISTED_DNS_RESOLVER=REAL, RETRY_ENABLED=False)
    assert len(found["outcomes"]) == len(hosts)
    assert all(outcome.startswith("CannotResolveHostError") for outcome in found["outcomes"].values()), found[
        "outcomes"
    ]
    assert found["inside"] == found["outside"] == []


def test_loopback_is_fetched_where_it_is_allowed() -> None:
    found = crawled(at("127.0.0.1"), at("localhost", "/name"), at("[::ffff:127.0.0.1]"), TWISTED_DNS_RESOLVER=REAL,
                    RECRAWL_ALLOW_LOOPBACK=True)  # fmt: skip
    assert sorted(found["inside"]) == ["/", "/name"]
    assert found["outcomes"][at("[::ffff:127.0.0.1]")].startswith("IgnoreRequest: address not public")


def test_without_the_resolver_nothing_is_fetched() -> None:
    found = crawled(at("site.example"), TWISTED_DNS_RESOLVER="scrapy.resolver.CachingThreadedResolver")
    assert (
        found["outcomes"][at("site.example")]
        == f"IgnoreRequest: addresses unchecked: set TWISTED_DNS_RESOLVER to '{REAL}'"
    )


def test_a_proxy_that_would_look_up_names_unchecked_is_refused() -> None:
    found = crawled(at("site.example"), env={"http_proxy": "http://127.0.0.2:9"})
    assert found["outcomes"][at("site.example")].startswith("IgnoreRequest: proxy: ")
    assert found["stats"]["recrawl/refused/proxy"] == 1


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
