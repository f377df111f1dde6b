"""What a worker does: take a bucket's parcel, follow the bucket to its last step, and return what came of that."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from recrawl.core.times import moment
from recrawl.engine.parcels import packed, unpacked
from recrawl.engine.part import Asked
from recrawl.engine.run import BucketRun
from recrawl.history import History
from recrawl.policies.base import Policy
from recrawl.world.notions import notion_or_any

MOST_HELD = 1_000  #: buckets that a worker keeps in memory


@dataclass(kw_only=True)
class Step:
    """One step of all buckets: a method of `BucketRun`, its arguments, and the answers to what it asks of the whole."""

    name: str
    arguments: list[Any]
    answers: dict[str, Any] = field(default_factory=dict)
    of_bucket: dict[int, Any] = field(default_factory=dict)  # a last argument that differs from bucket to bucket

    def for_bucket(self, bucket: int) -> Step:
        """The same with the argument of one bucket only."""
        mine = {bucket: self.of_bucket[bucket]} if bucket in self.of_bucket else {}
        return Step(name=self.name, arguments=self.arguments, answers=self.answers, of_bucket=mine)


@dataclass(kw_only=True)
class Parcel:
    """What a worker must know to follow a bucket from the beginning to a step."""

    job: str
    folder: str
    until: int | None
    bucket: int
    n_buckets: int
    policy: Policy
    change: str
    links: str
    steps: list[Step]


@dataclass
class _Held:
    run: BucketRun
    n_done: int = 0  # steps


_held: OrderedDict[tuple[str, int], _Held] = OrderedDict()
_lock = Lock()


def work(task: bytes) -> bytes:
    """Follow a bucket to the last step of its parcel."""
    parcel: Parcel = unpacked(task)
    key = (parcel.job, parcel.bucket)
    with _lock:
        held = _held.pop(key, None)
    if held is None or held.n_done >= len(parcel.steps):
        held = _Held(_begun(parcel))
    run = held.run
    done: Any = None
    try:
        for number in range(held.n_done, len(parcel.steps)):
            step = parcel.steps[number]
            run.whole.answers.update(step.answers)
            more = [step.of_bucket[parcel.bucket]] if step.of_bucket else []
            done = getattr(run, step.name)(*step.arguments, *more)
            held.n_done = number + 1
        result = {"done": done}
    except Asked as asked:
        about = {"scope": asked.scope, "name": asked.name, "join": asked.join, "contribution": asked.contribution}
        result = {"asked": about}
    with _lock:
        _held[key] = held
        while len(_held) > MOST_HELD:
            _held.popitem(last=False)
    return packed(result)


def _begun(parcel: Parcel) -> BucketRun:
    history = History.open(parcel.folder)
    if parcel.until is not None:
        history = history.as_of(moment(parcel.until))
    return BucketRun(
        history.bucket(parcel.bucket, parcel.n_buckets), parcel.policy, notion_or_any(parcel.change), parcel.links
    )


def release(job: str) -> None:
    """Nothing more will be asked of a job here."""
    with _lock:
        for key in [key for key in _held if key[0] == job]:
            del _held[key]
