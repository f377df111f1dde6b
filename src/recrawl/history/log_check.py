"""Whether the log of a Delta table is whole: the engine takes an empty entry for one without changes, and knows of no lost one."""

from __future__ import annotations

import re

from recrawl.core.places import Place, entries
from recrawl.history.delta import LOG, entry_name

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.(?:parquet|json)")


def newest_version(table: Place) -> int:
    """The newest version in the log of a table; -1: none."""
    sizes, checkpoint = _listed(table)
    return max(checkpoint, *sizes, -1)


def damage(table: Place, at_least: int = -1, *, thorough: bool = False) -> str | None:
    """What is wrong with the log of a table, in words; None: it is whole, as far as that can be seen.

    `at_least`: the version that it once had. `thorough`: entries are opened, too, to see whether they end as they should.
    """
    sizes, checkpoint = _listed(table)
    newest = max(checkpoint, *sizes, at_least, -1)
    for version in range(checkpoint + 1, newest + 1):
        name = entry_name(version)
        if version not in sizes:
            return f"{table / LOG / name} is missing"
        if not sizes[version]:
            return f"{table / LOG / name} is empty"
        if thorough and not _ends(table / LOG / name):
            return f"{table / LOG / name} is cut off"
    return None


def _listed(table: Place) -> tuple[dict[int, int], int]:
    """The sizes of log entries by version, and the version of the newest checkpoint; -1: there is none."""
    sizes: dict[int, int] = {}
    checkpoint = -1
    for each in entries(table / LOG):
        if match := _ENTRY.fullmatch(each.name):
            sizes[int(match[1])] = each.size
        elif match := _CHECKPOINT.fullmatch(each.name):
            checkpoint = max(checkpoint, int(match[1]))
    return sizes, checkpoint


def _ends(entry: Place) -> bool:
    return entry.read_bytes().rstrip().endswith(b"}")
