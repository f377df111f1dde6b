"""One spelling per page: canonical URLs, their ids, and what a URL alone says about a page.

`canonical` is idempotent for any input. Everything else here takes a canonical URL.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import Any

from ada_url import normalize_url

from recrawl.core.hashing import hash64
from recrawl.errors import BadUrl

#: Query parameters that say where a reader came from, never what the page is. A trailing ``*`` matches any ending.
TRACKING = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid", "ttclid", "igshid",
    "igsh", "li_fat_id", "epik", "srsltid", "mc_cid", "mc_eid", "mkt_tok", "_ga", "_gl", "_hsenc", "_hsmi", "__hstc",
    "__hssc", "__hsfp", "hsctatracking", "oly_anon_id", "oly_enc_id", "vero_id", "vero_conv", "wickedid", "rb_clickid",
    "s_cid", "ml_subscriber", "ml_subscriber_hash", "ref_src", "ref_url", "pk_*", "mtm_*", "piwik_*", "matomo_*",
)  # fmt: skip
_TRACKING_NAMES = frozenset(name for name in TRACKING if not name.endswith("*"))
_TRACKING_BEGINNINGS = tuple(name[:-1] for name in TRACKING if name.endswith("*"))

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
#: An escape of an unreserved character.
_UNDONE = re.compile(r"%(?:2[DEde]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])")
_HEX = frozenset("0123456789ABCDEFabcdef")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Left alone by the WHATWG rules, but written in two ways on the web; recrawl always escapes them.
_ALWAYS_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in "\"'<>[]\\^`{|}"}

#: URLs that are canonical as they are: most links of most pages. A host whose last label begins with a digit may be an address
#: in disguise, and a segment that begins with a dot may mean another directory.
_PLAIN = re.compile(
    r"https?://(?:[a-z0-9][a-z0-9-]*\.)*[a-z][a-z0-9-]*/"
    r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*)?"
)
#: What links can be resolved against as it is: "b" on "https://e.org" must not become "https://b".
_WITH_PATH = re.compile(r"https?://[^/?#\\]+/[^#]*\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANK = "".join(map(chr, range(33)))  # what browsers strip around an href
_NEWLINES = dict.fromkeys(map(ord, "\t\n\r"))  # and inside it

MAX_LENGTH = 2083  # the longest URL browsers and indexers of the field agree on
MAX_SEGMENTS = 20
MAX_REPEATS = 2


def canonical(url: str, base: str | None = None, *, keep_tracking: bool = False) -> str:
    """The one spelling of a URL, by the WHATWG rules and a few of our own.

    Lower-case scheme and host (IDNA), no default port, user info, fragment or dot segments, one form of percent-encoding,
    query parameters sorted by name, tracking parameters dropped. A relative `url` is resolved against `base`.

    >>> canonical("HTTP://Example.ORG:80/a/./b/../%7ec?b=2&utm_source=x&a=1#top")
    'http://example.org/a/~c?a=1&b=2'
    >>> canonical("../img?", "https://bücher.example/x/y/z")
    'https://xn--bcher-kva.example/x/img'
    """
    if base is not None:
        url = resolve(url, base if _WITH_PATH.match(base) else canonical(base, keep_tracking=True))
    if _PLAIN.fullmatch(url):
        return url
    parsed = _parsed(url)
    spelling = _respell(parsed, keep_tracking)
    # An escape that is undone can complete a dot segment ("%2%65." → ".."); one more round reads it.
    return _respell(_parsed(spelling), keep_tracking) if _UNDONE.search(parsed) else spelling


def resolve(href: str, base: str) -> str:
    """An absolute URL for an `href` of a page, dot segments and all; `base` is canonical.

    >>> resolve("?page=2", "https://example.org/list?page=1")
    'https://example.org/list?page=2'
    """
    href = href.strip(_BLANK).translate(_NEWLINES)
    if named := _SCHEME.match(href):
        rest = href[named.end() :]
        if named[0].lower() != base[: base.index("//")] or rest.startswith("//"):
            return href
        href = rest  # "http:b" on an http page means "b"
    before_query, mark, rest = href.partition("?")
    href = before_query.replace("\\", "/") + mark + rest
    if href.startswith("//"):
        return base[: base.index("//")] + href
    if href.startswith("/"):
        return origin(base) + href
    if href.startswith("#") or not href:
        return base + href
    page = base.partition("?")[0]
    return page + href if href.startswith("?") else page[: page.rindex("/") + 1] + href


def _respell(parsed: str, keep_tracking: bool) -> str:
    scheme, _, rest = parsed.partition("#")[0].partition("//")
    if scheme not in ("http:", "https:"):
        raise BadUrl(f"not an http or https URL: {parsed[:200]!r}")
    before_query, _, query = rest.partition("?")
    authority, _, path = before_query.partition("/")
    name_and_port = authority.rpartition("@")[2]  # without a user name or password
    return f"{scheme}//{name_and_port}/{_escapes(path)}{_sorted_query(_escapes(query), keep_tracking) if query else ''}"


def _parsed(url: str) -> str:
    """A URL as the standard writes it."""
    try:
        return normalize_url(url)
    except ValueError as error:
        # Half of a surrogate pair is no character: browsers put U+FFFD in its place, the parser refuses it.
        if (whole := url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")) != url:
            return _parsed(whole)
        raise BadUrl(f"not a URL: {url[:200]!r}") from error


def _sorted_query(query: str, keep_tracking: bool) -> str:
    named = [(parameter.partition("=")[0], parameter) for parameter in query.split("&") if parameter]
    if not keep_tracking:
        named = [item for item in named if not _is_tracking(item[0])]
    # Stable: the order of equal names can carry meaning.
    named.sort(key=itemgetter(0))
    return "?" + "&".join([parameter for _, parameter in named]) if named else ""


def _is_tracking(name: str) -> bool:
    name = name.lower()
    return name in _TRACKING_NAMES or name.startswith(_TRACKING_BEGINNINGS)


def _escapes(text: str) -> str:
    """Percent-encoding in one form: unreserved characters bare, all other escapes in capitals."""
    if "%" in text:
        text = _ESCAPE.sub(_one_escape, text)
        if _UNDONE.search(text):
            text = _undo_nested(text)
    return text.translate(_ALWAYS_ESCAPED)


def _one_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _undo_nested(text: str) -> str:
    """Undo escapes that undoing others has completed ("%3%34" → "%34" → "4"), in one pass however deep they nest."""
    out: list[str] = []
    for character in text:
        out.append(character)
        while len(out) >= 3 and out[-3] == "%" and out[-2] in _HEX and out[-1] in _HEX:
            inner = chr(int(out[-2] + out[-1], 16))
            if inner not in _UNRESERVED:
                break
            out[-3:] = [inner]
    return "".join(out)


def page_id(url: str) -> int:
    """The 64-bit id of a canonical URL.

    >>> page_id("https://example.org/") == hash64("https://example.org/")
    True
    """
    return hash64(url)


def origin(url: str) -> str:
    """Scheme and host (with a port that is not the default) of a canonical URL.

    >>> origin("https://example.org:8443/a?b=/c")
    'https://example.org:8443'
    """
    path_at = url.find("/", url.index("://") + 3)
    return url[:path_at] if path_at > 0 else url


def host(url: str) -> str:
    """The host of a canonical URL, without the port.

    >>> host("https://sub.example.org:8443/")
    'sub.example.org'
    """
    name = origin(url).split("://", 1)[1]
    return name.rsplit(":", 1)[0] if ":" in name and not name.endswith("]") else name


@lru_cache(maxsize=65536)
def site(host: str) -> str:
    """The registered domain of a host by the Public Suffix List; an IP address or a bare suffix is its own site.

    >>> site("news.bbc.co.uk")
    'bbc.co.uk'
    """
    return host if _is_address(host) else (_suffixes().privatesuffix(host) or host)


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.replace(".", "").isdigit()


def path_depth(url: str) -> int:
    """The number of directories and files in the path (Dang et al. 2022, section 5.2).

    >>> path_depth("https://domain.com/en/news/article123456/")
    3
    """
    return len(_segments(url))


def domain_depth(url: str) -> int:
    """The number of labels of the host after a leading ``www.`` (Dang et al. 2022, section 5.2); 1 for an IP address.

    >>> domain_depth("https://sub.domain.com/"), domain_depth("https://www.domain.com/")
    (3, 2)
    """
    name = host(url)
    return 1 if _is_address(name) else name.removeprefix("www.").rstrip(".").count(".") + 1


def top_level_domain(url: str) -> str:
    """The last label of the host, or ``(address)`` for an IP address.

    >>> top_level_domain("https://sub.domain.co.uk/")
    'uk'
    """
    name = host(url)
    return "(address)" if _is_address(name) else name.rstrip(".").rsplit(".", 1)[-1]


def trap(url: str) -> str | None:
    """Why a canonical URL looks like a crawler trap, or None. Traps are flagged, never dropped.

    >>> trap("https://example.org/a/b/a/b/a/b")
    "segment 'a' repeated 3 times"
    """
    if len(url) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH:,} characters"
    if url.count("/") <= MAX_REPEATS + 2:  # two slashes of the scheme, one before each segment
        return None
    segments = _segments(url)
    if len(segments) > MAX_SEGMENTS:
        return f"more than {MAX_SEGMENTS} path segments"
    repeated = max(segments, key=segments.count, default="")
    times = segments.count(repeated)
    return f"segment {repeated!r} repeated {times} times" if times > MAX_REPEATS else None


def _segments(url: str) -> list[str]:
    path = url[len(origin(url)) :].partition("?")[0]
    return [segment for segment in path.split("/") if segment]
