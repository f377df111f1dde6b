"""A history as tasks see it: one task for each of its buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.core.times import microseconds, moment
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.scratch import Scratch, scratch_in
from recrawl.engine.session import Engine, open_engine
from recrawl.engine.worker import Function
from recrawl.history import History

WORK = "engine"  #: the folder of a history in which tasks leave files for each other
BUCKETS = 16  #: of a history that is not laid out
PART_LINKS = 10_000_000  #: links of a part, about: what is new anywhere is found out part by part


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A history, the engine whose workers look at it, and where they leave files for each other."""

    engine: Engine
    history: History
    scratch: Scratch
    n_buckets: int
    n_parts: int  # in which links are parted by their ids

    def each_bucket(self, function: Function, **more: Any) -> list[Any]:
        """What a function makes of each bucket; `more` is known to all."""
        return self._each("bucket", self.n_buckets, function, more)

    def each_part(self, function: Function, **more: Any) -> list[Any]:
        """What a function makes of each part of the links."""
        return self._each("part", self.n_parts, function, more)

    def _each(self, name: str, n: int, function: Function, more: dict[str, Any]) -> list[Any]:
        until, folder = self.history.until, self.history.folder
        about = {
            "history": str(folder.absolute() if isinstance(folder, Path) else folder),
            "until": None if until is None else microseconds(until),
            "scratch": self.scratch.folder,
            "n_buckets": self.n_buckets,
            "n_parts": self.n_parts,
            **more,
        }
        return [unpacked(each) for each in self.engine.map(function, [packed({**about, name: i}) for i in range(n)])]


@contextmanager
def collection(engine: Engine, history: History) -> Iterator[Collection]:
    """A history for as long as the block lasts."""
    n_links = history.store.scan("link_sets", lambda groups: sum(group.n_values("links") for group in groups))
    with scratch_in(history.folder / WORK) as scratch:
        yield Collection(
            engine=engine,
            history=history,
            scratch=scratch,
            n_buckets=history.layout() or BUCKETS,
            n_parts=max(1, -(-n_links // PART_LINKS)),
        )


@contextmanager
def opened_collection(engine: str, history: History, on_note: Callable[[str], None]) -> Iterator[Collection]:
    """A history and an engine of this name. `on_note` hears what makes it slow."""
    with open_engine(engine, work=history.folder / WORK) as opened, collection(opened, history) as found:
        if history.layout() is None:
            on_note(
                f"the history is not laid out in buckets, so each of {found.n_buckets} reads all of it; "
                f"recrawl compact --buckets {found.n_buckets} makes that quicker"
            )
        yield found


def bucket_in_task(about: dict[str, Any]) -> History:
    """On a worker: the bucket of the history that a task is about."""
    history = History.open(about["history"])
    if about["until"] is not None:
        history = history.as_of(moment(about["until"]))
    return history.bucket(about["bucket"], about["n_buckets"])
