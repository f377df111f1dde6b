"""Sources by name, and the source of an input: recrawl's own and those of installed plug-ins."""

from __future__ import annotations

from typing import Any

from recrawl.core.plugins import SOURCES, installed
from recrawl.core.suggest import unknown
from recrawl.errors import BadPlugin, BadSource
from recrawl.sources.base import Source

#: Beginnings of files that are recognised and not read, with the way out.
REFUSED = (
    (b"filedesc://", "an ARC file; convert it first, e.g. with: warcio recompress FILE.arc.gz FILE.warc.gz"),
    (b"%pdf", "a PDF file"),
    (b"<!doctype", "an HTML page; put it into a JSON line as {\"url\": …, \"at\": …, \"html\": …}"),
    (b"<html", "an HTML page; put it into a JSON line as {\"url\": …, \"at\": …, \"html\": …}"),
)  # fmt: skip


def known() -> dict[str, Source]:
    """Every source by its name, in the order in which they are tried: plug-ins first, as they know more special formats.

    >>> list(known())[:3]
    ['warc', 'wacz', 'parquet']
    """
    from recrawl.sources import ALL

    own = {source.name: source for source in ALL}
    plugged: dict[str, Source] = {}
    for entry, plugin in installed(SOURCES).items():
        source = _checked(plugin, entry)
        if source.name in own or source.name in plugged:
            raise BadPlugin(
                f"the plug-in {entry!r} is named {source.name!r} as another source is; give it another name"
            )
        plugged[source.name] = source
    return plugged | own


def _checked(plugin: Any, entry: str) -> Source:
    source = plugin() if isinstance(plugin, type) and issubclass(plugin, Source) else plugin
    if not isinstance(source, Source):
        raise BadPlugin(
            f"the plug-in {entry!r} is {plugin!r}; it must be a class derived from recrawl.sources.Source, or an object of one"
        )
    if not isinstance(getattr(source, "name", None), str):
        raise BadPlugin(
            f'the plug-in {entry!r} has no name; give {type(source).__name__} a class attribute such as name = "log"'
        )
    return source


def named(name: str) -> Source:
    """The source of that name.

    >>> named("warcs")
    Traceback (most recent call last):
    recrawl.errors.BadSource: No format named 'warcs'. Did you mean 'warc'? Known: warc, wacz, parquet, cdx, cdxj, ...
    """
    sources = known()
    if name not in sources:
        raise BadSource(unknown("format", name, sources))
    return sources[name]


def detect(head: bytes, label: str) -> Source:
    """The source of an input, from its first bytes without compression; `label` is its name.

    >>> detect(b'{"url": "https://e.org/", "at": 1767312000}', "visits.jsonl").name
    'jsonl'
    """
    if not head.strip():
        raise BadSource(f"{label} is empty")
    sources = known()
    for source in sources.values():
        if source.detects(head, label):
            return source
    for beginning, what in REFUSED:
        if head.lstrip().lower().startswith(beginning):
            raise BadSource(f"{label} is {what}")
    if b"\tzipnum\t" in head or (head.count(b"\t") >= 3 and b")/" in head[:512]):
        raise BadSource(f"{label} is the summary of a ZipNum index; import the .cdx.gz files it points at")
    raise BadSource(
        f"the format of {label} is not recognised (it begins with {head[:24]!r}). Known: {', '.join(sources)}. "
        "Name it with --format"
    )
