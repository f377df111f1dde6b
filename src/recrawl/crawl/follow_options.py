"""Options for following new links: one record, for the command line and for Scrapy's settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from recrawl.core.options import check_values, option, options_of, read_values, spelled
from recrawl.errors import BadOption
from recrawl.plan.budgets import share_or_number

NONE, NEW = "none", "new"
SITE, HOST, ANYWHERE = "site", "host", "anywhere"
_DOMAIN = re.compile(r"(?!-)[\w-]+(\.[\w-]+)+|\[[0-9a-f:]+\]|localhost", re.IGNORECASE)


def _check_scope(texts: tuple[str, ...]) -> None:
    for text in texts:
        if text not in (SITE, HOST, ANYWHERE) and not _DOMAIN.fullmatch(text):
            raise ValueError(f"{text!r} is neither {SITE}, {HOST} nor {ANYWHERE}, nor a domain such as example.org")


@dataclass(frozen=True, kw_only=True)
class FollowOptions:
    """Whether and how far a crawl follows links that no page had shown before.

    >>> FollowOptions(follow_budget="20")
    Traceback (most recent call last):
    recrawl.errors.BadOption: follow-budget says how new links are followed: it needs follow new
    """

    follow: str = option(
        NONE,
        "Links on planned pages that are fetched in the same crawl: none, or new (no page has shown them before).",
        choices=(NONE, NEW),
    )
    follow_budget: str = option(
        "100%",
        "With follow: number of new links to fetch, or a share of the number of planned pages.",
        metavar="N",
        check=share_or_number,
    )
    follow_scope: tuple[str, ...] = option(
        (SITE,),
        "With follow: links to the same site (registered domain), the same host, anywhere, or a domain such as example.org. "
        "Repeatable.",
        metavar="SCOPE",
        check=_check_scope,
    )
    adopt: int = option(
        10,
        "With follow: a fetched page is watched from then on if it brings at least this many new links in scope.",
        minimum=1,
    )
    classifier: str | None = option(
        None,
        "Record the relevance of every fetched page by this classifier of recrawl relevance. With follow: the most relevant "
        "links come first, and only relevant pages are watched.",
        metavar="FILE",
    )

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)
        check_follow(self)


def check_follow(options: FollowOptions) -> None:
    """Refuse what has no effect, and a classifier that is not there."""
    for each, _ in options_of(FollowOptions):
        is_about_following = each.name.startswith("follow_") or each.name == "adopt"
        if is_about_following and options.follow == NONE and getattr(options, each.name) != each.default:
            raise BadOption(f"{spelled(each.name)} says how new links are followed: it needs follow {NEW}")
    if options.classifier is not None and not Path(options.classifier).is_file():
        raise BadOption(f"classifier {options.classifier}: there is no such file; recrawl relevance writes one")
