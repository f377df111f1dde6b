"""Finished replays of one history, with everything that tables, figures and pages are made from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.core.times import moment
from recrawl.core.words import count, percent
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import ReplaySummary, all_links, is_focused, share, summarise
from recrawl.world.recorded import World

if TYPE_CHECKING:
    import pandas as pd

UNIFORM = "round-robin"  #: what everything is compared with
#: Policies that learn nothing, or hardly anything.
BASELINES = frozenset(
    {
        UNIFORM,
        "random",
        "last-observed",
        "brute-force",
        "previous-count",
        "average-count",
        "content-change-rate",
        "change-frequency",
    }
)
Key = tuple[str, int]  # policy and budget


@dataclass(frozen=True, kw_only=True, repr=False)
class Replays:
    """Runs over one world, and how they compare. `runs` are ordered by budget, then as their policies were given."""

    runs: Sequence[Replayed]
    n_pages: int
    n_hosts: int
    n_cycles: int
    discoverable: int
    first_at: str  # the end of cycle 0, or of the last one that every policy saw completely
    last_at: str
    every: str = "auto"
    seed: int = 0
    notes: Sequence[str] = field(default=())  # other conditions, such as caps
    observed: int = 0  # cycles before these that every policy saw completely
    goal: str = "links"  # or content: then freshness is what counts

    def __repr__(self) -> str:
        budgets = " or ".join(f"{pages:,}" for pages in self.budgets)
        noun = "page" if self.budgets == [1] else "pages"
        return (
            f"Replays({count(len(self.policies), 'policy', 'policies')} on {count(self.n_pages, 'page')} in "
            f"{count(self.n_cycles, 'cycle')}, {budgets} {noun} per cycle{self._best_in_words()})"
        )

    def _best_in_words(self) -> str:
        """What the best policy found with the greatest budget."""
        best = self.best(max(self.budgets, default=0))
        if best is not None and self.goal == "content":
            return f"; {best.policy} kept {percent(self.score(best))} of the copies current"
        if best is None or not self.discoverable:
            return ""
        return f"; {best.policy} found {percent(self.coverage(best))} of {count(self.discoverable, self.new_link)}"

    def records(self) -> list[dict[str, Any]]:
        """One record per policy and budget, as ``recrawl replay --json`` prints them; these keys are an interface."""
        versus = {"vs_round_robin": self.versus_uniform, "vs_best_published": self.versus_published}
        return [
            summary.as_dict() | {name: _as_dict(other.get(key)) for name, other in versus.items()} | self._of_all(key)
            for key, summary in self.summaries.items()
        ]

    @property
    def new_link(self) -> str:
        """What is counted, in words."""
        return "new relevant link" if self.is_focused else "new link"

    @property
    def is_focused(self) -> bool:
        """Whether only relevant links counted; then the rows also count all."""
        return any(is_focused(run) for run in self.runs)

    def _of_all(self, key: Key) -> dict[str, Any]:
        """Where only relevant links counted, the same for all links."""
        if not self.is_focused:
            return {}
        found, published = next(all_links(run) for run in self.runs if (run.policy, run.budget) == key)
        return {"discovered_all": found, "discoverable_all": published, "coverage_all": share(found, published)}

    def cycle_records(self) -> Iterator[dict[str, Any]]:
        """One record per policy, budget and cycle; without timings, so that the same replay gives the same records."""
        for run in self.runs:
            for row in run.timeless_rows():
                yield {"policy": run.policy, "budget": run.budget, **row}

    def to_arrow(self) -> pa.Table:
        """One row per policy and budget; the difference to another policy's coverage has its 95% interval beside it."""
        names = ("vs_round_robin", "vs_best_published")
        ends = ("difference", "low", "high")
        rows = []
        for row in self.records():
            compared = {name: row.pop(name) or {} for name in names}
            rows.append(row | {_column(name, end): compared[name].get(end) for name in names for end in ends})
        columns = [pa.field(_column(name, end), pa.float64()) for name in names for end in ends]
        if self.is_focused:
            kinds = {"discovered_all": pa.int64(), "discoverable_all": pa.int64(), "coverage_all": pa.float64()}
            columns += [pa.field(name, kind) for name, kind in kinds.items()]
        return pa.Table.from_pylist(rows, pa.schema([*ReplaySummary.columns(self.is_weighted), *columns]))

    def to_pandas(self) -> pd.DataFrame:
        """One row per policy and budget; needs pandas."""
        from recrawl.core.frames import to_pandas

        return to_pandas(self.to_arrow())

    def write(self, path: str | os.PathLike[str], *, self_contained: bool = False) -> Path:
        """Write an HTML page with tables and plots; `self_contained`: with the plot library in it (5 MB)."""
        from recrawl.report.replays.page import write_replay_page

        return write_replay_page(path, self, self_contained=self_contained)

    @cached_property
    def summaries(self) -> dict[Key, ReplaySummary]:
        """The metrics of every run."""
        return {(run.policy, run.budget): summarise(run) for run in self.runs}

    @property
    def is_weighted(self) -> bool:
        """Whether pages differ in importance, so that there are weighted metrics beside the plain ones."""
        return any(summary.is_weighted for summary in self.summaries.values())

    @property
    def budgets(self) -> list[int]:
        """Pages per cycle, in the order of the runs."""
        return list(dict.fromkeys(run.budget for run in self.runs))

    @property
    def policies(self) -> list[str]:
        """Names in the order of the runs."""
        return list(dict.fromkeys(run.policy for run in self.runs))

    def of_budget(self, budget: int) -> list[Replayed]:
        """The runs with a budget."""
        return [run for run in self.runs if run.budget == budget]

    def coverage(self, run: Replayed) -> float:
        """What a run covered; 0 where there was nothing to cover."""
        return self.summaries[run.policy, run.budget].coverage or 0.0

    def score(self, run: Replayed) -> float:
        """What a run is judged by: coverage, or freshness where content counts."""
        freshness = self.summaries[run.policy, run.budget].freshness or 0.0
        return freshness if self.goal == "content" else self.coverage(run)

    def best(self, budget: int) -> Replayed | None:
        """The run with the highest score of those that could be run for real."""
        return max((run for run in self.of_budget(budget) if not run.sees_future), key=self.score, default=None)

    def best_published(self, budget: int) -> Replayed | None:
        """The best policy that a paper proposed."""
        published = (
            run for run in self.of_budget(budget) if run.paper and not run.sees_future and run.policy not in BASELINES
        )
        return max(published, key=self.score, default=None)

    def uniform(self, budget: int) -> Replayed | None:
        """Round-robin, if it was run."""
        return next((run for run in self.of_budget(budget) if run.policy == UNIFORM), None)

    @cached_property
    def versus_uniform(self) -> dict[Key, Comparison]:
        """Every run against round-robin with the same budget, where that was run."""
        return self._versus({budget: self.uniform(budget) for budget in self.budgets})

    @cached_property
    def versus_published(self) -> dict[Key, Comparison]:
        """Every run against the best published policy with the same budget."""
        return self._versus({budget: self.best_published(budget) for budget in self.budgets})

    def _versus(self, reference: dict[int, Replayed | None]) -> dict[Key, Comparison]:
        return {
            (run.policy, run.budget): compare(run, other, seed=self.seed)
            for run in self.runs
            if (other := reference[run.budget]) is not None and run.policy != other.policy
        }


def _as_dict(comparison: Comparison | None) -> dict[str, Any] | None:
    return None if comparison is None else comparison.as_dict()


def _column(name: str, end: str) -> str:
    """The name of a column: the difference has the plain name."""
    return name if end == "difference" else f"{name}_{end}"


def gather(
    world: World,
    runs: Sequence[Replayed],
    every: str = "auto",
    seed: int = 0,
    notes: Sequence[str] = (),
    observed: int = 0,
    goal: str = "links",
) -> Replays:
    """Runs with what a report says of the world that they went over; every policy saw `observed` cycles of it completely."""
    first, last = (
        moment(int(time)).isoformat(timespec="minutes")[:16].replace("T", " ") for time in world.time[[observed, -1]]
    )
    return Replays(
        runs=runs,
        n_pages=world.n_pages,
        n_hosts=len(set(world.host.tolist())),
        n_cycles=world.n_cycles - observed,
        discoverable=int((world.first_shown > observed).sum()),
        first_at=first,
        last_at=last,
        every=every,
        seed=seed,
        notes=tuple(notes),
        observed=observed,
        goal=goal,
    )
