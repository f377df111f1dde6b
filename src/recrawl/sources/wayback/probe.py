"""Find out what a server speaks, with a few polite questions, and remember it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from recrawl.core.files import write_bytes
from recrawl.core.suggest import unknown
from recrawl.errors import ArchiveError, BadOption
from recrawl.sources.wayback.client import BASE_URL, Client
from recrawl.sources.wayback.interface import Answer, Interface, get
from recrawl.sources.wayback.internet_archive import InternetArchive
from recrawl.sources.wayback.outback import OutbackCdx
from recrawl.sources.wayback.pywb import Pywb
from recrawl.sources.wayback.timemaps import TimeMaps

#: Every interface, the most informative first.
ALL: tuple[type[Interface], ...] = (InternetArchive, Pywb, OutbackCdx, TimeMaps)
NAMES = tuple(kind.name for kind in ALL)
_MEMORY = "servers.json"


def named_interface(name: str, server: str) -> Interface:
    """The interface of that name at its most usual place; no question is asked."""
    for kind in ALL:
        if kind.name == name:
            return kind.places(server)[0]
    raise BadOption(unknown("interface", name, NAMES))


def find_interface(client: Client, folder: Path, url: str) -> Interface:
    """The interface of the client's server: known, remembered in `folder`, or found by asking about `url`."""
    if client.base_url == BASE_URL:
        return named_interface(InternetArchive.name, BASE_URL)
    remembered = _recall(folder, client.base_url)
    if remembered is not None:
        return remembered
    found = _probe(client, url)
    _remember(folder, client.base_url, found)
    return found


def forget(folder: Path, server: str) -> None:
    """Ask the server again the next time: it no longer answers as it did."""
    known = _memory(folder)
    if known.pop(server, None) is not None:
        write_bytes(folder / _MEMORY, orjson.dumps(known))


def _probe(client: Client, url: str) -> Interface:
    for place in _in_order(client.base_url):
        answer: Answer = get(client, place.probe(url), lambda answer: answer)
        if place.recognises(answer):
            if not answer.text.strip() and isinstance(place, Pywb):
                _check_collection(client, place)
            return place
    raise ArchiveError(
        f"{client.base_url} speaks none of {', '.join(NAMES)}; give the address of a collection, such as "
        f"{client.base_url}/COLLECTION, or name the interface with --interface"
    )


def _in_order(server: str) -> list[Interface]:
    """All places to look at: the usual ones of every interface, then the others."""
    places = [kind.places(server) for kind in ALL]
    return [place[i] for i in range(max(map(len, places))) for place in places if i < len(place)]


def _check_collection(client: Client, place: Interface) -> None:
    """Pywb lists no captures of a collection that does not exist, instead of saying so; the page of the collection says it."""
    if place.copies is None:
        return
    status = get(client, f"{place.copies}/", lambda answer: answer.status)
    if status == 404:
        raise ArchiveError(f"{client.base_url} has no such collection; {place.copies}/ is not found")


def _remember(folder: Path, server: str, found: Interface) -> None:
    record = {"interface": found.name, "index": found.index, "copies": found.copies}
    write_bytes(folder / _MEMORY, orjson.dumps(_memory(folder) | {server: record}))


def _recall(folder: Path, server: str) -> Interface | None:
    record: Any = _memory(folder).get(server)
    try:
        found = named_interface(record["interface"], server)
        return replace(found, index=str(record["index"]), copies=record["copies"] and str(record["copies"]))
    except (TypeError, KeyError, BadOption):
        return None


def _memory(folder: Path) -> dict[str, Any]:
    """What is known of all servers; a damaged file is as good as none."""
    try:
        known = orjson.loads((folder / _MEMORY).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
