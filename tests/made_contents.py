"""Contents made of plain dictionaries of words, and the words' dynamics as the paper writes them, with Python's own means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from scipy import sparse

from recrawl.world.contents import Contents

Text = Mapping[str, int]
Texts = Sequence[Sequence[Text | None]]  # [page][round]; None: not visited


def made_contents(texts: Texts) -> Contents:
    """The words become columns in the order of the alphabet."""
    words = sorted({word for page in texts for text in page if text for word in text})
    rows: list[Text] = []
    number = np.full((len(texts), len(texts[0])), -1, np.int32)
    for p, page in enumerate(texts):
        for t, text in enumerate(page):
            if text is not None:
                rows.append(text)
                number[p, t] = len(rows) - 1
            elif t:
                number[p, t] = number[p, t - 1]
    column = {word: i for i, word in enumerate(words)}
    cells = sorted((r, column[word], n) for r, text in enumerate(rows) for word, n in text.items())
    row, at, count = np.array(cells, np.float64).reshape(-1, 3).T
    return Contents(
        page=np.arange(len(texts)),
        url=pa.array([f"https://example.org/{p}" for p in range(len(texts))]),
        rounds=np.arange(number.shape[1]).astype("datetime64[D]").astype("datetime64[us]"),
        text=number,
        seen=np.array([[text is not None for text in page] for page in texts]),
        is_baseline=np.zeros(number.shape, np.bool_),
        digest=number.astype(np.int64) + 1,
        counts=sparse.csr_matrix(
            (count.astype(np.float32), (row.astype(int), at.astype(int))), (len(rows), max(len(words), 1))
        ),
        vocabulary=np.arange(max(len(words), 1)),
    )


def random_texts(seed: int, n_pages: int = 6, n_rounds: int = 20, n_words: int = 15) -> list[list[Text | None]]:
    """Pages that share words and change some of them now and then; one in five visits is missing."""
    random = np.random.default_rng(seed)
    texts: list[list[Text | None]] = []
    for _ in range(n_pages):
        counts = random.poisson(1.0, n_words)
        page: list[Text | None] = []
        for _ in range(n_rounds):
            moved = random.random(n_words) < 0.2
            counts = np.where(moved, random.poisson(1.0, n_words), counts)
            text = {f"w{i:02}": int(n) for i, n in enumerate(counts) if n}
            page.append(text if random.random() < 0.8 else None)
        texts.append(page)
    return texts


def carried(page: Sequence[Text | None]) -> list[Text]:
    """What the page said when it was last seen; nothing before."""
    shown: list[Text] = []
    for text in page:
        shown.append(text if text is not None else shown[-1] if shown else {})
    return shown


def share(word: str, text: Text) -> float:
    return text.get(word, 0) / sum(text.values()) if text else 0.0


def slow_idf(texts: Texts, word: str) -> float:
    last = [carried(page)[-1] for page in texts]
    n_with = sum(word in text for text in last)
    return math.log((1 + sum(bool(text) for text in last)) / (1 + n_with)) + 1


def dynamics(texts: Texts, page: int, word: str) -> list[float]:
    """Dyn(w, d)."""
    return [share(word, text) * slow_idf(texts, word) for text in carried(texts[page])]


def slow_weights(texts: Texts, page: int, n_words: int) -> dict[str, float]:
    """ω of the page's heaviest words, heaviest first."""
    weight = {word: dynamics(texts, page, word)[-1] for word in carried(texts[page])[-1]}
    kept = sorted(weight, key=lambda word: (-weight[word], word))[: n_words or None]
    return {word: weight[word] / sum(weight[w] for w in kept) for word in kept}
