"""The relevance of fetched pages, by a classifier of ``recrawl relevance``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from recrawl.crawl.follow_options import FollowOptions
from recrawl.web.visit import Visit

Judge: TypeAlias = Callable[[Visit], Visit]


def judge_of(options: FollowOptions) -> Judge:
    """A function that adds its relevance to a visit that shows a text; without a classifier it adds nothing."""
    if options.classifier is None:
        return lambda visit: visit
    from recrawl.models.relevance import Relevance

    model = Relevance.load(options.classifier)

    def judged(visit: Visit) -> Visit:
        if visit.status != 200 or not visit.text:
            return visit
        return replace(visit, relevance=float(model.predict([visit.text])[0]))

    return judged
