"""Related pages by time: ``python -m benchmarks.results.related ../shared/data`` prints tables of docs/results/ageing.md.

Related pages by content (as in the papers) against those whose series of new links move alike: by cross-correlation, by dynamic
time warping, by matrix profiles (MPdist, Gharghabi et al. 2018), and by matrix profiles under warping (the measure of SWAMP, Alaee
et al. 2021). The last two are not part of recrawl. With ``stumpy`` installed, the profiles are compared with its own.
Further arguments are names of collections, ``--panels=N``, and ``--without=MEASURE`` to leave out one that takes long.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit

from benchmarks.results.results import CORPORA, SETTINGS, imported
from recrawl.history import History
from recrawl.insight.features import FeatureInputs, known_before
from recrawl.insight.features.assemble import N_TIMES
from recrawl.insight.features.matrix import RelatedBefore
from recrawl.insight.series.alike import MIN_KNOWN, _as_related, alike_pages, moving_series
from recrawl.insight.series.warping import warped_distance
from recrawl.papers.outlinks.rankings import RANKINGS, features_of, rank
from recrawl.world import panel
from recrawl.world.related import Related

CHOSEN = tuple(r for r in RANKINGS if r.name in ("new-link-count trees, LBLA", "forecast"))
PANELS = {"news daily": (70, 4), "ota_terms 30-day": (60, 3), "openbsd_www 30-day": (50, 1)}
WINDOW = 8  # rounds of a subsequence
WARP = 1  # rounds that a subsequence may be warped
K = 30


@njit(cache=True)
def profile_distances(unit, m, width):  # type: ignore[no-untyped-def]
    """MPdist of all pairs: the 5% smallest of the distances of every window to the nearest window of the other series.

    Windows are brought to mean 0 and variance 1; a flat one is at a distance of √m from all that are not. `width` is the band of
    the warping, 0 for none.
    """
    n, n_windows = len(unit), unit.shape[1] - m + 1
    windows = np.zeros((n, n_windows, m))
    flat = np.zeros((n, n_windows), np.bool_)
    for p in range(n):
        for i in range(n_windows):
            part = unit[p, i : i + m]
            sd = part.std()
            flat[p, i] = sd < 1e-9
            if not flat[p, i]:
                windows[p, i] = (part - part.mean()) / sd
    distance = np.zeros((n, n))
    cost, both = np.empty(m + 1), np.empty(2 * n_windows)
    kth = min(int(np.ceil(0.05 * 2 * (n_windows + m - 1))), 2 * n_windows - 1)
    for a in range(n):
        for b in range(a + 1, n):
            both[:] = np.inf
            for i in range(n_windows):
                for j in range(n_windows):
                    if flat[a, i] or flat[b, j]:
                        d = 0.0 if flat[a, i] and flat[b, j] else np.sqrt(m)
                    elif width:
                        d = warped_distance(
                            windows[a, i], windows[b, j], width, cost, max(both[i], both[n_windows + j])
                        )
                    else:
                        d = 0.0
                        for c in range(m):
                            d += (windows[a, i, c] - windows[b, j, c]) ** 2
                        d = np.sqrt(d)
                    both[i], both[n_windows + j] = min(both[i], d), min(both[n_windows + j], d)
            distance[a, b] = distance[b, a] = np.sort(both)[kth]
    return distance


def by_profile(new_links: np.ndarray, width: int) -> Related:
    """The pages with the least profile distance; none before there are two windows of rounds."""
    unit, page = moving_series(new_links)
    if new_links.shape[1] < 2 * WINDOW or len(unit) < 2:
        nothing = np.full((len(unit), K), -1, np.int32)
        return _as_related(nothing, np.zeros(nothing.shape), page, len(new_links), "exact", 1.0)
    near = 1 / (1 + profile_distances(unit, WINDOW, width))
    np.fill_diagonal(near, 0)
    number = np.argsort(-near, axis=1, kind="stable")[:, :K].astype(np.int32)
    return _as_related(number, np.take_along_axis(near, number, 1), page, len(new_links), "exact", 1.0)


MEASURES: dict[str, Callable[[np.ndarray], Related]] = {
    "correlation": lambda new: alike_pages(new, K, "correlation"),
    "dtw": lambda new: alike_pages(new, K, "dtw"),
    "matrix profile": lambda new: by_profile(new, 0),
    "SWAMP": lambda new: by_profile(new, WARP),
}


def arms(known: FeatureInputs, without: list[str]) -> Iterator[tuple[str, FeatureInputs, float]]:
    """The same panel with each kind of related pages, and the seconds that they took."""
    last = known.panel.shape[1] - 1
    new = known.panel.n_new_internal + known.panel.n_new_external
    yield "none", replace(known, related=None, _cache={}), 0.0
    yield "content", known, 0.0
    for name, measure in MEASURES.items():
        if name in without:
            continue
        start = time.perf_counter()
        rounds = np.unique(np.linspace(MIN_KNOWN + 1, last, N_TIMES).astype(int))
        earlier = tuple(RelatedBefore(int(r), measure(new[:, :r])) for r in rounds)
        seconds = time.perf_counter() - start
        yield name, replace(known, related=earlier[-1].related, earlier=earlier, _cache={}), seconds


def table(history: History, every: str, n_rounds: int, n_panels: int, without: list[str]) -> Iterator[str]:
    """One row a kind of related pages: the means over the panels, and the difference to content with its standard error."""
    whole = panel.build(history, every, 0.0)
    ends = np.unique(np.linspace(min(n_rounds, whole.shape[1]), whole.shape[1], n_panels + 1).astype(int))[1:]
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    took: dict[str, float] = defaultdict(float)
    for end in ends:
        window = whole.window(max(0, end - n_rounds), end, 0.0)
        features = tuple({f for ranking in CHOSEN for f in features_of(ranking, "all", SETTINGS)})
        for name, known, seconds in arms(known_before(history, window, window.shape[1] - 1, features), without):
            took[name] += seconds
            for row in rank(known, SETTINGS, CHOSEN):
                if row["truth"] == "new-link-count":
                    found[name, row["ranking"]].append((row["spearman"], row["area"]))
    yield f"{len(ends)} panels of {n_rounds} rounds, up to {whole.shape[0]:,} pages:"
    yield ""
    yield "| related by | ranking | Spearman | against content | area | seconds |"
    yield "|---|---|---|---|---|---|"
    for (name, ranking), scores in found.items():
        values, content = np.array(scores), np.array(found["content", ranking])
        gain = values[:, 0] - content[:, 0]
        error = f" ± {gain.std(ddof=1) / np.sqrt(len(gain)):.4f}" if len(gain) > 1 else ""
        beside = "" if name == "content" else f"{gain.mean():+.4f}{error}"
        mean = values.mean(axis=0)
        yield f"| {name} | {ranking} | {mean[0]:.4f} | {beside} | {mean[1]:.4f} | {took[name]:.0f} |"
    yield ""


def against_stumpy() -> str:
    """The largest difference between our profile distances and those of stumpy on some random series."""
    try:
        import stumpy
    except ImportError:
        return "stumpy is not installed: the profile distances were not compared with it"
    unit = np.random.default_rng(0).normal(size=(6, 40))
    ours = profile_distances(unit, WINDOW, 0)
    theirs = [[stumpy.mpdist(a, b, WINDOW) if a is not b else 0.0 for b in unit] for a in unit]
    return f"profile distances differ from stumpy's by at most {np.abs(ours - np.array(theirs)).max():.1e}"


def main(data: Path, arguments: list[str]) -> None:
    """Print the tables of some corpora, or of all."""
    names = [each for each in arguments if not each.startswith("--")]
    without = [each.split("=")[1] for each in arguments if each.startswith("--without=")]
    panels = [int(each.split("=")[1]) for each in arguments if each.startswith("--panels=")]
    print(against_stumpy(), "\n", flush=True)
    for name, (n_rounds, n_panels) in PANELS.items():
        if names and name not in names:
            continue
        options, every, _ = CORPORA[name]
        print(f"### {name}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for line in table(imported(data, options, folder), every, n_rounds, (panels or [n_panels])[0], without):
                print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
