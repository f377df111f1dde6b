"""What was learnt from a history, kept beside it: one file per checkpoint, and large arrays in pieces named by their digests.

A state is never needed: without it everything is learnt again, to the same numbers. It is written whole or not at all, pieces
before the file that names them, and everything is checked when it is read. Pieces that did not change are not written again; those
that did are compressed, as a disk takes longer than that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from recrawl.core.snapshot import Arrays
from recrawl.core.version import __version__
from recrawl.core.workers import cores
from recrawl.errors import BadState
from recrawl.history.beside import Beside

FOLDER = "states"
FORMAT = 7  #: raised when an older state would lead to other numbers, or cannot be read
PIECE = 8 << 20  #: bytes
SMALL = 1 << 18  #: bytes; arrays up to this size are in the file of the checkpoint itself
CHECKPOINTS = 4  #: that are kept of one subject
ABANDONED = (
    3600.0  #: seconds after which a piece that no list names is removed: another planner may be about to name it
)
_KINDS = {"until": int, "head": dict, "arrays": list}  # of what a list says, beside its tree
_LIST, _PIECE = ".state", ".lz4"
_LEFT = (_PIECE, ".draft", ".piece")  # drafts are of writers that were killed, `.piece` of older versions
_LZ4 = pa.Codec("lz4_raw")  # knows no sizes: nothing can unpack to more than is expected of it


@dataclass(frozen=True)
class Checkpoint:
    """A state as it is listed, without its arrays."""

    name: str
    until: int  # microseconds: it has learnt from all visits up to then
    head: dict[str, Any]  # plain values that say what it is of


class States:
    """The states of one history; those of one subject (a policy with its settings) are checkpoints of one past.

    >>> import tempfile
    >>> from recrawl.history import History
    >>> states = States(History.create(tempfile.mkdtemp()).beside)
    >>> states.save("subject", 7, {"n": 1}, {"tree": 0}, [np.arange(3)])
    >>> (kept,) = states.checkpoints("subject")
    >>> tree, arrays = states.load(kept)
    >>> tree, arrays[0]
    ({'tree': 0}, array([0, 1, 2]))
    """

    def __init__(self, beside: Beside) -> None:
        self.beside = beside.within(FOLDER)

    def save(self, subject: str, until: int, head: dict[str, Any], tree: Any, arrays: Arrays) -> None:
        """Keep a state, and drop older checkpoints that are not needed any more."""
        before = {name for name, _ in self.beside.files() if name.endswith(_PIECE)}
        pieces = set(before)
        try:
            self._save(subject, until, head, tree, arrays, pieces)
        except BaseException:  # a full disk must not stay full of what nothing names
            for name in pieces - before:
                self.beside.remove(name)
            raise
        self._tidy(subject)

    def _save(
        self, subject: str, until: int, head: dict[str, Any], tree: Any, arrays: Arrays, pieces: set[str]
    ) -> None:
        listed, small = [], bytearray()
        for each in arrays:
            data = np.ascontiguousarray(each).reshape(-1).view(np.uint8).data if each.size else memoryview(b"")
            if len(data) <= SMALL:
                where: Any = len(small)
                small += data
            else:
                where = self._write_pieces(data, pieces)
            listed.append({"dtype": each.dtype.str, "shape": each.shape, "at": where})
        about = {"format": FORMAT, "recrawl": __version__, "until": until, "head": head, "tree": tree, "arrays": listed}
        text = orjson.dumps(about)
        body = len(text).to_bytes(8, "little") + text + small
        self.beside.write_bytes(f"{subject}-{until}{_LIST}", xxhash.xxh3_128_digest(body) + body)

    def _write_pieces(self, data: memoryview, known: set[str]) -> list[str]:
        names = []
        for begin in range(0, len(data), PIECE):
            piece = data[begin : begin + PIECE]
            name = xxhash.xxh3_128_hexdigest(piece) + _PIECE
            if name not in known:
                self.beside.write_bytes(name, memoryview(_LZ4.compress(pa.py_buffer(piece))))
                known.add(name)
            names.append(name)
        return names

    def checkpoints(self, subject: str | None = None) -> list[Checkpoint]:
        """Those that can be read, the newest first; of one subject, or of all."""
        found = []
        for name, _ in self.beside.files():
            is_it = name.endswith(_LIST) and (subject is None or name.rpartition("-")[0] == subject)
            if is_it and (content := self._listed(name)) is not None:
                found.append(Checkpoint(name, content["until"], content["head"]))
        return sorted(found, key=lambda each: -each.until)

    def load(self, checkpoint: Checkpoint) -> tuple[Any, Sequence[NDArray[Any]]]:
        """What was kept; raises `BadState` where any of it is missing or damaged, of an array when that is asked for.

        Arrays are read in the background; a caller waits only for those that it asks for.
        """
        content = self._listed(checkpoint.name)
        if content is None:
            raise BadState(f"the state {checkpoint.name} is damaged")
        threads, small = ThreadPoolExecutor(cores()), content["small"]
        arrays = _Awaited([threads.submit(self._array, each, small) for each in content["arrays"]])
        threads.shutdown(wait=False)
        return content["tree"], arrays

    def _array(self, listed: dict[str, Any], small: memoryview) -> NDArray[Any]:
        try:
            return self._read_array(listed, small)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:  # a list that save did not write
            raise BadState(f"a state lists an array that cannot be: {type(error).__name__}: {error}") from error

    def _read_array(self, listed: dict[str, Any], small: memoryview) -> NDArray[Any]:
        shape, dtype, where = tuple(listed["shape"]), np.dtype(listed["dtype"]), listed["at"]
        if dtype.hasobject or math.prod(shape) * dtype.itemsize > _most_bytes(where, small):
            raise BadState("a state lists an array that is larger than what was kept of it")
        array = np.empty(shape, dtype)
        if not array.size:
            return array
        room = array.reshape(-1).view(np.uint8)
        if isinstance(where, int):
            room[:] = np.frombuffer(small[where : where + len(room)], np.uint8)
            return array
        at = 0
        for name in where:
            piece = self._piece(name, min(PIECE, len(room) - at))
            room[at : at + len(piece)] = piece
            at += len(piece)
        if at != len(room):
            raise BadState("a state has arrays that are not complete")
        return array

    def _piece(self, name: str, size: int) -> NDArray[np.uint8]:
        packed, piece = self.beside.read_bytes(name), np.empty(0, np.uint8)
        with suppress(pa.ArrowException, OSError):
            piece = np.frombuffer(_LZ4.decompress(packed or b"", size), np.uint8)
        if packed is None or xxhash.xxh3_128_hexdigest(piece.data) + _PIECE != name:
            self.beside.remove(name)  # else it would be taken for the right one the next time it is to be written
            raise BadState(f"a piece of a state, {name}, is missing or damaged")
        return piece

    def forget(self, checkpoint: Checkpoint) -> None:
        """Remove a state."""
        self.beside.remove(checkpoint.name)

    def _listed(self, name: str) -> dict[str, Any] | None:
        """The list of a state; None where it is damaged, or of another version."""
        data = self.beside.read_bytes(name)
        if data is None or xxhash.xxh3_128_digest(data[16:]) != data[:16]:
            return None
        size = int.from_bytes(data[16:24], "little")
        try:
            content: dict[str, Any] = orjson.loads(data[24 : 24 + size])
            is_ours = (content["format"], content["recrawl"]) == (FORMAT, __version__)
        except (ValueError, KeyError, TypeError):
            return None
        is_whole = all(isinstance(content.get(name), kind) for name, kind in _KINDS.items()) and "tree" in content
        is_whole = is_whole and all(isinstance(each, dict) and "at" in each for each in content["arrays"])
        content["small"] = memoryview(data)[24 + size :]
        return content if is_ours and is_whole else None

    def _tidy(self, subject: str) -> None:
        """Remove checkpoints beyond those that are kept, and pieces that no list names any more."""
        kept: list[Checkpoint] = []
        for each in self.checkpoints(subject):
            if not _is_needed(each, kept):
                self.forget(each)
            else:
                kept.append(each)
        needed, now = set(), time.time()
        for name, _ in self.beside.files():
            if name.endswith(_LIST) and (content := self._listed(name)) is not None:
                needed |= {piece for each in content["arrays"] if isinstance(each["at"], list) for piece in each["at"]}
        for name, changed in self.beside.files():
            if name.endswith(_LEFT) and name not in needed and now - changed > ABANDONED:
                self.beside.remove(name)


class _Awaited(Sequence[NDArray[Any]]):
    """Arrays that are still being read."""

    def __init__(self, jobs: list[Future[NDArray[Any]]]) -> None:
        self._jobs = jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, i: Any) -> Any:
        return self._jobs[i].result()


def _most_bytes(where: Any, small: memoryview) -> int:
    """How many bytes there can be at a place that a list names."""
    return max(0, len(small) - where) if isinstance(where, int) else len(where) * PIECE


def _is_needed(checkpoint: Checkpoint, newer: list[Checkpoint]) -> bool:
    """Checkpoints lie further apart the older they are: late visits seldom come from long ago."""
    if len(newer) < 2:
        return True
    newest = newer[0].head.get("n_visits", 0)
    behind = newest - checkpoint.head.get("n_visits", 0)
    return len(newer) < CHECKPOINTS and behind >= 2 * (newest - newer[-1].head.get("n_visits", 0))
