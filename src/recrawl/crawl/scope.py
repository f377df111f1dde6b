"""How far new links are followed from the page that shows them."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.crawl.follow_options import ANYWHERE, HOST, SITE
from recrawl.web.urls import host, site


@dataclass(frozen=True)
class Scope:
    """Links to the same site, the same host, anywhere, or to some domains; one of several is enough.

    >>> scope = Scope(("host", "partner.org"))
    >>> [scope.has(url, "https://news.e.org/") for url in ("https://news.e.org/a", "https://e.org/a", "https://www.partner.org/")]
    [True, False, True]
    """

    rules: tuple[str, ...] = (SITE,)

    def has(self, link: str, page: str) -> bool:
        """Whether a link may be followed from a page; both are canonical URLs."""
        to, here = host(link), host(page)
        return any(_allows(rule, to, here) for rule in self.rules)


def _allows(rule: str, to: str, here: str) -> bool:
    if rule == ANYWHERE:
        return True
    if rule == HOST:
        return to == here
    if rule == SITE:
        return site(to) == site(here)
    return f".{to}".endswith(f".{rule.lower()}")
