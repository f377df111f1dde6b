"""Which processes run beside a test, from /proc."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def children(parent: int) -> list[int]:
    """The processes that another one has started."""
    return [process for process, fields in _listed() if int(fields[1]) == parent]


def members(session: int) -> list[int]:
    """The running processes of a session."""
    return [process for process, fields in _listed() if int(fields[3]) == session and fields[0] != "Z"]


def running(process: int) -> bool:
    """Whether a process is there, and not one that has ended and waits for its parent to look."""
    fields = _fields(Path(f"/proc/{process}"))
    return fields is not None and fields[0] != "Z"


def _listed() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _fields(folder)) is not None:
            yield int(folder.name), fields


def _fields(folder: Path) -> list[str] | None:
    """State, parent, group, session and so on; None: there is no such process any more."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
