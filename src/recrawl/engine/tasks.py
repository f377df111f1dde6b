"""What a worker does: follow a bucket through the events of a job, and return what its last step came to.

Events are steps that all buckets take, and answers to what they asked. A worker that holds a bucket is sent only what is new to it;
one that does not says so, and is sent everything.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from recrawl.core.places import place
from recrawl.core.times import moment
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.part import Asked
from recrawl.engine.run import BucketRun
from recrawl.errors import BadState
from recrawl.history import History
from recrawl.policies.base import Policy
from recrawl.world.notions import notion_or_any

HELD_BYTES = int(os.environ.get("RECRAWL_ENGINE_HELD", 4 << 30))  #: of buckets that a worker keeps in memory, about


@dataclass(frozen=True, kw_only=True)
class Step:
    """A method of `BucketRun` and its arguments; the last one of them may differ from bucket to bucket."""

    name: str
    arguments: list[Any]
    own: Any = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What all parts together say to something that each of them asked."""

    key: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Which pages of which history are followed, and by which policy."""

    job: str
    folder: str
    work: str  # a folder that all workers see
    until: int | None
    number: int
    n: int
    policy: Policy
    change: str
    links: str

    def begun(self) -> BucketRun:
        """The bucket before its first step."""
        history = History.open(self.folder)
        if self.until is not None:
            history = history.as_of(moment(self.until))
        return BucketRun(
            history=history.bucket(self.number, self.n),
            number=self.number,
            n_buckets=self.n,
            work=place(self.work),
            policy=self.policy,
            notion=notion_or_any(self.change),
            links=self.links,
        )


@dataclass
class _Held:
    run: BucketRun
    n_bytes: int = 0
    n_events: int = 0
    unfinished: Step | None = None
    done: Any = None

    def put_aside(self) -> None:
        """Out of memory, into the work folder."""
        where = self.run.work / f"bucket-{self.run.number:05}"
        about = packed((self.n_events, self.unfinished, self.done))
        # Without waiting for a disk: whoever does not find it whole follows the bucket again.
        where.write_bytes(len(about).to_bytes(8, "little") + about + self.run.packed())

    def taken_up(self, n_events: int) -> bool:
        """Whether the bucket was put aside after so many events; it goes on from there."""
        try:
            data = (self.run.work / f"bucket-{self.run.number:05}").read_bytes()
            end = 8 + int.from_bytes(data[:8], "little")
            n, unfinished, done = unpacked(data[8:end])
            if n != n_events:
                return False
            self.run.restore(data[end:])
        except (OSError, ValueError, BadState):
            return False
        self.n_events, self.unfinished, self.done = n, unfinished, done
        return True

    def go_on(self, events: list[Step | Reply]) -> dict[str, Any]:
        """Take steps as far as they are answered."""
        self.n_events += len(events)
        self.run.whole.answers.update({each.key: each.value for each in events if isinstance(each, Reply)})
        steps = [each for each in events if isinstance(each, Step)]
        if self.unfinished is not None:
            steps.insert(0, self.unfinished)
        for step in steps:
            self.unfinished = step
            own = [] if step.own is None else [step.own]
            try:
                self.done = getattr(self.run, step.name)(*step.arguments, *own)
            except Asked as asked:
                about = ("scope", "name", "join", "contribution")
                return {"asked": {name: getattr(asked, name) for name in about}}
            self.unfinished = None
        return {"done": self.done}


_held: OrderedDict[tuple[str, int], _Held] = OrderedDict()
_lock = Lock()


def work(task: bytes) -> bytes:
    """Follow a bucket through the events that come after the first so many."""
    bucket, n_before, events = unpacked(task)
    key = (bucket.job, bucket.number)
    with _lock:
        held = _held.pop(key, None)
    if n_before == 0:
        held = _Held(bucket.begun())
    elif held is None or held.n_events != n_before:
        held = _Held(bucket.begun())
        if not held.taken_up(n_before):
            return packed({"lost": True})
    result = held.go_on(events)
    held.n_bytes = held.run.n_bytes()
    with _lock:
        _held[key] = held
        total, leaving = sum(each.n_bytes for each in _held.values()), list[_Held]()
        while total > HELD_BYTES and _held:
            leaving.append(_held.popitem(last=False)[1])
            total -= leaving[-1].n_bytes
    for each in leaving:
        each.put_aside()
    return packed(result)


def release(job: str) -> None:
    """Nothing more will be asked of a job here."""
    with _lock:
        for key in [key for key in _held if key[0] == job]:
            del _held[key]
