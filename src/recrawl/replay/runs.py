"""One run: a policy, its settings and a budget over one world, and its result."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from scipy import sparse

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.replay.run import Row, replay
from recrawl.world.pages import Need
from recrawl.world.recorded import World

ROWS = 4  #: version of the rows: runs kept with another one are replayed again


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """A finished run: one row per cycle."""

    policy: str
    paper: str | None
    sees_future: bool  # an upper bound, not a policy that could be run for real
    settings: dict[str, Any]
    budget: int  # pages per cycle
    rows: list[Row]

    def timeless_rows(self) -> list[Row]:
        """The rows without how long each took: the same in every run, byte for byte."""
        return [{key: value for key, value in row.items() if key != "seconds"} for row in self.rows]


@dataclass(frozen=True)
class Run:
    """A policy and a budget to replay."""

    policy: Policy
    budget: Budget
    observed: int = 0  # cycles in which the policy sees every page, before it begins to choose

    def rows(self, world: World, on_cycle: Callable[[], None] = lambda: None) -> list[Row]:
        """Replay it; `on_cycle` is called after each cycle."""
        rows = []
        for row in replay(world, copy.deepcopy(self.policy), self.budget, self.observed):
            rows.append(row)
            on_cycle()
        return rows

    def replayed(self, rows: list[Row]) -> Replayed:
        """The finished run."""
        policy = self.policy
        return Replayed(
            policy=policy.name,
            paper=policy.paper,
            sees_future=Need.FUTURE in policy.needs,
            settings=settings(policy),
            budget=self.budget.pages,
            rows=rows,
        )

    def describe(self) -> dict[str, Any]:
        """Everything that its result depends on, besides the world."""
        budget = {field.name: plain(getattr(self.budget, field.name)) for field in fields(self.budget)}
        chooser = {"policy": self.policy.name, "settings": settings(self.policy), "budget": budget}
        return chooser | {"observed": self.observed, "rows": ROWS}


def settings(policy: Policy) -> dict[str, Any]:
    """What the policy's constructor remembered, as plain values.

    >>> from recrawl.policies import Bandit
    >>> settings(Bandit(window=28))["window"]
    28
    """
    return {name: plain(value) for name, value in policy.settings().items()}


def plain(value: Any) -> Any:
    """A value as JSON knows it.

    >>> plain((0.5, np.int64(2), None))
    [0.5, 2, None]
    """
    if isinstance(value, Policy):
        return {"policy": value.name, "settings": settings(value)}
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), list(value.shape), xxhash.xxh3_128_hexdigest(value.tobytes())]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list | frozenset | set):
        return [plain(item) for item in (value if isinstance(value, tuple | list) else sorted(value))]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    is_json = value is None or isinstance(value, bool | str) or (isinstance(value, int | float) and _fits(value))
    return value if is_json else repr(value)


def _fits(number: int | float) -> bool:
    """JSON has no infinity, and its readers no integers beyond 64 bits."""
    return math.isfinite(number) and (isinstance(number, float) or abs(number) < 1 << 63)


def fingerprint(world: World) -> str:
    """A short text that is different for worlds that differ in anything."""
    digest = xxhash.xxh3_128()
    for part in _parts("world", world):
        digest.update(part)
    return digest.hexdigest()


def _parts(name: str, value: Any) -> Iterator[Any]:
    """A value, and those within it, as bytes."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _parts(f"{name}.{field.name}", getattr(value, field.name))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(f"{name}.{key}", part)
    elif isinstance(value, np.ndarray):
        yield f"{name} {value.dtype} {value.shape};".encode()
        yield np.ascontiguousarray(value).data
    elif sparse.issparse(value):
        for part in ("data", "indices", "indptr"):
            yield from _parts(f"{name}.{part} {value.shape}", getattr(value, part))
    else:
        text = "\n".join(value.to_pylist()) if isinstance(value, pa.Array) else repr(value)
        yield f"{name} {text};".encode("utf-8", "surrogatepass")
