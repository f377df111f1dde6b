"""Freshness by the rounds that were observed before crawling began, for predictions from the past, one page, and related pages.

References: Radinsky and Bennett (2013), section 8.3 and Fig. 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.papers.experts.settings import ExpertSettings, Row
from recrawl.policies import Budget, named
from recrawl.policies.base import Policy
from recrawl.policies.related_experts import selection_methods
from recrawl.replay import replay_many, summarise
from recrawl.replay.past import past
from recrawl.world.notions import notion_from

POLICIES = ("change-frequency", "single-expert", "related-experts")  #: 1D, 2D and 3D of the paper


def freshness_rows(history: History, settings: ExpertSettings) -> Iterator[Row]:
    """The mean share of pages whose copy is current, for every policy and number of observed rounds.

    In the observed rounds every page is seen. Then a share of the pages is fetched per round, picked by the paper's biased coin,
    and nothing else is seen. A number of observed rounds that leaves none to crawl in has no row.

    The importance of pages does not count here: the paper selects its pages by popularity, but its coin goes by change alone.
    """
    world = past(history, settings.every, notion=notion_from(settings.notion), with_words=True)
    world = replace(world, importance=None)
    budget = Budget(max(1, round(world.n_pages * settings.share)))
    lengths = [n for n in settings.observed if n < world.n_cycles]
    if not lengths:
        raise NotEnoughData(
            f"the history has {world.n_cycles:,} rounds after the first crawl, and {min(settings.observed):,} or more are to be "
            "observed; ask for fewer with --observed"
        )
    for n in lengths:
        for run in replay_many(world, policies(settings), [budget], observed=n):
            found = summarise(run)
            yield {
                "method": run.policy,
                "observed": n,
                "freshness": found.freshness,
                "n_rounds": world.n_cycles - n,
                "n_pages": world.n_pages,
                "fetches_per_round": budget.pages,
            }


def policies(settings: ExpertSettings) -> list[Policy]:
    """Those of the paper, with the settings of the evaluation."""
    single = {"n_train": settings.n_train, "window": settings.l, "ahead": settings.sigma, "c": settings.cs[0]}
    single |= {"word_scale": settings.word_scale, "seed": settings.seed}
    experts = settings.method if settings.method in selection_methods() else "cross-correlation"
    related = single | {"k": settings.k, "experts": experts}
    return [
        named("change-frequency", n_train=settings.n_train, seed=settings.seed),
        named("single-expert", **single),
        named("related-experts", **related),
    ]
