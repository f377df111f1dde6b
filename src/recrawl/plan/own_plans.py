"""Which visits were made for a plan of the same policy: what the policy must remember of its choice comes back with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

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
    """The stored plans of one policy with its settings that have a memo, in the order in which they were made."""

    made_at: Ints  # microseconds
    page: list[Ints]  # ids of the pages of each, ascending
    memo: list[Mapping[str, float]]
    name: list[str]

    @classmethod
    def of(cls, history: History, chosen_by: str) -> OwnPlans:
        """Those that a history keeps."""
        wanted = ["plan", "made_at", "page", "memo"]
        try:
            rows = PLANS_TABLE.read(history.beside, ds.field("chosen_by") == chosen_by, wanted)
        except HistoryError:  # plans that cannot be read do not stop the next one
            rows = PLANS.empty_table().select(wanted)
        rows = rows.sort_by([("made_at", "ascending"), ("plan", "ascending")]).combine_chunks()
        # One entry per plan: names and memos are the same in all of its rows.
        number = rows["plan"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        start = np.flatnonzero(np.append(True, np.diff(number) != 0)[: len(number)])
        firsts, page = rows.take(pa.array(start)), rows["page"].to_numpy()
        of_plan = [np.sort(page[low:high]) for low, high in pairwise([*start.tolist(), len(page)])]
        memo, name = [_memo(text) for text in firsts["memo"].to_pylist()], firsts["plan"].to_pylist()
        used = [i for i, each in enumerate(memo) if each]  # of the others nothing comes back
        return cls(
            made_at=firsts["made_at"].cast(pa.int64()).to_numpy()[used],
            page=[of_plan[i] for i in used],
            memo=[memo[i] for i in used],
            name=[name[i] for i in used],
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


def _memo(text: str | None) -> Mapping[str, float]:
    try:
        memo: Mapping[str, float] = orjson.loads(text or b"{}")
    except ValueError:
        return {}
    return memo if isinstance(memo, dict) else {}
