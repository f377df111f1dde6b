"""Sums of floats that do not depend on the order of their terms, nor on how these are parted: exact until they are read.

Floats are whole multiples of 2^-1074, so a sum of them is a whole number of these, and whole numbers add up exactly. It is kept in
digits of 32 bits, each in 64, so that a billion terms can be added before anything is carried.

References: Kulisch and Miranker (1986), "The arithmetic of the digital computer"; Neal (2015), "Fast exact summation using small
and large superaccumulators".
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints

N_DIGITS = 67  #: from the smallest float to the sum of a million times the largest one
CARRY_AFTER = 1 << 28  #: terms
_u = np.uint64
_DIGIT, _MANTISSA = _u(0xFFFFFFFF), _u((1 << 52) - 1)


class ExactSums:
    """Some sums, to which terms and other sums can be added in any order.

    >>> sums = ExactSums(2)
    >>> sums.add(np.array([1e100, 1.0, 0.1, -1e100]), np.array([0, 0, 1, 0]))
    >>> sums.values()
    array([1. , 0.1])
    """

    def __init__(self, n: int = 1) -> None:
        self.digits: Ints = np.zeros((n, N_DIGITS), np.int64)
        self.n_added = 0  # terms since digits were carried

    def add(self, terms: Floats, which: Ints | None = None) -> None:
        """Add finite terms, each to one of the sums; without `which` all to the first one."""
        if which is None:
            self.add_to(0, terms)
            return
        terms = np.ascontiguousarray(terms, np.float64)
        for low in range(0, len(terms), CARRY_AFTER):
            some = slice(low, low + CARRY_AFTER)
            self._make_room(len(terms[some]))
            _add(terms[some].view(np.uint64), which[some], self.digits)

    def add_to(self, which: int, terms: Floats) -> None:
        """Add finite terms to one of the sums."""
        terms = np.ascontiguousarray(terms, np.float64)
        for low in range(0, len(terms), CARRY_AFTER):
            some = terms[low : low + CARRY_AFTER]
            self._make_room(len(some))
            _add_all(some.view(np.uint64), self.digits[which])

    def add_rows(self, terms: Floats) -> None:
        """Add the columns of a table, each to its own sum."""
        for which in range(len(self.digits)):
            self.add_to(which, terms[:, which])

    def include(self, other: ExactSums) -> None:
        """Add all terms of other sums."""
        self.carry()
        theirs = other.digits.copy()
        _carry(theirs)
        self.digits += theirs
        self.n_added = 2

    def carry(self) -> None:
        """Bring the digits within 32 bits."""
        _carry(self.digits)
        self.n_added = 0

    def values(self) -> Floats:
        """The sums, correctly rounded."""
        self.carry()
        values = np.empty(len(self.digits))
        _read(self.digits, values)
        return values

    def _make_room(self, n_terms: int) -> None:
        if self.n_added + n_terms > CARRY_AFTER:
            self.carry()
        self.n_added += n_terms


def exact_sum(terms: Floats) -> float:
    """The sum of finite terms, correctly rounded, so that their order does not matter.

    >>> exact_sum(np.full(10, 0.1)), exact_sum(np.empty(0))
    (1.0, 0.0)
    """
    sums = ExactSums()
    sums.add(terms)
    return float(sums.values()[0])


@njit(cache=True, nogil=True, inline="always")
def _add_one(bits, digits):  # type: ignore[no-untyped-def]
    exponent = (bits >> _u(52)) & _u(0x7FF)
    mantissa = bits & _MANTISSA
    if exponent:
        mantissa |= _u(1) << _u(52)
        exponent -= _u(1)
    at, shift = np.int64(exponent >> _u(5)), exponent & _u(31)
    low, high = (mantissa & _DIGIT) << shift, (mantissa >> _u(32)) << shift
    sign = np.int64(-1) if bits >> _u(63) else np.int64(1)
    digits[at] += sign * np.int64(low & _DIGIT)
    digits[at + 1] += sign * np.int64((low >> _u(32)) + (high & _DIGIT))
    digits[at + 2] += sign * np.int64(high >> _u(32))


@njit(cache=True, nogil=True)
def _add_all(bits, digits):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        _add_one(bits[i], digits)


@njit(cache=True, nogil=True)
def _add(bits, which, digits):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        _add_one(bits[i], digits[which[i]])


@njit(cache=True, nogil=True)
def _carry(digits):  # type: ignore[no-untyped-def]
    """All digits but the last between 0 and 2^32; the last one has the sign."""
    for i in range(len(digits)):
        for at in range(digits.shape[1] - 1):
            over = digits[i, at] >> 32
            digits[i, at] -= over << 32
            digits[i, at + 1] += over


@njit(cache=True, nogil=True)
def _read(digits, values):  # type: ignore[no-untyped-def]
    n = digits.shape[1]
    size = np.empty(n, np.int64)
    for i in range(len(digits)):
        is_negative = digits[i, n - 1] < 0
        borrow = np.int64(0)
        for at in range(n):  # the digits of the absolute value
            if is_negative:
                digit = -digits[i, at] - borrow
                borrow = np.int64(1) if digit < 0 and at < n - 1 else np.int64(0)
                size[at] = digit + (borrow << 32)
            else:
                size[at] = digits[i, at]
        top = n - 1
        while top > 0 and size[top] == 0:
            top -= 1
        # The first 64 bits, of which the last also says whether any bit behind it is set; a conversion rounds these once.
        whole, position, place, n_bits = _u(size[top]), 32 * top, top, 0
        while n_bits < 64 and whole >> _u(n_bits):
            n_bits += 1
        while place > 0 and n_bits <= 32:
            place -= 1
            whole = (whole << _u(32)) | _u(size[place])
            n_bits, position = n_bits + 32, position - 32
        if place > 0 and n_bits < 64:
            place -= 1
            more = _u(64 - n_bits)
            whole = (whole << more) | (_u(size[place]) >> (_u(32) - more))
            position -= 64 - n_bits
            if size[place] & np.int64((_u(1) << (_u(32) - more)) - _u(1)):
                whole |= _u(1)
        for at in range(place):
            if size[at]:
                whole |= _u(1)
        value = math.ldexp(np.float64(whole), position - 1074)
        values[i] = -value if is_negative else value
