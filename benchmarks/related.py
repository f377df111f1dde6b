"""The most related pages: at the papers' size, and side by side with scikit-learn on real text."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.neighbors import NearestNeighbors

from benchmarks.measure import Row, peak_gigabytes
from benchmarks.novelty import PAPERS_PAGES
from recrawl.insight.related import related_pages
from recrawl.synth import SynthSettings, batches
from recrawl.world.related import Related

Floats = NDArray[np.float32]
Result = TypeVar("Result")
K = 30
DIMENSIONS = 192
SIDE_BY_SIDE = 60_000  # pages; scikit-learn needs minutes for more
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CORPORA = ("author_homepages", "ota_terms", "news_daily_2025", "openbsd_www", "news_hourly_2025-03")


def run(n_pages: int = PAPERS_PAGES) -> Iterator[Row]:
    related_pages(made_up_vectors(3_000), method="approximate")  # compiles
    yield from by_itself(n_pages)
    yield from side_by_side(min(n_pages, SIDE_BY_SIDE))


def by_itself(n_pages: int) -> Iterator[Row]:
    vectors = made_up_vectors(n_pages)
    found, seconds = timed(lambda: related_pages(vectors, K))
    full = n_pages == PAPERS_PAGES
    what = f"{K} most related of {len(vectors):,} pages, {found.method}"
    yield Row(what, seconds, "s", "< 150" if full else "", seconds < 150 if full else None, "made-up vectors")
    yield Row("  recall (own measurement, on a sample)", found.recall, "", ">= 0.99", found.recall >= 0.99)
    values = np.random.default_rng(0).random((len(vectors), 100), np.float32)
    _, seconds = timed(lambda: found.average(values))
    yield Row("  averages of 100 columns over related pages", seconds, "s", "< 10", seconds < 10)
    yield Row("  peak memory", peak_gigabytes(), "GB", "< 8", peak_gigabytes() < 8)


def side_by_side(n_pages: int) -> Iterator[Row]:
    vectors, origin = text_vectors(n_pages)
    found, ours = timed(lambda: related_pages(vectors, K, "approximate"))
    brute = NearestNeighbors(n_neighbors=K + 1, metric="cosine", algorithm="brute").fit(vectors)
    (distance, _), theirs = timed(lambda: brute.kneighbors(vectors))
    share = recall(found, vectors, 1 - distance[:, -1])
    what = f"{K} most related of {len(vectors):,} pages, {found.method}"
    yield Row(what, ours, "s", note=origin)
    yield Row("  scikit-learn, brute force", theirs, "s", note="same run, same cores")
    full = n_pages == SIDE_BY_SIDE
    yield Row("  speed-up", theirs / ours, "×", ">= 10" if full else "", theirs / ours >= 10 if full else None)
    yield Row(
        f"  recall@{K}",
        share,
        "",
        ">= 0.99",
        share >= 0.99,
        f"against scikit-learn; own measurement {found.recall:.4f}",
    )


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def recall(found: Related, unit: Floats, least: Floats) -> float:
    """The share of neighbours as near as the true k-th; differences that float32 cannot tell are ties."""
    n_right = 0
    for start in range(0, len(unit), 2_000):
        part = slice(start, start + 2_000)
        cosine = np.einsum("pd,pkd->pk", unit[part], unit[found.neighbour[part]])
        n_right += int(np.count_nonzero((cosine >= least[part, None] - 1e-5) & (found.neighbour[part] >= 0)))
    return n_right / found.neighbour.size


def made_up_vectors(n_pages: int) -> Floats:
    web = batches(SynthSettings(pages=n_pages, rounds=1, terms=False, vectors=True, failure_rate=0))
    parts = [chunk.flatten().to_numpy() for batch in web for chunk in batch["vectors"]["vector"].chunks]
    return np.concatenate(parts).reshape(-1, DIMENSIONS)


def text_vectors(n_pages: int) -> tuple[Floats, str]:
    """LSA vectors of distinct texts: real ones where they are at hand, else made-up ones."""
    is_real = (DATA / "visits.py").exists()
    counts = real_counts(n_pages) if is_real else made_up_counts(n_pages)
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    vectors = TruncatedSVD(DIMENSIONS, n_iter=3, random_state=0).fit_transform(weighted).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, f"LSA of {'real' if is_real else 'made-up'} texts, all distinct"


def real_counts(n_texts: int) -> csr_matrix:
    """Term counts of the first distinct texts of all corpora."""
    words: dict[str, int] = {}
    column: list[int] = []
    count: list[int] = []
    start, seen = [0], set()
    for terms in real_terms():
        text = hash(frozenset(terms.items()))
        if text in seen:
            continue
        seen.add(text)
        column.extend(words.setdefault(word, len(words)) for word in terms)
        count.extend(terms.values())
        start.append(len(column))
        if len(seen) == n_texts:
            break
    return csr_matrix((np.array(count, np.float32), column, start))


def real_terms() -> Iterator[Mapping[str, int]]:
    for corpus in CORPORA:
        with subprocess.Popen([sys.executable, str(DATA / "visits.py"), corpus], stdout=subprocess.PIPE) as reader:
            assert reader.stdout
            try:
                yield from (terms for line in reader.stdout if (terms := json.loads(line).get("terms")))
            finally:
                reader.kill()


def made_up_counts(n_texts: int) -> csr_matrix:
    texts = [batch["texts"] for batch in batches(SynthSettings(pages=n_texts, rounds=1, failure_rate=0))]
    lists = [chunk for table in texts for chunk in table["terms"].chunks]
    counts = [chunk for table in texts for chunk in table["counts"].chunks]
    length = np.concatenate([chunk.value_lengths().to_numpy() for chunk in lists])
    _, column = np.unique(np.concatenate([chunk.flatten().to_numpy() for chunk in lists]), return_inverse=True)
    count = np.concatenate([chunk.flatten().to_numpy() for chunk in counts]).astype(np.float32)
    return csr_matrix((count, column, np.r_[0, np.cumsum(length)]))
