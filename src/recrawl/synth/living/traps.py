"""Pages that trap careless crawlers; `TRAPS` lists them all.

They lie under /trap/ of the last site, and nothing links to them unless the settings say so.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from functools import cache

from recrawl.synth.living.http import HttpRequest, HttpResponse, Wire

Trap = Callable[[Wire, HttpRequest], Awaitable[None]]
_HTML = {"Content-Type": "text/html; charset=utf-8"}
_MIB = 1 << 20
_LARGE, _BOMB = 50 * _MIB, 256 * _MIB  # bytes, the bomb's after unpacking
_GZIP_HEAD, _LAST_BLOCK = bytes.fromhex("1f8b08000000000000ff"), bytes.fromhex("0300")
_LONG_HEADER = 200 * 1024
_FILLER = b"<p>on and on and on and on and on</p>\n" * 1_000


async def spring(wire: Wire, request: HttpRequest) -> None:
    """Respond to a request below /trap/."""
    name = request.path.removeprefix("/trap/").partition("/")[0]
    trap = TRAPS.get(f"/trap/{name}")
    if trap is None:
        await wire.send(HttpResponse(404, b"no such trap", _HTML), request)
    else:
        await trap(wire, request)


async def _endless(wire: Wire, request: HttpRequest) -> None:
    wire.close()
    wire.head(200, _HTML)
    while True:
        await wire.body(_FILLER)


async def _drip(wire: Wire, request: HttpRequest) -> None:
    """One byte per second, so that no single read ever times out."""
    wire.close()
    wire.head(200, _HTML)
    while True:
        await wire.body(b".")
        await asyncio.sleep(1)


async def _bomb(wire: Wire, request: HttpRequest) -> None:
    await wire.send(HttpResponse(200, _packed(), _HTML | {"Content-Encoding": "gzip"}), request)


@cache
def _packed() -> bytes:
    """Many blanks as a valid gzip body: one packed block again and again, which takes a thousandth of the time."""
    blanks = b" " * _MIB
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(_BOMB // _MIB):
        checksum = zlib.crc32(blanks, checksum)
    sums = checksum.to_bytes(4, "little") + _BOMB.to_bytes(4, "little")
    return _GZIP_HEAD + block * (_BOMB // _MIB) + _LAST_BLOCK + sums


async def _loop(wire: Wire, request: HttpRequest) -> None:
    other = "/trap/loop" if request.path.endswith("/there") else "/trap/loop/there"
    await wire.send(HttpResponse(302, headers={"Location": other}), request)


async def _inward(wire: Wire, request: HttpRequest) -> None:
    """A redirect to the address where clouds keep secrets of the machine."""
    await wire.send(HttpResponse(302, headers={"Location": "http://169.254.169.254/latest/meta-data/"}), request)


async def _cookie(wire: Wire, request: HttpRequest) -> None:
    if "seen=yes" in request.headers.get("cookie", ""):
        await wire.send(HttpResponse(200, b"<title>Behind the wall</title>", _HTML), request)
    else:
        await wire.send(
            HttpResponse(302, headers={"Location": request.path, "Set-Cookie": "seen=yes; Path=/"}), request
        )


async def _soft_404(wire: Wire, request: HttpRequest) -> None:
    body = b"<title>Page not found</title><h1>404</h1><p>Sorry, the page was not found.</p>"
    await wire.send(HttpResponse(200, body, _HTML), request)


async def _calendar(wire: Wire, request: HttpRequest) -> None:
    month = request.path.rpartition("/")[2]
    following = int(month) + 1 if month.isdecimal() else 1
    body = f'<title>Calendar</title><p>No events.</p><a href="/trap/calendar/{following}">next month</a>'
    await wire.send(HttpResponse(200, body.encode(), _HTML), request)


async def _large(wire: Wire, request: HttpRequest) -> None:
    wire.head(200, _HTML | {"Content-Length": str(_LARGE)})
    part = _FILLER.ljust(_MIB)
    for _ in range(_LARGE // _MIB):
        await wire.body(part)


async def _short(wire: Wire, request: HttpRequest) -> None:
    wire.close()
    wire.head(200, _HTML | {"Content-Length": "100000"})
    await wire.body(b"<p>That is all.</p>")


async def _reset(wire: Wire, request: HttpRequest) -> None:
    wire.head(200, _HTML | {"Content-Length": "100000"})
    await wire.body(b"<p>We are interrup")
    await asyncio.sleep(0.05)  # what was sent arrives before the reset, which would overtake it
    wire.reset()


async def _charset(wire: Wire, request: HttpRequest) -> None:
    """Announced as UTF-8, written in Latin-1."""
    await wire.send(HttpResponse(200, "<title>Café</title><p>déjà vu à la crème</p>".encode("latin-1"), _HTML), request)


async def _header(wire: Wire, request: HttpRequest) -> None:
    await wire.send(HttpResponse(200, b"<p>short</p>", _HTML | {"X-Filler": "x" * _LONG_HEADER}), request)


TRAPS: dict[str, Trap] = {
    "/trap/endless": _endless,
    "/trap/drip": _drip,
    "/trap/bomb": _bomb,
    "/trap/loop": _loop,
    "/trap/inward": _inward,
    "/trap/cookie": _cookie,
    "/trap/soft-404": _soft_404,
    "/trap/calendar": _calendar,
    "/trap/large": _large,
    "/trap/short": _short,
    "/trap/reset": _reset,
    "/trap/charset": _charset,
    "/trap/header": _header,
}  #: path → trap
