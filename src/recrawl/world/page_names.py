"""The pages of a world in the order of their URLs, with their hosts and sites, and groups of similar URLs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.arrays import Ints
from recrawl.history import History
from recrawl.web.hosts import hosts_and_sites, letters
from recrawl.world.kernels import spellings


def named_pages(history: History, ids: Ints) -> tuple[Ints, pa.Array, Ints, Ints]:
    """Pages in the order of their URLs: ids, URLs, hosts and sites."""
    url = history.page_urls(ids).cast(pa.string())
    by_name = pc.sort_indices(url).to_numpy()
    url = url.take(pa.array(by_name))
    return ids[by_name], url, *hosts_and_sites(url)


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


def indices(encoded: pa.DictionaryArray) -> Ints:
    """The number of each value."""
    numbers: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
