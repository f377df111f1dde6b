"""Arrays that grow at their end as more pages or links become known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def grown(values: NDArray[Any], n: int, fill: Any = 0) -> NDArray[Any]:
    """The array with `n` entries (rows), the new ones filled; often without a copy, since room is kept behind its end.

    The result may share memory with `values`, which must not be used any more.

    >>> grown(np.array([1, 2]), 4, fill=-1)
    array([ 1, 2, -1, -1])
    """
    if n <= len(values):
        return values
    room = values.base
    if room is None or not _is_front(values, room) or len(room) < n:
        room = np.empty((max(n, len(values) * 3 // 2, 64), *values.shape[1:]), values.dtype)
        room[: len(values)] = values
    more: NDArray[Any] = room[:n]
    more[len(values) :] = fill
    return more


def _is_front(values: NDArray[Any], room: Any) -> bool:
    """Whether an array is the beginning of another one."""
    return (
        isinstance(room, np.ndarray)
        and room.flags.owndata
        and room.dtype == values.dtype
        and room.shape[1:] == values.shape[1:]
        and room.flags.c_contiguous
        and room.ctypes.data == values.ctypes.data
    )


def merged(before: Any, fresh: Any, n: int) -> Any:
    """What was learnt of some pages, with entries for `n` of them: the new ones as in `fresh`, which was made for all.

    An array that is longer in the fresh one has entries per page, or per site, host or group of pages; these are numbered in the
    order in which they become known, so the new ones come last. Objects are merged attribute by attribute, unless they have a
    method `extend_to(n)` of their own.

    >>> merged({"seen": np.array([5, 7]), "total": 12}, {"seen": np.zeros(3, np.int64), "total": 0}, 3)
    {'seen': array([5, 7, 0]), 'total': 12}
    """
    if isinstance(before, np.ndarray):
        is_longer = isinstance(fresh, np.ndarray) and fresh.ndim and len(fresh) > len(before)
        if is_longer and before.shape[1:] == fresh.shape[1:]:
            longer = fresh.copy()  # it may be an array of the pages themselves
            longer[: len(before)] = before
            return longer
        return before
    if hasattr(before, "extend_to"):
        before.extend_to(n)
        return before
    if isinstance(before, dict) and isinstance(fresh, dict):
        for key, value in before.items():
            before[key] = merged(value, fresh.get(key), n)
        return before
    if hasattr(before, "__dict__") and type(before) is type(fresh):
        for name, value in vars(before).items():
            object.__setattr__(before, name, merged(value, vars(fresh).get(name), n))
    return before
