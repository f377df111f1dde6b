"""A web archive on loopback that answers as the Internet Archive does, and fails as it does when a test asks for it."""

from __future__ import annotations

import base64
import gzip
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, quote_plus, unquote_plus, urlsplit

from recrawl.sources.wayback import Clock

NOW = datetime(2026, 3, 1, tzinfo=UTC)
Handler = BaseHTTPRequestHandler
Trouble = Callable[[Handler], None]


@dataclass
class ArchiveServer:
    """`rows` are index lines, `mementos` the answers by (timestamp, url); a trouble is spent on a matching request."""

    rows: list[str] = field(default_factory=list)
    mementos: dict[tuple[str, str], Trouble] = field(default_factory=dict)
    troubles: deque[tuple[str, Trouble]] = field(default_factory=deque)  # (part of the path, what happens)
    log: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        outer = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # one packet for each answer, or every request waits 40 ms for an acknowledgement

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def capture(
        self,
        timestamp: str,
        url: str,
        digest: str,
        *,
        status: str = "200",
        mime: str = "text/html",
        body: bytes | None = None,
    ) -> None:
        """Put one capture into the index and, where there is a body, its memento beside it."""
        self.rows.append(f"{url_key(url)} {timestamp} {url} {mime} {status} {digest} 100")
        if body is not None:
            self.mementos[timestamp, url] = memento(timestamp, body)

    def trouble(self, part: str, *troubles: Trouble) -> None:
        self.troubles.extend((part, trouble) for trouble in troubles)

    @property
    def index_requests(self) -> list[str]:
        return [path for path in self.log if path.startswith("/cdx/")]

    @property
    def memento_requests(self) -> list[str]:
        return [path for path in self.log if path.startswith("/web/")]

    def answer(self, handler: Handler) -> None:
        self.log.append(handler.path)
        self.agents.add(handler.headers["User-Agent"])
        for waiting in self.troubles:
            if waiting[0] in handler.path:
                self.troubles.remove(waiting)
                return waiting[1](handler)
        if handler.path.startswith("/cdx/search/cdx?"):
            return self._index(handler)
        asked = re.fullmatch(r"/web/(\d{14})id_/(.*)", handler.path)
        answer = self.mementos.get((asked[1], asked[2])) if asked else None
        return (answer or status(404, b"<html>The Wayback Machine has not archived that URL."))(handler)

    def _index(self, handler: Handler) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
        assert "collapse" not in asked, "collapse hides unchanged captures"
        key, start = url_key(asked["url"]), unquote_plus(asked.get("resumeKey", ""))
        rows = [
            row
            for row in sorted(self.rows)
            if self._matches(row.split(" ")[0], key, asked)
            and asked.get("from", "") <= row.split(" ")[1] <= asked.get("to", "~")
            and row >= start
        ]
        limit = int(asked["limit"])
        text = "".join(f"{row}\n" for row in rows[:limit])
        if len(rows) >= limit:
            *_, (last_key, last_time, *_) = (row.split(" ") for row in rows[:limit])
            after = last_time[:-1] + chr(ord(last_time[-1]) + 1)  # as the real one does: after 9 comes a colon
            text += f"\n{quote_plus(f'{last_key} {after}')}\n"
        send(
            handler,
            200,
            {"Content-Type": "text/plain;charset=UTF-8", "content-encoding": "gzip"},
            gzip.compress(text.encode()),
        )

    def _matches(self, key: str, asked_key: str, asked: dict[str, str]) -> bool:
        if asked.get("matchType") == "prefix":
            return key.startswith(asked_key + "/" * (asked["url"].endswith("/") and not asked_key.endswith("/")))
        if asked.get("matchType") == "domain":
            return key.startswith((asked_key, asked_key.replace(")/", ",")))
        return key == asked_key


def url_key(url: str) -> str:
    """The host turned round and the path, for all spellings of one page (enough of SURT for tests)."""
    host, _, path = url.partition("://")[2].partition("/")
    host = host.split(":")[0].lower().removeprefix("www.")
    return ",".join(reversed(host.split("."))) + f")/{path.lower().rstrip('/')}"


def send(handler: Handler, code: int, headers: dict[str, str], body: bytes) -> None:
    """Answer in chunks, as the real one does."""
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    try:
        for start in range(0, len(body), 65536):
            part = body[start : start + 65536]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\n\r\n")
    except OSError:  # the client has seen enough
        handler.close_connection = True


def memento(timestamp: str, body: bytes, **headers: str) -> Trouble:
    at = datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    known = {"Content-Type": "text/html", "memento-datetime": format_datetime(at, usegmt=True)}
    known |= {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: send(handler, 200, known, body)


def redirect(location: str, **headers: str) -> Trouble:
    known = {"Location": location} | {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: send(handler, 302, known, b"")


def status(code: int, body: bytes = b"", **headers: str) -> Trouble:
    known = {"Content-Type": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: send(handler, code, known, body)


def dropped(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def short(handler: Handler) -> None:
    """Declare more bytes than are sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"org,e)/ 20260102030405 https://e.org/ text/html 200 ABC 123\n")
    handler.close_connection = True


def cut_gzip(handler: Handler) -> None:
    """A complete transfer of half a gzip file."""
    packed = gzip.compress(b"org,e)/ 20260102030405 https://e.org/ text/html 200 ABC 123\n")
    send(handler, 200, {"content-encoding": "gzip"}, packed[: len(packed) // 2])


@dataclass(frozen=True)
class Recorded:
    """One recorded request and its answer."""

    uri: str
    code: int
    headers: dict[str, str]
    body: bytes

    def __call__(self, handler: Handler) -> None:
        skip = ("connection", "transfer-encoding", "content-length", "date", "server")
        send(handler, self.code, {n: v for n, v in self.headers.items() if n.lower() not in skip}, self.body)


def recordings(path: Path) -> list[Recorded]:
    """The answers in a recording of the `wayback` package's tests: YAML, of which only this much needs to be read."""
    found = []
    for block in re.split(r"(?m)^- request:\n", path.read_text())[1:]:
        request, response = block.split("\n  response:\n")
        packed, _, rest = response.partition("\n    headers:\n")
        head, _, tail = rest.partition("\n    status:")
        uri, code = re.search(r"(?m)^    uri: (\S+)$", request), re.search(r"code: (\d+)", tail)
        assert uri is not None
        assert code is not None
        body = base64.b64decode(packed.partition("!!binary |")[2])
        headers = dict(re.findall(r"(?m)^      (\S+):\n      - '?(.*?)'?$", head))
        found.append(Recorded(uri[1], int(code[1]), headers, body))
    return found


class FastClock(Clock):
    """Sleeping takes no time, but is written down."""

    def __init__(self) -> None:
        self.passed, self.slept = 0.0, list[float]()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed)

    def seconds(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed += seconds
