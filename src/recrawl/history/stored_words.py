"""The words of stored texts, as a matrix of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy import sparse

from recrawl.core.arrays import Flags, Ints
from recrawl.history import History

ROWS = 1 << 16  #: texts that are looked at together: all at once would take many times the memory of the counts


@dataclass(frozen=True, kw_only=True)
class AllWords:
    """Every word of some texts, short ones (see `recrawl.web.terms`) included where they are known.

    They are not known of texts that were imported by earlier versions, or as term counts.
    """

    vocabulary: Ints  # term ids, ascending: the columns
    counts: sparse.csr_matrix  # [text, term]
    has_short: Flags  # [text]: its short words are known
    is_short: Flags  # [term]


def term_counts(history: History, digests: Ints) -> tuple[Ints, sparse.csr_matrix]:
    """The long words of texts: the term ids that are the columns, ascending, and the counts [text, term]."""
    return _counts(history, "texts", digests)[:2]


def all_words(history: History, digests: Ints) -> AllWords:
    """All words of texts, short ones included."""
    long_ids, long_counts, _ = _counts(history, "texts", digests)
    short_ids, short_counts, has_short = _counts(history, "short_terms", digests)
    vocabulary = np.union1d(long_ids, short_ids)
    placed = [
        sparse.csr_matrix(
            (counts.data, np.searchsorted(vocabulary, ids)[counts.indices], counts.indptr),
            shape=(len(digests), len(vocabulary)),
        )
        for ids, counts in ((long_ids, long_counts), (short_ids, short_counts))
    ]
    both = sparse.csr_matrix(placed[0] + placed[1])
    both.sort_indices()
    return AllWords(vocabulary=vocabulary, counts=both, has_short=has_short, is_short=np.isin(vocabulary, short_ids))


def _counts(history: History, name: str, digests: Ints) -> tuple[Ints, sparse.csr_matrix, Flags]:
    """The term ids, the counts, and which texts the table has."""
    wanted = np.unique(digests[digests != 0])
    table = history.store.read(name, where=pc.is_in(ds.field("digest"), pa.array(wanted)))
    stored_digest = table["digest"].to_numpy()
    vocabulary, stored = _matrix(table.select(["terms", "counts"]))
    del table
    # A text may be stored twice until the history is compacted.
    keys, first = np.unique(stored_digest, return_index=True)
    if not len(keys):
        return vocabulary, stored[np.zeros(len(digests), np.int64)], np.zeros(len(digests), np.bool_)
    at = np.minimum(np.searchsorted(keys, digests), len(keys) - 1)
    is_stored = keys[at] == digests
    return vocabulary, stored[np.where(is_stored, first[at], len(stored_digest))], is_stored


def _matrix(texts: pa.Table) -> tuple[Ints, sparse.csr_matrix]:
    """The ids of all terms, ascending, and the counts of texts as they are stored, with an empty row at the end."""
    batches = texts.to_batches(max_chunksize=ROWS)
    ids = [np.unique(batch["terms"].flatten().to_numpy()) for batch in batches]
    vocabulary: Ints = np.unique(np.concatenate(ids)) if ids else np.empty(0, np.int64)
    columns = [np.empty(0, np.int32)]
    counts = [np.empty(0, np.float32)]
    lengths = [np.empty(0, np.int64)]
    for batch in batches:
        columns.append(np.searchsorted(vocabulary, batch["terms"].flatten().to_numpy()).astype(np.int32))
        counts.append(batch["counts"].flatten().to_numpy().astype(np.float32))
        lengths.append(batch["terms"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))
    start = np.concatenate([[0], np.cumsum(np.concatenate(lengths)), [sum(map(len, columns))]])
    stored = sparse.csr_matrix(
        (np.concatenate(counts), np.concatenate(columns), start), shape=(len(start) - 1, len(vocabulary))
    )
    stored.sum_duplicates()  # terms ascend
    return vocabulary, stored
