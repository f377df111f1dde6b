"""The words that pages showed, as counts, for classifiers of texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from recrawl.core.arrays import Ints
from recrawl.history import History


def newest(rows: pa.Table, column: str) -> tuple[Ints, NDArray[Any]]:
    """Pages, ascending, and a column at the last of their visits (see `History.visits_with`)."""
    return _at_end(rows, column, 1)


def oldest(rows: pa.Table, column: str) -> tuple[Ints, NDArray[Any]]:
    """Pages, ascending, and a column at the first of their visits."""
    return _at_end(rows, column, -1)


def _at_end(rows: pa.Table, column: str, sign: int) -> tuple[Ints, NDArray[Any]]:
    page, at = rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy()
    values = rows[column].to_numpy()
    order = np.lexsort((values, sign * at, page))  # rows of one moment by value: the same however they are stored
    last = order[np.append(np.diff(page[order]) != 0, True)[: len(order)]]
    return page[last], values[last]


def words_of_texts(history: History, digest: Ints) -> dict[int, Counter[str]]:
    """The words of some texts by digest; texts that the history does not have are missing."""
    texts = history.store.read("texts", where=pc.is_in(ds.field("digest"), pa.array(np.unique(digest))))
    used = pc.unique(pc.list_flatten(texts["terms"])).cast(pa.int64())
    terms = history.store.read("terms", where=pc.is_in(ds.field("id"), used))
    word = dict(zip(terms["id"].to_pylist(), terms["term"].to_pylist(), strict=True))
    rows = zip(*(texts[name].to_pylist() for name in ("digest", "terms", "counts")), strict=True)
    return {key: Counter({word[i]: n for i, n in zip(ids, ns, strict=True) if i in word}) for key, ids, ns in rows}


def first_words(history: History, page: Ints) -> dict[int, Counter[str]]:
    """The words that each of some pages showed first, by id; pages that were never read are missing."""
    pages, digest = oldest(history.visits_with("terms"), "terms")
    is_asked = np.isin(pages, page)
    pages, digest = pages[is_asked], digest[is_asked]
    counted = words_of_texts(history, digest)
    return {int(p): counted[int(key)] for p, key in zip(pages, digest, strict=True) if int(key) in counted}
