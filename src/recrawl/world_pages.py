"""The pages of a world: in the order of their URLs, with the hosts and sites that they belong to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl import urls
from recrawl.history import History
from recrawl.policies.base import Flags, Ints
from recrawl.world_kernels import other_servers


def named_pages(history: History, ids: Ints) -> tuple[Ints, pa.Array, Ints, Ints]:
    """Pages in the order of their URLs: ids, URLs, hosts and sites."""
    url = history.urls_of(ids).cast(pa.string())
    by_name = pc.sort_indices(url).to_numpy()
    url = url.take(pa.array(by_name))
    return ids[by_name], url, *hosts_and_sites(url)


def hosts_and_sites(url: pa.Array) -> tuple[Ints, Ints]:
    """The host and the site of each canonical URL, as small numbers.

    >>> [part.tolist() for part in hosts_and_sites(pa.array(["https://a.e.org/", "https://b.e.org/x", "http://a.e.org:8/?y=/"]))]
    [[0, 1, 0], [0, 0, 0]]
    """
    # What stands between the second and the third slash, once for all pages in a row that have it: patterns are slow.
    is_other = _other_servers(url)
    servers = pc.list_element(pc.split_pattern(url.filter(pa.array(is_other)), "/", max_splits=3), 2)
    names = pc.replace_substring_regex(servers, r"^(?:[^@]*@)?(\[[^\]]*\]|[^:?#]*).*$", r"\1")
    hosts = names.dictionary_encode()
    host = _indices(hosts)[np.cumsum(is_other) - 1]
    sites = pa.array([urls.site(name) for name in hosts.dictionary.to_pylist()], pa.string()).dictionary_encode()
    return host, _indices(sites)[host] if len(host) else host


def _other_servers(url: pa.Array) -> Flags:
    """Which URLs are of another server than the one before."""
    if not len(url):
        return np.zeros(0, np.bool_)
    _, offsets, text = url.buffers()
    start = np.frombuffer(offsets, np.int32)[url.offset : url.offset + len(url) + 1]
    other: Flags = other_servers(np.frombuffer(text, np.uint8), start)
    return other


def _indices(encoded: pa.DictionaryArray) -> Ints:
    numbers: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
