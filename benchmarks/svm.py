"""Support vector machines of sliding windows, beside scikit-learn's SVC on the same windows, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import Row, cpu_side_by_side
from recrawl.models.experts.svm import decisions, polynomial, solve

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]

TIMES, TRAIN, WORDS = 180, 50, 200


def run(n_pages: int = 20, n_problems: int = 1_000) -> Iterator[Row]:
    pages = [made_up(seed) for seed in range(n_pages)]
    n_fits = n_pages * (TIMES - TRAIN + 1)
    with threadpool_limits(1):  # or the time that threads wait for one another is counted
        quick(pages[:1])  # compiled or read from the cache before it counts
        for kernel in ("precomputed", "poly"):
            own, theirs = cpu_side_by_side(3, partial(quick, pages), partial(slow, pages, kernel))
            ratio, note = theirs / own, "processor time of the fits; ours with the kernels, and with the predictions"
            yield Row(f"SVM of {TRAIN - 1} examples on sliding windows", n_fits / own, "fits/s")
            yield Row(f"  SVC(kernel={kernel!r}) on the same", n_fits / theirs, "fits/s")
            yield Row("  ratio", ratio, "×", "≥ 30", ratio >= 30, note)
        same = float(((quick(pages) > 0) == (asked(pages) > 0)).mean())
    yield Row(
        f"  same predictions, {n_fits:,} windows", same, "", "≥ 0.999", same >= 0.999, "SVC as it comes, with shrinking"
    )
    differences = np.array([dual_differences(seed) for seed in range(n_problems)])
    multiplier, dual, shrunk = differences.max(axis=0).tolist()
    note = f"SVC(shrinking=False), the same steps; largest difference of a multiplier {multiplier:.1g}"
    yield Row(
        f"  largest difference of the dual, {n_problems:,} random problems", dual, "", "≤ 1e-3", dual <= 1e-3, note
    )
    note = (
        f"SVC with shrinking; {(differences[:, 2] > 1e-3).sum()} above 1e-3, as many as between SVC's own two settings"
    )
    yield Row("  the same beside another way to the tolerance", shrunk, "", note=note)


def made_up(seed: int) -> tuple[Floats, Labels]:
    """Features of a page that changes on 30 to 50 % of the days, by a few words each time; and whether it does the next day."""
    random = np.random.default_rng(seed)
    changed = (random.random(TIMES + 1) < random.uniform(0.3, 0.5)).astype(np.int8)
    words = np.empty((TIMES, WORDS))
    words[0] = random.dirichlet(np.full(WORDS, 0.1))
    for t in range(1, TIMES):
        words[t] = words[t - 1] + changed[t] * 0.2 * (random.dirichlet(np.full(WORDS, 0.05)) - words[t - 1])
    magnitude = np.append(0.0, np.linalg.norm(np.diff(words, axis=0), axis=1))
    frequency = np.convolve(changed, np.ones(5) / 5)[:TIMES]
    flags = (changed[:-1], np.append(0, changed[:-2]))
    return np.column_stack([*flags, frequency, magnitude, np.append(0.0, magnitude[:-1]), words]), changed[1:]


def quick(pages: list[tuple[Floats, Labels]]) -> Floats:
    found = [decisions(polynomial(features @ features.T), label, TRAIN) for features, label in pages]
    return np.array(found)[:, TRAIN - 1 :]


def slow(pages: list[tuple[Floats, Labels]], kernel: str) -> None:
    """Nothing but the fits, with the kernel that is made once for all windows where SVC can use it."""
    for features, label in pages:
        whole = polynomial(features @ features.T)
        for t in range(TRAIN - 1, TIMES):
            window = slice(t - TRAIN + 1, t)
            x = whole[window, window] if kernel == "precomputed" else features[window]
            SVC(kernel=kernel, degree=3, gamma=1.0, coef0=1.0).fit(x, label[window])


def asked(pages: list[tuple[Floats, Labels]]) -> Floats:
    """The decisions of SVC as it comes, shrinking and all."""
    found = np.empty((len(pages), TIMES - TRAIN + 1))
    for i, (features, label) in enumerate(pages):
        for t in range(TRAIN - 1, TIMES):
            window = slice(t - TRAIN + 1, t)
            machine = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0).fit(features[window], label[window])
            found[i, t - TRAIN + 1] = machine.decision_function(features[t : t + 1])[0]
    return found


def problem(seed: int) -> tuple[Floats, Floats, float]:
    """Linear, polynomial and RBF kernels, labels at random or parted by a plane."""
    random = np.random.default_rng(seed)
    n, n_features = int(random.integers(5, 81)), int(random.integers(1, 12))
    x = random.normal(size=(n, n_features))
    by_plane, at_random = x @ random.normal(size=n_features), random.normal(size=n)
    y = np.where((by_plane if seed % 2 else at_random) > 0, 1.0, -1.0)
    y[:2] = -1, 1
    inner, squares = x @ x.T, (x * x).sum(axis=1)
    kernels = inner, polynomial(inner, 1 / n_features), np.exp((2 * inner - squares - squares[:, None]) / n_features)
    return kernels[seed % 3], y, 10 ** random.uniform(-2, 1.5)


def multipliers(kernel: Floats, y: Floats, c: float, shrinking: bool) -> Floats:
    machine = SVC(kernel="precomputed", C=c, shrinking=shrinking).fit(kernel, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return alpha


def dual_differences(seed: int) -> tuple[float, float, float]:
    """Of a multiplier and of the dual from SVC without shrinking, and of the dual from SVC with it."""
    kernel, y, c = problem(seed)
    own = solve(kernel, y, np.full(len(y), c))[0]
    plain, shrunk = (multipliers(kernel, y, c, shrinking) for shrinking in (False, True))
    dual, *theirs = (float((a * y) @ kernel @ (a * y) / 2 - a.sum()) for a in (own, plain, shrunk))
    return float(np.abs(own - plain).max()), abs(dual - theirs[0]), abs(dual - theirs[1])
