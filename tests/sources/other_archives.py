"""Archives on loopback that speak as OutbackCDX, or in TimeMaps alone, written from what their formats are documented to be."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """Answers by a function of the path, and keeps a list of what was asked."""

    log: list[str] = field(default_factory=list)

    def reply(self, path: str) -> Reply:
        raise NotImplementedError

    def __enter__(self) -> Self:
        outer = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self) -> None:
                outer.log.append(self.path)
                code, headers, body = outer.reply(self.path)
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


NOT_FOUND: Reply = (404, {"Content-Type": "text/html"}, b"<html>not here</html>")


def surt(url: str) -> str:
    host, _, path = url.partition("://")[2].partition("/")
    host = host.partition(":")[0].lower().removeprefix("www.")
    return ",".join(reversed(host.split("."))) + f")/{path.lower().rstrip('/')}"


@dataclass
class Outback(Server):
    """``/index?url=…``: 11-field CDX lines in the order of key and time, and the header that names the key.

    As in the original, a span of time is refused where many pages are asked for, and a range goes on to the end of the index.
    """

    rows: list[str] = field(default_factory=list)

    def capture(self, at: str, url: str, digest: str, *, mime: str = "text/html", status: str = "200") -> None:
        self.rows.append(f"{surt(url)} {at} {url} {mime} {status} {digest} - - 2248 396 crawl.warc.gz")

    def reply(self, path: str) -> Reply:
        parts = urlsplit(path)
        if parts.path != "/index":
            return 404, {"Content-Type": "text/plain"}, b"Not found\n"
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match = asked.get("matchType", "exact")
        key = asked.get("urlkey") or surt(asked["url"])
        if match != "exact" and ("from" in asked or "to" in asked):
            return 400, {}, b"from={timestamp} and to={timestamp} are currently only implemented for exact matches\n"
        if match == "prefix" and asked.get("url", "").endswith("/") and not key.endswith("/"):
            key += "/"
        rows = [row for row in sorted(self.rows) if self._matches(row, key, match, asked)]
        text = "".join(f"{row}\n" for row in rows[: int(asked.get("limit", 10**9))])
        return 200, {"Content-Type": "text/plain", "outbackcdx-urlkey": key}, text.encode()

    def _matches(self, row: str, key: str, match: str, asked: dict[str, str]) -> bool:
        own, at, *_ = row.split(" ")
        host = key.partition(")/")[0]
        tests: dict[str, Callable[[], bool]] = {
            "exact": lambda: own == key and asked.get("from", "") <= at <= asked.get("to", "~"),
            "prefix": lambda: own.startswith(key),
            "domain": lambda: host <= own < f"{host}-",
            "range": lambda: own >= key,
        }
        return tests[match]()


@dataclass
class MapsOnly(Server):
    """``/timemap/link/<url>`` in link format, in pages of a few mementos (RFC 7089, section 5.1), and copies as they were."""

    captures: list[tuple[str, str]] = field(default_factory=list)  # time and URL
    bodies: dict[tuple[str, str], Reply] = field(default_factory=dict)
    page_size: int = 3
    prefix: str = "/timemap/link/"

    def capture(self, at: str, url: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        self.captures.append((at, url))
        known = {"Content-Type": "text/html", "Memento-Datetime": _date(at)} | headers
        self.bodies[at, url] = (status, known, body)

    def reply(self, path: str) -> Reply:
        if path.startswith(self.prefix):
            return self._map(path.removeprefix(self.prefix))
        copy = re.fullmatch(r"/archive/(\d{14})id_/(.*)", path)
        return self.bodies.get((copy[1], copy[2]), NOT_FOUND) if copy else NOT_FOUND

    def _map(self, asked: str) -> Reply:
        number = re.match(r"(\d+)/(.*)", asked)
        start, url = (int(number[1]), number[2]) if number else (0, asked)
        times = sorted(at for at, of in self.captures if of == url)
        kind = {"Content-Type": "application/link-format"}
        if not times:
            return 404, kind, b""
        here = times[start : start + self.page_size]
        links = [f'<{url}>; rel="original"', f'<{self._page(start, url)}>; rel="self"; type="application/link-format"']
        for other in range(0, len(times), self.page_size):  # the pages before and behind
            if abs(other - start) == self.page_size:
                span = f'; from="{_date(times[other])}"'
                links.append(f'<{self._page(other, url)}>; rel="timemap"; type="application/link-format"{span}')
        for at in here:
            links.append(f'<{self.base_url}/archive/{at}/{url}>; rel="memento"; datetime="{_date(at)}"')
        return 200, kind, ",\n".join(links).encode()

    def _page(self, start: int, url: str) -> str:
        return f"{self.base_url}{self.prefix}{f'{start}/' if start else ''}{url}"


@dataclass
class Busy(Server):
    """Refuses every request, for ever or until it is stopped; `behind` answers otherwise."""

    behind: Server | None = None
    refuses: Callable[[str], bool] = lambda path: True
    answer: Reply = (429, {"Retry-After": "120"}, b"slow down")

    def reply(self, path: str) -> Reply:
        if self.behind is None or self.refuses(path):
            return self.answer
        return self.behind.reply(path)


def _date(at: str) -> str:
    return format_datetime(datetime.strptime(at, "%Y%m%d%H%M%S").replace(tzinfo=UTC), usegmt=True)
