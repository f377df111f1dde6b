"""What `recrawl evaluate` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recrawl.features import MAX_HISTORY
from recrawl.targets import Links

PARTS = ("features", "history", "importance", "correlation", "maps", "rankings", "counts")
SPLITS = ("pages", "time")


@dataclass(frozen=True)
class Settings:
    """Which parts of the evaluation, on which split, with which settings."""

    links: tuple[Links, ...] = ("internal", "external")
    parts: tuple[str, ...] = PARTS
    split: str = "pages"  # "pages": the papers' split; "time": learn from past rounds, predict the last
    seeds: tuple[int, ...] = (0, 1, 2)  # repetitions
    quick: bool = False  # the papers' tuned settings instead of cross-validation
    papers_rate: bool = False  # rates of related pages that include the predicted round, as in the papers
    history: int = MAX_HISTORY
    max_rounds: int | None = None  # past rounds to learn from, in the split by time
    trees: int | None = None  # at most so many trees or iterations, to look quickly
    presence_learner: str = "extra-trees"
    n_jobs: int = 2

    def histories(self, n_rounds: int) -> range:
        """The history sizes to try: as many rounds as there are before the first one that is learnt from."""
        return range(min(self.history, max(n_rounds - 2, 0)) + 1)

    def with_trees(self, model: Any) -> Any:
        """The model with no more trees than asked for."""
        if self.trees is None:
            return model
        known = model.get_params()
        few = {
            name: min(self.trees, value)
            for name, value in known.items()
            if name.split("__")[-1] in ("n_estimators", "max_iter") and isinstance(value, int)
        }
        return model.set_params(**few)
