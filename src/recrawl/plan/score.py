"""How right a plan was once its pages were visited: expected and found, calibration, and beside round-robin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import orjson
import pyarrow as pa
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.frames import to_pandas
from recrawl.core.times import NEVER, microseconds, parse_period
from recrawl.core.words import count, number
from recrawl.history import History, Timeline
from recrawl.history.history import count_new
from recrawl.history.novelty import Novelty
from recrawl.history.plans import PLANS, keep, stored
from recrawl.models.link_relevance import Focus, shown_links
from recrawl.plan.focus_options import FocusOptions
from recrawl.plan.kept_focus import keep_focus, kept_focus
from recrawl.plan.plan import Plan
from recrawl.web.visit import Outcome
from recrawl.world.change import changes_at_visits
from recrawl.world.notions import ANY, notion_or_any

if TYPE_CHECKING:
    import pandas as pd

N_CLASSES = 5
ENOUGH = 0.5  #: of round-robin's pages, that must have been visited to compare with it


def store(history: History, plan: Plan) -> None:
    """Keep a plan beside the visits."""
    n = len(plan)
    columns = {
        "plan": [plan.id] * n,
        "made_at": [plan.made_at.astimezone(UTC)] * n,
        "policy": [plan.policy] * n,
        "budget": [plan.request.pages] * n,
        "every": [plan.request.every] * n,
        "rank": np.arange(1, n + 1),
        "page": plan.page,
        "expected": plan.expected,
        "probability": plan.probability,
        "changed": pa.array(plan.probability_changed, from_pandas=True),  # NaN: not known
        "change": [plan.request.change] * n,
        "due_at": pa.array(plan.due_at, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
        "reason": plan.reason,
        "links": [plan.request.links] * n,
        "chosen_by": [plan.chosen_by] * n,
        "memo": [orjson.dumps(plan.memo).decode()] * n,
        "focus": pa.array([keep_focus(history, plan.request.focus)] * n, pa.string()),
    }
    keep(history.beside, pa.table({name: columns[name] for name in PLANS.names}, schema=PLANS))


@dataclass(frozen=True)
class Score:
    """What the visits made for a plan found. Pages that were not visited in time do not count."""

    plan: str
    policy: str
    made_at: datetime
    until: datetime  # the next plan, or what the horizon allows
    planned: int
    visited: int  # asked for: their links are known, or they failed
    failed: int  # of these, pages that failed or were gone whenever they were asked for: nothing was found there
    expected: float  # new links, of the visited pages
    found: int  # new links on them that no page had shown before
    hits: int
    expected_hits: float
    brier: float | None  # mean squared error of the probabilities
    calibration: list[dict[str, float]]  # by classes of probability: predicted and seen share
    compared: int  # visited pages with a predicted probability of change, and a known outcome
    expected_changed: float | None  # of these; None: the plan did not predict it
    changed: int | None
    change: str  # what the plan counted as one
    round_robin_planned: int  # pages that round-robin would have chosen
    round_robin_visited: int  # of these, visited, too
    round_robin_found: int
    relevance: str | None = None  # only these links were counted: a classifier, or recorded; None: all
    found_relevant: int | None = None  # of all new links on the pages visited; None: nothing says which are relevant
    found_all: int | None = None  # new links on them, relevant or not; None: `found` counts all

    @property
    def new_links(self) -> str:
        """What the plan counted, in words."""
        return "new links" if self.relevance is None else "new relevant links"

    @property
    def found_per_visit(self) -> float | None:
        """New links per visit."""
        return self.found / self.visited if self.visited else None

    @property
    def round_robin_found_per_visit(self) -> float | None:
        """New links per visit to round-robin's pages; None where too few of them were visited."""
        is_enough = self.round_robin_visited > 0 and self.round_robin_visited >= ENOUGH * self.round_robin_planned
        return self.round_robin_found / self.round_robin_visited if is_enough else None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        shares = {
            "found_per_visit": self.found_per_visit,
            "round_robin_found_per_visit": self.round_robin_found_per_visit,
        }
        of_focus = ("relevance", "found_relevant", "found_all")  # only where something is known of relevance
        values = {name: value for name, value in self.__dict__.items() if name not in of_focus or value is not None}
        return values | shares


class Scores(Sequence[Score]):
    """How right several plans were, oldest first."""

    def __init__(self, scores: Iterable[Score]) -> None:
        self._scores = tuple(scores)

    def __len__(self) -> int:
        return len(self._scores)

    @overload
    def __getitem__(self, i: int) -> Score: ...

    @overload
    def __getitem__(self, i: slice) -> tuple[Score, ...]: ...

    def __getitem__(self, i: int | slice) -> Score | tuple[Score, ...]:
        return self._scores[i]

    def __repr__(self) -> str:
        expected, new = sum(score.expected for score in self), sum(score.found for score in self)
        kinds = {score.new_links for score in self}
        links = kinds.pop() if len(kinds) == 1 else "new links"
        return f"Scores({count(len(self), 'plan')}, {number(expected)} {links} expected, {new:,} found)"

    def to_arrow(self) -> pa.Table:
        """One row per plan."""
        records = [score.record() for score in self]
        names = list(dict.fromkeys(name for record in records for name in record))  # some only where a plan has a focus
        return pa.Table.from_pylist([{name: record.get(name) for name in names} for record in records])

    def to_pandas(self) -> pd.DataFrame:
        """One row per plan; needs pandas."""
        return to_pandas(self.to_arrow())


def score(
    history: History | str | Path,
    plan: str | None = None,
    horizon: timedelta | str | None = None,
    *,
    relevance: str | None = None,
) -> Scores:
    """How right the plans kept in a history were, once their pages have been visited.

    `plan`: only the plan with this id. `horizon`: only visits within this time after the plan, such as ``"7d"``. A plan that
    counted relevant links is compared with the relevant links found, by its own classifier. `relevance`, as in
    `PlanOptions`: judge the links that were found by this instead, also those of plans that counted all.

    >>> import recrawl as rc
    >>> from datetime import UTC, datetime
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     made = rc.plan(history, budget=2, policy="average-count", now=datetime(2026, 3, 6, 12, tzinfo=UTC), keep=True)
    ...     rc.score(history)
    Scores(1 plan, 5.0 new links expected, 5 found)
    """
    within = parse_period(horizon) if isinstance(horizon, str) else horizon
    focus = FocusOptions(relevance=relevance).focus
    return Scores(scores(History.of(history).detached(), plan, within, focus))


def scores(
    history: History, plan: str | None = None, horizon: timedelta | None = None, focus: Focus | None = None
) -> Iterator[Score]:
    """The score of every stored plan, or of one, oldest first.

    A visit counts for the last plan made before it; with `horizon` only if it was within that time. `focus`: which links are
    relevant, whatever the plans counted.
    """
    rows = stored(history.beside)
    if not rows.num_rows:
        return
    names = rows["plan"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    made = rows["made_at"].cast(pa.int64()).to_numpy()[starts]
    ends = np.append(starts[1:], len(names))
    answers, round_robin = _Answers(history), _RoundRobin(history.timeline)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if plan is not None and names[start] != plan:
            continue
        later = made[made > made[i]]
        until = int(later.min()) if len(later) else int(history.timeline.at.max(initial=made[i])) + 1
        if horizon is not None:
            until = min(until, int(made[i]) + horizon // timedelta(microseconds=1) + 1)
        yield _score(rows.slice(start, end - start), until, answers, round_robin, focus)


def _score(rows: pa.Table, until: int, answers: _Answers, round_robin: _RoundRobin, asked: Focus | None) -> Score:
    made_at = rows["made_at"][0].as_py()
    page = rows["page"].to_numpy()
    links = rows["links"][0].as_py() or "all"
    by_focus = rows["focus"][0].as_py()
    own = asked if asked is not None and by_focus is not None else kept_focus(answers.history, by_focus)
    focus = own
    new_links, failed = answers.new_links(page, microseconds(made_at), until, links, focus)
    likely_changed = rows["changed"].to_numpy(zero_copy_only=False)
    change = rows["change"][0].as_py() or ANY
    changed = answers.changes(page, microseconds(made_at), until, change)
    compared = (changed >= 0) & ~np.isnan(likely_changed)
    seen = new_links >= 0
    probability, expected = rows["probability"].to_numpy()[seen], rows["expected"].to_numpy()[seen]
    hit = new_links[seen] > 0
    rival = round_robin.choice(microseconds(made_at), rows["budget"][0].as_py())
    rivals, _ = answers.new_links(rival, microseconds(made_at), until, links, focus)
    all_new, relevant = (
        answers.new_links(page, microseconds(made_at), until, links, each)[0][seen] for each in (None, asked or own)
    )
    is_judged = (asked or own) is not None
    return Score(
        plan=rows["plan"][0].as_py(),
        policy=rows["policy"][0].as_py(),
        made_at=made_at,
        until=datetime.fromtimestamp(until / 1e6, UTC),
        planned=len(page),
        visited=int(seen.sum()),
        failed=int(failed.sum()),
        expected=float(expected.sum()),
        found=int(new_links[seen].sum()),
        hits=int(hit.sum()),
        expected_hits=float(probability.sum()),
        brier=float(((probability - hit) ** 2).mean()) if len(hit) else None,
        calibration=_calibration(probability, hit),
        compared=int(compared.sum()),
        expected_changed=None if np.isnan(likely_changed).all() else float(likely_changed[compared].sum()),
        changed=None if np.isnan(likely_changed).all() else int(changed[compared].sum()),
        change=change,
        round_robin_planned=len(rival),
        round_robin_visited=int((rivals >= 0).sum()),
        round_robin_found=int(rivals[rivals >= 0].sum()),
        relevance=None if focus is None else str(focus),
        found_relevant=int(relevant.sum()) if is_judged else None,
        found_all=int(all_new.sum()) if is_judged else None,
    )


class _Answers:
    """What visits to pages showed after some moment; everything that does not depend on the moment is worked out once."""

    def __init__(self, history: History) -> None:
        self.history, self.timeline = history, history.timeline
        self._new_of: dict[tuple[str, str], Ints] = {}
        timeline = self.timeline
        self.came, self.away = timeline.outcome <= Outcome.UNCHANGED, timeline.outcome >= Outcome.GONE
        self.is_read = timeline.links >= 0
        self.changed = np.append(timeline.changed, -1).astype(np.int64)

    def _new(self, links: str, focus: Focus | None) -> Ints:
        """New links of a kind at each visit, and -1 at the end."""
        key = links, "" if focus is None else focus.name
        if key not in self._new_of:
            novelty = self.history.novelty if focus is None else self._relevant(focus)
            counts = novelty.total("anywhere") if links == "all" else getattr(novelty, f"anywhere_{links}")
            self._new_of[key] = np.append(np.maximum(counts, 0), -1).astype(np.int64)
        return self._new_of[key]

    def _relevant(self, focus: Focus) -> Novelty:
        """What was new on each visit, of the links that count."""
        judged = focus.judged(self.history, shown_links(self.timeline))
        judged.check_judged(focus)
        return count_new(replace(self.timeline, sets=self.timeline.sets.among(judged.relevant)))

    def new_links(self, page: Ints, after: int, until: int, links: str, focus: Focus | None) -> tuple[Ints, Flags]:
        """New links (never before anywhere) that each page's first answer within the time showed, and where it did not answer.

        -1 where it was not visited. None were found where it failed or was gone: what a plan expects takes failures into account.
        """
        answer = _first_visits(self.timeline, self.is_read, page, after, until)
        answered, away = (
            _first_visits(self.timeline, counts, page, after, until) >= 0 for counts in (self.came, self.away)
        )
        failed = away & ~answered
        return np.where(failed, 0, self._new(links, focus)[answer]), failed

    def changes(self, page: Ints, after: int, until: int, change: str) -> Ints:
        """Whether each page's first visit within the time showed a change since the one before; -1 where it is not known."""
        visit = _first_visits(self.timeline, self.came, page, after, until)
        notion = notion_or_any(change)
        if notion is None:
            return self.changed[visit]
        visited = np.flatnonzero(visit >= 0)
        by_notion = np.full(len(visit), -1, np.int64)
        by_notion[visited] = changes_at_visits(self.history, self.history.timeline, visit[visited], notion)
        return by_notion


def _first_visits(timeline: Timeline, counts: Flags, page: Ints, after: int, until: int) -> Ints:
    """The first visit of each page within the time, of those that count; -1 where there is none."""
    pages = timeline.pages
    place = np.minimum(np.searchsorted(pages, page), len(pages) - 1)
    place = np.where(pages[place] == page, place, -1) if len(pages) else np.full(len(page), -1)
    first: Ints = _first_within(timeline.page_start, timeline.at, counts, place, after, until)
    return first


@njit(cache=True)
def _first_within(page_start, at, counts, place, after, until):  # type: ignore[no-untyped-def]
    first = np.full(len(place), -1, np.int64)
    for i in range(len(place)):
        if place[i] < 0:
            continue
        begin, end = page_start[place[i]], page_start[place[i] + 1]
        visit = begin + np.searchsorted(at[begin:end], after, side="right")
        while visit < end and at[visit] < until:
            if counts[visit]:
                first[i] = visit
                break
            visit += 1
    return first


class _RoundRobin:
    """The pages that had waited longest at each of several moments, one after the other."""

    def __init__(self, timeline: Timeline) -> None:
        self.order = np.argsort(timeline.at, kind="stable")
        self.at, self.outcome = timeline.at[self.order], timeline.outcome[self.order]
        self.page = np.repeat(np.arange(len(timeline.pages)), np.diff(timeline.page_start))[self.order]
        self.pages = timeline.pages
        self.last = np.full(len(self.pages), NEVER)
        self.is_gone = np.zeros(len(self.pages), np.bool_)
        self._n = 0

    def choice(self, now: int, n: int) -> Ints:
        """The ids of up to `n` pages that were known then and not gone, the longest waiting first; never for an earlier moment."""
        end = max(int(np.searchsorted(self.at, now, side="right")), self._n)
        here = slice(self._n, end)
        page, outcome = self.page[here], self.outcome[here]
        self.last[page] = self.at[here]  # in the order of time: the last one counts
        heard = outcome != Outcome.FAILED
        self.is_gone[page[heard]] = outcome[heard] == Outcome.GONE
        self._n = end
        known = np.flatnonzero((self.last != NEVER) & ~self.is_gone)
        if len(known) > n:
            known = known[np.argpartition(self.last[known], n)[:n]] if n else known[:0]
        chosen: Ints = self.pages[known[np.argsort(self.last[known], kind="stable")]]
        return chosen


def _calibration(probability: Floats, hit: Flags) -> list[dict[str, float]]:
    of_class = np.minimum((probability * N_CLASSES).astype(np.int64), N_CLASSES - 1)
    return [
        {
            "from": i / N_CLASSES,
            "to": (i + 1) / N_CLASSES,
            "n": int((of_class == i).sum()),
            "predicted": float(probability[of_class == i].mean()),
            "seen": float(hit[of_class == i].mean()),
        }
        for i in range(N_CLASSES)
        if (of_class == i).any()
    ]
