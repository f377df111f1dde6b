"""What counts as an update of a page: a link never before seen on it, or any change of its content."""

from __future__ import annotations

from recrawl.core.arrays import Flags, Ints8
from recrawl.world.pages import Visits

KINDS = ("links", "content")


def checked_kind(updates: str) -> str:
    """The kind of updates that a policy looks at; any other is refused."""
    if updates not in KINDS:
        raise ValueError(f"updates is {updates!r}; it must be {' or '.join(KINDS)}")
    return updates


def updates_in(visits: Visits, kind: str) -> tuple[Flags, Ints8]:
    """Which visits are captures of their pages, and whether each shows an update (1, 0, or -1 for nothing to compare with).

    Updates of content are seen wherever a page answered, if only by its checksum.

    References: Jayawardana et al. (2020), sections II-B (links) and V (checksums).
    """
    return (visits.answered, visits.updated) if kind == "links" else (visits.came, visits.changed)
