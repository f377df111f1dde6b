"""Whether the log of a Delta table is whole: the engine takes an empty entry for one without changes, and knows of no lost one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from recrawl.history.commits import LOG

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.(?:parquet|json)")


def newest_version(table: Path) -> int:
    """The newest version in the log of a table; -1: none."""
    entries, checkpoint = _listed(table)
    return max(checkpoint, *entries, -1)


def damage(table: Path, at_least: int = -1, *, thorough: bool = False) -> str | None:
    """What is wrong with the log of a table, in words; None: it is whole, as far as that can be seen.

    `at_least`: the version that it once had. `thorough`: entries are opened, too, to see whether they end as they should.
    """
    entries, checkpoint = _listed(table)
    newest = max(checkpoint, *entries, at_least, -1)
    for version in range(checkpoint + 1, newest + 1):
        name = f"{version:020}.json"
        if version not in entries:
            return f"{table / LOG / name} is missing"
        if not entries[version]:
            return f"{table / LOG / name} is empty"
        if thorough and not _ends(table / LOG / name):
            return f"{table / LOG / name} is cut off"
    return None


def _listed(table: Path) -> tuple[dict[int, int], int]:
    """The sizes of log entries by version, and the version of the newest checkpoint; -1: there is none."""
    entries: dict[int, int] = {}
    checkpoint = -1
    try:
        with os.scandir(table / LOG) as found:
            for each in found:
                if match := _ENTRY.fullmatch(each.name):
                    entries[int(match[1])] = each.stat().st_size
                elif match := _CHECKPOINT.fullmatch(each.name):
                    checkpoint = max(checkpoint, int(match[1]))
    except FileNotFoundError:
        pass
    return entries, checkpoint


def _ends(entry: Path) -> bool:
    return entry.read_bytes().rstrip().endswith(b"}")
