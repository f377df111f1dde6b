"""What a user asks for: a page, everything below a prefix (``e.org/~me/*``), or a domain with its subdomains (``*.e.org``)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from recrawl.errors import BadUrl
from recrawl.sources.wayback.captures import DOMAIN, EXACT, PREFIX
from recrawl.web.urls import canonical


@dataclass(frozen=True, slots=True)
class Question:
    """Which pages are wanted."""

    text: str  # as the user wrote it
    url: str  # the page, or the beginning of all pages
    match: str

    @classmethod
    def of(cls, text: str) -> Question:
        """The question that a text means; raises `BadUrl`.

        A star counts at the end and, with a dot behind it, at the beginning. Write ``%2A`` for a star that belongs to a URL.

        >>> Question.of("e.org/~me/*")
        Question(text='e.org/~me/*', url='http://e.org/~me/', match='prefix')
        >>> Question.of("*.e.org").url
        'http://e.org/'
        """
        bare = text.partition("://")[2] or text
        if bare.startswith("*."):
            host, _, path = bare[2:].partition("/")
            if path not in ("", "*"):
                raise BadUrl(f"{text!r} names a path of many hosts; ask for {host}/{path} or for *.{host}")
            return cls(text, _checked(f"http://{host}/"), DOMAIN)
        if not bare.endswith("*"):
            canonical(text)
            return cls(text, text, EXACT)
        if "/" not in bare:
            raise BadUrl(
                f"{text!r} names no whole host; write {bare[:-1]}/* for one host, *.{bare[:-1]} for all of a domain"
            )
        url = text[:-1] if "://" in text else f"http://{text[:-1]}"
        return cls(text, _checked(url), PREFIX)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What the index is asked for, as URL and match.

        The key of ``e.org/~me/`` has no slash at its end in the index, so the prefix ``e.org/~me/`` lists all pages below but not
        that one.
        """
        below_path = self.match == PREFIX and self.url.endswith("/") and _spelling(self.url)[1] != "/"
        return ((self.url, EXACT), (self.url, PREFIX)) if below_path else ((self.url, self.match),)

    def holds(self, url: str) -> bool:
        """Whether a captured URL is one of the wanted pages, in any spelling: http or https, with or without www.

        >>> Question.of("e.org/~me/*").holds("https://www.e.org/%7Eme/cv.html"), Question.of("e.org/~me/*").holds("http://e.org/~mel")
        (True, False)
        """
        if self.match == EXACT:
            return True  # what the index takes for the same page
        (host, path), (own_host, own_path) = _spelling(url), _spelling(self.url)
        if self.match == DOMAIN:
            return host == own_host or host.endswith(f".{own_host}")
        return host == own_host and (path.startswith(own_path) or f"{path}/" == own_path)

    def depth(self, url: str) -> int:
        """How many path segments a page lies below the prefix; the page at the prefix itself has depth 0.

        References: Jayawardana et al. (2020), HACS, section II-A.

        >>> asked = Question.of("foo.edu/~bar/*")
        >>> [asked.depth(f"http://foo.edu/~bar{path}") for path in ("", "/", "/baz", "/baz/qux/quux", "/?page=2")]
        [0, 0, 1, 3, 0]
        """
        if self.match == EXACT:
            return 0
        whole_segments = _spelling(self.url)[1].rpartition("/")[0]
        return max(0, _n_segments(_spelling(url)[1]) - _n_segments(whole_segments))


def _checked(url: str) -> str:
    canonical(url)
    return url


def _spelling(url: str) -> tuple[str, str]:
    """Host and path as indexes compare them: without www and port, in lower case, unescaped."""
    parts = urlsplit(canonical(url, keep_tracking=True))  # urlsplit alone would refuse some URLs that browsers read
    return (parts.hostname or "").removeprefix("www."), unquote(parts.path).lower() or "/"


def _n_segments(path: str) -> int:
    return sum(1 for segment in path.split("/") if segment)
