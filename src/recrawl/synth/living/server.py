"""Many loopback addresses that listen on one port, all served by one background thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

from recrawl.errors import RecrawlError

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_SITES_PER_NET = 250
_ATTEMPTS = 50
_BACKLOG = 1_000


def address(site: int) -> str:
    """The loopback address of a site.

    >>> address(0), address(250)
    ('127.0.1.1', '127.0.2.1')
    """
    return f"127.0.{1 + site // _SITES_PER_NET}.{1 + site % _SITES_PER_NET}"


def listen(addresses: list[str], port: int) -> list[socket.socket]:
    """One listening socket for each address, all with the same port."""
    for attempt in range(_ATTEMPTS):
        with ExitStack() as opened:
            try:
                listeners: list[socket.socket] = []
                for host in addresses:
                    chosen = listeners[0].getsockname()[1] if listeners else port
                    listener = socket.create_server((host, chosen), backlog=_BACKLOG)
                    listeners.append(opened.enter_context(listener))
            except OSError as error:
                # The port is free on the first address and taken on another: the system may choose a better one.
                if port or not listeners or attempt == _ATTEMPTS - 1:
                    raise RecrawlError(_cannot_listen(host, chosen, error)) from error
                continue
            opened.pop_all()
            return listeners
    raise AssertionError("the last attempt returns or raises")


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    way_out = f"Choose another port; on macOS, first say: sudo ifconfig lo0 alias {host}"
    return f"cannot listen on {host}, port {port or 'of any number'}: {error.strerror}. {way_out}"


@contextmanager
def serving(listeners: list[socket.socket], converse: Converse) -> Iterator[None]:
    """Serve all sockets in one background thread until the block ends."""
    loop, is_over = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        servers = [await asyncio.start_server(converse, sock=listener) for listener in listeners]
        await is_over.wait()
        for server in servers:
            server.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:  # cancels the open conversations at its end
            runner.run(serve())

    thread = threading.Thread(target=run, name="living web", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
