"""The robots.txt format by RFC 9309: which URLs each crawler may fetch.

Google's matcher, the reference for the RFC, decides what the RFC leaves open: misspelt names of lines, a missing colon, and that
``Allow: /a/index.html`` also allows ``/a/``. Work grows with the length of the file, and for each URL with the number of rules
times the length of the URL, whatever the file holds.

References: RFC 9309; https://github.com/google/robotstxt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

EVERYONE = "*"  #: what a group for all other crawlers names as its agent

_NAMES = {
    "agent": "user[- ]?agent",
    "disallow": "disallow|dissallow|dissalow|disalow|diasllow|disallaw",
    "allow": "allow",
    "sitemap": "site-?map",
    "delay": "crawl[- ]?delay",
}
#: A name and two words, or a name that may go on, a colon and the value.
_LINE = re.compile(
    rf"(?:{'|'.join(f'(?P<{kind}>{names})' for kind, names in _NAMES.items())})"
    r"(?:s?\s+(?P<word>[^\s:]\S*)|[^:]*:\s*(?P<value>.*))",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"\*(?=\s|\Z)|[A-Za-z_-]+")
_SECONDS = re.compile(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)


class RobotsTxt:
    """The rules for all crawlers, the delays they are asked to keep, and the sitemaps that a robots.txt names.

    >>> robots = RobotsTxt("User-agent: *\\nDisallow: /private/\\nAllow: /private/*.html$")
    >>> [robots.allows(f"https://e.org{path}", "Webwatch") for path in ("/", "/private/", "/private/a.html", "/private/a.html?b")]
    [True, False, True, False]
    """

    def __init__(self, text: str) -> None:
        self.sitemaps: list[str] = []
        self._groups: list[_Group] = []  # with rules; they end at the next User-agent after a rule
        self._paces: list[_Group] = []  # with a delay; they end at the next User-agent after any other line
        self._by_agent: dict[str, list[Rule]] = {}
        self._read(text)

    def _read(self, text: str) -> None:
        group, pace, previous = _Group(), _Group(), ""
        for kind, value in _lines(text):
            if kind == "sitemap":
                self.sitemaps += [value] if value else []
                continue
            if kind == "agent":
                if group.rules or not group.agents:
                    group = _begun(self._groups)
                if previous != "agent":
                    pace = _begun(self._paces)
                group.agents.add(_token(value))
                pace.agents.add(_token(value))
            elif kind == "delay":
                pace.delay = max(pace.delay, _seconds(value))
            else:
                group.rules.append((kind == "allow", value))
            previous = kind

    def allows(self, url: str, agent: str) -> bool:
        """Whether a crawler, named by its product token, may fetch a URL. robots.txt itself always may be fetched."""
        path = UrlPath.of(url)
        if path.written.partition("?")[0] == "/robots.txt":
            return True
        return next((rule.allow for rule in self._rules(agent) if rule.matches(path)), True)

    def delay(self, agent: str) -> float:
        """The longest Crawl-delay for a crawler in seconds; 0 if there is none."""
        return max((pace.delay for pace in _for_agent(self._paces, agent)), default=0.0)

    def _rules(self, agent: str) -> list[Rule]:
        """The rules for a crawler, those with the longest pattern first, and of equal length those that allow."""
        if agent not in self._by_agent:
            groups = _for_agent(self._groups, agent)
            rules = [rule for group in groups for line in group.rules for rule in Rule.from_line(*line)]
            self._by_agent[agent] = sorted(rules, key=lambda rule: (-rule.length, not rule.allow))
        return self._by_agent[agent]


@dataclass
class _Group:
    """Lines that belong together. Rules are kept once, however many agents share them."""

    agents: set[str] = field(default_factory=set)  # product tokens in lower case
    rules: list[tuple[bool, str]] = field(default_factory=list)  # whether it allows, and the pattern
    delay: float = 0.0  # seconds


def _begun(groups: list[_Group]) -> _Group:
    groups.append(_Group())
    return groups[-1]


def _for_agent(groups: list[_Group], agent: str) -> list[_Group]:
    """The groups that name a crawler; those for everyone if none does."""
    own = [group for group in groups if agent.lower() in group.agents]
    return own or [group for group in groups if EVERYONE in group.agents]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the value of every line that can be understood.

    >>> list(_lines("\\ufeffUser-agent: a # ours\\nDisalow /b\\nHost: e.org"))
    [('agent', 'a'), ('disallow', '/b')]
    """
    text = text.lstrip("\ufeffï»¿")  # a byte order mark, or the part of it that an editor has left
    for line in re.split(r"[\r\n]+", text):
        if match := _LINE.fullmatch(line.partition("#")[0].strip()):
            kind = next(name for name in _NAMES if match[name])
            yield kind, match["word"] or match["value"] or ""


def _token(value: str) -> str:
    """The product token that a User-agent line names, in lower case; "" names no crawler."""
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _seconds(value: str) -> float:
    match = _SECONDS.match(value)
    return float(match[0]) if match else 0.0


# -- one rule ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UrlPath:
    """The path and query of a URL, in the two forms that rules compare."""

    written: str  # as in the URL, but hexadecimal digits in upper case
    decoded: str  # the same for all spellings of a URL

    @classmethod
    def of(cls, url: str) -> Self:
        """The path of a URL, "/" if it has none.

        >>> UrlPath.of("https://e.org/%7ea*?b#c"), UrlPath.of("https://e.org?b").written
        (UrlPath(written='/%7Ea*?b', decoded='/~a%2A?b'), '/?b')
        """
        path = re.sub(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*", "", url).partition("#")[0]
        written = _upper_hex(path if path.startswith("/") else f"/{path}")
        return cls(written, _decoded(written))


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows or disallows the paths that begin like its pattern, in which ``*`` is any text and a last ``$`` the end."""

    allow: bool
    length: int  # of the pattern, in ASCII characters
    written: tuple[str, ...]  # what lies between the stars, in order
    decoded: tuple[str, ...]
    to_end: bool

    @classmethod
    def from_line(cls, allow: bool, value: str) -> Iterator[Self]:
        """The rules of a line: none without a pattern, and one more where a directory's index page is allowed."""
        pattern = _upper_hex(_encoded(value))
        if not pattern:
            return
        yield cls._of(allow, pattern)
        directory, _, name = pattern.rpartition("/")
        if allow and name.startswith("index.htm"):
            yield cls._of(allow, f"{directory}/$")

    @classmethod
    def _of(cls, allow: bool, pattern: str) -> Self:
        written = tuple(pattern.removesuffix("$").split("*"))
        return cls(allow, len(pattern), written, tuple(map(_decoded, written)), pattern.endswith("$"))

    def matches(self, path: UrlPath) -> bool:
        """Whether the rule applies to a path.

        The RFC compares decoded characters, Google's matcher what is written. Where they differ, the stricter answer counts:
        permission is as written, a prohibition holds for all spellings.
        """
        if _fits(self.written, path.written, self.to_end):
            return True
        return not self.allow and _fits(self.decoded, path.decoded, self.to_end)


def _fits(parts: tuple[str, ...], path: str, to_end: bool) -> bool:
    """Whether a path begins with the first part and then has the others in order, the last one at its end if `to_end`.

    Each part is taken where it first appears, which leaves most for the others. So nothing is tried twice.

    >>> _fits(("/a", "b", "c"), "/axbxc", to_end=True), _fits(("/a", "c", "b"), "/axbxc", to_end=False)
    (True, False)
    """
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    if len(parts) == 1:
        return not to_end or at == len(path)
    for part in parts[1:-1]:
        at = path.find(part, at) + len(part)
        if at < len(part):
            return False
    if to_end:
        return path.endswith(parts[-1]) and len(path) - len(parts[-1]) >= at
    return path.find(parts[-1], at) >= 0


def _encoded(text: str) -> str:
    """The text with everything percent-encoded that a URL cannot hold as it is."""
    return re.sub(
        r"[^\x21-\x7e]+", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text
    )


def _upper_hex(text: str) -> str:
    return re.sub(r"%[0-9A-Fa-f]{2}", lambda match: match[0].upper(), text)


def _decoded(text: str) -> str:
    """One spelling for all: characters that need no encoding are decoded, ``*`` and ``$`` encoded (RFC 9309, 2.2.2 and 2.2.3).

    >>> _decoded("/%7E%62%2F*$é")
    '/~b%2F%2A%24%C3%A9'
    """
    decoded = re.sub(r"%(?:2D|2E|3\d|[46][1-9A-F]|[57][\dA]|5F|7E)", lambda match: chr(int(match[0][1:], 16)), text)
    return _encoded(decoded.replace("*", "%2A").replace("$", "%24"))
