"""How archives are asked: one class for each way that their servers speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

import httpx

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.bodies import decoded
from recrawl.sources.wayback.captures import DOMAIN, EXACT, PREFIX, Capture, IndexPage, IndexRequest
from recrawl.sources.wayback.client import Client, content_encoding

_LARGEST = 64 << 20  # bytes of one answer, far above any page of captures

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sent."""

    status: int
    headers: httpx.Headers
    text: str

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def is_html(self) -> bool:
        """Whether it is a page for people."""
        return self.content_type in ("text/html", "application/xhtml+xml") or self.text.lstrip()[:1] == "<"


@dataclass(frozen=True)
class Interface(ABC):
    """One way to ask an archive, at the addresses of one server."""

    index: str  # where captures are listed
    copies: str | None  # copies are at `{copies}/{time}id_/{url}`; None: this server shows none

    name: ClassVar[str]
    matches: ClassVar[tuple[str, ...]] = (EXACT, PREFIX, DOMAIN)

    @classmethod
    @abstractmethod
    def places(cls, server: str) -> tuple[Self, ...]:
        """Where this interface may be found, given the address of a server; the most usual place first."""

    @abstractmethod
    def probe(self, url: str) -> str:
        """The address of a small question that only such a server answers."""

    @abstractmethod
    def recognises(self, answer: Answer) -> bool:
        """Whether an answer to `probe` comes from such a server."""

    @abstractmethod
    def ask(self, client: Client, request: IndexRequest) -> IndexPage:
        """One page of the index."""

    def copy_address(self, capture: Capture) -> str | None:
        """Where the raw copy of a capture is; None if there is none."""
        if capture.copy or self.copies is None:
            return capture.copy
        return f"{self.copies}/{capture.timestamp}id_/{capture.original.replace('#', '%23')}"


def get(client: Client, address: str, understand: Callable[[Answer], T]) -> T:
    """What is understood of the answer to an index request; nonsense (`TryAgain`) is asked again."""
    return client.ask(address, client.index_pace, lambda response: understand(_answer(client, response)))


def _answer(client: Client, response: httpx.Response) -> Answer:
    body = client.raw_body(response, _LARGEST)
    if body is None:
        raise TryAgain(f"the index sent more than {_LARGEST >> 20} MiB")
    try:
        text = decoded(body, content_encoding(response), _LARGEST).decode("utf-8", "replace")
    except BadRecord as error:
        raise TryAgain(f"the index sent a broken body: {error}") from error
    return Answer(response.status_code, response.headers, text)


def lines_of(answer: Answer, begins: str = "") -> list[str]:
    """The lines of a list of captures; anything else raises: no error passes for an empty answer."""
    if answer.status != 200:
        raise ArchiveError(f"the index answered {answer.status}: {short(answer.text)}")
    return whole_lines(answer.text, begins)


def whole_lines(text: str, begins: str = "") -> list[str]:
    """The lines of a text that is a list of captures, each beginning with `begins`."""
    lines = text.split("\n")
    for line in lines:
        foreign = line.startswith(("<", "{", "[", "org.archive.", "java.", "warning:")) if not begins else line
        if foreign and not (begins and line.startswith(begins)):
            raise TryAgain(f"the index sent an error instead of captures: {short(line)}")
    if lines.pop():
        raise TryAgain("the index sent a truncated answer: its last line does not end")
    return lines


def short(text: str) -> str:
    """The beginning of a text, for an error."""
    return repr(" ".join(text[:400].split())[:160])
