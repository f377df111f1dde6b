"""Made-up pages, visits and worlds for the tests of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import LinkLists
from recrawl.core.times import microseconds
from recrawl.history import History
from recrawl.policies.base import Policy
from recrawl.policies.choice import Choice
from recrawl.synth import SynthSettings, batches
from recrawl.world.pages import Pages, Visits
from recrawl.world.recorded import NOTHING, World
from recrawl.world.recording import record

START = datetime(2026, 3, 1, tzinfo=UTC)
NO_LINKS = np.empty(0, np.int32)


def hours(n: float) -> datetime:
    """That many hours after the start."""
    return START + timedelta(hours=n)


def days(n: float) -> datetime:
    """That many days after the start."""
    return START + timedelta(days=n)


def unseen(n: int, n_hosts: int = 1) -> Pages:
    """Pages that were never visited, spread over hosts that are sites of their own."""
    host = np.arange(n) % n_hosts
    return Pages.unseen(host, host.copy())


def made_visits(
    at: datetime,
    page: Sequence[int],
    *,
    changed: int | Sequence[int] = 0,
    updated: int | Sequence[int] = 0,
    n_new_since: int | Sequence[int] = 0,
    answered: bool | Sequence[bool] = True,
    gone: bool | Sequence[bool] = False,
    age_hours: float = 1.0,
    memo: Mapping[str, float] | None = None,
) -> Visits:
    """One cycle's visits, of pages in ascending order; `memo` is that of the choice they were made for."""

    def each(values: Any, dtype: Any) -> NDArray[Any]:
        return np.broadcast_to(np.asarray(values, dtype), len(page)).copy()

    nothing = LinkLists(np.zeros(len(page) + 1, np.int64), NO_LINKS)
    seen = each(answered, np.bool_) & ~each(gone, np.bool_)
    return Visits(
        at=np.full(len(page), microseconds(at)),
        ended_at=at,
        page=np.array(page, np.int64),
        age_hours=each(age_hours, np.float64),
        is_first=each(changed, np.int64) < 0,
        answered=seen,
        gone=each(gone, np.bool_),
        failed=~seen & ~each(gone, np.bool_),
        changed=np.where(seen, each(changed, np.int8), -1).astype(np.int8),
        n_new_since=np.where(seen, each(n_new_since, np.int32), -1).astype(np.int32),
        updated=np.where(seen, each(updated, np.int8), -1).astype(np.int8),
        shown=nothing,
        new=nothing,
        n_found=0,
        memo=memo,
    )


class Stage:
    """A policy with its pages, which note what it observes."""

    def __init__(self, policy: Policy, pages: Pages) -> None:
        self.policy, self.pages = policy, pages
        policy.start(pages)

    def see(self, visits: Visits) -> Stage:
        """Let these visits be made."""
        self.pages.note(visits)
        self.policy.observe(visits)
        return self

    def first(self, at: datetime = START) -> Stage:
        """Visit every page for the first time."""
        return self.see(made_visits(at, range(len(self.pages)), changed=-1, updated=-1, n_new_since=-1))


def order(choice: Choice) -> list[int]:
    """The pages picked, the best first."""
    picked: list[int] = choice.page.tolist()
    return picked


def laid_out(world: World, values: NDArray[Any], nothing: int = NOTHING) -> NDArray[Any]:
    """An array with one entry per visit as a matrix [cycle, page]; `nothing` where a page was not visited."""
    matrix = np.full((len(world.time), world.n_pages), nothing, values.dtype)
    matrix[world.cycle, world.row] = values
    return matrix


def made_world(folder: Path, **settings: Any) -> World:
    """The world of a made-up history, hourly where nothing else is said."""
    history = History.create(folder / "history")
    given: dict[str, Any] = {"pages": 60, "rounds": 40, "every": timedelta(hours=1), "rhythm": True, "terms": False}
    for batch in batches(SynthSettings(**given | settings)):
        history.append(batch)
    return record(history)
