"""How a recorded past is read: which pages could be chosen, and what they would have shown where no visit was made."""

from __future__ import annotations

#: What a page shows between two recorded visits: as the earlier one shows it, or nothing at all.
CARRY, ONLY_RECORDED = "carry", "nothing"
BETWEEN = (CARRY, ONLY_RECORDED)
#: Pages that may be chosen in a replay: those that the recorded crawl knew by then, or all that it ever knew.
KNOWN, ALL_PAGES = "known", "all"
CANDIDATES = (KNOWN, ALL_PAGES)
