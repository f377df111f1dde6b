"""The made-up web as visits in the order of time, with or without the HTML that was fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.synth.settings import SynthSettings
from recrawl.synth.world import CONTENT_TYPE, SynthWorld
from recrawl.web.visit import Visit

_ROWS_AT_ONCE = 2_000
_WORDS_PER_PARAGRAPH = 60


def visits(settings: SynthSettings) -> Iterator[Visit]:
    """The visits of the same web that `batches` makes, ordered by time.

    >>> [visit.status for visit in visits(SynthSettings(pages=1, rounds=3))]
    [200, 200, 200]
    """
    world = SynthWorld(settings)
    for page, number in _rows_by_time(world):
        yield from _visits(world, page, number)


def html_pages(settings: SynthSettings) -> Iterator[tuple[Visit, bytes]]:
    """The same visits, each with the body that was fetched; empty where no copy was seen.

    A body's links and words are those of the visit; its digests and sizes are its own.
    """
    world = SynthWorld(replace(settings, terms=True))
    for page, number in _rows_by_time(world):
        seen = world.behaviour.status[page, number] == 200
        bodies = _word_lists(world, page[seen], number[seen])
        for visit in _visits(world, page, number):
            yield visit, html_body(visit, next(bodies)) if visit.status == 200 else b""


def html_body(visit: Visit, words: list[str]) -> bytes:
    """A page with the visit's title and links and these words; link texts hold no words of their own."""
    paragraphs = (" ".join(words[i : i + _WORDS_PER_PARAGRAPH]) for i in range(0, len(words), _WORDS_PER_PARAGRAPH))
    text = "\n".join(f"<p>{paragraph}.</p>" for paragraph in paragraphs)
    links = "\n".join(f'<li><a href="{escape(link)}">›</a></li>' for link in visit.links or ())
    head = f'<meta charset="utf-8">\n<title>{escape(visit.title or "")}</title>'
    page = f"<!DOCTYPE html>\n<html>\n<head>\n{head}\n</head>\n<body>\n{text}\n<ul>\n{links}\n</ul>\n</body>\n</html>\n"
    return page.encode()


def _rows_by_time(world: SynthWorld) -> Iterator[tuple[Ints, Ints]]:
    for number in range(world.settings.rounds):
        order = np.argsort(world.at[:, number], kind="stable")
        for first in range(0, len(order), _ROWS_AT_ONCE):
            page = order[first : first + _ROWS_AT_ONCE]
            yield page, np.full(len(page), number)


def _visits(world: SynthWorld, page: Ints, number: Ints) -> Iterator[Visit]:
    status = world.behaviour.status[page, number].tolist()
    moments = [datetime.fromtimestamp(second, UTC) for second in world.at[page, number].tolist()]
    urls = world.addresses.urls(page).to_pylist()
    seen = world.behaviour.status[page, number] == 200
    copies = _copies(world, page[seen], number[seen])
    for url, at, code in zip(urls, moments, status, strict=True):
        visit = Visit(url=url, at=at, status=code)
        yield replace(visit, **next(copies)) if code == 200 else visit


def _copies(world: SynthWorld, page: Ints, number: Ints) -> Iterator[dict[str, Any]]:
    """What a copy of the page shows, for every row."""
    texts, version = world.texts, world.version[page, number]
    links, starts, _ = world.links.lists(page, number)
    urls = world.addresses.urls(links).to_pylist()
    page_id = world.addresses.ids(page)[0]
    columns: dict[str, list[Any]] = {
        "text_digest": world.text_names(page, page_id, number).to_pylist(),
        "content_bytes": texts.content_bytes(page, version, np.diff(starts)).tolist(),
        "text_bytes": texts.text_bytes(page, version).tolist(),
        "text_quality": texts.quality(page, version).astype(float).tolist(),
        "etag": world.etags(page, number).to_pylist(),
        "last_modified": world.last_modified(page, number).to_pylist(),
        "title": texts.titles(page).to_pylist(),
    }
    if world.settings.terms:
        columns["terms"] = list(_term_counts(world, page, number))
    if world.settings.vectors:
        columns["vector"] = texts.vectors(page, version).tolist()
    for i in range(len(page)):
        copy = {name: values[i] for name, values in columns.items()}
        yield copy | {"links": urls[starts[i] : starts[i + 1]], "content_type": CONTENT_TYPE}


def _term_counts(world: SynthWorld, page: Ints, number: Ints) -> Iterator[dict[str, int]]:
    for words in _word_lists(world, page, number):
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        yield counts


def _word_lists(world: SynthWorld, page: Ints, number: Ints) -> Iterator[list[str]]:
    words, starts = world.texts.tokens(page, world.version[page, number])
    vocabulary = np.array(world.texts.vocabulary.to_pylist(), object)
    for i in range(len(page)):
        yield vocabulary[words[starts[i] : starts[i + 1]]].tolist()
