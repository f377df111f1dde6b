"""All targets. To add one, write a function of bytes and yield it from `all_targets` of the file that it belongs to."""

from __future__ import annotations

from functools import cache

from fuzz import kept, visit_files, web_pages, written_by_people
from fuzz.target import Target


@cache
def targets() -> tuple[Target, ...]:
    """All of them, in the order in which they are run."""
    parts = (visit_files, web_pages, written_by_people, kept)
    return tuple(target for part in parts for target in part.all_targets())
