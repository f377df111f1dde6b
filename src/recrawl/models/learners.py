"""All learners in one list, from which the command line, the documents and the tests follow.

A learner makes an unfitted scikit-learn estimator for a kind of target: "rate" (how often a page gains links), "presence" (whether
it does next), "number" (how many). Estimators for presence always have the classes 0 and 1.

Estimators are imported when they are built, so that checking a name costs nothing. To add a learner, write an estimator and add a
row to `LEARNERS`; or let a package of yours offer the row as an entry point in the
group ``recrawl.learners``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recrawl.core import plugins
from recrawl.core.rooms import load
from recrawl.core.suggest import unknown
from recrawl.errors import BadPlugin, RecrawlError
from recrawl.insight.choices import LINKS, MAX_HISTORY

if TYPE_CHECKING:
    from recrawl.insight.features import Features
__all__ = [
    "KINDS",
    "LEARNERS",
    "LINKS",
    "Learner",
    "LearnerTask",
    "all_learners",
    "baseline_features",
    "named",
    "papers_settings",
]

KINDS = ("rate", "presence", "number")

#: ExtraTrees for presence by history size 0 to 8 (Dang et al. 2022, Table 3): trees, and minimum samples per leaf.
_TABLE_3 = {
    "internal": ((300, 500, 400, 500, 500, 300, 400, 500, 400), 2),
    "external": ((300, 300, 400, 200, 300, 400, 500, 400, 500), 10),
}
_TREES, _LEAVES = (200, 300, 400, 500), (10, 15, 20, 25)
_TREE_GRID = {"n_estimators": _TREES, "min_samples_leaf": (2, 5, 10, 15, 20, 25)}
_RATES = (0.1, 0.08, 0.06, 0.04, 0.02)
_LIGHT_GRID = {"n_estimators": _TREES, "min_child_samples": _LEAVES, "learning_rate": _RATES}
#: The papers print no tuned values of LightGBM; the same ends of the same ranges were best as for HGBoost.
_LIGHT_TUNED = {"learning_rate": 0.04, "n_estimators": 500, "min_child_samples": 25}
_COUNT_GRID = {"learning_rate": (0.02, 0.05, 0.1), "max_iter": (100, 200, 400), "min_samples_leaf": (10, 20, 50)}


@dataclass(frozen=True)
class LearnerTask:
    """What an estimator is needed for."""

    kind: str = "number"
    links: str = "internal"
    history: int = MAX_HISTORY
    seed: int = 0
    n_jobs: int = 2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RecrawlError(unknown("kind of target", self.kind, KINDS))
        if self.links not in LINKS:
            raise RecrawlError(unknown("kind of links", self.links, LINKS))
        if self.history < 0:
            raise RecrawlError(f"The history size is {self.history}; it must be 0 or more")


@dataclass(frozen=True, eq=False)
class Learner:
    """One way to learn: how to build it, for which kinds of target, with which settings, tuned over which.

    `build` returns an unfitted estimator for a task. With `predict_distribution` (see `recrawl.models.counts`) the estimator states
    its own probabilities and intervals; else its numbers are taken as means of Poisson distributions.
    """

    name: str
    paper: str | None
    build: Callable[[LearnerTask], Any]
    kinds: frozenset[str] = frozenset(KINDS)
    ranges: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    tuned: Callable[[LearnerTask], dict[str, Any]] = field(default=lambda task: {}, repr=False)
    baseline: bool = False
    column: str | None = None  # a baseline's only feature: "previous", "average" or "content-change-rate"
    #: Full names of the types in its fitted models, beside the estimator itself and those of recrawl: files with them are read.
    types: frozenset[str] = frozenset()

    @property
    def is_blind(self) -> bool:
        """Whether its prediction is the same for every page."""
        return self.baseline and self.column is None

    def make(
        self, kind: str, links: str = "internal", history: int = 8, seed: int = 0, n_jobs: int = 2, **overrides: Any
    ) -> Any:
        """An unfitted estimator with the papers' tuned settings, except those given (plain, or as `grid` spells them)."""
        task = LearnerTask(kind, links, history, seed, n_jobs)
        estimator = self._built(task)
        prefix, known = _prefix(estimator), estimator.get_params()
        for name, value in (self.tuned(task) | overrides).items():
            spelled = name if name in known else prefix + name
            if spelled not in known:
                raise RecrawlError(
                    unknown(f"setting of {self.name}", name, [key.removeprefix(prefix) for key in known])
                )
            estimator.set_params(**{spelled: value})
        return estimator

    def for_columns(self, n_anchors: int, kind: str, *args: Any, **settings: Any) -> Any:
        """As `make`, with the number of columns at the front that are anchors, if the learner uses it."""
        estimator = self.make(kind, *args, **settings)
        known = [name for name in estimator.get_params() if name.split("__")[-1] == "n_anchors"]
        return estimator.set_params(**dict.fromkeys(known, n_anchors))

    def grid(self, kind: str) -> dict[str, list[Any]]:
        """The settings to choose among by cross-validation, spelled as the estimator of this kind takes them."""
        prefix = _prefix(self._built(LearnerTask(kind)))
        return {prefix + name: list(values) for name, values in self.ranges.items()}

    def _built(self, task: LearnerTask) -> Any:
        if task.kind not in self.kinds:
            able = ", ".join(learner.name for learner in all_learners() if task.kind in learner.kinds)
            raise RecrawlError(f"Learner {self.name!r} cannot predict a {task.kind}. These can: {able}")
        return self.build(task)


def papers_settings(kind: str, links: str, history: int) -> dict[str, int]:
    """The papers' tuned ExtraTrees: Dang et al. (2022), Table 3, for presence; Dang et al. (2021), section 7.3, for the rate.

    For the number they print nothing: as for the rate. Links of both kinds together are mostly internal, and are treated as
    internal; a history longer than 8 counts as 8. With rare positives and leaves of 2 the balancing of classes hardly matters,
    because leaves are pure: larger leaves are worth trying, and are in the grid.

    >>> papers_settings("presence", "external", 3)
    {'n_estimators': 200, 'min_samples_leaf': 10}
    """
    task = LearnerTask(kind, links, history)
    if task.kind != "presence":
        return {"n_estimators": 400, "min_samples_leaf": 2}
    trees, leaf = _TABLE_3["external" if task.links == "external" else "internal"]
    return {"n_estimators": trees[min(task.history, MAX_HISTORY)], "min_samples_leaf": leaf}


def baseline_features(learner: Learner, links: str) -> Features:
    """The only column that a baseline uses; any column for one that uses none.

    >>> [str(feature) for feature in baseline_features(named("average-count"), "external")]
    ['mean_external -1']
    """
    from recrawl.insight.features import Feature

    column = {
        "previous": Feature(f"new_{links}", lag=1),
        "average": Feature(f"mean_{links}", lag=1),
        "content-change-rate": Feature("content_change_rate", lag=1),
    }
    return (column[learner.column],) if learner.column else (Feature("path_depth"),)


def all_learners() -> tuple[Learner, ...]:
    """Every learner: recrawl's own first, then those of installed plug-ins."""
    learners = {learner.name: learner for learner in LEARNERS}
    for entry, plugin in plugins.installed(plugins.LEARNERS).items():
        if not isinstance(plugin, Learner):
            raise BadPlugin(f"the plug-in {entry!r} is {plugin!r}; it must be a recrawl.models.learners.Learner")
        if plugin.name in learners:
            raise BadPlugin(f"the plug-in {entry!r} has the name of another learner, {plugin.name!r}; rename it")
        learners[plugin.name] = plugin
    return tuple(learners.values())


def named(name: str) -> Learner:
    """The learner of that name.

    >>> named("hurdles")
    Traceback (most recent call last):
    recrawl.errors.RecrawlError: No learner named 'hurdles'. Did you mean 'hurdle'? Known: extra-trees, ...
    """
    learners = {learner.name: learner for learner in all_learners()}
    if name not in learners:
        raise RecrawlError(unknown("learner", name, learners))
    return learners[name]


def _trees(classifier: str, regressor: str) -> Callable[[LearnerTask], Any]:
    """How to build trees with the features per split of scikit-learn 0.24, the papers' version: √ for presence, else all."""

    def build(task: LearnerTask) -> Any:
        from recrawl.models.probability import ConstantIfOneClass

        common = {"random_state": task.seed, "n_jobs": task.n_jobs}
        if task.kind == "presence":
            kind = load(f"recrawl.models.{classifier}")
            return ConstantIfOneClass(kind(max_features="sqrt", class_weight="balanced", **common))
        return load(f"recrawl.models.{regressor}")(max_features=1.0, **common)

    return build


def _papers_trees(task: LearnerTask) -> dict[str, Any]:
    return dict(papers_settings(task.kind, task.links, task.history))


def _hist_gradient_boosting(task: LearnerTask) -> Any:
    """Without a limit on leaves, as in the papers, and without early stopping.

    By default scikit-learn stops early above 10,000 rows, and the papers' grid of iterations then has no effect.
    """
    from recrawl.models.boosting import BoostedClassifier, BoostedRegressor
    from recrawl.models.probability import ConstantIfOneClass

    common = {"random_state": task.seed, "max_leaf_nodes": None, "early_stopping": False}
    if task.kind == "presence":
        return ConstantIfOneClass(BoostedClassifier(class_weight="balanced", **common))
    return BoostedRegressor(**common)


def _lightgbm(**leaves: Any) -> Callable[[LearnerTask], Any]:
    """How to build LightGBM, balanced for presence and deterministic; by default with its own 31 leaves per tree."""

    def build(task: LearnerTask) -> Any:
        from recrawl.models.boosting import LightClassifier, LightRegressor
        from recrawl.models.probability import ConstantIfOneClass, ConstantIfOneValue

        common: dict[str, Any] = {"random_state": task.seed, "n_jobs": task.n_jobs, "verbosity": -1}
        common |= {"deterministic": True, "force_col_wise": True, **leaves}
        if task.kind == "presence":
            return ConstantIfOneClass(LightClassifier(class_weight="balanced", **common))
        return ConstantIfOneValue(LightRegressor(**common))

    return build


def _counts(place: str) -> Callable[[LearnerTask], Any]:
    """How to build the model of counts at a place; for presence its probability of at least one."""

    def build(task: LearnerTask) -> Any:
        from recrawl.models.probability import PresenceFromCounts

        estimator = load(f"recrawl.models.{place}")(random_state=task.seed)
        return PresenceFromCounts(estimator) if task.kind == "presence" else estimator

    return build


def _baseline(name: str) -> Callable[[LearnerTask], Any]:
    """How to build a baseline; its value ranks pages, whatever the kind."""

    def build(task: LearnerTask) -> Any:
        from recrawl.models import baselines

        estimator = getattr(baselines, name)()
        return baselines.PresenceByValue(estimator) if task.kind == "presence" else estimator

    return build


_PRESENCE_OR_NUMBER = frozenset({"presence", "number"})

LEARNERS = (
    Learner(
        "extra-trees",
        "ExtraT",
        _trees("fast_trees:FastTreesClassifier", "fast_trees:FastTreesRegressor"),
        ranges=_TREE_GRID,
        tuned=_papers_trees,
    ),
    Learner(  # the same rules, several times as slow
        "scikit-extra-trees",
        None,
        _trees("forests:OrderedTreesClassifier", "forests:OrderedTreesRegressor"),
        ranges=_TREE_GRID,
        tuned=_papers_trees,
    ),
    Learner(
        "hist-gradient-boosting",
        "HGBoost",
        _hist_gradient_boosting,
        ranges={"max_iter": _TREES, "min_samples_leaf": _LEAVES, "learning_rate": _RATES},
        tuned=lambda task: {"learning_rate": 0.04, "max_iter": 500, "min_samples_leaf": 25},
    ),
    Learner("lightgbm", None, _lightgbm(), ranges=_LIGHT_GRID, tuned=lambda task: dict(_LIGHT_TUNED)),
    Learner(  # "no maximum depth or maximum number of leaf nodes": Dang et al. (2022), section 5.3
        "lightgbm-unlimited",
        "LightGBM",
        _lightgbm(num_leaves=None, histogram_pool_size=1024),  # MB; all leaves of a large tree would take gigabytes
        ranges=_LIGHT_GRID,
        tuned=lambda task: dict(_LIGHT_TUNED),
    ),
    Learner("ngboost", "NGBoost", _counts("probability:NaturalGradientCounts"), frozenset({"number"})),
    Learner("poisson", None, _counts("counts:PoissonCounts"), _PRESENCE_OR_NUMBER, _COUNT_GRID),
    Learner("negative-binomial", None, _counts("counts:NegativeBinomialCounts"), _PRESENCE_OR_NUMBER, _COUNT_GRID),
    Learner("hurdle", None, _counts("counts:HurdleCounts"), _PRESENCE_OR_NUMBER, _COUNT_GRID),
    Learner("forecast", None, _counts("forecast:ForecastCounts"), _PRESENCE_OR_NUMBER),
    Learner("previous-count", "NNL-Pr", _baseline("Itself"), baseline=True, column="previous"),
    Learner("average-count", "NNL-Av", _baseline("Itself"), baseline=True, column="average"),
    Learner("content-change-rate", "CCR", _baseline("Itself"), baseline=True, column="content-change-rate"),
    Learner("always-zero", None, _baseline("AlwaysZero"), baseline=True),
)


def _prefix(estimator: Any) -> str:
    """Where the settings of the learner itself are: inside the wrapper, if there is one."""
    return "estimator__" if "estimator" in estimator.get_params(deep=False) else ""
