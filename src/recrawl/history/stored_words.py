"""The words of stored texts, as a matrix of counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy import sparse

from recrawl.core.arrays import Ints
from recrawl.history import History


def term_counts(history: History, digests: Ints) -> tuple[Ints, sparse.csr_matrix]:
    """The term ids that are the columns, ascending, and the counts [text, term]."""
    wanted = np.unique(digests[digests != 0])
    table = history.store.read("texts", where=pc.is_in(ds.field("digest"), pa.array(wanted)))
    # A text may be stored twice until the history is compacted.
    keys, first = np.unique(table["digest"].to_numpy(), return_index=True)
    table = table.take(pa.array(first))
    terms, counts = (
        table[name].combine_chunks() if table.num_rows else pa.array([], pa.list_(kind))
        for name, kind in (("terms", pa.int64()), ("counts", pa.int32()))
    )
    ids, n = terms.flatten().to_numpy(), counts.flatten().to_numpy().astype(np.float32)
    lengths = terms.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    text = np.repeat(np.arange(len(keys)), lengths)
    vocabulary, column = np.unique(ids, return_inverse=True)
    stored = sparse.csr_matrix((n, (text, column)), shape=(len(keys) + 1, len(vocabulary)))  # the last row is empty
    at = np.searchsorted(keys, digests)
    if not len(keys):
        return vocabulary, stored[np.zeros(len(digests), np.int64)]
    is_stored = keys[np.minimum(at, len(keys) - 1)] == digests
    return vocabulary, stored[np.where(is_stored, at, len(keys))]
