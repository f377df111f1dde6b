"""One fetched body → outlinks, visible text, digests, sizes, text quality."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from recrawl.errors import BadRecord
from recrawl.hashing import hash64
from recrawl.urls import resolve

MAX_BODY = 32 << 20  #: bytes of a decoded body that are looked at, at most
MAX_DEPTH = 5_000  #: open tags; the parser's time grows with the square of the nesting
MAX_TERMS = 2_000  #: distinct words kept of a text, the most frequent ones
_HIDDEN = ["script", "style", "template", "noscript"]


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """What one body says. Not HTML: only sizes and digests, no links and no text."""

    content_bytes: int
    hrefs: list[str] | None = None  # as written, in document order; to be resolved against `base`
    base: str = ""
    title: str | None = None
    text: str | None = None
    text_digest: str | None = None
    text_bytes: int | None = None


def page(body: bytes, content_type: str | None, url: str, location: str | None = None) -> ParsedPage:
    """Read one body. A redirect's target (`Location`, or a refresh in the page) counts as an outlink.

    >>> seen = page(b"<title>T</title><p>two words <a href='b.html'>link</a>", "text/html", "https://e.org/a/")
    >>> seen.hrefs, seen.title, seen.text
    (['b.html'], 'T', 'two words link')
    """
    redirect = [location] if location else []
    if not is_html(content_type, body):
        return ParsedPage(len(body), hrefs=redirect or None, base=url, text_digest=f"{hash64(body):016x}")
    html = decode(body, content_type)
    return _html_page(html, len(body), url, redirect)


def html_page(html: str, url: str) -> ParsedPage:
    """Read HTML that is already text."""
    return _html_page(html, len(html.encode("utf-8", "replace")), url, [])


def _html_page(html: str, content_bytes: int, url: str, redirect: list[str]) -> ParsedPage:
    if nesting(html) > MAX_DEPTH:
        raise BadRecord("tags nested too deep", f"more than {MAX_DEPTH:,} open tags on {url[:200]}")
    tree = LexborHTMLParser(html)
    base = tree.css_first("base[href]")
    hrefs = [node.attributes.get("href") for node in tree.css("a[href],area[href]")]
    title = tree.css_first("title")
    text, own_text = _texts(tree)
    return ParsedPage(
        content_bytes=content_bytes,
        hrefs=redirect + _refresh(tree, html) + [href for href in hrefs if href and _leads_away(href)],
        base=resolve(base.attributes.get("href") or "", url) if base is not None else url,
        title=" ".join(title.text().split())[:500] or None if title is not None else None,
        text=text,
        text_digest=f"{hash64(own_text):016x}",
        text_bytes=len(text.encode("utf-8", "replace")),
    )


def _texts(tree: LexborHTMLParser) -> tuple[str, str]:
    """All visible text, and the visible text without that of links (LBLA section 7.1: the content digest has no outlinks)."""
    if tree.body is None:
        return "", ""
    tree.strip_tags(_HIDDEN, recursive=True)
    text = tree.body.text(separator=" ")
    tree.strip_tags(["a"], recursive=True)
    return " ".join(text.split()), " ".join(tree.body.text(separator=" ").split())


def _leads_away(href: str) -> bool:
    """Whether a link may lead to another page: not a place on the same page, not a script or a mail address."""
    return not href.lstrip().lower().startswith(("#", "javascript:", "data:", "mailto:", "tel:"))


_REFRESH = re.compile(r"\s*[\d.]+\s*[;,]?\s*(?:url\s*=\s*)?['\"]?([^'\"]+)", re.IGNORECASE)


def _refresh(tree: LexborHTMLParser, html: str) -> list[str]:
    if "http-equiv" not in html[:16384].lower():
        return []
    for node in tree.css("meta[http-equiv]"):
        attributes = node.attributes
        if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            match = _REFRESH.match(attributes.get("content") or "")
            return [match[1].strip()] if match else []
    return []


_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_FLAT = frozenset(
    "area base br col embed hr img input link meta source track wbr param a p li dt dd option optgroup tr td th thead "
    "tbody tfoot colgroup rb rt rp script style textarea title".split()
)  # void, or closed by the next of their kind


def nesting(html: str) -> int:
    """An upper bound on how deep the tags of a document nest; 0 where a look at the number of tags is enough.

    >>> nesting("<div>" * 50_000)
    50000
    """
    if html.count("<") < MAX_DEPTH * 2:
        return 0
    depth = deepest = 0
    for closing, name in _TAG.findall(html):
        if name.lower() not in _FLAT:
            depth = max(depth + (-1 if closing else 1), 0)
            deepest = max(deepest, depth)
    return deepest


# -- charsets ---------------------------------------------------------------------------------------------------------

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
#: Browsers read these labels as a larger charset than the name says (WHATWG Encoding, section 4.2).
_WIDER = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "tis-620": "cp874", "iso8859-11": "cp874",
}  # fmt: skip


def decode(body: bytes, content_type: str | None) -> str:
    """The body as text: charset from a BOM, else the header, else a meta tag, else UTF-8, else Windows-1252.

    >>> decode("é".encode("latin-1"), "text/html; charset=ISO-8859-1")
    'é'
    """
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    named = _codec((_CHARSET.search(content_type or "") or [None, None])[1]) or _meta_charset(body)
    if named:
        return body.decode(named, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _meta_charset(body: bytes) -> str | None:
    match = _META.search(body, 0, 4096)
    charset = _codec(match[1].decode("ascii")) if match else None
    # A page whose ASCII meta tag could be read is not in UTF-16, whatever the tag says.
    return "utf-8" if charset and charset.startswith("utf-16") else charset


def _codec(label: str | None) -> str | None:
    try:
        name = codecs.lookup(label).name if label else None
    except (LookupError, ValueError):
        return None
    if name in (
        "base64",
        "bz2",
        "hex",
        "quopri",
        "rot13",
        "uu",
        "zlib",
        "idna",
        "punycode",
        "unicode_escape",
        "raw_unicode_escape",
    ):
        return None  # Python's codecs that are not charsets
    return _WIDER.get(name or "", name)


def is_html(content_type: str | None, body: bytes) -> bool:
    """Whether a body is HTML: by its declared type, or by its beginning where none is declared."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in ("", "unk", "unknown/unknown", "application/unknown"):
        head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        return (
            head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<!--")) or b"<html" in head
        )
    return kind in ("text/html", "application/xhtml+xml")


# -- words ------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w{3,}")


def term_counts(text: str) -> dict[str, int]:
    """Lower-case words of at least three characters that are not numbers, with their counts.

    >>> term_counts("The cat and the hat, 2026")
    {'the': 2, 'cat': 1, 'and': 1, 'hat': 1}
    """
    counts = Counter(_WORD.findall(text.lower()))
    return {word: count for word, count in counts.items() if not word.isdigit()}


#: Vocabulary V of a natural text of N words: V ≈ HEAPS_K · N^HEAPS_BETA (Heaps' law; 70 of 100, 2,000 of 10,000 words).
HEAPS_K, HEAPS_BETA, HEAPS_SPREAD = 2.45, 0.73, 0.5


def text_quality(terms: Mapping[str, int]) -> float:
    """How natural the ratio of vocabulary to document size is, from 0 (empty, repeated, word list) to 1 (like prose).

    LBLA section 5.2 uses "a non-linear function applied on a ratio of the vocabulary size to the document size" and does not
    give it. Here: the ratio of the vocabulary to that which Heaps' law expects of so many words, on a log scale, through a
    Gaussian: ``exp(−½ (ln(V / (k N^β)) / s)²)``.

    >>> text_quality({}), round(text_quality({f"w{i}": 1 for i in range(70)} | {"the": 30}), 2)
    (0.0, 1.0)
    >>> round(text_quality({"buy": 500, "now": 500}), 2)
    0.0
    """
    vocabulary, size = len(terms), sum(terms.values())
    if not size:
        return 0.0
    surprise = math.log(vocabulary / (HEAPS_K * size**HEAPS_BETA)) / HEAPS_SPREAD
    return math.exp(-0.5 * surprise * surprise)
