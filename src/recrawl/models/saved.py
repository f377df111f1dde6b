"""A predictor on disk: one file with its models (skops, never pickle) and a card that people and programs can read.

The card holds a digest of every model in the file, so that a damaged file is refused. That is no protection against malice: anyone
who forges a model can forge its digest. Against that, loading makes objects of listed types only, each named in full, and calls
nothing else; a file that holds any other type is refused before any object is made. A plug-in lists the types of its own models.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from skops import io

from recrawl.core.arrays import Ints
from recrawl.core.files import writing
from recrawl.errors import BadModel, RecrawlError
from recrawl.insight.choices import LinkKind
from recrawl.models.cards import (
    advantage_of,
    columns_of,
    count_of,
    neighbours_of,
    overall_of,
    pages_of,
    recipe_of,
    scores_of,
    usual_of,
    versions_of,
    window_of,
)
from recrawl.models.estimates import model_distribution
from recrawl.models.learners import named
from recrawl.models.predictor import LinkModel, Predictor

FORMAT = 4  #: raised when an older recrawl could no longer read the file
READABLE = (2, 3, 4)  #: formats that this recrawl can read; in format 2 `ScaledModel` was called `Told`
MAX_CARD = 16 << 20  #: bytes; a card lists features and scores, and the ids of some pages
MAX_MODEL = 1 << 30  #: bytes of a model, unpacked
MAX_RATIO = 100  #: by which a part of the file may be compressed; models of trees reach about 20
PACKAGES = ("recrawl", "scikit-learn", "numpy", "lightgbm", "ngboost", "skops")
#: The types that a model may be made of, beyond those that skops trusts by itself. Whole names: `numpy.` would let in functions
#: that run what they are given.
TRUSTED = frozenset(
    {
        "collections.OrderedDict",
        "lightgbm.basic.Booster",
        "ngboost.api.NGBRegressor",
        "ngboost.distns.poisson.Poisson",
        "ngboost.scores.LogScore",
        "recrawl.models.baselines.AlwaysZero",
        "recrawl.models.baselines.Itself",
        "recrawl.models.baselines.PresenceByValue",
        "recrawl.models.boosting.BoostedClassifier",
        "recrawl.models.boosting.BoostedRegressor",
        "recrawl.models.fast_trees.FastTreesClassifier",
        "recrawl.models.fast_trees.FastTreesRegressor",
        "recrawl.models.forests.OrderedTreesClassifier",
        "recrawl.models.forests.OrderedTreesRegressor",
        "recrawl.models.boosting.LightClassifier",
        "recrawl.models.boosting.LightRegressor",
        "recrawl.models.counts.HurdleCounts",
        "recrawl.models.counts.NegativeBinomialCounts",
        "recrawl.models.counts.PoissonCounts",
        "recrawl.models.forecast.Blend",
        "recrawl.models.forecast.Curve",
        "recrawl.models.forecast.ForecastCounts",
        "recrawl.models.forecast.ScaledModel",
        "recrawl.models.forecast.Told",
        "recrawl.models.probability.ConstantIfOneClass",
        "recrawl.models.probability.ConstantIfOneValue",
        "recrawl.models.probability.NaturalGradientCounts",
        "recrawl.models.probability.PresenceFromCounts",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
    }
)


def card(predictor: Predictor, digests: dict[str, str]) -> dict[str, Any]:
    """What the file holds, in words and numbers."""
    trained = predictor.trained
    return {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "recipe": asdict(predictor.recipe),
        "window": list(predictor.window),
        "n_pages": predictor.n_pages,
        "n_rounds": predictor.n_rounds,
        "neighbours": list(predictor.neighbours),
        "features": {links: [asdict(feature) for feature in model.columns] for links, model in trained.items()},
        "feature_names": {links: [feature.words for feature in model.columns] for links, model in trained.items()},
        "usual": {links: [_number(value) for value in model.usual] for links, model in trained.items()},
        "overall": {links: list(model.overall) for links, model in trained.items()},
        "pages": [str(page) for page in predictor.pages.tolist()],
        "scores_one_round_earlier": scores(predictor),
        "advantage_over_average": list(predictor.advantage),
        "sha256": digests,
    }


def scores(predictor: Predictor) -> dict[str, dict[str, float | None]]:
    """The scores one round earlier; None where there is no such number."""
    return {
        links: {name: _number(value) for name, value in of_kind.items()} for links, of_kind in predictor.scores.items()
    }


def _number(value: float) -> float | None:
    """For JSON, which has no NaN."""
    return None if np.isnan(value) else float(value)


def save(predictor: Predictor, path: str | Path) -> dict[str, Any]:
    """Write the file whole or not at all; returns its card."""
    models = {links: io.dumps(model.model) for links, model in predictor.trained.items()}
    trusted = trusted_types(predictor.recipe.learner)
    unlisted = sorted({name for data in models.values() for name in io.get_untrusted_types(data=data)} - trusted)
    if unlisted:
        raise BadModel(
            f"a model of the learner {predictor.recipe.learner!r} holds types that it does not list ({', '.join(unlisted[:3])}), "
            "so it could not be read again; add them to the types of its Learner"
        )
    about = card(predictor, {links: hashlib.sha256(data).hexdigest() for links, data in models.items()})
    text = json.dumps(about, indent=1, allow_nan=False)
    try:
        with writing(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("card.json", text)
            for links, data in models.items():
                file.writestr(f"{links}.skops", data)
            file.comment = hashlib.sha256(text.encode()).hexdigest().encode()
    except OSError as error:
        raise BadModel(f"cannot write the model {path}: {error.strerror or error}") from error
    return about


def trusted_types(learner: str) -> frozenset[str]:
    """The types that a model of a learner may be made of: those of recrawl, its estimator, and those that it lists itself."""
    row = named(learner)
    estimator = type(row.make("number")) if "number" in row.kinds else object
    return TRUSTED | row.types | {f"{estimator.__module__}.{estimator.__qualname__}"}


def load(path: str | Path) -> Predictor:
    """A predictor as it was saved; raises `BadModel` with the reason if it cannot be used."""
    try:
        return _loaded(path)
    except BadModel:
        raise
    except FileNotFoundError:
        raise BadModel(
            f"there is no model at {path}; make one with: recrawl train --out {shlex.quote(str(path))}"
        ) from None
    except Exception as error:  # a forged file can make every library fail in its own way; RecursionError included
        raise BadModel(
            f"{path} is not a recrawl model, or is damaged ({type(error).__name__}: {str(error)[:200]}). "
            "recrawl train --out FILE writes one"
        ) from error


def _loaded(path: str | Path) -> Predictor:
    with zipfile.ZipFile(path) as file:
        text = _part(path, file, "card.json", MAX_CARD)
        if file.comment.decode("ascii", "replace") != hashlib.sha256(text).hexdigest():
            raise BadModel(f"{path} was changed after it was made: its card does not have its digest. Train it again")
        about = json.loads(text)
        if not isinstance(about, dict):
            raise ValueError("its card is no object")
        if about.get("format") not in READABLE:
            raise BadModel(
                f"{path} was made by another recrawl ({versions_of(about).get('recrawl')}, this is {version('recrawl')}) "
                "and cannot be read: train it again"
            )
        try:
            return _predictor(path, about, lambda links: _blob(path, file, links, about))
        except ValueError as error:
            raise BadModel(
                f"{path} has a card that recrawl did not write ({error}). Train a model with: recrawl train --out FILE"
            ) from error


def _part(path: str | Path, file: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """A part of the file, if it is no larger than a part that recrawl writes."""
    info = file.getinfo(name)
    if info.file_size > min(limit, _unpacks_to(info.compress_size)):
        raise _too_large(path, name)
    with file.open(info) as stream:
        return stream.read(info.file_size + 1)  # what it says of its size need not be true


def _unpacks_to(packed: int) -> int:
    """The largest size to which a part of a model may unpack: a bomb would be many times as large."""
    return (64 << 20) + MAX_RATIO * packed


def _too_large(path: str | Path, name: str) -> BadModel:
    return BadModel(
        f"{path} is refused: {name} unpacks to more than a model of recrawl holds. Train a model with: recrawl train --out FILE"
    )


def _blob(path: str | Path, file: zipfile.ZipFile, links: str, about: dict[str, Any]) -> bytes:
    """The model of a kind of links, as bytes."""
    blob = _part(path, file, f"{links}.skops", MAX_MODEL)
    digests = about.get("sha256")
    if not isinstance(digests, dict) or hashlib.sha256(blob).hexdigest() != digests.get(links):
        raise BadModel(
            f"{path} was changed after it was made: the model of {links} links does not have its digest. Train it again"
        )
    with zipfile.ZipFile(BytesIO(blob)) as parts:
        if sum(info.file_size for info in parts.infolist()) > min(MAX_MODEL, _unpacks_to(len(blob))):
            raise _too_large(path, f"{links}.skops")
    return blob


def _predictor(path: str | Path, about: dict[str, Any], blob: Callable[[str], bytes]) -> Predictor:
    recipe = recipe_of(about)
    try:
        trusted = trusted_types(recipe.learner)
    except RecrawlError as error:
        raise BadModel(f"{path} was trained by a learner that is not installed here: {error}") from error
    columns = {links: columns_of(about, links) for links in recipe.links}
    parts: dict[LinkKind, dict[str, Any]] = {
        links: {"columns": each, "usual": usual_of(about, links, len(each)), "overall": overall_of(about, links)}
        for links, each in columns.items()
    }
    predictor = Predictor(
        recipe=recipe,
        trained={},
        pages=pages_of(about),
        window=window_of(about),
        n_pages=count_of(about, "n_pages"),
        n_rounds=count_of(about, "n_rounds"),
        scores=scores_of(about),
        neighbours=neighbours_of(about),
        advantage=advantage_of(about),
    )
    for links, part in parts.items():  # last, as it takes longest
        model = _model(path, links, blob(links), about, trusted, len(columns[links]))
        predictor.trained[links] = LinkModel(model=model, **part)
    return predictor


def _model(
    path: str | Path, links: str, blob: bytes, about: dict[str, Any], trusted: frozenset[str], n_columns: int
) -> Any:
    try:
        unlisted = sorted(set(io.get_untrusted_types(data=blob)) - trusted)
        if unlisted:
            raise BadModel(f"{path} holds objects that no model of recrawl has ({', '.join(unlisted[:3])}): refused")
        model = io.loads(blob, trusted=sorted(trusted))
        model_distribution(model, np.zeros((1, n_columns), np.float32))  # a model that does not fit its card fails here
        return model
    except BadModel:
        raise
    except Exception as error:  # skops and the libraries raise what they like
        raise BadModel(
            f"the model of {links} links in {path} cannot be read ({type(error).__name__}: {error}). It was made with scikit-learn "
            f"{versions_of(about).get('scikit-learn')}, this is {version('scikit-learn')}: train it again, or install that version"
        ) from error


def check_fits(predictor: Predictor, pages: Ints, path: str | Path) -> None:
    """Refuse a model that was trained on other pages than a history has; `pages` are their ids."""
    if len(predictor.pages) and not np.isin(predictor.pages, pages).any():
        raise BadModel(
            f"{path} was trained on {predictor.n_pages:,} pages up to {predictor.window[1]}, none of which is in this history. "
            "Train a model on this history with: recrawl train"
        )
