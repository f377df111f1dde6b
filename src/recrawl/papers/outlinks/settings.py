"""The settings of `recrawl evaluate --method outlinks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recrawl.insight.choices import TARGETS as TARGETS
from recrawl.insight.choices import LinkKind
from recrawl.insight.features import MAX_HISTORY

PARTS = ("features", "history", "importance", "correlation", "maps", "rankings", "counts", "drift")
SPLITS = ("pages", "time")


@dataclass(frozen=True)
class OutlinkSettings:
    """Which parts of the evaluation, on which split, with which settings."""

    links: tuple[LinkKind, ...] = ("internal", "external")
    parts: tuple[str, ...] = PARTS
    split: str = "pages"  # "pages": the papers' split; "time": learn from past rounds, predict the last
    seeds: tuple[int, ...] = (0, 1, 2)  # repetitions
    quick: bool = False  # the papers' tuned settings instead of cross-validation
    folds: int = 5  # of the cross-validation; as in the authors' program, the papers do not say
    papers_rate: bool = False  # rates of related pages that include the predicted round, as in the papers
    papers_leaks: bool = (
        False  # these, and the related pages' new links of the predicted round, as in the authors' program
    )
    related_by: str = "content"  # what makes pages related, one of `insight.choices.RELATED_BY`
    history: int = MAX_HISTORY
    trees: int | None = None  # greatest number of trees or iterations, for a quick look
    presence_learner: str = "extra-trees"
    target: str = "outlinks"  # whose new links are predicted: those on a page, or those that lead to it
    idf: str = "log"  # of the semantic vectors, see `insight.vectors.Lsa`
    n_jobs: int = 2  # cores

    @property
    def leaks(self) -> dict[str, bool]:
        """What features may know of the predicted round, as the feature sets take it."""
        return {"papers_rate": self.papers_rate or self.papers_leaks, "papers_leaks": self.papers_leaks}

    def histories(self, n_rounds: int) -> range:
        """The history sizes to try: up to the number of rounds before the first one that is learnt from."""
        return range(min(self.history, max(n_rounds - 2, 0)) + 1)

    def with_trees(self, model: Any) -> Any:
        """The model with at most `trees` trees."""
        sizes = {name: value for name, value in model.get_params().items() if is_size(name) and isinstance(value, int)}
        return model.set_params(**{name: self._at_most(value) for name, value in sizes.items()})

    def grid_with_trees(self, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """The grid with at most `trees` trees."""
        return {
            name: sorted({self._at_most(value) for value in values}) if is_size(name) else values
            for name, values in grid.items()
        }

    def _at_most(self, n_trees: int) -> int:
        return n_trees if self.trees is None else min(self.trees, n_trees)


def is_size(setting: str) -> bool:
    """Whether a setting of a learner is its number of trees.

    >>> [is_size(setting) for setting in ("max_iter", "estimator__n_estimators", "learning_rate")]
    [True, True, False]
    """
    return setting.split("__")[-1] in ("n_estimators", "max_iter")
