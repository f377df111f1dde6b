"""One expert's decisions on one page in a single compiled step: features, kernel and a machine for every time.

An evaluation asks millions of experts. Made of separate calls, each would spend more time between the steps than in them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints8
from recrawl.models.experts.examples import ExpertExamples
from recrawl.models.experts.features import compiled_inner, compiled_relation
from recrawl.models.experts.smo import compiled_decisions
from recrawl.models.experts.svm import MAX_ITERATIONS, TOLERANCE, compiled_polynomial

_LARGEST = float(np.finfo(np.float32).max)


def decisions_of(
    examples: ExpertExamples,
    page: int,
    expert: int,
    label: Ints8,
    *,
    kernel: tuple[float, float, int],
    n_train: int,
    c: float,
    since: int,
    until: int,
) -> Floats:
    """What an expert decides on a page at the times from `since` to before `until`; NaN at all others.

    `kernel` is gamma, coef0 and degree. The result is that of `svm.decisions` on `examples.inner`.
    """
    if not 1 <= examples.sigma < n_train:
        raise ValueError(
            f"sigma is {examples.sigma} and n_train is {n_train}; sigma must be at least 1 and n_train larger"
        )
    a, b = examples.past(page), examples.past(expert)
    is_finite, decisions = _asked(
        examples.words,
        (examples.text[page], examples.text[expert]),
        a,
        b,
        page == expert,
        label,
        examples.l,
        examples.word_scale**2,
        kernel,
        (n_train, examples.sigma, c, since, until),
        examples.scratch,
    )
    if not is_finite:
        raise ValueError("the kernel holds values that are not finite in single precision; scale the features down")
    result: Floats = decisions
    return result


@njit(cache=True, nogil=True)
def _asked(words, texts, a, b, is_itself, label, l, word_weight, kernel, training, scratch):  # type: ignore[no-untyped-def]  # noqa: E741
    indptr, indices, counts, unit = words
    gamma, coef0, degree = kernel
    n_train, sigma, c, since, until = training
    x = b.own
    if not is_itself:
        relation = compiled_relation(
            indptr, indices, counts, unit, texts[0], texts[1], a.of, a.inner, b.of, b.inner, l, scratch
        )
        x = np.hstack((b.own, relation))
    inner = compiled_inner(b.of, b.inner, x, word_weight)
    flat = inner.reshape(-1)
    compiled_polynomial(flat, gamma, coef0, degree, flat)
    is_finite = True
    for value in flat:
        is_finite &= abs(value) <= _LARGEST  # also false for NaN
    if not is_finite:
        return False, np.empty(0)
    return True, compiled_decisions(inner, label, n_train, sigma, c, TOLERANCE, MAX_ITERATIONS, since, until)
