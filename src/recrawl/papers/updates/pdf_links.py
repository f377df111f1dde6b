"""Updates that add a PDF file: the kind that Jayawardana et al. (2020), HACS, name as future work (section VI)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.history import History, LinkSets, Timeline
from recrawl.web.pdf import ONLY, WITH, is_named_pdf


def with_links_to_pdf(history: History, pdf: str) -> Timeline:
    """The timeline of a history whose links lead to PDF files only, or to none, by the names of the files.

    By their names, not by what later visits to them showed: what is an update today must not depend on tomorrow.
    """
    timeline = history.timeline
    if pdf == WITH:
        return timeline
    sets = timeline.sets
    ids, of_link = np.unique(sets.links, return_inverse=True)
    is_pdf = np.array([url is not None and is_named_pdf(url) for url in history.urls_of(ids).to_pylist()], bool)
    kept = (is_pdf if pdf == ONLY else ~is_pdf)[of_link]
    n_before = np.append(0, np.cumsum(kept))
    start = n_before[sets.start]
    n_internal = n_before[sets.start[:-1] + sets.n_internal] - start[:-1]
    return replace(timeline, sets=LinkSets(sets.digest, start, sets.links[kept], n_internal))
