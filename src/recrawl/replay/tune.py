"""Which policy suits this history? Replay some on its past and recommend the one that found most."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recrawl.errors import RecrawlError
from recrawl.policies import named
from recrawl.policies.base import Budget
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.many import OnCycles, replay_many
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import summarise
from recrawl.world import World

#: Quick ones of every kind; round-robin first, since everything is measured against it.
CANDIDATES = (
    "round-robin",
    "windowed-outdegree",
    "windowed-clique",
    "average-count",
    "history-aware",
    "regression",
    "regression-round-robin",
    "bandit",
)


@dataclass(frozen=True)
class Tuning:
    """What was replayed, the best of it, and how sure that is."""

    best: Replayed
    runs: list[Replayed]  # the best first
    against_next: Comparison | None
    against_round_robin: Comparison | None

    @property
    def is_tie(self) -> bool:
        """Whether all found the same: then there is nothing to recommend."""
        found = {summarise(run).coverage for run in self.runs}
        return len(self.runs) > 1 and len(found) == 1

    def record(self, every: str) -> dict[str, Any]:
        """As plain values, for `recrawl.plan.default.recommend`."""
        return {
            "policy": self.best.policy,
            "settings": {name: value for name, value in self.best.settings.items() if value is not None},
            "every": every,
            "budget": self.best.budget,
            "cycles": len(self.best.rows),
            "coverage": {run.policy: summarise(run).coverage for run in self.runs},
            "against_next": self.against_next.as_dict() if self.against_next else None,
            "against_round_robin": self.against_round_robin.as_dict() if self.against_round_robin else None,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def tune(
    world: World,
    budget: Budget,
    candidates: tuple[str, ...] = CANDIDATES,
    window: int = 168,
    seed: int = 0,
    workers: int | None = None,
    on_cycles: OnCycles = lambda done, total: None,
) -> Tuning:
    """Replay the candidates with this budget; the highest coverage is recommended, equal ones in the order of the candidates.

    The margin over the next best, and over round-robin, comes with an interval by a paired bootstrap over days. It is somewhat
    favourable, since the best was picked on the same days.
    """
    policies = [named(name, window=window, seed=seed) for name in candidates]
    policies = [policy for policy in policies if not policy.sees_future]  # nobody could plan by it
    if not policies:
        raise RecrawlError(
            f"{', '.join(candidates)}: knows the future, so it cannot be recommended. Name other policies"
        )
    runs = replay_many(world, policies, [budget], workers=workers, on_cycles=on_cycles)
    ranked = sorted(runs, key=lambda run: -(summarise(run).coverage or 0.0))
    best = ranked[0]
    uniform = next((run for run in runs if run.policy == "round-robin"), None)
    return Tuning(
        best,
        ranked,
        compare(best, ranked[1], seed=seed) if len(ranked) > 1 else None,
        compare(best, uniform, seed=seed) if uniform is not None and uniform is not best else None,
    )
