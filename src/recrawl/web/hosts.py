"""The hosts and sites of many canonical URLs at once: compiled code cuts names out and hashes them, the rest is work per host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from recrawl.core.array_hashing import hash_slice
from recrawl.core.arrays import Bytes, Ints
from recrawl.core.hashtable import numbers_of
from recrawl.web.urls import site


def hosts_of(url: pa.Array) -> tuple[Ints, list[str]]:
    """The number of each URL's host, in the order in which hosts are first seen, and their names (see `recrawl.web.urls.host`).

    >>> hosts_of(pa.array(["https://b.e.org/", "http://[::1]:8/x", "http://b.e.org:8443/?y=/"]))
    (array([0, 1, 0]), ['b.e.org', '[::1]'])
    """
    text, start = letters(url)
    digest, low, high = _host_names(text, start)
    number = np.asarray(numbers_of(digest))
    first = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
    return number, [text[low[i] : high[i]].tobytes().decode() for i in first.tolist()]


def hosts_and_sites(url: pa.Array) -> tuple[Ints, Ints]:
    """The host and the site of each URL, as small numbers.

    >>> [part.tolist() for part in hosts_and_sites(pa.array(["https://a.e.org/", "https://b.e.org/x", "http://a.e.org:8/?y=/"]))]
    [[0, 1, 0], [0, 0, 0]]
    """
    host, names = hosts_of(url)
    numbers: dict[str, int] = {}
    of_host = np.array([numbers.setdefault(site(name), len(numbers)) for name in names], np.int64)
    return host, of_host[host]


def letters(url: pa.Array) -> tuple[Bytes, NDArray[np.int32 | np.int64]]:
    """All URLs one after the other, and where each of them begins."""
    kind: type[Any] = np.int64 if pa.types.is_large_string(url.type) else np.int32
    _, offsets, text = url.buffers()
    if not len(url) or text is None:
        return np.zeros(0, np.uint8), np.zeros(len(url) + 1, kind)
    start = np.frombuffer(offsets, kind)[url.offset : url.offset + len(url) + 1]
    return np.frombuffer(text, np.uint8), start


_SLASH, _COLON, _BRACKET = ord("/"), ord(":"), ord("]")


@njit(cache=True, nogil=True)
def _host_names(text, start):  # type: ignore[no-untyped-def]
    """Where the host of each URL begins and ends, and a hash of its name."""
    n = len(start) - 1
    digest, low, high = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        at, end = np.int64(start[i]), np.int64(start[i + 1])
        n_slashes = 0
        while at < end and n_slashes < 2:
            n_slashes += text[at] == _SLASH
            at += 1
        low[i] = at
        while at < end and text[at] != _SLASH:
            at += 1
        high[i] = at
        while at > low[i] and text[at - 1] != _COLON and text[at - 1] != _BRACKET:
            at -= 1
        if at > low[i] and text[at - 1] == _COLON:  # a port follows
            high[i] = at - 1
        digest[i] = np.int64(hash_slice(text, low[i], high[i]))
    return digest, low, high
