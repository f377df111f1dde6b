"""Which visits were made for a plan of the same policy: what the policy must remember of its choice comes back with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import xxhash

from recrawl.core.arrays import Ints
from recrawl.errors import HistoryError
from recrawl.history import History
from recrawl.history.plans import PLANS, PLANS_TABLE

MOST = 0.5  #: of the visits of a batch that a plan must name, for the batch to be what was made of it


@dataclass(frozen=True)
class OwnPlans:
    """The stored plans of one policy with its settings, in the order in which they were made."""

    made_at: Ints  # microseconds
    page: list[Ints]  # ids of the pages of each, ascending
    memo: list[Mapping[str, float]]
    name: list[str]

    @classmethod
    def of(cls, history: History, chosen_by: str) -> OwnPlans:
        """Those that a history keeps."""
        try:
            rows = PLANS_TABLE.read(history.beside, ds.field("chosen_by") == chosen_by)
        except HistoryError:  # plans that cannot be read do not stop the next one
            rows = PLANS.empty_table()
        rows = rows.sort_by([("made_at", "ascending"), ("plan", "ascending")])
        names, at = rows["plan"].to_pylist(), rows["made_at"].cast(pa.int64()).to_numpy()
        page, memo = rows["page"].to_numpy(), rows["memo"].to_pylist()
        start = [i for i in range(len(names)) if i == 0 or names[i] != names[i - 1]]
        ends = [*start[1:], len(names)] if start else []
        return cls(
            made_at=at[start] if start else np.empty(0, np.int64),
            page=[np.sort(page[low:high]) for low, high in zip(start, ends, strict=True)],
            memo=[orjson.loads(memo[low] or b"{}") for low in start],
            name=[names[low] for low in start],
        )

    def memo_for(self, page: Ints, at: Ints) -> Mapping[str, float] | None:
        """The memo of the last plan made before a batch of visits, if they are what was made of it; else None."""
        if not len(at) or not len(self.made_at):
            return None
        last = int(np.searchsorted(self.made_at, at.min(), side="right")) - 1
        if last < 0 or np.isin(page, self.page[last]).mean() <= MOST:
            return None
        return self.memo[last]

    def digest(self, until: int) -> str:
        """A text that is different if other plans were made up to a moment."""
        n = int(np.searchsorted(self.made_at, until, side="right"))
        return xxhash.xxh64_hexdigest(orjson.dumps([self.name[:n], [dict(memo) for memo in self.memo[:n]]]))
