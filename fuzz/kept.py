"""Loaders of what was kept: states, models, classifiers, and the answers of archives."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import httpx
import numpy as np
import orjson
import pyarrow as pa
import xxhash
from scipy import sparse

from fuzz import seeds
from fuzz.seeds import words
from fuzz.target import NOW, Target, folder, json_of, text_of, written
from recrawl.core import snapshot
from recrawl.core.version import __version__
from recrawl.errors import RecrawlError
from recrawl.history import History, states
from recrawl.models import saved
from recrawl.models.predictor import Recipe, train
from recrawl.models.relevance import Relevance
from recrawl.plan.kept_focus import kept_focus
from recrawl.policies.registry import policy_class
from recrawl.sources.wayback import captures, probe, state
from recrawl.sources.wayback.interface import Answer
from recrawl.web.visit import Visit

CLASSIFIER = {
    "kind": "recrawl relevance", "words": ["a"], "idf": [1.0], "weight": [2.0], "intercept": 0, "n_positive": 1, "n_negative": 1,
    "accuracy": 0.5,
}  # fmt: skip
FOCUS = {"above": 0.5, "model": None, "source": "recorded"}
ANSWERS = (
    seeds.CAPTURE,
    b"\0numbered 0 of 3\0" + seeds.CDXJ,
    seeds.CDXJ.partition(b" 2")[2],
    seeds.TIMEMAP,
    b'{"pages": 3}\n',
    b"org,e)/ 20260102030405 https://e.org/ text/html 200 ABC 123\n\norg%2Ce\n",
)


def all_targets() -> Iterator[Target]:
    """Whatever recrawl wrote earlier, or an archive sends."""
    yield Target(name="archive-answer", run=_archive, seeds=ANSWERS, words=words("json", "url"))
    yield Target(name="archive-state", run=_archive_state, seeds=_archive_states(), is_json=True)
    yield Target(name="snapshot", run=_snapshot, seeds=_snapshots(), is_json=True)
    yield Target(name="state", run=_state, seeds=_states(), is_json=True)
    focuses = [orjson.dumps(FOCUS), orjson.dumps({**FOCUS, "model": "x"})]
    yield Target(name="focus", run=_focus, seeds=focuses, is_json=True)
    yield Target(name="model-card", run=_card, seeds=[_trained()[0]], is_json=True)
    yield Target(name="model", run=_model, seeds=[(folder() / "trained.model").read_bytes()], words=words("zip"))
    yield Target(name="relevance", run=_relevance, seeds=[orjson.dumps(CLASSIFIER)], is_json=True)


def _snapshot(data: bytes) -> None:
    """``{"tree": …, "arrays": [[type, values], …]}``: whatever the tree is, it is restored or refused."""
    given = json_of(data)
    if isinstance(given, dict) and isinstance(given.get("arrays"), list):
        snapshot.restored(given.get("tree"), [_array(each) for each in given["arrays"]])


def _array(given: Any) -> Any:
    try:
        return np.array(given[1], np.dtype(given[0]))
    except Exception:  # no array: the input is not one of ours
        return np.zeros(3, np.int64)


def _state(data: bytes) -> None:
    """A list of a state, with the digest that it needs to be looked at."""
    size = len(data).to_bytes(8, "little")
    folder = _history().beside.within(states.FOLDER)
    body = size + data + bytes(64)
    folder.write_bytes("subject-7.state", xxhash.xxh3_128_digest(body) + body)
    kept = states.States(_history().beside)
    for checkpoint in kept.checkpoints("subject"):
        tree, arrays = kept.load(checkpoint)
        snapshot.restored(tree, list(arrays))


def _focus(data: bytes) -> None:
    """Which links a stored plan counted."""
    kept_focus(_history(), text_of(data))


def _card(data: bytes) -> None:
    """The card of a model, with models and digests that fit it."""
    out, models = io.BytesIO(), _trained()[1]
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("card.json", data)
        for name, blob in models.items():
            file.writestr(name, blob)
        file.comment = hashlib.sha256(data).hexdigest().encode()
    saved.load(written("card.model", out.getvalue()))


def _model(data: bytes) -> None:
    saved.load(written("model", data))


def _relevance(data: bytes) -> None:
    model = Relevance.from_bytes(data)
    model.predict(["some words", ""])
    assert Relevance.from_bytes(model.to_bytes()).digest == model.digest


class _Archive:
    """A client to which an archive always sends the same."""

    index_pace = None

    def __init__(self, data: bytes) -> None:
        self.data, self.clock = data, self

    def now(self) -> datetime:
        return NOW

    def ask(self, address: str, pace: Any, read: Callable[[httpx.Response], Any]) -> Any:
        return read(httpx.Response(200))

    def raw_body(self, response: httpx.Response, limit: int) -> bytes:
        return self.data[:limit]


def _archive(data: bytes) -> None:
    """An answer of an archive, understood in all ways; behind a zero byte, with the key from which to go on."""
    key, _, body = data[1:].partition(b"\0") if data[:1] == b"\0" else (b"", b"", data)
    for kind in probe.ALL:
        (place, *_) = kind.places("https://archive.e.org")
        place.recognises(Answer(200, httpx.Headers(), text_of(body)))
        for match in ("exact", "prefix"):
            request = captures.IndexRequest("https://e.org/", match, resume_key=text_of(key) or None)
            try:
                place.ask(cast(Any, _Archive(body)), request)
            except RecrawlError:
                continue


def _archive_state(data: bytes) -> None:
    """The state of a question, and behind a zero byte the journal of what followed."""
    main, _, journal = data.partition(b"\0")
    path = written("question.json", main)
    written("question.journal", journal)
    state.load("https://e.org/", path)


# -- samples of it -------------------------------------------------------------------------------------------------------


@cache
def _history() -> History:
    history = History.create(folder() / "history")
    history.add(
        Visit(
            url=f"https://e.org/{i}", at=datetime(2026, 1, 1 + day, tzinfo=UTC), links=[f"https://e.org/new/{i * day}"]
        )
        for i in range(9)
        for day in range(4)
    )
    return history


@cache
def _trained() -> tuple[bytes, dict[str, bytes]]:
    """The card of a real model, and its other files."""
    path = folder() / "trained.model"
    saved.save(train(_history(), Recipe(links=("all",), n_jobs=1, learner="average-count")), path)
    with zipfile.ZipFile(path) as file:
        files = {name: file.read(name) for name in file.namelist()}
    return files.pop("card.json"), files


def _snapshots() -> list[bytes]:
    """Trees of values of every kind, as they are kept."""
    values = [
        {"a": [1, 2.5, None], "t": (NOW, float("nan"), np.float32(2)), "s": {1, 2}, "f": frozenset("x")},
        {"words": pa.array(["a", "bc"]), "matrix": sparse.csr_matrix(np.eye(3)), "at": np.arange(3)},
        policy_class("round-robin")(),
        policy_class("bandit")(),
    ]
    return [_packed(*snapshot.taken(value)) for value in values]


def _packed(tree: Any, arrays: list[Any]) -> bytes:
    return json.dumps({"tree": tree, "arrays": [[each.dtype.str, each.tolist()] for each in arrays]}).encode()


def _states() -> list[bytes]:
    about = {"format": states.FORMAT, "recrawl": __version__, "until": 7, "head": {"n_visits": 1}, "tree": {"array": 0}}
    listed = [
        {"dtype": "<i8", "shape": [3], "at": 0},
        {"dtype": "<f4", "shape": [2, 2], "at": 24},
        {"dtype": "<i8", "shape": [9], "at": ["x.lz4"]},
    ]
    return [orjson.dumps({**about, "arrays": listed[:n]}) for n in range(4)]


def _archive_states() -> list[bytes]:
    kept = state.UrlState("https://e.org/", folder() / "seed.json")
    answer = captures.IndexPage([captures.listed("20260102030405", "https://e.org/", "text/html", "200", "AB")], None)
    kept.begin(("20250101000000", None), None)
    kept.add(answer, NOW)
    kept.save()
    whole = kept.path.read_bytes()
    return [whole, whole + b'\0{"since": null}\n{"place": 1}\n']
