"""Sail on this machine: a Spark Connect server without a JVM, ready in a second.

Its workers are threads of one process, so what one of them has loaded or compiled serves all. It is not this process: Sail answers
Ctrl-C itself, and threads at work in the middle of Python would keep a command from ending.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recrawl.engine.server_process import Server, server_process

START_SECONDS = 60
_PROGRAM = """
import os, sys
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print("listening on", server.listening_address[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
"""
_LISTENING = "listening on "


@contextmanager
def sail_server(mode: str) -> Iterator[Server]:
    """A server that lasts as long as the block; `mode` is local or local-cluster."""
    with server_process("Sail", _PROGRAM, [], {"SAIL_MODE": mode}) as server:
        server.wait_until(lambda printed: _port(printed) is not None, START_SECONDS, lambda printed: None)
        yield server.at(f"sc://127.0.0.1:{_port(server.printed())}")


def _port(printed: str) -> int | None:
    lines = [line for line in printed.splitlines(keepends=True) if line.startswith(_LISTENING) and line.endswith("\n")]
    return int(lines[0].removeprefix(_LISTENING)) if lines else None
