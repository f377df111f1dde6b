"""Predictions and a budget → a choice. A new policy is one file and one line in `ALL`."""

from __future__ import annotations

from recrawl.policies.bandit import Bandit
from recrawl.policies.base import Policy
from recrawl.policies.brute_force import BruteForce
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice
from recrawl.policies.counts import AverageCount, ContentChangeRate, PreviousCount
from recrawl.policies.cover import Oracle, SetCover
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.policies.experts import ChangeFrequency, RelatedExperts, SingleExpert
from recrawl.policies.explanation import Explanation
from recrawl.policies.freshness_oracle import FreshnessOracle
from recrawl.policies.freshness_value import FreshnessValue
from recrawl.policies.harvest.model import Parts
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
from recrawl.policies.round_robin import RoundRobin
from recrawl.policies.stormcrawler_adaptive import StormcrawlerAdaptive
from recrawl.policies.windowed_clique import WindowedClique
from recrawl.policies.windowed_outdegree import WindowedOutdegree

#: Every policy of recrawl's own, in the order in which tables show them; `registry.known` has those of plug-ins as well.
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
#: The policy that plans are made by, where nothing else was asked for or recommended.
DEFAULT = ExpectedHarvest.name

__all__ = [
    "ALL",
    "DEFAULT",
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
    "WindowedClique",
    "WindowedOutdegree",
    "known",
    "named",
]
