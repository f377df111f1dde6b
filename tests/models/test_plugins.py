"""Learners of other packages: a row in the list, or an entry point, and everything else follows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.core import plugins
from recrawl.errors import BadPlugin, RecrawlError
from recrawl.history import History
from recrawl.models import learners, saved
from recrawl.models.learners import LEARNERS, Learner, all_learners, named
from recrawl.models.predictor import Recipe, predict, train
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)


class TwiceTheMean(RegressorMixin, BaseEstimator):
    """A toy estimator: twice the mean of what was seen, for every page."""

    def fit(self, X: Any, y: Any) -> TwiceTheMean:  # noqa: N803
        self.value_ = 2 * float(np.mean(y))
        return self

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        return np.full(len(X), self.value_)


TOY = Learner("twice-the-mean", None, lambda task: TwiceTheMean(), frozenset({"number"}))


def by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "LEARNERS", (*LEARNERS, TOY))


def by_entry_point(monkeypatch: pytest.MonkeyPatch, name: str = "TOY") -> None:
    point = EntryPoint("toy", f"{__name__}:{name}", plugins.LEARNERS)
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.value.partition(":")[2]])
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == plugins.LEARNERS else [])
    plugins.installed.cache_clear()


@pytest.fixture(autouse=True)
def no_other_plugins() -> Any:
    yield
    plugins.installed.cache_clear()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Nine pages that gain one link a day."""
    history = History.create(tmp_path_factory.mktemp("plugins") / "h")
    history.add(
        Visit(url=f"https://a.org/{i}", at=START + timedelta(days=r), links=[f"https://b.org/{n}" for n in range(r)])
        for i in range(9)
        for r in range(5)
    )
    return history


@pytest.mark.parametrize("add", [by_row, by_entry_point])
def test_a_toy_learner_is_listed_trained_saved_and_asked(
    add: Callable[[pytest.MonkeyPatch], None], history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add(monkeypatch)
    assert named("twice-the-mean") is TOY
    assert all_learners()[-1] is TOY
    with pytest.raises(RecrawlError, match=r"Did you mean 'twice-the-mean'\? Known: extra-trees, .*, twice-the-mean"):
        named("twice-the-men")
    with pytest.raises(RecrawlError, match="cannot predict a presence"):
        TOY.make("presence")
    predictor = train(history, Recipe(links=("external",), learner="twice-the-mean"))
    assert predict(predictor, history)["external"].expected.tolist() == pytest.approx([2.0] * 9)
    saved.save(predictor, tmp_path / "m")
    assert predict(saved.load(tmp_path / "m"), history)["external"].expected.tolist() == pytest.approx([2.0] * 9)


def test_the_command_line_takes_a_plug_in(history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    by_entry_point(monkeypatch)
    folder, model = str(history.store.folder), str(tmp_path / "m")
    arguments = ["--history", folder, "--learner", "twice-the-mean", "--out", model, "--links", "external", "--json"]
    result = CliRunner().invoke(app, ["train", *arguments])
    assert result.exit_code == 0, result.output
    assert '"learner":"twice-the-mean"' in result.output.replace(" ", "")


def test_a_model_of_a_learner_that_is_not_installed_is_refused(
    history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        by_row(patch)
        saved.save(train(history, Recipe(links=("external",), learner="twice-the-mean")), tmp_path / "m")
    with pytest.raises(saved.BadModel, match="trained by a learner that is not installed here: No learner named"):
        saved.load(tmp_path / "m")


class Hidden:
    """What no row lists."""


class WithHidden(TwiceTheMean):
    def fit(self, X: Any, y: Any) -> TwiceTheMean:  # noqa: N803
        self.hidden_ = Hidden()
        return super().fit(X, y)


def test_a_model_that_could_not_be_read_again_is_not_written(
    history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = Learner("hidden", None, lambda task: WithHidden(), frozenset({"number"}))
    monkeypatch.setattr(learners, "LEARNERS", (*LEARNERS, row))
    predictor = train(history, Recipe(links=("external",), learner="hidden"))
    with pytest.raises(saved.BadModel, match=r"holds types that it does not list \(.*Hidden\).* of its Learner"):
        saved.save(predictor, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    listed = Learner(
        "hidden", None, lambda task: WithHidden(), frozenset({"number"}), types=frozenset({f"{__name__}.Hidden"})
    )
    monkeypatch.setattr(learners, "LEARNERS", (*LEARNERS, listed))
    saved.save(predictor, tmp_path / "m")


SAME_NAME = Learner("hurdle", None, lambda task: TwiceTheMean())
NOT_A_LEARNER = "hurdle"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SAME_NAME", "the plug-in 'toy' has the name of another learner, 'hurdle'"),
        ("NOT_A_LEARNER", "the plug-in 'toy' is 'hurdle'; it must be a recrawl.models.learners.Learner"),
    ],
)
def test_a_wrong_plug_in_is_an_error_that_names_it(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_entry_point(monkeypatch, name)
    with pytest.raises(BadPlugin, match=message):
        all_learners()
