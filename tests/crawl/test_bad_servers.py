"""Servers that break every rule, in real crawls: each page gets its visit, with a note of what was wrong, and the crawl goes on."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crawl.crawling import crawled, visits
from patience import slowness
from recrawl.history import History
from recrawl.synth.living.web import Faults, Living, LivingWeb

MAX_BYTES = 1 << 20
TIMEOUT = 2.0 * slowness()  # seconds
LIVING = Living(sites=1, pages=10, steps=1, faults=Faults(), traps=True)
UNKNOWN, REFUSED, PRIVATE = "http://no-such-host.invalid/", "http://127.0.7.7:9/", "http://10.0.0.1/"


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def self_signed(folder: Path) -> Iterator[str]:
    """A server with a self-signed certificate, for another name and out of date."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "other.example")])
    then = datetime.now(UTC) - timedelta(days=400)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(then).not_valid_after(then + timedelta(days=30))
    certificate = made.sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    (folder / "both.pem").write_bytes(private + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@dataclass
class Done:
    web: LivingWeb
    planned: list[str]
    found: dict[str, Any]
    history: Path
    visits: dict[str, list[tuple[int, str | None]]]

    def trap(self, name: str) -> list[tuple[int, str | None]]:
        (url,) = (url for url in self.planned if url.endswith(f"/trap/{name}"))
        return self.visits[url]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("bad")
    with LivingWeb(LIVING) as web, self_signed(folder) as secured:
        planned = [*web.traps, *web.pages, UNKNOWN, REFUSED, PRIVATE, secured]
        fetch = {"timeout": TIMEOUT, "max_bytes": MAX_BYTES, "host_concurrency": 40, "concurrency": 50}
        found = crawled(folder / "h", plan=planned, fetch=fetch, DOWNLOAD_VERIFY_CERTIFICATES=True)
    return Done(web, planned, found, folder / "h", visits(folder / "h"))


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("endless", 0, "too large"), ("drip", 0, "timeout"), ("bomb", 0, "too large"), ("large", 0, "too large"),
        ("short", 0, "cut short"), ("reset", 0, "cut short"), ("header", 0, "connection broken"),
        ("soft-404", 404, "soft 404"), ("inward", 302, ""), ("cookie", 200, ""), ("calendar", 200, ""), ("charset", 200, ""),
    ],
)  # fmt: skip
def test_every_trap_is_named(done: Done, name: str, status: int, kind: str) -> None:
    ((found, note),) = done.trap(name)
    assert (found, (note or "").partition(":")[0]) == (status, kind)


def test_a_page_that_redirects_for_ever_is_given_up(done: Done) -> None:
    assert done.trap("loop") == [(302, None), (0, "too many redirects")]
    assert sum(got.path.startswith("/trap/loop") for got in done.web.log) <= 12


def test_a_redirect_into_the_private_network_is_not_followed(done: Done) -> None:
    ((status, note),) = done.visits["http://169.254.169.254/latest/meta-data/"]
    assert status == 0
    assert (note or "").startswith("address not public")


@pytest.mark.parametrize(
    ("url", "kind"), [(UNKNOWN, "host not found"), (REFUSED, "connection refused"), (PRIVATE, "address not public")]
)
def test_a_host_that_cannot_be_reached_is_named(done: Done, url: str, kind: str) -> None:
    ((status, note),) = done.visits[url]
    assert (status, (note or "").partition(":")[0]) == (0, kind)


def test_a_wrong_certificate_is_named(done: Done) -> None:
    ((status, note),) = done.visits[done.planned[-1]]
    assert (status, (note or "").partition(":")[0]) == (0, "certificate")


def test_a_page_in_another_charset_than_it_says_is_read(done: Done) -> None:
    history = History.open(done.history)
    at = (
        history.urls_of(history.timeline.page).to_pylist().index(next(u for u in done.planned if u.endswith("charset")))
    )
    assert history.timeline.rows["title"][at].as_py().startswith("Caf")


def test_no_planned_page_is_left_out_and_good_ones_are_fetched(done: Done) -> None:
    assert set(done.planned) <= set(done.visits)
    assert all(done.visits[url] == [(200, None)] for url in done.web.pages if done.web.is_allowed(url))
    private = [url for url in done.web.pages if not done.web.is_allowed(url)]
    assert all(done.visits[url] == [(0, "forbidden by robots.txt")] for url in private)


def test_all_faults_are_counted(done: Done) -> None:
    summary = done.found["summary"]
    n_private = sum(not done.web.is_allowed(url) for url in done.web.pages)
    forbidden = {"forbidden by robots.txt": n_private} if n_private else {}
    assert summary["failures"] == forbidden | {
        "too large": 3, "timeout": 1, "cut short": 2, "connection broken": 1, "too many redirects": 1,
        "address not public": 2, "host not found": 1, "connection refused": 1, "certificate": 1,
    }  # fmt: skip
    assert summary["failed"] == sum(summary["failures"].values())
    assert (summary["soft_404"], summary["ended"]) == (1, "finished")
    assert summary["written"] == summary["visits"] == sum(map(len, done.visits.values()))


def test_time_and_memory_are_bounded(done: Done) -> None:
    assert done.found["summary"]["seconds"] < 10 * TIMEOUT  # the drip is tried twice, and nothing else waits
    assert done.found["megabytes"] < 300  # a bomb that went off would add 256 to the 130 of any crawl
    sent = {got.path: got.n_bytes for got in done.web.log}
    assert sent["/trap/endless"] < 30 * MAX_BYTES
    assert sent["/trap/large"] < 30 * MAX_BYTES


@pytest.mark.slow
def test_an_endless_calendar_is_limited_by_depth_and_holds_up_no_other_page(tmp_path: Path) -> None:
    with LivingWeb(LIVING) as web:
        found = crawled(tmp_path / "h", seeds=web.seeds, limits={"pages": 200, "depth": 4},
                        fetch={"timeout": TIMEOUT, "max_bytes": MAX_BYTES})  # fmt: skip
        months = [got.path for got in web.log if got.path.startswith("/trap/calendar")]
    assert found["summary"]["ended"] == "finished"
    assert sorted(months) == ["/trap/calendar", "/trap/calendar/1", "/trap/calendar/2", "/trap/calendar/3"]
    seen = visits(tmp_path / "h")
    assert {url for url in web.pages if web.is_allowed(url)} <= set(seen)
    assert len(seen) <= 200 + 2  # and where two redirects led
