"""Models of new links for programs: train one, predict with it, save it and load it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.core.options import record_of
from recrawl.core.suggest import unknown
from recrawl.core.words import count, number
from recrawl.errors import BadOption
from recrawl.history import History
from recrawl.models import predictor as predicting
from recrawl.models import saved
from recrawl.models.options import TrainOptions
from recrawl.models.predictor import Prediction, Predictor, Step, ignore
from recrawl.models.records import records

if TYPE_CHECKING:
    import pandas as pd


class Predictions:
    """What the next round will show on every known page, most expected new links first.

    `by_kind` has the arrays behind it, by kind of links: expected numbers, probabilities and 80% intervals, in the order of the
    pages of its panel.

    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     expected = train(history, learner="average-count", links="all").predict(history)
    >>> expected
    Predictions(3 pages, 5.0 new links expected)
    >>> expected.to_arrow().select(["rank", "url", "expected_new_all"]).to_pylist()[0]
    {'rank': 1, 'url': 'https://e.org/news', 'expected_new_all': 4.0}
    """

    def __init__(self, predictor: Predictor, by_kind: Mapping[str, Prediction], by: str = "all") -> None:
        self.predictor, self.by_kind = predictor, dict(by_kind)
        if by not in self.by_kind and by != "all":
            raise BadOption(unknown("predicted kind of links", by, self.by_kind))
        self.by = by if by in self.by_kind else next(iter(self.by_kind))

    def __len__(self) -> int:
        return len(self.by_kind[self.by].expected)

    def __repr__(self) -> str:
        kind = "" if self.by == "all" else f"{self.by} "
        total = number(float(self.by_kind[self.by].expected.sum()))
        return f"Predictions({count(len(self), 'page')}, {total} new {kind}{self.predictor.recipe.noun} expected)"

    def records(self, top: int | None = None) -> Iterator[dict[str, Any]]:
        """One record per page, as ``recrawl predict --out`` writes them, with reasons in words; `top`: only the first ones."""
        return records(self.predictor, self.by_kind, self.by, top)

    def to_arrow(self) -> pa.Table:
        """One row per page, with the fields of `records`."""
        kinds: dict[str, pa.DataType] = {"rank": pa.int64(), "url": pa.string()}
        for links in self.by_kind:
            kinds |= {f"expected_new_{links}": pa.float64(), f"probability_{links}": pa.float64()}
            kinds[f"interval_{links}"] = pa.list_(pa.int64(), 2)
        kinds |= {"basis": pa.string(), "reasons": pa.list_(pa.string())}
        return pa.Table.from_pylist(list(self.records()), schema=pa.schema(kinds))

    def to_pandas(self) -> pd.DataFrame:
        """One row per page, with the fields of `records`; needs pandas."""
        from recrawl.core.frames import to_pandas

        return to_pandas(self.to_arrow())


class Model:
    """A trained model of new links.

    >>> import tempfile
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history, tempfile.TemporaryDirectory() as folder:
    ...     train(history, learner="average-count", links="all").save(f"{folder}/model.recrawl")
    ...     Model.load(f"{folder}/model.recrawl")
    Model(average-count for all links, trained on 3 pages and 6 rounds, 2026-03-02 to 2026-03-07)
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """A saved model; raises `recrawl.errors.BadModel` with the reason if the file cannot be used."""
        return cls(saved.load(path))

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """How good the same options were one round earlier, by kind of links; empty if there were too few rounds."""
        return {str(links): dict(scores) for links, scores in self.predictor.scores.items()}

    def predict(
        self,
        history: History,
        more_urls: Sequence[str] = (),
        *,
        by: str = "all",
        on_step: Step = ignore,
        on_note: Step = ignore,
    ) -> Predictions:
        """What the next round will show on every page that was ever fetched, and on `more_urls` that never were.

        `by`: the kind of links by which pages are sorted. `on_step` is called with what is being done, `on_note` with what the
        user should know.
        """
        from recrawl.web.urls import canonical

        saved.check_fits(self.predictor, history.timeline.pages, "this model")
        urls = [canonical(url) for url in more_urls]
        by_kind = predicting.predict(self.predictor, history, urls, on_step, on_note)
        return Predictions(self.predictor, {str(links): each for links, each in by_kind.items()}, by)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all: without pickle, with a card that says what it was trained on."""
        saved.save(self.predictor, path)

    def __repr__(self) -> str:
        recipe, (first, last) = self.predictor.recipe, self.predictor.window
        pages, rounds = count(self.predictor.n_pages, "page"), count(self.predictor.n_rounds, "round")
        kinds = ", ".join(recipe.links)
        return f"Model({recipe.learner} for {kinds} {recipe.noun}, trained on {pages} and {rounds}, {first[:10]} to {last[:10]})"


def train(history: History | str | Path, *, on_step: Step = ignore, on_note: Step = ignore, **options: Any) -> Model:
    """Learn from a history which pages gain links, by the options of ``recrawl train`` (see `TrainOptions`).

    `on_step` is called with what is being done, `on_note` with what the user should know. The history stays as it is.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     model = rc.train(history, every="1d", learner="average-count")
    ...     print(model)
    ...     print(model.predict(history).to_arrow()["url"][0])
    Model(average-count for internal, external, all links, trained on 3 pages and 6 rounds, 2026-03-02 to 2026-03-07)
    https://e.org/news
    """
    recipe = record_of(TrainOptions, options).recipe()
    return Model(predicting.train(History.of(history), recipe, on_step, on_note))
