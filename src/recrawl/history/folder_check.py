"""The folder of a history: what marks it as one, which versions its tables once had, and whether it can be opened."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from recrawl.core.places import Place, write_bytes
from recrawl.core.version import __version__
from recrawl.errors import HistoryError
from recrawl.history.delta import LOG
from recrawl.history.log_check import damage, newest_version
from recrawl.history.schema import FORMAT, TABLES

MARKER, VERSIONS = "recrawl.json", "versions.json"


def note_versions(folder: Place, *, reset: bool = False) -> None:
    """Note which version each table has: should its newest commit be lost one day, that is noticed. `reset`: forget higher ones."""
    before = {} if reset else noted_versions(folder)
    now = {name: max(newest_version(folder / name), before.get(name, -1)) for name in TABLES}
    if now != before:
        write_bytes(folder / VERSIONS, json.dumps(now).encode() + b"\n")


def noted_versions(folder: Place) -> dict[str, int]:
    """The versions that tables once had; nothing is known of histories of earlier versions."""
    try:
        noted = json.loads((folder / VERSIONS).read_bytes())
        return {name: int(noted[name]) for name in TABLES if name in noted}
    except (OSError, ValueError, TypeError):
        return {}


def check_logs(folder: Place) -> None:
    """Refuse a history of which a commit was lost: it would seem to be smaller than it is."""
    noted = noted_versions(folder)
    for name in sorted({*noted, *(path.name for path in folder.iterdir() if (path / LOG).is_dir())}):
        if damage(folder / name, noted.get(name, -1)) is not None:
            time.sleep(0.1)  # log entries go away while a compaction ends: look again
            if (wrong := damage(folder / name, noted.get(name, -1))) is not None:
                raise HistoryError(damaged(folder, wrong))


def damaged(folder: Place, wrong: str) -> str:
    """What to do about a commit that was lost."""
    return (
        f"{wrong}. Rows of the history would be missing: put lost or damaged files back from a copy of it, or go on with what is "
        f"there: recrawl repair --history {shlex.quote(str(folder))}"
    )


def check_urls(folder: Place, n_bad: int, n_pages: int) -> None:
    """Refuse a history without the URLs of visited pages: a visit is written after its page's URL."""
    if n_bad:
        raise HistoryError(
            f"the table {folder / 'urls'} has no URL for {n_bad:,} of {n_pages:,} visited pages: files of it are damaged or "
            "missing. Restore the history from a copy, or import its sources into a new one."
        )


def check_place(folder: Place) -> None:
    """Refuse a place where no history can be made."""
    where = "--history DIR or RECRAWL_HISTORY"
    if isinstance(folder, Path) and folder.exists() and not folder.is_dir():
        raise HistoryError(f"{folder} is a file; a history is a directory. Name another one with {where}.")
    try:
        if folder.is_dir() and any(_foreign(folder)):
            raise HistoryError(f"{folder} holds other files and is not a history. Name another directory with {where}.")
    except OSError as error:
        raise HistoryError(f"cannot write the history {folder}: {first_line(error)}") from error


def _foreign(folder: Place) -> Iterator[Place]:
    return (path for path in folder.iterdir() if path.name not in TABLES and not path.name.startswith("." + MARKER))


def write_marker(folder: Place) -> None:
    """Mark a folder as a history of this format."""
    marker = folder / MARKER
    if not marker.exists():
        about = {"format": FORMAT, "written_by": f"recrawl {__version__}"}
        write_bytes(marker, json.dumps(about).encode() + b"\n")


def check_format(folder: Place) -> None:
    """Refuse a folder that is not a history, or one that a newer recrawl wrote."""
    marker = folder / MARKER
    if not marker.is_file():
        raise HistoryError(
            f"no history at {folder}. Make one with: recrawl import FILE --history {shlex.quote(str(folder))}"
        )
    try:
        written = json.loads(marker.read_bytes())
        newer = int(written["format"]) > FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HistoryError(
            f"{marker} is damaged ({first_line(error)}); restore it from a copy of the history"
        ) from error
    if newer:
        raise HistoryError(
            f"{folder} was written by {written.get('written_by', 'a newer recrawl')} (format {written['format']}); this is "
            f"recrawl {__version__} (format {FORMAT}). Upgrade with: pip install -U recrawl"
        )


def first_line(error: BaseException) -> str:
    """What an error says, without the pages that engines add."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
