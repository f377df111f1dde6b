"""A plan: the pages to fetch next, each with a reason, and what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Flags, Floats, Ints, Times
from recrawl.core.words import count, number
from recrawl.world.notions import ANY
from recrawl.world.roots import DOMAINS, Roots

if TYPE_CHECKING:
    import pandas as pd

    from recrawl.models.link_relevance import Focus


_LINKS = re.compile(r"\b(new|unseen|number of) (links?)\b")


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What one plan was asked for, with every option worked out: a budget in pages, a gap as a length of time."""

    pages: int  # the budget
    per_host: int | None = None
    per_site: int | None = None
    min_gap: timedelta = timedelta(0)  # minimum time between two visits to the same page
    exclude: tuple[str, ...] = ()  # prefixes and shell patterns of URLs that must not be fetched
    threshold: float | None = None  # minimum probability of what the goal asks for
    retry_gone: bool = False  # also pages that answered 404 or 410
    every: str = "auto"  # how the past is cut into batches
    max_wait: timedelta = timedelta(days=30)  # a page that waits longer starves
    goal: str = "links"  # what counts as gain: links, content or both
    forbidden: Ints | None = None  # ids of pages that must not be fetched
    unwatched: Ints | None = None  # ids of known pages that are no candidates
    use_hints: bool = True  # of sitemaps and feeds, where they have proven true
    links: str = "all"  # kind of links that count
    focus: Focus | None = None  # only links to relevant pages count; None: all do
    roots: Roots = DOMAINS  # what a site is
    change: str = ANY  # what counts as a change: any difference in text or links, or a notion of `recrawl.world.change`

    @property
    def new_links(self) -> str:
        """What is counted, in words."""
        return "new links" if self.focus is None else "new relevant links"

    def in_focus(self, sentence: str) -> str:
        """A sentence about new links, by whatever policy, that says which ones count."""
        return sentence if self.focus is None else _LINKS.sub(r"\1 relevant \2", sentence)


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """The pages to fetch next: one entry per page, the best first; and what was left out and why.

    Ranked by worth, so that a crawl that stops early has fetched the best.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     plan = rc.plan(history, budget=2, policy="average-count")
    >>> plan
    Plan(2 pages by average-count, 5.0 new links expected)
    >>> [(row["url"], row["expected_new_links"]) for row in plan.records()]
    [('https://e.org/news', 4.0), ('https://e.org/blog', 1.0)]
    """

    id: str
    made_at: datetime
    policy: str
    request: PlanRequest
    page: Ints  # ids in the history
    url: pa.Array
    host: list[str]
    expected: Floats  # new links
    low: Floats  # ends of the 80% interval; NaN: the policy has none
    high: Floats
    probability: Floats  # of at least one new link
    probability_changed: Floats  # that the page is no longer as it was when last seen; NaN: not known
    last_visit_at: Times  # NaT: never
    last_change_at: Times  # when new links were last seen on it; NaT: never
    due_at: Times  # never before `made_at`
    reason: list[str]
    worth: Floats  # by which they are ranked: new links, the probability of change, or the policy's score for both
    is_trial: Flags  # picked only to learn how the page changes
    importance: Floats | None = None  # how much each page matters; None: all pages of the history matter alike
    n_known: int = 0
    left_out: dict[str, int] = field(default_factory=dict)  # cause → pages
    #: New links expected of the policy's first 1, 2, … pages, up to one more than twice the budget.
    links_by_budget: Floats = field(default_factory=lambda: np.empty(0))
    changed_by_budget: Floats = field(default_factory=lambda: np.empty(0))  # changed pages expected among them
    n_starving: int = 0
    budget_needed: int = 0  # pages per cycle, so that none waits longer than `request.max_wait`
    cycle_hours: float = 24.0  # the usual time between two crawls
    memo: dict[str, float] = field(default_factory=dict)  # what the policy must remember of this choice
    chosen_by: str = ""  # the policy with its settings, to which the memo belongs
    site: list[str | None] | None = None  # root of each page, None: under no root; None: sites are registered domains

    def __len__(self) -> int:
        return len(self.page)

    def __repr__(self) -> str:
        return f"Plan({count(len(self), 'page')} by {self.policy}, {self.gain_in_words()} expected)"

    @property
    def gain(self) -> Floats:
        """What a visit to each page brings: new links, or the probability of change if the goal is content alone."""
        return self.probability_changed if self.request.goal == "content" else self.expected

    @property
    def yield_by_budget(self) -> Floats:
        """The gain of the policy's first 1, 2, … pages together."""
        return self.changed_by_budget if self.request.goal == "content" else self.links_by_budget

    def gain_in_words(self) -> str:
        """What all pages together are expected to bring."""
        return self.in_words(float(self.expected.sum()), float(np.nansum(self.probability_changed)))

    def in_words(self, links: float, changed: float) -> str:
        """New links or changed pages, whichever the goal counts."""
        words = {"links": f"{number(links)} {self.request.new_links}", "content": f"{number(changed)} changed pages"}
        return words.get(self.request.goal) or " and ".join(words.values())

    def at_cut(self, curve: Floats) -> float:
        """What one page more would add to one of the curves."""
        n = len(self)
        return float(curve[n] - curve[n - 1]) if 0 < n < len(curve) else 0.0

    def by_budget(self) -> list[tuple[int, float, float]]:
        """Budget, new links and changed pages expected of half the budget, the budget, and twice the budget."""
        links, changed = self.links_by_budget, self.changed_by_budget
        if not len(links):
            return []
        rows = []
        for budget in sorted({min(max(1, round(len(self) * share)), self.n_known) for share in (0.5, 1, 2)}):
            end = min(budget, len(links)) - 1
            gains = (float(links[end]), float(changed[end]))
            if budget == len(self):  # as chosen with just that budget
                gains = (float(self.expected.sum()), float(np.nansum(self.probability_changed)))
            rows.append((budget, *gains))
        return rows

    def summary(self) -> dict[str, Any]:
        """The plan as a whole, as plain values; these keys are an interface."""
        return {
            "plan": self.id,
            "made_at": self.made_at.isoformat(),
            "policy": self.policy,
            "goal": self.request.goal,
            "budget": self.request.pages,
            "pages": len(self),
            "known_pages": self.n_known,
            "expected_new_links": round(float(self.expected.sum()), 4),
            "expected_changed": _known(float(np.nansum(self.probability_changed)), self.probability_changed),
            "not_picked": self.left_out,
            "by_budget": [
                {
                    "budget": budget,
                    "expected_new_links": round(links, 4),
                    "expected_changed": _known(changed, [changed]),
                }
                for budget, links, changed in self.by_budget()
            ],
            "starving": self.n_starving,
            "budget_needed": self.budget_needed,
            "cycle_hours": round(self.cycle_hours, 4),
        } | self._in_focus()

    def _in_focus(self) -> dict[str, Any]:
        """What more is to be said where only relevant links count."""
        if self.request.focus is None:
            return {}
        return {
            "expected_relevant_links": round(float(self.expected.sum()), 4),
            "relevance": self.request.focus.source,
            "relevant_above": self.request.focus.above,
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """One record per page, the best first; these keys are an interface."""
        from recrawl.plan.formats import records

        return records(self)

    def to_arrow(self) -> pa.Table:
        """One row per page, the best first."""
        at = pa.timestamp("us", "UTC")
        table = pa.table(
            {
                "rank": np.arange(1, len(self) + 1),
                "url": self.url,
                "host": pa.array(self.host, pa.string()),
                "expected_new_links": self.expected,
                "expected_low": pa.array(self.low, from_pandas=True),
                "expected_high": pa.array(self.high, from_pandas=True),
                "probability": self.probability,
                "probability_changed": pa.array(self.probability_changed, from_pandas=True),
                "due_at": pa.array(self.due_at, pa.timestamp("us")).cast(at),
                "last_visit_at": pa.array(self.last_visit_at, pa.timestamp("us")).cast(at),
                "last_change_at": pa.array(self.last_change_at, pa.timestamp("us")).cast(at),
                "trial": self.is_trial,
                "reason": pa.array(self.reason, pa.string()),
            }
        )
        table = table if self.site is None else table.append_column("site", pa.array(self.site, pa.string()))
        return table if self.importance is None else table.append_column("importance", pa.array(self.importance))

    def to_pandas(self) -> pd.DataFrame:
        """One row per page, the best first; needs pandas."""
        from recrawl.core.frames import to_pandas

        return to_pandas(self.to_arrow())

    def write(self, path: str | Path, format: str = "jsonl") -> None:
        """Write the plan as a crawler takes it: urls, jsonl, csv, scrapy, urlfrontier, heritrix or nutch.

        ``.gz`` and ``.zst`` compress. The file appears under its name only when it is complete.
        """
        from recrawl.plan.formats import write

        write(self, path, format)


def _known(value: float, of: Any) -> float | None:
    """None where no value was known."""
    return None if np.isnan(of).all() else round(value, 4)
