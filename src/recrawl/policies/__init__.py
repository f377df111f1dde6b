"""Knowledge and a budget → a choice of pages. A new policy is one file, and one line in `PLACES`.

>>> from recrawl.policies import ALL, RoundRobin
>>> RoundRobin in ALL
True

Classes are imported when they are first used, so that a name can be checked without loading what the policy computes with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.policies.bandit import Bandit
    from recrawl.policies.base import Policy
    from recrawl.policies.brute_force import BruteForce
    from recrawl.policies.budget import Budget, Cause
    from recrawl.policies.choice import Choice
    from recrawl.policies.counts import AverageCount, ContentChangeRate, PreviousCount
    from recrawl.policies.cover import Oracle, SetCover
    from recrawl.policies.expected_harvest import ExpectedHarvest
    from recrawl.policies.experts import ChangeFrequency, SingleExpert
    from recrawl.policies.explanation import Explanation
    from recrawl.policies.freshness_oracle import FreshnessOracle
    from recrawl.policies.freshness_value import FreshnessValue
    from recrawl.policies.harvest.parts import Parts
    from recrawl.policies.history_aware import HistoryAware
    from recrawl.policies.lambda_crawl import LambdaCrawl
    from recrawl.policies.last_observed import LastObserved
    from recrawl.policies.learning_to_rank import LearningToRank
    from recrawl.policies.nutch_adaptive import NutchAdaptive
    from recrawl.policies.predicted import PredictedCount, PredictedPresence, PredictedProbability, PredictedRate
    from recrawl.policies.random_choice import RandomChoice
    from recrawl.policies.registry import known, named
    from recrawl.policies.regression import Regression
    from recrawl.policies.regression_round_robin import RegressionRoundRobin
    from recrawl.policies.related_experts import RelatedExperts
    from recrawl.policies.round_robin import RoundRobin
    from recrawl.policies.stormcrawler_adaptive import StormcrawlerAdaptive
    from recrawl.policies.whole_sites import WholeSites
    from recrawl.policies.windowed_clique import WindowedClique
    from recrawl.policies.windowed_outdegree import WindowedOutdegree

#: Every policy of recrawl's own → where it is, in the order in which tables show them. `registry.known` has those of plug-ins, too.
PLACES = {
    "round-robin": "round_robin:RoundRobin",
    "random": "random_choice:RandomChoice",
    "last-observed": "last_observed:LastObserved",
    "brute-force": "brute_force:BruteForce",
    "previous-count": "counts:PreviousCount",
    "average-count": "counts:AverageCount",
    "content-change-rate": "counts:ContentChangeRate",
    "nutch-adaptive": "nutch_adaptive:NutchAdaptive",
    "stormcrawler-adaptive": "stormcrawler_adaptive:StormcrawlerAdaptive",
    "lambda-crawl": "lambda_crawl:LambdaCrawl",
    "freshness-value": "freshness_value:FreshnessValue",
    "history-aware": "history_aware:HistoryAware",
    "whole-sites": "whole_sites:WholeSites",
    "windowed-outdegree": "windowed_outdegree:WindowedOutdegree",
    "set-cover": "cover:SetCover",
    "windowed-clique": "windowed_clique:WindowedClique",
    "regression": "regression:Regression",
    "learning-to-rank": "learning_to_rank:LearningToRank",
    "regression-round-robin": "regression_round_robin:RegressionRoundRobin",
    "bandit": "bandit:Bandit",
    "expected-harvest": "expected_harvest:ExpectedHarvest",
    "predicted-count": "predicted:PredictedCount",
    "predicted-probability": "predicted:PredictedProbability",
    "predicted-presence": "predicted:PredictedPresence",
    "predicted-rate": "predicted:PredictedRate",
    "change-frequency": "experts:ChangeFrequency",
    "single-expert": "experts:SingleExpert",
    "related-experts": "related_experts:RelatedExperts",
    "freshness-oracle": "freshness_oracle:FreshnessOracle",
    "oracle": "cover:Oracle",
}
#: The policy that plans are made by, where no other was given or recommended.
DEFAULT = "expected-harvest"
DEFAULT_FOR_CONTENT = "freshness-value"

# Public names and where they are: the classes of the policies, and what is needed to write and use one.
_PUBLIC = {place.partition(":")[2]: place for place in PLACES.values()} | {
    "Budget": "budget:Budget",
    "Cause": "budget:Cause",
    "Choice": "choice:Choice",
    "Explanation": "explanation:Explanation",
    "Parts": "harvest.parts:Parts",
    "Policy": "base:Policy",
    "known": "registry:known",
    "named": "registry:named",
}

if TYPE_CHECKING:
    #: Every policy of recrawl's own, in the order of `PLACES`.
    ALL: tuple[type[Policy], ...]

__all__ = [
    "ALL",
    "DEFAULT",
    "DEFAULT_FOR_CONTENT",
    "PLACES",
    "AverageCount",
    "Bandit",
    "BruteForce",
    "Budget",
    "Cause",
    "ChangeFrequency",
    "Choice",
    "ContentChangeRate",
    "ExpectedHarvest",
    "Explanation",
    "FreshnessOracle",
    "FreshnessValue",
    "HistoryAware",
    "LambdaCrawl",
    "LastObserved",
    "LearningToRank",
    "NutchAdaptive",
    "Oracle",
    "Parts",
    "Policy",
    "PredictedCount",
    "PredictedPresence",
    "PredictedProbability",
    "PredictedRate",
    "PreviousCount",
    "RandomChoice",
    "Regression",
    "RegressionRoundRobin",
    "RelatedExperts",
    "RoundRobin",
    "SetCover",
    "SingleExpert",
    "StormcrawlerAdaptive",
    "WholeSites",
    "WindowedClique",
    "WindowedOutdegree",
    "known",
    "named",
]


def policy_at(place: str) -> type[Policy]:
    """The class at a place of `PLACES`.

    >>> policy_at("cover:Oracle").name
    'oracle'
    """
    policy: type[Policy] = _load(place)
    return policy


def __getattr__(name: str) -> Any:
    if name == "ALL":
        value: Any = tuple(policy_at(place) for place in PLACES.values())
    elif name in _PUBLIC:
        value = _load(_PUBLIC[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), attribute)
