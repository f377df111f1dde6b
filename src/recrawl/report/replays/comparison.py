"""Finished replays of one history, with everything that tables, figures and pages are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from recrawl.core.times import moment
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import Summary, summarise
from recrawl.world.recorded import World

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


@dataclass(frozen=True)
class Replays:
    """Runs over one world, and how they compare. `runs` are ordered by budget, then as their policies were given."""

    runs: Sequence[Replayed]
    n_pages: int
    n_hosts: int
    n_cycles: int
    discoverable: int
    first_at: str  # the end of cycle 0, or of the last one that every policy saw completely
    last_at: str
    every: str = "crawl"
    seed: int = 0
    notes: Sequence[str] = field(default=())  # other conditions, such as caps
    observed: int = 0  # cycles before these that every policy saw completely

    @cached_property
    def summaries(self) -> dict[Key, Summary]:
        """The metrics of every run."""
        return {(run.policy, run.budget): summarise(run) for run in self.runs}

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

    def best(self, budget: int) -> Replayed | None:
        """The run with the highest coverage of those that could be run for real."""
        return max((run for run in self.of_budget(budget) if not run.sees_future), key=self.coverage, default=None)

    def best_published(self, budget: int) -> Replayed | None:
        """The best policy that a paper proposed."""
        published = (
            run for run in self.of_budget(budget) if run.paper and not run.sees_future and run.policy not in BASELINES
        )
        return max(published, key=self.coverage, default=None)

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


def gather(
    world: World,
    runs: Sequence[Replayed],
    every: str = "crawl",
    seed: int = 0,
    notes: Sequence[str] = (),
    observed: int = 0,
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
    )
