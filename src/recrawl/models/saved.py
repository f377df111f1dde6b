"""A predictor on disk: one file with its models (skops, never pickle) and a card that people and programs can read.

The card holds a digest of every model in the file, and loading makes no objects but those of the kinds listed here, so a file that
was changed is refused, and one that was made to do harm cannot.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import zipfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zlib import error as zlib_error

import numpy as np
from skops import io

from recrawl.errors import RecrawlError
from recrawl.features import Feature
from recrawl.history import History
from recrawl.models.predictor import Predictor, Recipe

FORMAT = 1  #: raised when an older recrawl could no longer read the file
PACKAGES = ("recrawl", "scikit-learn", "numpy", "lightgbm", "ngboost", "skops")
#: Beginnings of the types that a model may be made of, beyond those that skops trusts by itself.
TRUSTED = ("recrawl.models.", "sklearn.", "lightgbm.", "ngboost.", "numpy.", "collections.", "_loss.", "scipy.")


class BadModel(RecrawlError):
    """The model file cannot be used."""


def card(predictor: Predictor, digests: dict[str, str]) -> dict[str, Any]:
    """What the file holds, in words and numbers."""
    return {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "recipe": asdict(predictor.recipe),
        "window": list(predictor.window),
        "n_pages": predictor.n_pages,
        "n_rounds": predictor.n_rounds,
        "features": {links: [asdict(feature) for feature in columns] for links, columns in predictor.columns.items()},
        "feature_names": {
            links: [feature.words for feature in columns] for links, columns in predictor.columns.items()
        },
        "usual": {
            links: [None if np.isnan(v) else float(v) for v in values] for links, values in predictor.usual.items()
        },
        "pages": [str(page) for page in predictor.pages.tolist()],
        "scores_one_round_earlier": predictor.scores,
        "sha256": digests,
    }


def save(predictor: Predictor, path: str | Path) -> dict[str, Any]:
    """Write the file whole or not at all; returns its card."""
    models = {links: io.dumps(model) for links, model in predictor.models.items()}
    told = card(predictor, {links: hashlib.sha256(data).hexdigest() for links, data in models.items()})
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    text = json.dumps(told, indent=1)
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("card.json", text)
            for links, data in models.items():
                file.writestr(f"{links}.skops", data)
            file.comment = hashlib.sha256(text.encode()).hexdigest().encode()
        os.replace(draft, target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise BadModel(f"cannot write the model {target}: {error.strerror or error}") from error
    return told


def read_card(path: str | Path) -> dict[str, Any]:
    """The card of a model file."""
    return _opened(Path(path))[0]


def load(path: str | Path) -> Predictor:
    """A predictor as it was saved; raises `BadModel` with the reason if it cannot be used."""
    told, data = _opened(Path(path))
    if told["format"] > FORMAT:
        raise BadModel(
            f"{path} was made by a newer recrawl ({told['versions'].get('recrawl')}): update recrawl, or train anew"
        )
    recipe = Recipe(**{**told["recipe"], "links": tuple(told["recipe"]["links"])})
    return Predictor(
        recipe,
        {links: _model(path, links, data[links], told) for links in recipe.links},
        {links: tuple(Feature(**fields) for fields in columns) for links, columns in told["features"].items()},
        {
            links: np.array([np.nan if v is None else v for v in values], np.float32)
            for links, values in told["usual"].items()
        },
        np.array([int(page) for page in told["pages"]], np.int64),
        (told["window"][0], told["window"][1]),
        told["n_pages"],
        told["n_rounds"],
        told["scores_one_round_earlier"],
    )


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        with zipfile.ZipFile(path) as file:
            text = file.read("card.json")
            if file.comment.decode("ascii", "replace") != hashlib.sha256(text).hexdigest():
                raise BadModel(f"{path} was changed after it was made: its card does not have its digest. Train anew")
            told = json.loads(text)
            data = {links: file.read(f"{links}.skops") for links in told["recipe"]["links"]}
    except FileNotFoundError:
        raise BadModel(f"there is no model at {path}; make one with: recrawl train --out {path}") from None
    except (OSError, zipfile.BadZipFile, zlib_error, KeyError, ValueError, TypeError) as error:
        raise BadModel(
            f"{path} is no recrawl model, or is damaged ({error}). Train anew with: recrawl train --out {path}"
        ) from error
    for links, blob in data.items():
        if hashlib.sha256(blob).hexdigest() != told["sha256"].get(links):
            raise BadModel(
                f"{path} was changed after it was made: the model of {links} links does not have its digest. Train anew"
            )
    return told, data


def _model(path: str | Path, links: str, blob: bytes, told: dict[str, Any]) -> Any:
    try:
        unknown = [name for name in io.get_untrusted_types(data=blob) if not name.startswith(TRUSTED)]
        if unknown:
            raise BadModel(f"{path} holds objects that no model of recrawl has ({', '.join(unknown[:3])}): refused")
        return io.loads(blob, trusted=io.get_untrusted_types(data=blob))
    except BadModel:
        raise
    except Exception as error:  # skops and the libraries raise what they like
        made_with = told.get("versions", {})
        raise BadModel(
            f"the model of {links} links in {path} cannot be read ({type(error).__name__}: {error}). It was made with scikit-learn "
            f"{made_with.get('scikit-learn')}, here is {version('scikit-learn')}: train anew, or install that version"
        ) from error


def check_fits(predictor: Predictor, history: History, path: str | Path) -> None:
    """Refuse a model that was trained on other pages than the history has."""
    if len(predictor.pages) and not np.isin(predictor.pages, history.timeline.pages).any():
        raise BadModel(
            f"{path} was trained on {predictor.n_pages:,} pages up to {predictor.window[1]}, none of which is in this history. "
            "Train a model on this history with: recrawl train"
        )
