"""Untrusted XML, read incrementally: whatever the bytes are, the work is bounded and no other file or URL is opened.

Entities that the file itself declares are never expanded, so no file grows when it is read. Everything before a fault is
returned; then `BadXml` says what the fault is.
"""

from __future__ import annotations

import codecs
import gzip
import html.entities
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree

from recrawl.errors import BadXml
from recrawl.web.html import as_utf8

MAX_BYTES = 50 << 20  #: of a decompressed file: the limit of the sitemap protocol
MAX_ELEMENTS = 1_000_000  #: a full sitemap with ten translations of each page has about 700,000
MAX_DEPTH = 64
MAX_REFERENCES = 1_000_000  #: ampersands, each of which costs time
_CHUNK = 1 << 16  # bytes between two checks of these limits


@dataclass(frozen=True)
class Document:
    """A file as UTF-8, decompressed and within the limits."""

    data: bytes  # begins with "<" if it is XML
    fault: str | None = None  # why the data ends before the file does

    @classmethod
    def of(cls, body: bytes, charset: str | None = None, max_bytes: int = MAX_BYTES) -> Document:
        """The document in a body. `charset`, from the HTTP header, is used only if the file's own declaration is wrong.

        >>> Document.of(gzip.compress(b"<?xml version='1.0' encoding='utf-16'?><p>caf\\xe9</p>")).data.decode()
        "<?xml version='1.0' encoding='utf-16'?><p>café</p>"
        """
        body, fault = _decompressed(body, max_bytes)
        if len(body) > max_bytes:
            body, fault = body[:max_bytes], f"it is longer than {max_bytes:,} bytes"
        data = _in_utf8(body, charset).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if data.count(b"&") > MAX_REFERENCES:
            references = re.finditer(b"&", data)
            data = data[: next(islice(references, MAX_REFERENCES, None)).start()]
            fault = f"it has more than {MAX_REFERENCES:,} ampersands"
        return cls(data, fault)

    @property
    def is_xml(self) -> bool:
        """Whether it looks like XML or HTML."""
        return self.data.startswith(b"<")

    @property
    def root(self) -> Any:
        """The outermost element, an lxml element; its children may be missing."""
        if not self.is_xml:
            raise BadXml(self.fault or ("it is not XML" if self.data else "it is empty"))
        parser = _parser("start")
        parser.feed(_repaired(self.data[:_CHUNK]))
        for _, element in parser.read_events():
            return element
        raise BadXml(self.fault or _reason(parser) or "it has no elements")

    def records(self, *names: str) -> Iterator[Any]:
        """The complete elements with these names, in order; elements inside others are part of them.

        Use each element at once: it is emptied when the next one is read.

        >>> [texts(url) for url in Document.of(b"<s><url><loc>a&b</loc></url><url/></s>").records("url")]
        [{'loc': 'a&b'}, {}]
        """
        parser, wanted = _parser("start", "end"), frozenset(names)
        n_elements = depth = record_depth = 0
        for event, element in _events(parser, _repaired(self.data)):
            if event == "start":
                n_elements += 1
                depth += 1
                if n_elements > MAX_ELEMENTS:
                    raise BadXml(f"it has more than {MAX_ELEMENTS:,} elements")
                if depth > MAX_DEPTH:
                    raise BadXml(f"it nests elements more than {MAX_DEPTH} deep")
                if not record_depth and local_name(element.tag) in wanted:
                    record_depth = depth
                continue
            if depth == record_depth:
                yield element
                record_depth = 0
            depth -= 1
            if not record_depth:
                _forget(element)
            if not depth:
                break
        if depth or not n_elements:
            raise BadXml(self.fault or _reason(parser) or f"it breaks off after {n_elements:,} elements")
        if fault := _reason(parser):
            raise BadXml(fault)


def _events(parser: Any, data: bytes) -> Iterator[tuple[str, Any]]:
    for at in range(0, len(data), _CHUNK):
        parser.feed(data[at : at + _CHUNK])
        yield from parser.read_events()
    # The parser is not closed: it would complete what the file left open, and half a URL would look like a whole one.


def _forget(element: Any) -> None:
    # The element itself must stay: the parser may still append to the text behind it.
    element.clear(keep_tail=True)
    while element.getprevious() is not None:
        del element.getparent()[0]


def texts(element: Any) -> dict[str, str]:
    """The texts of an element's children by local name; of several with the same name, the first that has a text."""
    by_name: dict[str, str] = {}
    for child in element:
        text = (child.text or "").strip()
        if text:
            by_name.setdefault(local_name(child.tag), text)
    return by_name


@lru_cache(maxsize=1024)
def local_name(tag: str) -> str:
    """A tag without its namespace and in lower case, because real files get both wrong.

    >>> local_name("{http://purl.org/dc/elements/1.1/}Date"), local_name("dc:date")
    ('date', 'date')
    """
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def _parser(*events: str) -> Any:
    return etree.XMLPullParser(
        events,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",  # whatever the file declares: it has been converted
    )


def _reason(parser: Any) -> str | None:
    """The last fault that may have lost content: not data after the end, nor a comment before the XML declaration."""
    log = parser.feed_error_log.filter_from_fatals()
    faults = [entry for entry in log if entry.type_name not in ("ERR_DOCUMENT_END", "ERR_RESERVED_XML_NAME")]
    return f"XML fault in line {faults[-1].line}: {faults[-1].message}" if faults else None


# -- compression ------------------------------------------------------------------------------------------------------


def _decompressed(body: bytes, limit: int) -> tuple[bytes, str | None]:
    """The body without gzip, at most one byte over the limit, and what is wrong with the compression."""
    if body[:2] != b"\x1f\x8b":
        return body, None
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            while size <= limit and (part := stream.read1(min(_CHUNK, limit + 1 - size))):
                parts.append(part)
                size += len(part)
    except (OSError, EOFError, zlib.error):
        return b"".join(parts), "its gzip compression is damaged or incomplete"
    return b"".join(parts), None


# -- charsets ---------------------------------------------------------------------------------------------------------

_UTF_32 = {
    codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be", b"<\0\0\0": "utf-32-le", b"\0\0\0<": "utf-32-be",
}  # fmt: skip
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARED = re.compile(rb"\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})[\"']", re.IGNORECASE)
_UNREADABLE = "\ufffd".encode()


def _in_utf8(body: bytes, charset: str | None) -> bytes:
    """The body in UTF-8, decoded by its byte order mark, its bytes, its declaration, the HTTP header, or as Windows-1252."""
    if charset_32 := _UTF_32.get(body[:4]):  # before UTF-16, whose byte order mark begins the same
        return body.decode(charset_32, "replace").encode()
    if body.startswith(_BOMS):
        text = as_utf8(body, None)
        return text if _is_utf8(text) else text.decode("utf-8", "replace").encode()
    if body[:2] in (b"<\0", b"\0<"):
        return as_utf8(body, "charset=utf-16-le" if body[:1] == b"<" else "charset=utf-16-be")
    if not body.isascii() and _is_utf8(body):
        return body  # valid UTF-8 by accident does not happen, whatever the declarations say
    declared = _DECLARED.match(body)
    for label in (declared[1].decode("ascii") if declared else None, charset):
        if _is_usable(label):
            text = as_utf8(body, f"charset={label}")
            if _UNREADABLE not in text:
                return text
    return as_utf8(body, "charset=windows-1252")


def _is_utf8(body: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)  # incremental: an incomplete last character is fine
    except UnicodeDecodeError:
        return False
    return True


def _is_usable(label: str | None) -> bool:
    """Whether a label names a possible charset of the body: not UTF-16, in which the declaration would not be readable."""
    try:
        return not codecs.lookup(label or "").name.startswith(("utf-8", "utf-16"))
    except (LookupError, ValueError):
        return False


# -- repairs ----------------------------------------------------------------------------------------------------------

_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]+|\xef\xbf[\xbe\xbf]")
#: A whole CDATA section or comment; an ampersand with the reference it may begin; a "<" followed by another before any ">".
_MARKUP = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<(?![!?])(?=[^<>]*+<)"
    rb"|&(?:(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)?",
    re.DOTALL,
)


def _repaired(data: bytes) -> bytes:
    """Repair the most common faults: control characters, and "&" and "<" that are not escaped.

    HTML entities become characters and unknown ones plain text, so that no entity reference is left. Escaping "<" also avoids
    thousands of nested tags that are never closed, for which the parser's time grows quadratically.

    >>> _repaired(b"<a>?x=1&y=2 &amp; &eacute; &lol; 1 < 2 <![CDATA[&]]></a>").decode()
    '<a>?x=1&amp;y=2 &amp; é &amp;lol; 1 &lt; 2 <![CDATA[&]]></a>'
    """
    return _MARKUP.sub(_repaired_markup, _FORBIDDEN.sub(b"", data))


_REPLACEMENTS = {b"&": b"&amp;", b"<": b"&lt;"}
_REPLACEMENTS |= {name: name for name in (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")}


def _repaired_markup(match: re.Match[bytes]) -> bytes:
    markup = match[0]
    if markup in _REPLACEMENTS:
        return _REPLACEMENTS[markup]
    if markup.startswith(b"<"):
        return markup
    name = match[1].decode("ascii")
    if name.startswith("#"):
        number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
        return b"&#%d;" % number if _is_allowed(number) else b""
    return html.escape(html.entities.html5.get(f"{name};", f"&{name};")).encode()


def _is_allowed(number: int) -> bool:
    return number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE or 0x10000 <= number < 0x110000
