"""One fetched body → outlinks, visible text, digests, sizes, text quality."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser

from recrawl.core.hashing import hash64
from recrawl.errors import BadRecord, BadUrl
from recrawl.web.pieces import pieces
from recrawl.web.tagsoup import is_too_costly
from recrawl.web.terms import collapsed
from recrawl.web.urls import canonical

MAX_TERMS = 2_000  #: distinct words kept of a text, the most frequent ones
_HIDDEN = ["script", "style", "template", "noscript"]


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """What one body says. Not HTML: only sizes and digests, no links and no text."""

    content_bytes: int
    hrefs: list[str] | None = None  # as written (queries in the page's charset), in document order; relative to `base`
    base: str = ""
    title: str | None = None
    text: str | None = None
    text_digest: str | None = None
    text_bytes: int | None = None


def page(body: bytes, content_type: str | None, url: str, location: str | None = None) -> ParsedPage:
    """Read one body. A redirect's target (`Location`, or a refresh in the page) counts as an outlink.

    >>> seen = page(b"<title>T</title><p>two words <a href='b.html'>link</a>", "text/html", "https://e.org/a/")
    >>> seen.hrefs, seen.title, seen.text
    (['b.html'], 'T', 'two words  link')
    """
    redirect = [location] if location else []
    if not is_html(content_type, body):
        return ParsedPage(len(body), hrefs=redirect or None, base=url, text_digest=f"{hash64(body):016x}")
    utf8, charset = _decoded(body, content_type)
    seen = _html_page(utf8, len(body), url, redirect)
    return seen if charset == "utf-8" or not seen.hrefs else replace(seen, hrefs=_queries_in(charset, seen.hrefs))


def html_page(html: str, url: str) -> ParsedPage:
    """Read HTML that is already text."""
    utf8 = html.encode("utf-8", "replace")
    return _html_page(utf8, len(utf8), url, [])


def _html_page(utf8: bytes, content_bytes: int, url: str, redirect: list[str]) -> ParsedPage:
    if is_too_costly(utf8):
        raise BadRecord("too costly to parse", f"tags nested too deep, or too many, on {url[:200]}")
    parts = pieces(utf8)
    if not parts:
        raise BadRecord("too costly to parse", f"too many tags and attributes on {url[:200]}")
    links, title, texts = _Links(), None, []
    for i, part in enumerate(parts):
        tree = LexborHTMLParser(part)
        links.add(tree)
        title = title if i else _title(tree)
        texts.append(_texts(tree))
    text, own_text = (" ".join(each) for each in zip(*texts, strict=True))
    return ParsedPage(
        content_bytes=content_bytes,
        hrefs=redirect + (links.refresh or []) + [href for href in links.hrefs if href and not _STAYS.match(href)],
        base=_base(links.base, url),
        title=title,
        text=text,
        text_digest=f"{collapsed(own_text)[0]:016x}",
        text_bytes=collapsed(text)[1],
    )


def _base(href: str | None, url: str) -> str:
    """What relative links are resolved against; a base that is not on the web is ignored, as browsers do."""
    url = canonical(url, keep_tracking=True)
    try:
        return canonical(href, url, keep_tracking=True) if href else url
    except BadUrl:
        return url


def _texts(tree: LexborHTMLParser) -> tuple[str, str]:
    """All visible text, and the same without the text of links (Dang et al. 2022, section 7.1: the digest leaves outlinks out)."""
    if tree.body is None:
        return "", ""
    tree.strip_tags(_HIDDEN, recursive=True)
    text = tree.body.text(separator=" ")
    tree.strip_tags(["a"], recursive=True)
    return text, tree.body.text(separator=" ")


#: Links that lead to no other page: a place on the same page, a script, a mail address.
_STAYS = re.compile(r"\s*(?:#|javascript:|data:|mailto:|tel:)", re.IGNORECASE)


#: Seconds, and a URL that may be in quotation marks (HTML, "shared declarative refresh steps").
_REFRESH = re.compile(
    r"""\s*+[\d.]++(?>\s*+[;,]|\s)\s*+(?:url\s*=\s*)?+(?:'([^']+)|"([^"]+)|([^'"].*))""", re.IGNORECASE | re.DOTALL
)


@dataclass(slots=True)
class _Links:
    """The links of a page, and what they are resolved against. Read with one query, as each costs a walk through the page.

    A base or a refresh counts wherever it is, and the first of each, as in browsers: a stray tag ends the head early, and the rest
    of it is in the body.
    """

    hrefs: list[str | None] = field(default_factory=list)
    base: str | None = None
    refresh: list[str] | None = None

    def add(self, tree: LexborHTMLParser) -> None:
        """Read a piece of the page."""
        for node in tree.css("[href],[http-equiv]"):  # quicker than with the names of the tags
            kind = node.tag
            if kind in ("a", "area"):
                self.hrefs.append(node.attributes.get("href"))
            elif kind == "base" and self.base is None:
                self.base = node.attributes.get("href") or ""
            elif kind == "meta" and self.refresh is None:
                self.refresh = _refresh(node.attributes)


def _refresh(meta: Mapping[str, str | None]) -> list[str] | None:
    """Where a refresh leads, if not to the page itself; None for any other meta tag."""
    if (meta.get("http-equiv") or "").strip().lower() != "refresh":
        return None
    match = _REFRESH.match(meta.get("content") or "")
    return [next(filter(None, match.groups())).strip()] if match else []


def _title(tree: LexborHTMLParser) -> str | None:
    # In the head only: the titles of drawings are in the body.
    node = tree.head.css_first("title") if tree.head is not None else None
    return None if node is None else " ".join(node.text().split())[:500] or None


# -- charsets ---------------------------------------------------------------------------------------------------------

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=[\s\"']*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=[\s\"']*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
#: Browsers read these labels as a larger charset than the name says (WHATWG Encoding, section 4.2).
_WIDER = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "tis-620": "cp874", "iso8859-11": "cp874",
}  # fmt: skip


#: The charsets of the WHATWG standard, of all that Python could decode.
_BROWSERS = re.compile(
    r"utf-8|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|tis-620|koi8-[ru]|mac-(roman|cyrillic)"
    r"|gb2312|gbk|gb18030|hz|big5(hkscs)?|euc_jp|iso2022_jp|shift_jis|euc_kr"
)
#: Labels of the standard that Python does not know.
_LABELS = {
    "x-sjis": "cp932", "windows-31j": "cp932", "ms932": "cp932", "x-gbk": "gb18030", "x-x-big5": "big5hkscs",
    "utf-8-sig": "utf-8", "windows-874": "cp874",
    "unicode-1-1-utf-8": "utf-8", "x-cp1250": "cp1250", "x-cp1251": "cp1251", "x-cp1252": "cp1252", "dos-874": "cp874",
    "iso-8859-8-i": "iso8859-8", "logical": "iso8859-8", "visual": "iso8859-8", "koi": "koi8-r", "koi8": "koi8-r",
    "x-mac-roman": "mac-roman", "x-mac-cyrillic": "mac-cyrillic", "x-euc-jp": "euc_jp", "windows-949": "cp949",
    "unicode": "utf-16-le", "ucs-2": "utf-16-le", "iso-10646-ucs-2": "utf-16-le", "utf-16": "utf-16-le",
}  # fmt: skip


def as_utf8(body: bytes, content_type: str | None) -> bytes:
    """The body in UTF-8, as the parser takes it; one that is in UTF-8 already is not touched.

    Its charset is that of a BOM, else of the header, else of a meta tag, else UTF-8 if it is valid, else Windows-1252.

    >>> as_utf8("é".encode("latin-1"), "text/html; charset=ISO-8859-1").decode()
    'é'
    """
    return _decoded(body, content_type)[0]


def _decoded(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """The body in UTF-8, and the charset that it was in."""
    body, charset = _charset(body, content_type)
    return body if charset == "utf-8" else body.decode(charset, "replace").encode("utf-8", "replace"), charset


def _charset(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """The body without its BOM, and its charset."""
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :], charset
    named = _codec((_CHARSET.search(content_type or "") or [None, None])[1]) or _meta_charset(body)
    if named:
        return body, named
    try:
        body.decode("utf-8")
        return body, "utf-8"
    except UnicodeDecodeError:
        return body, "cp1252"


def _meta_charset(body: bytes) -> str | None:
    match = _META.search(body, 0, 4096)
    charset = _codec(match[1].decode("ascii")) if match else None
    # A page whose ASCII meta tag could be read is not in UTF-16, whatever the tag says.
    return "utf-8" if charset and charset.startswith("utf-16") else charset


@lru_cache(maxsize=1024)
def _codec(label: str | None) -> str | None:
    """Python's name of a charset; None for labels that no browser knows."""
    label = (label or "").lower()
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):
        return None
    return _WIDER.get(name, name) if _BROWSERS.fullmatch(name) else None


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is HTML: by its declared type, or by its beginning where none is declared."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in ("", "unk", "unknown/unknown", "application/unknown"):
        head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return (
            head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<!--")) or b"<html" in head
        )
    return kind in ("text/html", "application/xhtml+xml")


# -- queries in the charset of the page -------------------------------------------------------------------------------


def _queries_in(charset: str, hrefs: list[str]) -> list[str]:
    """Links whose queries are escaped in the charset of their page, as browsers send them; only queries are.

    >>> _queries_in("cp1252", ["/é?q=é&r=1#é", "/é"])
    ['/é?q=%E9&r=1#é', '/é']
    """
    if charset.startswith("utf-16"):
        return hrefs  # queries on such pages are in UTF-8
    return [href if href.isascii() or "?" not in href else _query_in(charset, href) for href in hrefs]


def _query_in(charset: str, href: str) -> str:
    before_fragment, hash_sign, fragment = href.partition("#")
    path, question_mark, query = before_fragment.partition("?")
    escaped = _NOT_IN_QUERY.sub(lambda byte: b"%%%02X" % ord(byte[0]), query.encode(charset, _AS_REFERENCE))
    return path + question_mark + escaped.decode("ascii") + hash_sign + fragment


_NOT_IN_QUERY = re.compile(rb"[^\x21\x24-\x26\x28-;=?-~]")
_AS_REFERENCE = "recrawl.as_reference"


def _as_reference(error: UnicodeError) -> tuple[str, int]:
    """A letter that a charset lacks is sent as its number in HTML (WHATWG Encoding, "html" error mode)."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(letter)}%3B" for letter in missing), error.end


codecs.register_error(_AS_REFERENCE, _as_reference)


# -- text quality -----------------------------------------------------------------------------------------------------

#: Vocabulary V of a natural text of N words: V ≈ HEAPS_K · N^HEAPS_BETA (Heaps' law; 70 of 100, 2,000 of 10,000 words).
HEAPS_K, HEAPS_BETA, HEAPS_SPREAD = 2.45, 0.73, 0.5


def text_quality(vocabulary: int, size: int) -> float:
    """How natural the ratio of vocabulary to document size is, from 0 (empty, repeated, word list) to 1 (like prose).

    Dang et al. (2022), section 5.2, use "a non-linear function applied on a ratio of the vocabulary size to the document size"
    and do not give it. Here: the ratio of the vocabulary V to that which Heaps' law expects of a text of N words, on a log scale,
    through a Gaussian: ``exp(−½ (ln(V / (k N^β)) / s)²)``.

    >>> text_quality(0, 0), round(text_quality(71, 100), 2), round(text_quality(2, 1000), 2)
    (0.0, 1.0, 0.0)
    """
    if not vocabulary or not size:
        return 0.0
    surprise = math.log(vocabulary / (HEAPS_K * size**HEAPS_BETA)) / HEAPS_SPREAD
    return math.exp(-0.5 * surprise * surprise)
