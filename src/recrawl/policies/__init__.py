"""Predictions and a budget → a choice. A new policy is one file and one line in `ALL`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from recrawl.errors import RecrawlError
from recrawl.policies.base import Budget, Cause, Choice, LinkLists, Pages, Policy, Visits
from recrawl.policies.brute_force import BruteForce
from recrawl.policies.counts import AverageCount, ContentChangeRate, PreviousCount
from recrawl.policies.cover import Oracle, SetCover
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.policies.experts import ChangeFrequency, RelatedExperts, SingleExpert
from recrawl.policies.explore import Bandit, RegressionRoundRobin
from recrawl.policies.freshness_oracle import FreshnessOracle
from recrawl.policies.freshness_value import FreshnessValue
from recrawl.policies.history_aware import HistoryAware
from recrawl.policies.lambda_crawl import LambdaCrawl
from recrawl.policies.last_observed import LastObserved
from recrawl.policies.learning_to_rank import LearningToRank
from recrawl.policies.nutch_adaptive import NutchAdaptive
from recrawl.policies.predicted import PredictedCount, PredictedPresence, PredictedProbability, PredictedRate
from recrawl.policies.random_choice import RandomChoice
from recrawl.policies.regression import Regression
from recrawl.policies.round_robin import RoundRobin
from recrawl.policies.stormcrawler_adaptive import StormcrawlerAdaptive
from recrawl.policies.windowed_clique import WindowedClique
from recrawl.policies.windowed_outdegree import WindowedOutdegree

#: Every policy, in the order in which tables show them.
ALL: tuple[type[Policy], ...] = (
    RoundRobin,
    RandomChoice,
    LastObserved,
    BruteForce,
    PreviousCount,
    AverageCount,
    ContentChangeRate,
    NutchAdaptive,
    StormcrawlerAdaptive,
    LambdaCrawl,
    FreshnessValue,
    HistoryAware,
    WindowedOutdegree,
    SetCover,
    WindowedClique,
    Regression,
    LearningToRank,
    RegressionRoundRobin,
    Bandit,
    ExpectedHarvest,
    PredictedCount,
    PredictedProbability,
    PredictedPresence,
    PredictedRate,
    ChangeFrequency,
    SingleExpert,
    RelatedExperts,
    FreshnessOracle,
    Oracle,
)


class UnknownPolicy(RecrawlError, LookupError):
    """There is no policy of that name, or it has no such setting."""


def named(name: str, **settings: Any) -> Policy:
    """A policy by its name; of the settings those that it takes are used.

    >>> named("bandit", window=28).window
    28
    """
    by_name = {policy.name: policy for policy in ALL}
    if name not in by_name:
        near = get_close_matches(name, by_name, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UnknownPolicy(f"No policy named {name!r}.{hint} Known: {', '.join(by_name)}")
    return by_name[name](**{key: value for key, value in settings.items() if key in settings_of(by_name[name])})


def settings_of(policy: type[Policy]) -> dict[str, Any]:
    """The settings of a policy and their defaults."""
    import inspect

    parameters = inspect.signature(policy).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


__all__ = [
    "ALL",
    "Budget",
    "Cause",
    "Choice",
    "LinkLists",
    "Pages",
    "Policy",
    "UnknownPolicy",
    "Visits",
    "named",
    "settings_of",
]
