"""Objects as plain values and arrays, and back: for state that is carried from one run to the next, without any code in it.

What can be kept: None, numbers, texts, times, arrays, sparse matrices, Arrow texts, lists, tuples, sets, dicts and deques of these,
and objects whose class is recrawl's own (or is allowed by name) and which consist of such attributes. Restoring an object sets its
attributes and runs nothing of its class. Attributes that a class lists as `not_kept` hold what can be worked out again: they are
None when the object is restored.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.errors import BadState

Arrays = list[NDArray[Any]]


def taken(value: Any) -> tuple[Any, Arrays]:
    """The value as a tree of plain values, and the arrays that it refers to.

    >>> tree, arrays = taken({"seen": np.array([1, 2]), "total": 3})
    >>> restored(tree, arrays)
    {'seen': array([1, 2]), 'total': 3}
    """
    arrays: Arrays = []
    return _Taker(arrays).tree(value), arrays


class _Taker:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.places: dict[int, int] = {}  # of arrays that occur more than once

    def tree(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if isinstance(value, float) and type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        for kind, take in _TAKERS:
            is_it = isinstance(value, kind) if kind in _WITH_SUBCLASSES else type(value) is kind
            if is_it:
                return take(self, value)
        if isinstance(value, dict | list | set | frozenset | deque | str | int | float | np.ndarray):
            raise BadState(
                f"{type(value).__qualname__} cannot be kept: only plain lists, dicts, sets, texts and arrays can"
            )
        return self.object(value)

    def array(self, value: NDArray[Any]) -> Any:
        if value.dtype.hasobject or value.dtype.fields is not None:
            raise BadState(f"an array of {value.dtype} cannot be kept: only plain numbers can")
        if id(value) not in self.places:
            self.places[id(value)] = len(self.arrays)
            self.arrays.append(value)
        return {"array": self.places[id(value)]}

    def object(self, value: Any) -> Any:
        kind = type(value)
        if not hasattr(value, "__dict__") or isinstance(value, type) or callable(getattr(value, "__get__", None)):
            raise BadState(f"{kind.__module__}.{kind.__qualname__} cannot be kept: it has no plain attributes")
        not_kept = getattr(kind, "not_kept", ())
        kept = {name: self.tree(each) for name, each in vars(value).items() if name not in not_kept}
        return {"object": f"{kind.__module__}:{kind.__qualname__}", "has": kept}


def _named_tuple(taker: _Taker, value: Any) -> Any:
    if hasattr(value, "_fields"):
        kind = type(value)
        return {"named": f"{kind.__module__}:{kind.__qualname__}", "has": [taker.tree(each) for each in value]}
    return {"tuple": [taker.tree(each) for each in value]}


def _strings(taker: _Taker, value: pa.Array) -> Any:
    if not (pa.types.is_string(value.type) or pa.types.is_large_string(value.type)):
        raise BadState(f"an Arrow array of {value.type} cannot be kept: only texts can")
    plain = value.cast(pa.large_binary()).combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    plain = pa.concat_arrays([plain.cast(pa.large_binary())])  # without an offset
    _, offsets, letters = plain.buffers()
    start = np.frombuffer(offsets, np.int64)[: len(plain) + 1].copy()
    text = np.frombuffer(letters, np.uint8)[: start[-1]].copy() if letters is not None else np.empty(0, np.uint8)
    return {"strings": [taker.array(start), taker.array(text)]}


def _sparse(taker: _Taker, value: Any) -> Any:
    parts = [taker.array(each) for each in (value.data, value.indices, value.indptr)]
    return {"sparse": parts, "shape": list(value.shape)}


def _is_sparse() -> type:
    from scipy import sparse

    return sparse.csr_matrix  # type: ignore[no-any-return]


_TAKERS: list[tuple[Any, Callable[[_Taker, Any], Any]]] = [
    (np.ndarray, _Taker.array),
    (np.generic, lambda taker, value: {"scalar": [value.dtype.str, taker.tree(value.item())]}),
    (timedelta, lambda taker, value: {"length": value // timedelta(microseconds=1)}),
    (datetime, lambda taker, value: {"time": value.isoformat()}),
    (Enum, lambda taker, value: {"enum": f"{type(value).__module__}:{type(value).__qualname__}", "name": value.name}),
    (list, lambda taker, value: [taker.tree(each) for each in value]),
    (tuple, _named_tuple),
    (deque, lambda taker, value: {"deque": [taker.tree(each) for each in value], "most": value.maxlen}),
    (frozenset, lambda taker, value: {"frozenset": sorted((taker.tree(each) for each in value), key=str)}),
    (set, lambda taker, value: {"set": sorted((taker.tree(each) for each in value), key=str)}),
    (dict, lambda taker, value: {"dict": [[taker.tree(key), taker.tree(each)] for key, each in value.items()]}),
    (pa.Array, _strings),
    (pa.ChunkedArray, _strings),
    (_is_sparse(), _sparse),
]


#: Kinds of which subclasses are kept, too.
_WITH_SUBCLASSES = (np.generic, Enum, tuple, pa.Array, pa.ChunkedArray)


def restored(tree: Any, arrays: Sequence[NDArray[Any]], owner: type | None = None) -> Any:
    """The value that `taken` took apart; `owner`, and other classes of its module, may be among its objects beside recrawl's.

    Raises `BadState` for anything that is not of that form.
    """
    try:
        return _Restorer(arrays, owner).value(tree)
    except BadState:
        raise
    except Exception as error:  # it may be of another program altogether
        raise BadState(f"it is not what was kept: {type(error).__name__}: {error}") from error


#: What a dict of a tree may begin with.
_KINDS = (
    "array", "deque", "dict", "enum", "float", "frozenset", "length", "named", "object", "scalar", "set", "sparse", "strings",
    "time", "tuple",
)  # fmt: skip


class _Restorer:
    def __init__(self, arrays: Sequence[NDArray[Any]], owner: type | None) -> None:
        self.arrays, self.owner = arrays, owner

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree))
        if kind not in _KINDS:
            raise BadState(f"it holds a {str(kind)[:80]!r}, which is nothing that is kept")
        return getattr(self, f"_{kind}")(tree[kind], tree)

    def _float(self, text: str, tree: Any) -> float:
        return float(text)

    def _array(self, place: int, tree: Any) -> NDArray[Any]:
        return self.arrays[place]

    def _scalar(self, parts: list[Any], tree: Any) -> Any:
        return np.dtype(parts[0]).type(self.value(parts[1]))

    def _length(self, microseconds: int, tree: Any) -> timedelta:
        return timedelta(microseconds=microseconds)

    def _time(self, text: str, tree: Any) -> datetime:
        return datetime.fromisoformat(text)

    def _enum(self, place: str, tree: Any) -> Any:
        return self._class(place)[tree["name"]]

    def _tuple(self, values: list[Any], tree: Any) -> Any:
        return tuple(map(self.value, values))

    def _named(self, place: str, tree: Any) -> Any:
        kind = self._class(place)
        return tuple.__new__(kind, map(self.value, tree["has"]))

    def _deque(self, values: list[Any], tree: Any) -> Any:
        return deque(map(self.value, values), maxlen=tree["most"])

    def _frozenset(self, values: list[Any], tree: Any) -> Any:
        return frozenset(map(self.value, values))

    def _set(self, values: list[Any], tree: Any) -> Any:
        return set(map(self.value, values))

    def _dict(self, pairs: list[Any], tree: Any) -> Any:
        return {self.value(key): self.value(each) for key, each in pairs}

    def _strings(self, parts: list[Any], tree: Any) -> pa.Array:
        start, text = (self.value(part) for part in parts)
        buffers = [None, pa.py_buffer(np.ascontiguousarray(start)), pa.py_buffer(np.ascontiguousarray(text))]
        if start.dtype != np.int64 or text.dtype != np.uint8 or start.ndim != 1 or not len(start):
            raise BadState("it holds texts that are not letters and where they begin")
        kept = pa.Array.from_buffers(pa.large_string(), len(start) - 1, buffers)
        kept.validate(full=True)  # Arrow would read outside of the letters
        return kept.cast(pa.string())

    def _sparse(self, parts: list[Any], tree: Any) -> Any:
        matrix = _is_sparse()(tuple(self.value(part) for part in parts), shape=tuple(tree["shape"]))
        matrix.check_format(full_check=True)  # products would read outside of it
        return matrix

    def _object(self, place: str, tree: Any) -> Any:
        kind = self._class(place)
        made = kind.__new__(kind)
        for name, each in tree["has"].items():
            object.__setattr__(made, name, self.value(each))
        for name in getattr(kind, "not_kept", ()):
            object.__setattr__(made, name, None)
        return made

    def _class(self, place: str) -> Any:
        module, _, name = place.partition(":")
        if self.owner is not None and place == f"{self.owner.__module__}:{self.owner.__qualname__}":
            return self.owner
        if not module.startswith("recrawl.") and (self.owner is None or module != self.owner.__module__):
            raise BadState(f"it names the class {name!r} of {module!r}, which is not one of recrawl's")
        is_plug_in = not module.startswith("recrawl.")  # loaded from a file, perhaps: it is there already
        found: Any = (
            sys.modules[module] if is_plug_in else import_module(module)
        )  # waits where another thread imports it
        for part in name.split("."):
            found = getattr(found, part)
        if not isinstance(found, type):
            raise BadState(f"it names {place!r}, which is not a class")
        return found
