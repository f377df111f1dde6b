"""The settings of the evaluation of experts, the names of its methods, and its result as plain rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from recrawl.models.experts.examples import MEMORY
from recrawl.models.experts.selection import PAPER_METHODS

Row: TypeAlias = dict[str, Any]
PARTS = ("settings", "combining", "selection", "history", "number")
FRESHNESS, EXPERTS = (
    "freshness",
    "experts",
)  #: parts that run only if they are asked for: Fig. 8, and who the experts are
ALL_PARTS = (*PARTS, FRESHNESS, EXPERTS)
COIN, THRESHOLD, MAJORITY = "change-frequency, coin", "change-frequency, threshold", "majority class"
SINGLE, RELATED, BY_ACCURACY = "single-expert", "related-experts", "related-experts, by accuracy"
UNION, BAGGING, BOOSTING = "relational union", "bagging", "boosting"


@dataclass(frozen=True)
class ExpertSettings:
    """The settings of `recrawl evaluate --method experts`; the defaults are the paper's."""

    every: str = "1d"
    notion: str = "significant"
    target: str = "change"  # what is predicted, see `targets`
    parts: tuple[str, ...] = PARTS
    n_train: int = 50  # n: rounds that a learner is trained on
    n_trains: tuple[int, ...] = (30, 50, 70, 90, 120)  # of Fig. 6
    k: int = 20  # experts
    ks: tuple[int, ...] = (1, 2, 5, 10, 15, 20, 30)  # of Fig. 7
    method: str = "cross-correlation"  # how experts are chosen
    methods: tuple[str, ...] = PAPER_METHODS  # of Table 3
    reselect: int | None = None  # rounds after which experts are chosen again; None: once
    l: int = 1  # window of the features  # noqa: E741
    sigma: int = 1  # rounds ahead
    alpha: float = 0.3  # least share of rounds in which a page must switch between change and no change
    word_scale: float = 1.0
    cs: tuple[float, ...] = (1.0,)  # C of the machines; of several, the one that was right most often so far
    classifier: Any = None  # any of scikit-learn's in place of the machines; None: machines
    n_models: int = 10  # of bagging and boosting
    min_share: float = 0.5  # pages known in fewer rounds are left out
    last: int | None = None  # predict the last rounds only; None: all that the training leaves
    observed: tuple[int, ...] = (
        0,
        20,
        50,
        80,
        100,
    )  # of Fig. 8: rounds in which every page is seen before crawling begins
    share: float = 0.1  # of Fig. 8: pages fetched per round
    memory: int = MEMORY  # bytes of inner products that are kept
    most_pages: int | None = (
        None  # size of the random sample of pages to predict, by importance where it is stated; None: all
    )
    n_jobs: int = 2
    seed: int = 0


@dataclass
class ExpertEvaluation:
    """All rows, by part, and what they were measured on."""

    settings: ExpertSettings
    n_pages: int
    n_rounds: int
    first: str  # the ends of the first and the last round
    last: str
    n_predicted: int  # pages that pass the filter
    change_rate: float  # over all known rounds of all pages
    predicted_change_rate: float  # of the predicted ones
    notes: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)
