"""``recrawl crawl`` held in the middle of its work, by a page whose server answers only when the test lets it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawl.crawling import AGENT, HttpRequest, HttpResponse, Sites, page
from patience import patience, wait_for


class Gate:
    """A site whose first page is not answered before the gate is opened; its other pages wait behind it."""

    def __init__(self) -> None:
        self._is_open = threading.Event()
        self.sites = Sites({"/gate": self._answer})

    def _answer(self, asked: HttpRequest) -> HttpResponse:
        self._is_open.wait()
        return page("the gate")

    def open(self) -> None:
        self._is_open.set()

    def is_reached(self) -> bool:
        return "/gate" in self.sites.asked()

    def urls(self) -> list[str]:
        return [self.sites.url("/gate"), self.sites.url("/behind")]


@contextmanager
def gates(n: int) -> Iterator[list[Gate]]:
    """Gates that are open at the end, whatever happens: their servers could not end otherwise."""
    made = [Gate() for _ in range(n)]
    for gate in made:
        gate.sites.__enter__()
    try:
        yield made
    finally:
        for gate in made:
            gate.open()
            gate.sites.__exit__()


class Crawl:
    """A crawl that is going on; its requests to a host follow each other."""

    def __init__(self, history: Path, *options: str) -> None:
        shared = ["--allow-loopback", "--user-agent", AGENT, "--no-hints", "--json"]
        shared += ["--timeout", str(patience(600)), "--history", str(history)]
        shared += [] if "--delay" in options else ["--delay", "0"]
        command = [sys.executable, "-m", "recrawl.cli", "crawl", *shared, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def hold(self, gate: Gate) -> None:
        """Wait until it waits at the gate."""
        wait_for(lambda: gate.is_reached() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def end(self) -> dict[str, Any]:
        """Its summary."""
        out, messages = self.process.communicate(timeout=patience(120))
        assert self.process.returncode == 0, messages
        found: dict[str, Any] = json.loads(out)
        assert found["visits"] == found["written"]
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def plan_file(path: Path, urls: list[str]) -> str:
    """A plan to fetch these pages."""
    path.write_text("".join(f"{url}\n" for url in urls))
    return str(path)
