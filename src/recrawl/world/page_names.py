"""The pages of a world in the order of their URLs, with their hosts and sites, and groups of similar URLs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.arrays import Bytes, Flags, Ints, Ints32
from recrawl.history import History
from recrawl.web import urls
from recrawl.world.kernels import other_servers, spellings


def named_pages(history: History, ids: Ints) -> tuple[Ints, pa.Array, Ints, Ints]:
    """Pages in the order of their URLs: ids, URLs, hosts and sites."""
    url = history.page_urls(ids).cast(pa.string())
    by_name = pc.sort_indices(url).to_numpy()
    url = url.take(pa.array(by_name))
    return ids[by_name], url, *hosts_and_sites(url)


def hosts_and_sites(url: pa.Array) -> tuple[Ints, Ints]:
    """The host and the site of each canonical URL, as small numbers.

    >>> [part.tolist() for part in hosts_and_sites(pa.array(["https://a.e.org/", "https://b.e.org/x", "http://a.e.org:8/?y=/"]))]
    [[0, 1, 0], [0, 0, 0]]
    """
    # The part between the second and the third slash, once for all consecutive pages that share it: patterns are slow.
    is_other = _other_servers(url)
    servers = pc.list_element(pc.split_pattern(url.filter(pa.array(is_other)), "/", max_splits=3), 2)
    names = pc.replace_substring_regex(servers, r"^(?:[^@]*@)?(\[[^\]]*\]|[^:?#]*).*$", r"\1")
    hosts = names.dictionary_encode()
    host = indices(hosts)[np.cumsum(is_other) - 1]
    sites = pa.array([urls.site(name) for name in hosts.dictionary.to_pylist()], pa.string()).dictionary_encode()
    return host, indices(sites)[host] if len(host) else host


def folders_and_namesakes(url: pa.Array) -> tuple[Ints, Ints]:
    """Groups of canonical URLs, as small numbers: those in the same folder, and those of a host with the same name but for numbers.

    Pages with similar URLs tend to change at similar rates: slides of a talk never change, and the errata of one release are
    corrected as those of another were. A query belongs to the name, without its values.

    >>> urls = ["http://e.org/a/x1.html", "http://e.org/a/x22.html", "http://e.org/b/x3.html", "http://e.org/b/y?n=1", "http://e.org/b/y?n=z"]
    >>> [part.tolist() for part in folders_and_namesakes(pa.array(urls))]
    [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    """
    if not len(url):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    folder, name = (indices(pa.array(part).dictionary_encode()) for part in spellings(*letters(url)))
    return folder, name


def _other_servers(url: pa.Array) -> Flags:
    """Which URLs have another server than the one before."""
    if not len(url):
        return np.zeros(0, np.bool_)
    other: Flags = other_servers(*letters(url))
    return other


def letters(url: pa.Array) -> tuple[Bytes, Ints32]:
    """All URLs one after the other, and where each of them begins."""
    _, offsets, text = url.buffers()
    start = np.frombuffer(offsets, np.int32)[url.offset : url.offset + len(url) + 1]
    return np.frombuffer(text, np.uint8), start


def indices(encoded: pa.DictionaryArray) -> Ints:
    """The number of each value."""
    numbers: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
