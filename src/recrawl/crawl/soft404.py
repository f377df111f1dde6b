"""Soft 404s: pages with status 200 whose text says that the page does not exist."""

from __future__ import annotations

import re

from recrawl.web.visit import Visit

MAX_CHARACTERS, MAX_LINKS = 1_500, 150  #: of a soft 404; a page with more is a real page
_NOT_FOUND = re.compile(
    r"^\W*404\W*$|\b(error|http|status|fehler|erreur)\W*404\b|\b404\W*(error|page)\b|\bnot found\b"
    r"|\bno longer (exists|available)\b|\bdoes(n.t| not) exist\b|nicht gefunden|existiert nicht|introuvable"
    r"|no encontrad[ao]|non trovata|não encontrada|niet gevonden|не найдена",
    re.IGNORECASE,
)


def is_soft_404(visit: Visit) -> bool:
    """Whether a short page with status 200 says in its title that the page does not exist.

    >>> from datetime import UTC, datetime
    >>> page = {"url": "https://e.org/a", "at": datetime(2026, 1, 5, tzinfo=UTC), "links": []}
    >>> is_soft_404(Visit(**page, title="Page not found - e.org", text="Sorry, nothing here."))
    True
    >>> is_soft_404(Visit(**page, title="Room 404", text="A room.")), is_soft_404(Visit(**page, title="404", text="Oops."))
    (False, True)
    """
    if visit.status != 200 or not visit.title or not _NOT_FOUND.search(visit.title):
        return False
    return len(visit.text or "") <= MAX_CHARACTERS and len(visit.links or ()) <= MAX_LINKS
