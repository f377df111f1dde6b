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
from recrawl.policies import DEFAULT, DEFAULT_FOR_CONTENT, named
from recrawl.policies.budget import Budget
from recrawl.policies.registry import policy_class
from recrawl.replay.compare import Comparison, compare
from recrawl.replay.many import OnCycles, replay_many
from recrawl.replay.runs import Replayed, plain
from recrawl.replay.summary import ReplaySummary, summarise
from recrawl.world.notions import ANY
from recrawl.world.pages import Need
from recrawl.world.recorded import World

if TYPE_CHECKING:
    import pandas as pd

GAIN = {"links": "of the new links found", "content": "of the copies current"}  #: what a score is a share of
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
#: The same for copies that are to stay current.
FOR_CONTENT: tuple[Candidate, ...] = (
    ("round-robin", {}),
    (DEFAULT_FOR_CONTENT, {}),
    ("lambda-crawl", {}),
    ("change-frequency", {}),
    ("history-aware", {}),
    ("nutch-adaptive", {}),
    ("stormcrawler-adaptive", {}),
)
OF_SITES: Candidate = ("whole-sites", {})  #: tried as well where roots of websites are given
_DEFAULTS = {"links": DEFAULT, "content": DEFAULT_FOR_CONTENT}
_COMMON = ("window", "seed", "updates")  # settings that are the same for all candidates, and so not part of a label


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
    runs: list[Replayed]  # the highest score first
    against_next: Comparison | None = None
    against_round_robin: Comparison | None = None
    until: datetime | None = None  # the end of what was replayed
    n_pages: int = 0
    place: str | None = None  # of the best, if it is the class of a file: path/to/file.py:Name
    goal: str = "links"  # what counts: coverage of new links; or content: the share of copies that are current
    links: str = "all"  # kind of links that count
    roots: str = "domain"  # what a site is
    change: str = ANY  # what makes a copy outdated

    def __repr__(self) -> str:
        score, by = self.score(self.best), " by importance" if self.is_weighted else ""
        found = "no new links to find" if score is None else f"{percent(score)} {GAIN[self.goal]}{by}"
        best = "no recommendation" if self.is_tie else label(self.best)
        return f"Tuning({best} of {count(len(self.runs), 'candidate')}, {found})"

    @property
    def is_tie(self) -> bool:
        """Whether all found the same: then there is nothing to recommend."""
        return len(self.runs) > 1 and len({self.score(run) for run in self.runs}) == 1

    def score(self, run: Replayed) -> float | None:
        """What a run is judged by; None where there was nothing to find."""
        return score_of(run, self.goal)

    @property
    def is_weighted(self) -> bool:
        """Whether pages differ in importance: then coverages are weighted ones."""
        return summarise(self.best).is_weighted

    def records(self) -> list[dict[str, Any]]:
        """The metrics of every candidate, the highest score first."""
        return [
            {"candidate": label(run), "recommended": run is self.best and not self.is_tie, **summarise(run).as_dict()}
            for run in self.runs
        ]

    def to_arrow(self) -> pa.Table:
        """One row per candidate, the highest score first."""
        own = [pa.field("candidate", pa.string()), pa.field("recommended", pa.bool_())]
        return pa.Table.from_pylist(self.records(), pa.schema([*own, *ReplaySummary.columns(self.is_weighted)]))

    def to_pandas(self) -> pd.DataFrame:
        """One row per candidate, the highest score first; needs pandas."""
        from recrawl.core.frames import to_pandas

        return to_pandas(self.to_arrow())

    def record(self, every: str) -> dict[str, Any]:
        """As plain values, for `recrawl.plan.default.recommend`."""
        return {
            "policy": self.best.policy,
            "place": self.place,
            "settings": {name: value for name, value in self.best.settings.items() if value is not None},
            "goal": self.goal,
            "every": every,
            "links": self.links,
            "roots": self.roots,
            "change": self.change,
            "budget": self.best.budget,
            "cycles": len(self.best.rows),
            "coverage": {label(run): summarise(run).judged_by() for run in self.runs},
            "freshness": {label(run): summarise(run).judged_by("content") for run in self.runs},
            "against_next": self.against_next.as_dict() if self.against_next else None,
            "against_round_robin": self.against_round_robin.as_dict() if self.against_round_robin else None,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "until": self.until.isoformat() if self.until else None,
        }


def candidates_for(goal: str, roots: str = "domain") -> tuple[Candidate, ...]:
    """What is tried for a goal where no policies are named."""
    usual = FOR_CONTENT if goal == "content" else CANDIDATES
    return usual if roots == "domain" else (*usual, OF_SITES)


def score_of(run: Replayed, goal: str) -> float | None:
    """What a run is judged by: coverage, or the share of copies that are current where content counts; by importance if given."""
    return summarise(run).judged_by(goal)


def tune(
    world: World,
    budget: Budget,
    candidates: Sequence[str | Candidate] = CANDIDATES,
    *,
    goal: str = "links",
    window: int = 168,
    seed: int = 0,
    workers: int | None = None,
    on_cycles: OnCycles = lambda done, total: None,
) -> Tuning:
    """Replay the candidates with this budget; the one with the highest score is recommended, the first of equal ones.

    The score is the coverage of new links, or with the goal content the share of copies that are current.

    Where pages differ in importance, coverage is the weighted one: policies give up plain coverage for pages that matter.

    The default policy stays unless another is better by more than chance: what wins by a little on the past may lose tomorrow.
    The margin over the next best, and over round-robin, has an interval by a paired bootstrap over days. It is somewhat
    optimistic, since the best was picked on the same days.
    """
    pairs = [(candidate, {}) if isinstance(candidate, str) else candidate for candidate in candidates]
    common = {"window": window, "seed": seed} | ({"updates": "content"} if goal == "content" else {})
    policies = [named(name, **common | own) for name, own in pairs]
    places = {
        policy.name: absolute(name) for (name, _), policy in zip(pairs, policies, strict=True) if is_in_file(name)
    }
    policies = [policy for policy in policies if Need.FUTURE not in policy.needs]  # no plan can be made by these
    if not policies:
        names = ", ".join(name for name, _ in pairs)
        raise BadOption(f"policies: {names} knows the future, so it cannot be recommended. Name other policies")
    runs = replay_many(world, policies, [budget], workers=workers, on_cycles=on_cycles)
    ranked = sorted(runs, key=lambda run: -(score_of(run, goal) or 0.0))
    best = _recommended(ranked, seed, goal)
    others = [run for run in ranked if run is not best]
    uniform = next((run for run in runs if run.policy == "round-robin"), None)
    return Tuning(
        best=best,
        runs=ranked,
        against_next=_compared(best, others[0], seed, goal) if others else None,
        against_round_robin=_compared(best, uniform, seed, goal)
        if uniform is not None and uniform is not best
        else None,
        until=moment(int(world.time[-1])),
        n_pages=world.n_pages,
        place=places.get(best.policy),
        goal=goal,
    )


def _recommended(ranked: Sequence[Replayed], seed: int, goal: str) -> Replayed:
    """The first, or the default policy if the first is not better than it by more than chance."""
    default = next((run for run in ranked if label(run) == _DEFAULTS[goal]), None)
    if default is None or default is ranked[0]:
        return ranked[0]
    margin = compare(ranked[0], default, seed=seed, goal=goal, by_weight=summarise(default).is_weighted)
    return ranked[0] if margin.low is not None and margin.low > 0 else default


def _compared(run: Replayed, reference: Replayed, seed: int, goal: str) -> Comparison:
    compared = compare(run, reference, seed=seed, goal=goal, by_weight=summarise(run).is_weighted)
    return replace(compared, policy=label(run), against=label(reference))
