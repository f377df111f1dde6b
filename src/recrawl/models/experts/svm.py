"""Support vector machines, small ones by the million: the steps of libsvm without its overhead.

An evaluation trains one machine of about 50 examples for every page, expert and day. At that size libsvm spends its time on copies,
caches and checks rather than on the problem, and the kernels of sliding windows overlap: here a kernel is computed once for all
times. The steps are those of libsvm, one by one: results agree with `sklearn.svm.SVC(shrinking=False)` to rounding, and with
shrinking to about the tolerance. Each window starts from zero: starting from the solution of the window before saved only two
steps in five, and moved decisions by several times the tolerance.

References: Chang and Lin (2011), "LIBSVM: a library for support vector machines".
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import expit

from recrawl.core.arrays import Flags, Floats
from recrawl.models.experts.smo import compiled_decisions, compiled_solve

__all__ = [
    "MAX_ITERATIONS",
    "TOLERANCE",
    "compiled_decisions",
    "compiled_polynomial",
    "compiled_solve",
    "decisions",
    "platt",
    "polynomial",
    "probability",
    "solve",
]


TOLERANCE = 1e-3
MAX_ITERATIONS = 1_000_000  # libsvm's problems of this size take hundreds; one that never settles ends within a second


def solve(
    kernel: Floats, y: ArrayLike, upper: ArrayLike, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> tuple[Floats, float]:
    """The multipliers α and the threshold ρ of a C-SVC: the decision at x is Σ αᵢ yᵢ K(xᵢ, x) - ρ.

    `y` is -1 or +1 and `upper` the C of each example; 0 leaves an example out. With a single class, or no example at all, there is
    nothing to solve: α is 0 and the decision is that class, or -1. A kernel that is not positive semidefinite ends in a point that
    no pair of examples can improve, or after `max_iterations`.

    >>> import numpy as np
    >>> x = np.array([-2.0, -1.0, 1.0, 3.0])
    >>> alpha, rho = solve(np.outer(x, x), y=[-1, -1, 1, 1], upper=[9, 9, 9, 9])
    >>> alpha, rho
    (array([0. , 0.5, 0.5, 0. ]), 0.0)
    """
    kernel, y, upper = np.asarray(kernel, np.float64), np.asarray(y, np.float64), np.asarray(upper, np.float64)
    _check_square(kernel, len(y), "y")
    if upper.shape != y.shape:
        raise ValueError(f"{len(y)} examples, but upper has shape {upper.shape}; there must be one for each")
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y holds values other than -1 and +1; leave examples out with an upper of 0")
    if not ((upper >= 0) & (upper < np.inf)).all():
        raise ValueError("upper holds a C that is negative or not finite; 0 leaves an example out")
    _check_positive(tolerance, "tolerance")
    _check_finite(kernel, upper > 0)
    alpha, rho = compiled_solve(kernel, y, upper, tolerance, max_iterations)
    return alpha, float(rho)


def decisions(
    kernel: Floats,
    label: ArrayLike,
    n_train: int,
    sigma: int = 1,
    c: float = 1.0,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Floats:
    """The decision of a machine trained on the last `n_train` days at every time t: above 0 it expects a change at t + σ.

    `kernel` compares all times with all; `label[s]` is 1 if the page changed at s + σ, 0 if not, -1 if that is not known. The
    machine of time t has the examples s in [t - n_train + 1, t - σ] with a known label, since the label of a later one lies in the
    future. With a single class the decision is that class (1 or -1), with no examples -1. Before n_train - 1 it is NaN.

    >>> import numpy as np
    >>> weekday = np.arange(12) % 2  # the page changes every second day
    >>> decisions(np.outer(weekday, weekday) + 1.0, label=1 - weekday, n_train=6).round(3)
    array([nan, nan, nan, nan, nan, -1.,  1., -1.,  1., -1.,  1., -1.])

    References: Radinsky and Bennett (2013), section 7.2.
    """
    kernel, label = np.asarray(kernel, np.float64), np.asarray(label, np.int8)
    _check_square(kernel, len(label), "label")
    if not 1 <= sigma < n_train:
        raise ValueError(f"sigma is {sigma} and n_train is {n_train}; sigma must be at least 1 and n_train larger")
    _check_positive(c, "c")
    _check_positive(tolerance, "tolerance")
    _check_finite(kernel, label >= 0)
    result: Floats = compiled_decisions(
        kernel, label, n_train, sigma, float(c), tolerance, max_iterations, 0, len(label)
    )
    return result


def polynomial(
    inner: ArrayLike, gamma: float = 1.0, coef0: float = 1.0, degree: int = 3, out: Floats | None = None
) -> Floats:
    """The polynomial kernel (γ⟨x, x'⟩ + r)ᵈ from inner products; `out` may be `inner` itself.

    >>> polynomial([[1.0, 2.0]])
    array([[ 8., 27.]])
    """
    inner = np.ascontiguousarray(inner, np.float64)
    out = np.empty_like(inner) if out is None else out
    if degree < 1 or degree != int(degree):
        raise ValueError(f"degree is {degree}; it must be a whole number of at least 1")
    if out.shape != inner.shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise ValueError(f"out must be a contiguous float64 array of shape {inner.shape}")
    compiled_polynomial(inner.reshape(-1), gamma, coef0, int(degree), out.reshape(-1))
    return out


def platt(decisions: ArrayLike, labels: ArrayLike) -> tuple[float, float]:
    """The a and b that make 1 / (1 + exp(a·decision + b)) the probability of a change (Platt scaling).

    Labels are 1, 0 or, unknown, -1; the unknown and decisions that are NaN are left out. The targets are not 1 and 0 but
    (n₁ + 1) / (n₁ + 2) and 1 / (n₀ + 2): a few examples that happen to be separated do not make it certain.

    >>> a, b = platt([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> probability([-2.0, 0.0, 2.0], a, b).round(3)
    array([0.206, 0.5  , 0.794])

    References: Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007), "A note on Platt's
    probabilistic outputs for support vector machines", appendix C.
    """
    decisions, labels = np.asarray(decisions, np.float64), np.asarray(labels)
    if decisions.shape != labels.shape or decisions.ndim != 1:
        raise ValueError(
            f"decisions have shape {decisions.shape} and labels {labels.shape}; there must be one for each"
        )
    used = (labels >= 0) & ~np.isnan(decisions)
    a, b = _fit_sigmoid(decisions[used], labels[used] > 0)
    return float(a), float(b)


def probability(decision: ArrayLike, a: float, b: float) -> Floats:
    """The probability of a change that belongs to a decision, with the a and b of `platt`."""
    result: Floats = np.asarray(expit(-(a * np.asarray(decision, np.float64) + b)))
    return result


def _check_square(kernel: Floats, n: int, what: str) -> None:
    if kernel.shape != (n, n):
        raise ValueError(f"the kernel has shape {kernel.shape}, but {what} has {n} entries; it must be {n} × {n}")


def _check_positive(value: float, name: str) -> None:
    if not 0 < value < np.inf:
        raise ValueError(f"{name} is {value}; it must be above 0 and finite")


def _check_finite(kernel: Floats, used: Flags) -> None:
    largest = np.finfo(np.float32).max
    if not (np.abs(kernel) <= largest).all() and not (np.abs(kernel[np.ix_(used, used)]) <= largest).all():
        raise ValueError("the kernel holds values that are not finite in single precision; scale the features down")


@njit(cache=True, nogil=True)
def compiled_polynomial(inner, gamma, coef0, degree, out):  # type: ignore[no-untyped-def]
    """See `polynomial`; both arrays are flat, and may be the same."""
    if degree == 3:
        for k in range(len(inner)):
            base = gamma * inner[k] + coef0
            out[k] = base * (base * base)
    else:
        for k in range(len(inner)):
            out[k] = (gamma * inner[k] + coef0) ** degree


@njit(cache=True, nogil=True)
def _fit_sigmoid(decisions, positive):  # type: ignore[no-untyped-def]
    """Newton's method with backtracking."""
    n_positive = positive.sum()
    n_negative = len(positive) - n_positive
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    a, b = 0.0, np.log((n_negative + 1.0) / (n_positive + 1.0))
    loss = _cross_entropy(decisions, target, a, b)
    for _ in range(100):
        slope_a, slope_b, aa, ab, bb = _derivatives(decisions, target, a, b)
        if abs(slope_a) < 1e-5 and abs(slope_b) < 1e-5:
            break
        determinant = aa * bb - ab * ab
        move_a = (ab * slope_b - bb * slope_a) / determinant
        move_b = (ab * slope_a - aa * slope_b) / determinant
        step, expected = 1.0, slope_a * move_a + slope_b * move_b
        while step >= 1e-10:
            tried = _cross_entropy(decisions, target, a + step * move_a, b + step * move_b)
            if tried < loss + 1e-4 * step * expected:
                break
            step /= 2
        if step < 1e-10:
            break  # no smaller loss in reach of the precision
        a, b, loss = a + step * move_a, b + step * move_b, tried
    return a, b


@njit(cache=True, nogil=True)
def _cross_entropy(decisions, target, a, b):  # type: ignore[no-untyped-def]
    """What Platt scaling minimises, written so that no exponential overflows."""
    loss = 0.0
    for k in range(len(decisions)):
        z = a * decisions[k] + b
        loss += (target[k] if z >= 0 else target[k] - 1.0) * z + np.log1p(np.exp(-abs(z)))
    return loss


@njit(cache=True, nogil=True)
def _derivatives(decisions, target, a, b):  # type: ignore[no-untyped-def]
    """The two first and three second derivatives of the loss."""
    slope_a = slope_b = ab = 0.0
    aa = bb = 1e-12  # keeps the matrix of second derivatives invertible
    for k in range(len(decisions)):
        z = a * decisions[k] + b
        small = np.exp(-abs(z))
        p = small / (1.0 + small) if z >= 0 else 1.0 / (1.0 + small)
        weight, residual = small / (1.0 + small) ** 2, target[k] - p
        slope_a += decisions[k] * residual
        slope_b += residual
        aa += decisions[k] * decisions[k] * weight
        ab += decisions[k] * weight
        bb += weight
    return slope_a, slope_b, aa, ab, bb
