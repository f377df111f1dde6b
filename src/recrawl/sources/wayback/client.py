"""Polite requests to a server: spaced, repeated after failures, and never mistaking an error page for an answer."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self, TypeVar

import httpx

from recrawl.core.words import duration
from recrawl.errors import ArchiveBusy, ArchiveError, TryAgain
from recrawl.web.http import DEFAULT_WAIT, retry_after

BASE_URL = "https://web.archive.org"
INDEX_PER_MINUTE = 24.0  # index and TimeMap requests share one limit
MEMENTOS_PER_SECOND = 8.0
TRIES = 5
TIMEOUT = 60.0  # seconds without a byte
LONGEST_ANSWER = 600.0  # seconds for one whole answer: a server that drips is as bad as one that is silent
PATIENCE = 1800.0  # seconds for which a run waits while the archive answers 429 or 503, and nothing else

T = TypeVar("T")


class Clock:
    """The time and the passing of it; tests pass a clock of their own, so that nothing really waits."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def seconds(self) -> float:
        """Seconds since some fixed moment, never running backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Pace:
    """Keep requests at least `1 / per_second` apart."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self.gap, self._clock, self._next = 1 / per_second, clock, 0.0

    def wait(self) -> None:
        """Return when the next request may start."""
        if (early := self._next - self._clock.seconds()) > 0:
            self._clock.sleep(early)
        self._next = self._clock.seconds() + self.gap


class Client:
    """One HTTP client for the index and the mementos of an archive; its user agent says whom to write to."""

    def __init__(
        self,
        user_agent: str,
        *,
        base_url: str = BASE_URL,
        index_per_minute: float = INDEX_PER_MINUTE,
        mementos_per_second: float = MEMENTOS_PER_SECOND,
        tries: int = TRIES,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
        clock: Clock | None = None,
        on_wait: Callable[[str], None] = lambda what: None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        if "@" not in user_agent and "://" not in user_agent:
            raise ArchiveError(
                f"user agent {user_agent!r} names no contact; add an e-mail address or a URL, such as 'me@e.org'"
            )
        self.base_url, self.tries, self.clock = base_url.rstrip("/"), tries, clock or Clock()
        self.patience, self.on_wait = patience, on_wait
        self._refused_since: float | None = None  # when the archive began to answer nothing but 429 and 503
        self._n_refused = 0  # in a row
        self.index_pace = Pace(index_per_minute / 60, self.clock)
        self.memento_pace = Pace(mementos_per_second, self.clock)
        headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip", "Accept": "*/*"}
        self._http = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False, verify=verify)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, url: str, pace: Pace, read: Callable[[httpx.Response], T]) -> T:
        """The result of `read` on the answer; it gets only answers below 500, and raises `TryAgain` for nonsense.

        Every try keeps the pace. Raises `ArchiveError` when the tries are used up or trying again is pointless, and
        `ArchiveBusy` when the archive has refused everything for longer than `patience`.
        """
        attempt = 0
        while attempt < self.tries:
            pace.wait()
            try:
                return self._once(url, read)
            except TryAgain as problem:
                if problem.wait is not None:
                    self._wait_as_asked(problem, problem.wait)
                    continue
                attempt += 1
                if attempt == self.tries:
                    raise ArchiveError(f"{problem} (tried {self.tries} times)") from problem
                self.clock.sleep(2.0 ** (attempt - 1))
        raise ArchiveError("tries must be at least 1")

    def _wait_as_asked(self, problem: TryAgain, seconds: float) -> None:
        """Wait as long as the archive asks, unless that is longer than the run may wait in all.

        One that keeps asking for a short wait, and then refuses again, is left alone for a minute in the end.
        """
        now, seconds = self.clock.seconds(), max(seconds, min(2.0**self._n_refused, DEFAULT_WAIT))
        self._n_refused += 1
        self._refused_since = now if self._refused_since is None else self._refused_since
        waited = now - self._refused_since
        if waited + seconds > self.patience:
            so_far = f" for {duration(waited / 3600)}" if waited else ""
            raise ArchiveBusy(f"{problem}{so_far} and asks to come back in {duration(seconds / 3600)}") from problem
        self.on_wait(f"{problem}; waiting {duration(seconds / 3600)}")
        self.clock.sleep(seconds)

    def _once(self, url: str, read: Callable[[httpx.Response], T]) -> T:
        try:
            with self._http.stream("GET", url) as response:
                self._refuse_failures(response)
                self._refused_since, self._n_refused = None, 0
                return read(response)
        except httpx.TransportError as error:
            raise TryAgain(f"no answer from {self.base_url}: {error or type(error).__name__}") from error
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise ArchiveError(f"cannot ask for {url[:200]!r}: {error}") from error

    def _refuse_failures(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (429, 503):
            wait = retry_after(response.headers.get("retry-after"), self.clock.now())
            raise TryAgain(f"the archive answers {status}", wait)
        if status >= 500 or status == 408:
            raise TryAgain(f"the archive answered {status}")

    def raw_body(self, response: httpx.Response, limit: int) -> bytes | None:
        """The bytes as sent, or None when there are more than `limit`: then the rest is not even read."""
        body, deadline = bytearray(), self.clock.seconds() + LONGEST_ANSWER
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > limit:
                return None
            if self.clock.seconds() > deadline:
                raise TryAgain(f"the archive sent only {len(body):,} bytes in {LONGEST_ANSWER:.0f} seconds")
        return bytes(body)


def content_encoding(response: httpx.Response) -> dict[str, str]:
    """The one header that says how to unpack a raw body: chunks are already joined."""
    return {"content-encoding": response.headers.get("content-encoding", "")}
