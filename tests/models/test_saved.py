"""Model files: every model can be read back, a forged one is refused before it can do anything."""

from __future__ import annotations

import copy
import hashlib
import importlib
import io as bytes_io
import json
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import skops.io

from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.models import saved
from recrawl.models.learners import KINDS, LEARNERS, Learner
from recrawl.models.predictor import Predictor, Recipe, predict, train
from recrawl.models.trained import Model
from recrawl.web.visit import Visit

pytestmark = pytest.mark.usefixtures("ngboost_is_loaded")
PAIRS = [(learner, kind) for learner in LEARNERS for kind in KINDS if kind in learner.kinds]
START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = History.create(tmp_path_factory.mktemp("saved") / "h")
    history.add(
        Visit(url=f"https://a.org/{i}", at=START + timedelta(days=r), links=[f"https://b.org/{r if i % 2 else 0}"])
        for i in range(9)
        for r in range(4)
    )
    return history


@pytest.fixture(scope="module")
def predictor(history: History) -> Predictor:
    return train(history, Recipe(links=("internal", "all"), n_jobs=1))


def needed_types(learner: Learner, kind: str) -> set[str]:
    """The types in a saved model, taught on rows with and without anchors, and on rows that are all zero."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(300), rng.gamma(0.5, 2, 300), rng.normal(size=(300, 2))])
    x[:40, :2] = np.nan
    counts = np.where(x[:, 2] > 0, rng.poisson(3, 300), 0)
    target = {"rate": np.minimum(counts, 3) / 3, "presence": counts > 0, "number": counts}[kind]
    found: set[str] = set()
    for y in (target, np.zeros(300)):
        model = learner.for_columns(2, kind, n_jobs=1)
        few = {name: 4 for name in model.get_params() if name.split("__")[-1] in ("n_estimators", "max_iter")}
        data = skops.io.dumps(model.set_params(**few).fit(x[:, [3]] if learner.column else x, y))
        found |= set(skops.io.get_untrusted_types(data=data))
    return found


@pytest.mark.parametrize(("learner", "kind"), PAIRS, ids=[f"{a.name}-{b}" for a, b in PAIRS])
def test_every_learner_of_every_kind_is_made_of_listed_types(learner: Learner, kind: str) -> None:
    assert needed_types(learner, kind) <= saved.TRUSTED


def test_no_listed_type_is_a_whole_package() -> None:
    assert all(name.count(".") and name.rpartition(".")[2][0].isupper() for name in saved.TRUSTED)


def forged(source: Path, target: Path, model: bytes) -> None:
    """The file with another model in it and all digests made to fit."""
    with zipfile.ZipFile(source) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    card = json.loads(parts["card.json"])
    parts["internal.skops"] = model
    card["sha256"]["internal"] = hashlib.sha256(model).hexdigest()
    parts["card.json"] = json.dumps(card).encode()
    with zipfile.ZipFile(target, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.comment = hashlib.sha256(parts["card.json"]).hexdigest().encode()


def calling(function: str, module: str, *arguments: object) -> bytes:
    """A skops file that calls a function when it is loaded."""
    with zipfile.ZipFile(bytes_io.BytesIO(skops.io.dumps(arguments))) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(parts["schema.json"])
    about = {name: schema.pop(name) for name in ("protocol", "_skops_version")}
    call = {"__class__": function, "__module__": module, "__loader__": "ConstructorFromReduceNode", "content": schema}
    parts["schema.json"] = json.dumps(call | about).encode()
    out = bytes_io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return out.getvalue()


def test_a_forged_model_that_calls_something_is_refused_and_calls_nothing(predictor: Predictor, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "m")
    trace = tmp_path / "executed"
    forged(tmp_path / "m", tmp_path / "bad", calling("runstring", "numpy.testing", f"open({str(trace)!r}, 'w')", {}))
    with pytest.raises(saved.BadModel, match=r"no model of recrawl has \(numpy.testing.runstring\): refused"):
        saved.load(tmp_path / "bad")
    assert not trace.exists()


def test_a_card_that_recrawl_did_not_write_is_refused_with_a_sentence(predictor: Predictor, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    card = json.loads(parts["card.json"])
    card["recipe"]["colour"] = "blue"
    parts["card.json"] = json.dumps(card).encode()
    with zipfile.ZipFile(tmp_path / "bad", "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.comment = hashlib.sha256(parts["card.json"]).hexdigest().encode()
    with pytest.raises(saved.BadModel, match="a card that recrawl did not write"):
        saved.load(tmp_path / "bad")


@pytest.mark.parametrize("learner", ["average-count", "previous-count", "lightgbm", "extra-trees", "always-zero"])
def test_every_kind_of_learner_can_be_trained_saved_and_asked(history: History, learner: str, tmp_path: Path) -> None:
    predictor = train(history, Recipe(links=("all",), learner=learner, n_jobs=1))
    saved.save(predictor, tmp_path / "m")
    again = predict(saved.load(tmp_path / "m"), history)["all"]
    np.testing.assert_array_equal(again.expected, predict(predictor, history)["all"].expected)


def renamed(source: Path, target: Path, classes: dict[str, str], **card: object) -> None:
    """The file with other names of classes in its models and other entries in its card; all digests are made to fit."""
    with zipfile.ZipFile(source) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    about = json.loads(parts["card.json"]) | card
    for name in [name for name in parts if name.endswith(".skops")]:
        with zipfile.ZipFile(bytes_io.BytesIO(parts[name])) as model:
            inner = {each: model.read(each) for each in model.namelist()}
        for old, new in classes.items():
            inner["schema.json"] = inner["schema.json"].replace(f'"{old}"'.encode(), f'"{new}"'.encode())
        out = bytes_io.BytesIO()
        with zipfile.ZipFile(out, "w") as model:
            for each, data in inner.items():
                model.writestr(each, data)
        parts[name] = out.getvalue()
        about["sha256"][name.removesuffix(".skops")] = hashlib.sha256(parts[name]).hexdigest()
    parts["card.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(target, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.comment = hashlib.sha256(parts["card.json"]).hexdigest().encode()


def test_a_file_of_the_format_before_is_still_read(predictor: Predictor, history: History, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "new")
    renamed(tmp_path / "new", tmp_path / "old", {"ScaledModel": "Told"}, format=2)
    with zipfile.ZipFile(tmp_path / "old") as file, zipfile.ZipFile(bytes_io.BytesIO(file.read("all.skops"))) as model:
        assert b'"Told"' in model.read("schema.json")
    again = predict(saved.load(tmp_path / "old"), history)["all"]
    np.testing.assert_array_equal(again.expected, predict(predictor, history)["all"].expected)


def test_a_file_of_a_later_recrawl_is_refused(predictor: Predictor, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "new")
    renamed(tmp_path / "new", tmp_path / "later", {}, format=saved.FORMAT + 1)
    with pytest.raises(saved.BadModel, match=r"was made by another recrawl .* cannot be read: train it again"):
        saved.load(tmp_path / "later")


def test_every_type_of_recrawl_in_the_list_exists() -> None:
    """Modules move and classes are renamed: a file with a name that is gone could not be read."""
    for name in saved.TRUSTED:
        module, _, kind = name.rpartition(".")
        if module.startswith("recrawl."):
            assert isinstance(getattr(importlib.import_module(module), kind), type), name


def test_scores_that_are_not_a_number_are_null_in_the_card(history: History, tmp_path: Path) -> None:
    predictor = train(history, Recipe(links=("internal",), n_jobs=1))
    assert np.isnan(predictor.scores["internal"]["spearman"]), "no page ever had a new internal link"
    saved.save(predictor, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        text = file.read("card.json").decode()
    assert "NaN" not in text
    assert json.loads(text)["scores_one_round_earlier"]["internal"]["spearman"] is None
    assert np.isnan(saved.load(tmp_path / "m").scores["internal"]["spearman"])


ODD = [
    None,
    True,
    -1,
    0,
    3,
    0.5,
    10**400,
    -(10**18),
    1e308,
    float("nan"),
    "",
    "x",
    "\x1b[2J",
    [],
    ["x"],
    [[]],
    {},
    {"x": 1},
    [None, None],
]


def places(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place in a card; of a list only the first two values."""
    if not isinstance(value, dict | list):
        return [at]
    inner = value.items() if isinstance(value, dict) else list(enumerate(value))[:2]
    return [at, *(place for key, each in inner for place in places(each, (*at, key)))]


def mutants(card: dict[str, object]) -> Iterator[tuple[object, object]]:
    """What was done to a card, and the card: values of other types, keys left out, nesting, huge numbers."""
    for at in places(card):
        for odd in ["left out", *ODD]:
            if not at:
                yield (at, odd), odd
                continue
            changed = copy.deepcopy(card)
            inner = reduce(lambda value, key: value[key], at[:-1], changed)  # type: ignore[index]
            if odd == "left out":
                del inner[at[-1]]  # type: ignore[attr-defined]
            else:
                inner[at[-1]] = odd  # type: ignore[index]
            yield (at, odd), changed


def forged_card(parts: dict[str, bytes], text: bytes, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as file:
        for name, data in (parts | {"card.json": text}).items():
            file.writestr(name, data)
        file.comment = hashlib.sha256(text).hexdigest().encode()
    return target


def loaded_or_refused(path: Path) -> Predictor | str:
    """The predictor, or the message of the one error that there may be."""
    try:
        return saved.load(path)
    except saved.BadModel as error:
        return str(error)


def test_every_forged_card_is_refused_with_one_error_or_can_be_used(history: History, tmp_path: Path) -> None:
    saved.save(train(history, Recipe(links=("all",), learner="average-count", n_jobs=1)), tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    n_tried = n_used = 0
    texts = [(what, json.dumps(card).encode()) for what, card in mutants(json.loads(parts["card.json"]))]
    deep = b"[" * 100_000 + b"]" * 100_000
    texts += [
        ("deep", deep),
        ("deep recipe", b'{"format": 4, "recipe": ' + deep + b"}"),
        ("no JSON", b"{"),
        ("bytes", b"\xff"),
    ]
    seen = set()
    for what, text in texts:
        n_tried += 1
        bad = forged_card(parts, text, tmp_path / "bad")
        predictor = loaded_or_refused(bad)
        if isinstance(predictor, str):
            assert str(bad) in predictor, what
            assert "train" in predictor.lower() or "learner" in predictor, (what, predictor)
            continue
        n_used += 1
        # Many changes make no difference to what is predicted: each that does is tried once.
        key = repr((predictor.recipe, predictor.window, [(m.columns, m.overall) for m in predictor.trained.values()]))
        if key not in seen:
            seen.add(key)
            with suppress(RecrawlError):
                predict(predictor, history)
                repr(Model(predictor))
                saved.card(predictor, {})
    assert n_tried > 800
    assert 0 < n_used < n_tried / 2


def test_a_bomb_is_refused_before_it_is_unpacked(predictor: Predictor, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    inner = bytes_io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", b" " * (200 << 20))
    card = json.loads(parts["card.json"])
    card["sha256"]["internal"] = hashlib.sha256(inner.getvalue()).hexdigest()
    for name, data in {
        "card.json": b" " * (saved.MAX_CARD + 1) + parts["card.json"],
        "internal.skops": b" " * (200 << 20),
        "inner": inner.getvalue(),
    }.items():
        bad = parts | (
            {"internal.skops": data, "card.json": json.dumps(card).encode()} if name == "inner" else {name: data}
        )
        with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as file:
            for part, content in bad.items():
                file.writestr(part, content)
            file.comment = hashlib.sha256(bad["card.json"]).hexdigest().encode()
        with pytest.raises(saved.BadModel, match=r"bomb is refused: (card.json|internal.skops) unpacks to more"):
            saved.load(tmp_path / "bomb")
