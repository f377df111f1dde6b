"""Sequential minimal optimisation, compiled: the steps behind `recrawl.models.experts.svm`.

Every step picks the example that is pulled up most, the partner with which it can gain most, and moves the two as far as it helps.
All loops over examples are written so that the compiler vectorises them: no branches, lengths rounded up, and infinities instead
of conditions. That makes them several times as fast. Nothing is checked here, and both `compiled_…` may be called from other
compiled functions.

References: Fan, Chen and Lin (2005), "Working set selection using second order information for training support vector machines";
Chang and Lin (2011), "LIBSVM: a library for support vector machines", section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from recrawl.core.arrays import Floats, Floats32, Ints

_TAU = 1e-12  # replaces a curvature that is not positive, as in libsvm
_LANES = 16  # lengths are rounded up to multiples of this, so that vector instructions leave no remainder


def _larger_of_numbers(context: Any, first: Any, second: Any) -> Any:
    """The larger of two numbers that are not NaN: a plain `max` must handle NaN, and is then not vectorised."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flags = ("nnan", "nsz")
        is_larger = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(is_larger, *arguments, flags=flags)

    return types.float64(types.float64, types.float64), generate


_larger: Any = intrinsic(_larger_of_numbers)


class _Dual(NamedTuple):
    """One problem while it is solved: minimise ½ βᵀKβ - Σ|β| with Σβ = 0 and floor ≤ β ≤ ceiling.

    β is α for the class of y = -1 and -α for the other, since scikit-learn hands its classes to libsvm in this order.
    """

    kernel: Floats32  # libsvm rounds it, too, and the steps must be the same
    diagonal: Floats
    floor: Floats  # -C or 0
    ceiling: Floats  # 0 or C
    beta: Floats
    pull: Floats  # minus the slope of the objective: where β wants to go
    rise: Floats  # 0 where β may grow, else -inf
    fall: Floats  # 0 where β may shrink, else +inf
    score: Floats  # of the candidates of one step


@njit(cache=True, nogil=True)
def _room(n):  # type: ignore[no-untyped-def]
    """Room for a problem of n examples; the padding may neither rise nor fall."""
    n = (n + _LANES - 1) // _LANES * _LANES
    return _Dual(
        kernel=np.zeros((n, n), np.float32),
        diagonal=np.zeros(n),
        floor=np.zeros(n),
        ceiling=np.zeros(n),
        beta=np.zeros(n),
        pull=np.zeros(n),
        rise=np.full(n, -np.inf),
        fall=np.full(n, np.inf),
        score=np.zeros(n),
    )


class _Examples(NamedTuple):
    """All examples one class after the other, as in libsvm: the last one wins a tie."""

    row: Ints  # of the kernel they come from
    kernel: Floats32
    diagonal: Floats
    upper: Floats


@njit(cache=True, nogil=True)
def _by_class(kernel, negative, positive, upper):  # type: ignore[no-untyped-def]
    row = np.concatenate((negative, positive))
    sorted_kernel, diagonal = np.empty((len(row), len(row)), np.float32), np.empty(len(row))
    for i in range(len(row)):
        diagonal[i] = kernel[row[i], row[i]]
        for j in range(len(row)):
            sorted_kernel[i, j] = kernel[row[i], row[j]]
    return _Examples(row, sorted_kernel, diagonal, upper[row])


@njit(cache=True, nogil=True)
def _load(dual, examples, negative, n_negative, positive, n_positive):  # type: ignore[no-untyped-def]
    """Load a run of each class, given by its begin and length, with all multipliers 0."""
    own_kernel, own_diagonal, floor, ceiling, beta, pull, rise, fall, _ = dual
    _, kernel, diagonal, upper = examples
    for k in range(n_negative + n_positive):
        is_negative = k < n_negative
        source = negative + k if is_negative else positive + k - n_negative
        own_diagonal[k], beta[k] = diagonal[source], 0.0
        pull[k], floor[k], ceiling[k] = (1.0, 0.0, upper[source]) if is_negative else (-1.0, -upper[source], 0.0)
        rise[k], fall[k] = (0.0, np.inf) if is_negative else (-np.inf, 0.0)
        for j in range(n_negative):
            own_kernel[k, j] = kernel[source, negative + j]
        for j in range(n_positive):
            own_kernel[k, n_negative + j] = kernel[source, positive + j]
    rise[n_negative + n_positive :] = -np.inf
    fall[n_negative + n_positive :] = np.inf


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _moved(kernel, pull, rise, fall, score, i, j, step_i, step_j):  # type: ignore[no-untyped-def]
    """Carry out a step, and find the strongest pull up and the strongest pull down."""
    up = down = -np.inf
    for k in range(len(pull)):
        now = pull[k] - (np.float64(kernel[i, k]) * step_i + np.float64(kernel[j, k]) * step_j)
        pull[k] = now
        score[k] = now + rise[k]
        up = _larger(up, now + rise[k])
        down = _larger(down, -(now + fall[k]))
    return up, down


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _most_gain(kernel, diagonal, pull, fall, score, i, up):  # type: ignore[no-untyped-def]
    """Score every partner of i by what the two can gain (WSS 2: the square of the slope over the curvature)."""
    most, own = -1.0, diagonal[i]
    for k in range(len(pull)):
        slope = up - (pull[k] + fall[k])
        curvature = (own + diagonal[k]) - 2.0 * np.float64(kernel[i, k])
        gain = slope * slope / (curvature if curvature > 0 else _TAU)
        gain = gain if slope > 0 else -1.0
        score[k] = gain
        most = _larger(most, gain)
    return most


@njit(cache=True, nogil=True, inline="always")
def _last(values, value):  # type: ignore[no-untyped-def]
    """Among equals libsvm takes the last."""
    last = 0
    for k in range(len(values)):
        last = k if values[k] == value else last
    return last


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _step(kernel, diagonal, floor, ceiling, beta, pull, rise, fall, i, j):  # type: ignore[no-untyped-def]
    """Raise β of i and lower that of j by the same amount, as far as it helps and both have room."""
    curvature = (diagonal[i] + diagonal[j]) - 2.0 * np.float64(kernel[i, j])
    step = (pull[i] - pull[j]) / (curvature if curvature > 0 else _TAU)
    old_i, old_j = beta[i], beta[j]
    new_i, new_j, total = old_i + step, old_j - step, old_i + old_j
    if total > ceiling[i] + floor[j]:  # i meets its bound before j does
        if new_i > ceiling[i]:
            new_i, new_j = ceiling[i], total - ceiling[i]
    elif new_j < floor[j]:
        new_i, new_j = total - floor[j], floor[j]
    beta[i], beta[j] = new_i, new_j
    rise[i], fall[i] = 0.0 if new_i < ceiling[i] else -np.inf, 0.0 if new_i > floor[i] else np.inf
    rise[j], fall[j] = 0.0 if new_j < ceiling[j] else -np.inf, 0.0 if new_j > floor[j] else np.inf
    return new_i - old_i, new_j - old_j


@njit(cache=True, nogil=True, error_model="numpy")
def _minimise(dual, tolerance, max_iterations):  # type: ignore[no-untyped-def]
    """Step by step until no pair would gain by more than the tolerance allows; returns ρ."""
    kernel, diagonal, floor, ceiling, beta, pull, rise, fall, score = dual
    i = j = n_steps = 0
    step_i = step_j = 0.0
    while True:
        up, down = _moved(kernel, pull, rise, fall, score, i, j, step_i, step_j)
        if n_steps == max_iterations or not up + down >= tolerance:
            break
        n_steps += 1
        i = _last(score, up)
        most = _most_gain(kernel, diagonal, pull, fall, score, i, up)
        j = _last(score, most)
        step_i, step_j = _step(kernel, diagonal, floor, ceiling, beta, pull, rise, fall, i, j)
    return _threshold(dual)


@njit(cache=True, nogil=True)
def _threshold(dual):  # type: ignore[no-untyped-def]
    """ρ: the mean pull of the examples between their bounds, or else the middle of what the others allow."""
    n_free, total, low, high = 0, 0.0, -np.inf, np.inf
    for k in range(len(dual.pull)):
        may_grow, may_shrink = dual.rise[k] == 0, dual.fall[k] == 0
        if may_grow and may_shrink:
            n_free += 1
            total += dual.pull[k]
        elif may_grow:
            low = max(low, dual.pull[k])
        elif may_shrink:
            high = min(high, dual.pull[k])
    if n_free:
        return total / n_free
    if high == np.inf:
        return 1.0  # no example of a change, perhaps no example
    return -1.0 if low == -np.inf else (low + high) / 2


@njit(cache=True, nogil=True)
def compiled_solve(kernel, y, upper, tolerance, max_iterations):  # type: ignore[no-untyped-def]
    """The multipliers and the threshold of one problem; see `recrawl.models.experts.svm.solve`."""
    negative, positive = np.flatnonzero((y < 0) & (upper > 0)), np.flatnonzero((y > 0) & (upper > 0))
    examples = _by_class(kernel, negative, positive, upper)
    dual = _room(len(examples.row))
    _load(dual, examples, 0, len(negative), len(negative), len(positive))
    rho = _minimise(dual, tolerance, max_iterations)
    alpha = np.zeros(len(y))
    for k in range(len(examples.row)):
        alpha[examples.row[k]] = abs(dual.beta[k])
    return alpha, rho


@njit(cache=True, nogil=True)
def compiled_decisions(kernel, label, n_train, sigma, c, tolerance, max_iterations, since, until):  # type: ignore[no-untyped-def]
    """The decisions of one sliding window after the other, from `since` to before `until`; see `svm.decisions`."""
    result = np.full(len(label), np.nan)
    negative, positive = np.flatnonzero(label == 0), np.flatnonzero(label == 1)
    examples = _by_class(kernel, negative, positive, np.full(len(label), c))
    dual = _room(n_train - sigma)
    row, beta = examples.row, dual.beta
    for t in range(max(n_train - 1, since), until):
        first, end = t - n_train + 1, t - sigma + 1
        n_0, n_1 = np.searchsorted(negative, end), np.searchsorted(positive, end)
        from_0, from_1 = np.searchsorted(negative, first), np.searchsorted(positive, first)
        n_0, n_1, from_1 = n_0 - from_0, n_1 - from_1, from_1 + len(negative)
        _load(dual, examples, from_0, n_0, from_1, n_1)
        result[t] = -_minimise(dual, tolerance, max_iterations)
        for k in range(n_0 + n_1):
            if beta[k] != 0:
                result[t] -= beta[k] * kernel[t, row[from_0 + k if k < n_0 else from_1 + k - n_0]]
    return result
