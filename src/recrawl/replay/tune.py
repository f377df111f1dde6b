"""Which policy suits this history? Replay several on its past and recommend the one that found most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.core.plugins import absolute, is_in_file
from recrawl.core.times import moment
from recrawl.core.words import count, percent
from recrawl.errors import BadOption, UnknownPolicy
from recrawl.policies import DEFAULT, named
from recrawl.policies.budget import Budget
from recrawl.policies.registry import policy_class
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.many import OnCycles, replay_many
from recrawl.replay.runs import Replayed, plain
from recrawl.replay.summary import ReplaySummary, summarise
from recrawl.world.pages import Need
from recrawl.world.recorded import World

if TYPE_CHECKING:
    import pandas as pd

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
_COMMON = ("window", "seed")  # settings that are the same for all candidates, and so not part of a label


def label(run: Replayed) -> str:
    """A run's policy, with the settings that are not its default.

    >>> settings = {"favour": "freshness", "explore": 0.25}
    >>> label(Replayed(policy="expected-harvest", paper=None, sees_future=False, settings=settings, budget=6, rows=[]))
    'expected-harvest (favour freshness)'
    """
    try:
        defaults = policy_class(run.policy).default_settings()
    except UnknownPolicy:  # of a file: its name alone does not lead there
        return run.policy
    own = [
        f"{name} {value}"
        for name, value in run.settings.items()
        if name in defaults and name not in _COMMON and value != plain(defaults[name])
    ]
    return f"{run.policy} ({', '.join(own)})" if own else run.policy


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning:
    """What was replayed, the best of it, and how sure that is."""

    best: Replayed  # what is recommended
    runs: list[Replayed]  # the highest coverage first
    against_next: Comparison | None = None
    against_round_robin: Comparison | None = None
    until: datetime | None = None  # the end of what was replayed
    n_pages: int = 0
    place: str | None = None  # of the best, if it is the class of a file: path/to/file.py:Name

    def __repr__(self) -> str:
        coverage, by = summarise(self.best).judged_by, " by importance" if self.is_weighted else ""
        found = "no new links to find" if coverage is None else f"{percent(coverage)} of the new links found{by}"
        best = "no recommendation" if self.is_tie else label(self.best)
        return f"Tuning({best} of {count(len(self.runs), 'candidate')}, {found})"

    @property
    def is_tie(self) -> bool:
        """Whether all found the same: then there is nothing to recommend."""
        coverages = {summarise(run).judged_by for run in self.runs}
        return len(self.runs) > 1 and len(coverages) == 1

    @property
    def is_weighted(self) -> bool:
        """Whether pages differ in importance: then coverages are weighted ones."""
        return summarise(self.best).is_weighted

    def records(self) -> list[dict[str, Any]]:
        """The metrics of every candidate, the highest coverage first."""
        return [
            {"candidate": label(run), "recommended": run is self.best and not self.is_tie, **summarise(run).as_dict()}
            for run in self.runs
        ]

    def to_arrow(self) -> pa.Table:
        """One row per candidate, the highest coverage first."""
        own = [pa.field("candidate", pa.string()), pa.field("recommended", pa.bool_())]
        return pa.Table.from_pylist(self.records(), pa.schema([*own, *ReplaySummary.columns(self.is_weighted)]))

    def to_pandas(self) -> pd.DataFrame:
        """One row per candidate, the highest coverage first; needs pandas."""
        from recrawl.core.frames import to_pandas

        return to_pandas(self.to_arrow())

    def record(self, every: str) -> dict[str, Any]:
        """As plain values, for `recrawl.plan.default.recommend`."""
        return {
            "policy": self.best.policy,
            "place": self.place,
            "settings": {name: value for name, value in self.best.settings.items() if value is not None},
            "every": every,
            "budget": self.best.budget,
            "cycles": len(self.best.rows),
            "coverage": {label(run): summarise(run).judged_by for run in self.runs},
            "against_next": self.against_next.as_dict() if self.against_next else None,
            "against_round_robin": self.against_round_robin.as_dict() if self.against_round_robin else None,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "until": self.until.isoformat() if self.until else None,
        }


def tune(
    world: World,
    budget: Budget,
    candidates: Sequence[str | Candidate] = CANDIDATES,
    *,
    window: int = 168,
    seed: int = 0,
    workers: int | None = None,
    on_cycles: OnCycles = lambda done, total: None,
) -> Tuning:
    """Replay the candidates with this budget; the one with the highest coverage is recommended, the first of equal ones.

    Where pages differ in importance, coverage is the weighted one: policies give up plain coverage for pages that matter.

    The default policy stays unless another is better by more than chance: what wins by a little on the past may lose tomorrow.
    The margin over the next best, and over round-robin, has an interval by a paired bootstrap over days. It is somewhat
    optimistic, since the best was picked on the same days.
    """
    pairs = [(candidate, {}) if isinstance(candidate, str) else candidate for candidate in candidates]
    policies = [named(name, **{"window": window, "seed": seed} | own) for name, own in pairs]
    places = {
        policy.name: absolute(name) for (name, _), policy in zip(pairs, policies, strict=True) if is_in_file(name)
    }
    policies = [policy for policy in policies if Need.FUTURE not in policy.needs]  # no plan can be made by these
    if not policies:
        names = ", ".join(name for name, _ in pairs)
        raise BadOption(f"policies: {names} knows the future, so it cannot be recommended. Name other policies")
    runs = replay_many(world, policies, [budget], workers=workers, on_cycles=on_cycles)
    ranked = sorted(runs, key=lambda run: -(summarise(run).judged_by or 0.0))
    best = _recommended(ranked, seed)
    others = [run for run in ranked if run is not best]
    uniform = next((run for run in runs if run.policy == "round-robin"), None)
    return Tuning(
        best=best,
        runs=ranked,
        against_next=_compared(best, others[0], seed) if others else None,
        against_round_robin=_compared(best, uniform, seed) if uniform is not None and uniform is not best else None,
        until=moment(int(world.time[-1])),
        n_pages=world.n_pages,
        place=places.get(best.policy),
    )


def _recommended(ranked: Sequence[Replayed], seed: int) -> Replayed:
    """The first, or the default policy if the first is not better than it by more than chance."""
    default = next((run for run in ranked if label(run) == DEFAULT), None)
    if default is None or default is ranked[0]:
        return ranked[0]
    margin = compare(ranked[0], default, seed=seed, by_weight=summarise(default).is_weighted)
    return ranked[0] if margin.low is not None and margin.low > 0 else default


def _compared(run: Replayed, reference: Replayed, seed: int) -> Comparison:
    compared = compare(run, reference, seed=seed, by_weight=summarise(run).is_weighted)
    return replace(compared, policy=label(run), against=label(reference))
