"""The one hash of recrawl: XXH64 with seed 0, read as a signed 64-bit integer.

Ids of URLs and terms, and digests of texts and link sets, are all made here. XXH64 is a published, stable function that other
engines know (`xxhash64` in Trino, `xxHash64` in ClickHouse), so ids can be joined without recrawl.
"""

from __future__ import annotations

import xxhash

_SIGN, _RANGE = 1 << 63, 1 << 64


def hash64(data: bytes | str) -> int:
    """The signed 64-bit XXH64 of bytes, or of a text's UTF-8.

    >>> hash64("https://example.org/")
    5946287761419108731
    """
    value = xxhash.xxh64_intdigest(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return value - _RANGE if value >= _SIGN else value
