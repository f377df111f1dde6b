"""A small model, where policies would train a large one."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from recrawl.models import learners
from recrawl.models.learners import Learner, LearnerTask
from recrawl.models.probability import ConstantIfOneClass


def small_tree(task: LearnerTask) -> Any:
    if task.kind == "presence":
        return ConstantIfOneClass(DecisionTreeClassifier(max_depth=3, random_state=task.seed))
    return DecisionTreeRegressor(max_depth=3, random_state=task.seed)


@pytest.fixture
def _with_small_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "LEARNERS", (*learners.LEARNERS, Learner("small-tree", None, small_tree)))
