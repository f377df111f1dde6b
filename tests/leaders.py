"""Made-up leaders and followers: a follower says and does what its leader said and did one round before, but for noise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from recrawl.world.contents import Contents

N_ROUNDS, N_TERMS, N_WORDS, N_NEW = 180, 400, 60, 12


def leaders_and_followers(
    n_pairs: int, change_rate: float = 0.4, noise: float = 0.1, seed: int = 0
) -> tuple[Contents, NDArray[np.int8]]:
    """Pages 0, 2, 4, … lead and change at random; pages 1, 3, 5, … follow. A share of the followers' changes is turned round."""
    chance = np.random.default_rng(seed)
    moves = chance.random((n_pairs, N_ROUNDS)) < change_rate
    rows: list[NDArray[np.int64]] = []
    text = np.zeros((2 * n_pairs, N_ROUNDS), np.int32)
    change = np.full((2 * n_pairs, N_ROUNDS), -1, np.int8)
    for pair in range(n_pairs):
        words = chance.integers(0, N_TERMS, N_WORDS)
        for t in range(N_ROUNDS):
            if moves[pair, t] or not t:
                words[chance.integers(0, N_WORDS, N_NEW)] = chance.integers(0, N_TERMS, N_NEW)
                rows.append(np.bincount(words, minlength=N_TERMS))
            text[2 * pair, t] = len(rows) - 1
    text[1::2, 1:], text[1::2, 0] = text[::2, :-1], text[::2, 0]
    change[::2, 1:] = moves[:, 1:]
    change[1::2, 1] = 0
    change[1::2, 2:] = moves[:, 1:-1] ^ (chance.random((n_pairs, N_ROUNDS - 2)) < noise)
    seen = np.ones(text.shape, np.bool_)
    contents = Contents(
        page=np.arange(len(text)),
        url=pa.array([f"https://example.org/{i}" for i in range(len(text))]),
        rounds=np.arange(N_ROUNDS).astype("datetime64[D]").astype("datetime64[us]"),
        text=text,
        seen=seen,
        is_baseline=~seen,
        digest=np.zeros(text.shape, np.int64),
        counts=sparse.csr_matrix(np.array(rows, np.float32)),
        vocabulary=np.arange(N_TERMS),
    )
    return contents, change
