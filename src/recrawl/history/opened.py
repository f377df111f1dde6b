"""Delta tables opened once per version: to open one the engine reads its whole log, which costs more than most reads."""

from __future__ import annotations

import os
from pathlib import Path

from deltalake import DeltaTable

from recrawl.core.places import Place
from recrawl.history.delta import LOG, entry_name, load
from recrawl.history.log_check import newest_version

MOST = 256  #: tables that are kept open
_opened: dict[str, tuple[tuple[object, ...], DeltaTable]] = {}  # by folder, with the newest log entry then


def open_table(folder: Place) -> DeltaTable:
    """The table in a folder as it is now; its log is read again only if there is a new entry."""
    newest = _newest_entry(folder)
    if newest is None:
        return load(folder)
    key = str(folder.absolute() if isinstance(folder, Path) else folder)
    opened = _opened.pop(key, None)
    if opened is None or opened[0] != newest:
        opened = (newest, load(folder))
    _opened[key] = opened  # last: the oldest are dropped
    while len(_opened) > MOST:
        _opened.pop(next(iter(_opened)), None)
    return opened[1]


def _newest_entry(folder: Place) -> tuple[object, ...] | None:
    """Identifies the newest entry of a log, also against those of a log that was made again; None: there is none."""
    if not isinstance(folder, Path):
        listed = ((each.name, each.size, each.modified) for each in (folder / LOG).entries())
        return max((each for each in listed if each[0].endswith(".json")), default=None)
    version = newest_version(folder)
    try:
        log, entry = os.stat(folder / LOG), os.stat(folder / LOG / entry_name(version))
    except (OSError, ValueError):
        return None
    return version, log.st_ino, entry.st_ino, entry.st_mtime_ns
