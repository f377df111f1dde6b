"""Which policy suits this history? Replay some on its past and recommend the one that found most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from recrawl.core.times import moment
from recrawl.errors import RecrawlError
from recrawl.policies import DEFAULT, named
from recrawl.policies.budget import Budget
from recrawl.policies.registry import policy_class
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.many import OnCycles, replay_many
from recrawl.replay.runs import Replayed, plain
from recrawl.replay.summary import summarise
from recrawl.world.pages import Need
from recrawl.world.recorded import World

Candidate = tuple[str, dict[str, Any]]  #: a policy and settings that are not its default
#: Quick ones of every kind; round-robin first, since everything is measured against it.
CANDIDATES: tuple[Candidate, ...] = (
    ("round-robin", {}),
    (DEFAULT, {}),
    (DEFAULT, {"favour": "freshness"}),
    (DEFAULT, {"explore": 0.5}),
    ("windowed-outdegree", {}),
    ("average-count", {}),
    ("lambda-crawl", {}),
    ("regression-round-robin", {}),
    ("bandit", {}),
)
_COMMON = ("window", "seed")  # settings that are the same for all, and so not told


def told(run: Replayed) -> str:
    """A run's policy, with the settings that are not its default.

    >>> told(Replayed("expected-harvest", None, False, {"favour": "freshness", "explore": 0.25}, 6, []))
    'expected-harvest (favour freshness)'
    """
    defaults = policy_class(run.policy).default_settings()
    own = [
        f"{name} {value}"
        for name, value in run.settings.items()
        if name in defaults and name not in _COMMON and value != plain(defaults[name])
    ]
    return f"{run.policy} ({', '.join(own)})" if own else run.policy


@dataclass(frozen=True)
class Tuning:
    """What was replayed, the best of it, and how sure that is."""

    best: Replayed  # what is recommended
    runs: list[Replayed]  # the highest coverage first
    against_next: Comparison | None
    against_round_robin: Comparison | None
    until: datetime | None = None  # the end of what was replayed

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
            "coverage": {told(run): summarise(run).coverage for run in self.runs},
            "against_next": self.against_next.as_dict() if self.against_next else None,
            "against_round_robin": self.against_round_robin.as_dict() if self.against_round_robin else None,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "until": self.until.isoformat() if self.until else None,
        }


def tune(
    world: World,
    budget: Budget,
    candidates: Sequence[str | Candidate] = CANDIDATES,
    window: int = 168,
    seed: int = 0,
    workers: int | None = None,
    on_cycles: OnCycles = lambda done, total: None,
) -> Tuning:
    """Replay the candidates with this budget; the highest coverage is recommended, equal ones in the order of the candidates.

    But the default policy stays, as long as another is not better than it by more than chance: what wins by a little on the past
    may lose tomorrow. The margin over the next best, and over round-robin, comes with an interval by a paired bootstrap over
    days. It is somewhat favourable, since the best was picked on the same days.
    """
    asked = [(one, {}) if isinstance(one, str) else one for one in candidates]
    policies = [named(name, **{"window": window, "seed": seed} | own) for name, own in asked]
    policies = [policy for policy in policies if Need.FUTURE not in policy.needs]  # nobody could plan by it
    if not policies:
        names = ", ".join(name for name, _ in asked)
        raise RecrawlError(f"{names}: knows the future, so it cannot be recommended. Name other policies")
    runs = replay_many(world, policies, [budget], workers=workers, on_cycles=on_cycles)
    ranked = sorted(runs, key=lambda run: -(summarise(run).coverage or 0.0))
    best = _recommended(ranked, seed)
    others = [run for run in ranked if run is not best]
    uniform = next((run for run in runs if run.policy == "round-robin"), None)
    return Tuning(
        best,
        ranked,
        _compared(best, others[0], seed) if others else None,
        _compared(best, uniform, seed) if uniform is not None and uniform is not best else None,
        moment(int(world.time[-1])),
    )


def _recommended(ranked: Sequence[Replayed], seed: int) -> Replayed:
    """The first, or the default policy if the first is not better than it by more than chance."""
    default = next((run for run in ranked if told(run) == DEFAULT), None)
    if default is None or default is ranked[0]:
        return ranked[0]
    margin = compare(ranked[0], default, seed=seed)
    return ranked[0] if margin.low is not None and margin.low > 0 else default


def _compared(one: Replayed, other: Replayed, seed: int) -> Comparison:
    return replace(compare(one, other, seed=seed), policy=told(one), against=told(other))
