"""The features of experts, compiled: the steps behind `recrawl.models.experts.examples`. Nothing is checked here.

The words of a text are written to an array with a place for every term (`scratch`); a product with another text is then one look-up
for each of its words. Every function leaves the array as it found it, all zeros.

References: Radinsky and Bennett (2013), sections 4.2.1 and 4.2.2.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _spread(indptr, indices, counts, text, scratch):  # type: ignore[no-untyped-def]
    """Write the counts of a text to their places."""
    if text >= 0:
        for i in range(indptr[text], indptr[text + 1]):
            scratch[indices[i]] = counts[i]


@njit(cache=True, nogil=True)
def _clean(indptr, indices, text, scratch):  # type: ignore[no-untyped-def]
    if text >= 0:
        for i in range(indptr[text], indptr[text + 1]):
            scratch[indices[i]] = 0.0


@njit(cache=True, nogil=True)
def _with_spread(indptr, indices, counts, text, scratch):  # type: ignore[no-untyped-def]
    """The inner product of a text with the one that is spread out; counts are whole, so no order of the sum matters."""
    total = 0.0
    for i in range(indptr[text], indptr[text + 1]):
        total += counts[i] * scratch[indices[i]]
    return total


@njit(cache=True, nogil=True)
def compiled_products(indptr, indices, counts, unit, texts, scratch):  # type: ignore[no-untyped-def]
    """Inner products of some texts; -1 stands for one without words."""
    inner = np.zeros((len(texts), len(texts)))
    for a in range(len(texts)):
        if texts[a] < 0:
            continue
        _spread(indptr, indices, counts, texts[a], scratch)
        for b in range(a + 1):
            if texts[b] >= 0:
                product = _with_spread(indptr, indices, counts, texts[b], scratch)
                inner[a, b] = inner[b, a] = product * (unit[texts[a]] * unit[texts[b]])
        _clean(indptr, indices, texts[a], scratch)
    return inner


@njit(cache=True, nogil=True)
def _apart(inner, a, b):  # type: ignore[no-untyped-def]
    """The distance of two texts; rounding must not make it the root of something negative."""
    return np.sqrt(max(inner[a, a] + inner[b, b] - 2.0 * inner[a, b], 0.0)) if a != b else 0.0


@njit(cache=True, nogil=True)
def compiled_own(of, inner, change, l, sigma):  # type: ignore[no-untyped-def]  # noqa: E741
    """Features 1, 3, 4 and 5 of section 4.2.1."""
    n = len(of)
    x = np.zeros((n, 1 + 3 * l))
    for t in range(n):
        known = changed = 0
        for i in range(l):
            if t < i:
                known += 1
            elif change[t - i] >= 0:
                known += 1
                changed += change[t - i]
        x[t, 0] = changed / known if known else 0.0
        for i in range(1, l + 1):
            before, earlier = max(t - i, 0), max(t - i - sigma, 0)
            x[t, i] = _apart(inner, of[t], of[before])
            x[t, l + i] = _apart(inner, of[before], of[earlier])
            x[t, 2 * l + i] = 1.0 if t - i >= 0 and change[t - i] == 1 else 0.0
    return x


@njit(cache=True, nogil=True)
def _cosine(product, one, other):  # type: ignore[no-untyped-def]
    """From squared lengths; a vector of (nearly) zero length has no direction."""
    return product / np.sqrt(one * other) if one > 1e-18 and other > 1e-18 else 0.0


@njit(cache=True, nogil=True)
def compiled_relation(indptr, indices, counts, unit, text_a, text_b, of_a, inner_a, of_b, inner_b, l, scratch):  # type: ignore[no-untyped-def]  # noqa: E741
    """Features 6 and 7 of section 4.2.2."""
    n, spread = len(text_a), np.int64(-1)
    # between[t, k] = A(t) · B(t + k - l): all products of the two that are needed.
    between = np.zeros((n, 2 * l + 1))
    for t in range(n):
        for k in range(2 * l + 1):
            other, one_earlier = min(max(t + k - l, 0), n - 1), min(max(t + k - l - 1, 0), n - 1)
            # Most texts are those of the round before, on both sides.
            if t and text_a[t] == text_a[t - 1] and text_b[other] == text_b[one_earlier]:
                between[t, k] = between[t - 1, k]
            elif text_a[t] >= 0 and text_b[other] >= 0:
                if spread != text_a[t]:
                    _clean(indptr, indices, spread, scratch)
                    spread = np.int64(text_a[t])
                    _spread(indptr, indices, counts, spread, scratch)
                product = _with_spread(indptr, indices, counts, text_b[other], scratch)
                between[t, k] = product * (unit[text_a[t]] * unit[text_b[other]])
    _clean(indptr, indices, spread, scratch)
    x = np.zeros((n, 3 * l))
    for t in range(n):
        for i in range(l):
            then = max(t - i, 0)
            x[t, i] = _cosine(between[then, l], inner_a[of_a[then], of_a[then]], inner_b[of_b[then], of_b[then]])
        for i in range(1, l + 1):
            then = max(t - i, 0)
            lag = t - then
            a, b = of_a[t], of_b[t]
            b_moved = inner_b[b, b] + inner_b[of_b[then], of_b[then]] - 2.0 * inner_b[b, of_b[then]]
            a_moved = inner_a[a, a] + inner_a[of_a[then], of_a[then]] - 2.0 * inner_a[a, of_a[then]]
            with_a = between[t, l] - between[t, l - lag]
            with_change = with_a - between[then, l + lag] + between[then, l]
            if b != of_b[then]:
                x[t, l + i - 1] = _cosine(with_a, b_moved, inner_a[a, a])
                if a != of_a[then]:
                    x[t, 2 * l + i - 1] = _cosine(with_change, b_moved, a_moved)
    return x


@njit(cache=True, nogil=True)
def compiled_inner(of, gram, x, word_weight):  # type: ignore[no-untyped-def]
    """Inner products of feature vectors: of the words, by the products of texts, and of the other features x."""
    n = len(of)
    inner = np.empty((n, n))
    for s in range(n):
        for t in range(s + 1):
            total = word_weight * gram[of[s], of[t]]
            for f in range(x.shape[1]):
                total += x[s, f] * x[t, f]
            inner[s, t] = inner[t, s] = total
    return inner
