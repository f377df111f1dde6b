"""Values as bytes, for their way between processes: plain values, arrays and recrawl's own objects, without any code in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.snapshot import restored, taken
from recrawl.errors import BadState

_LZ4 = pa.Codec("lz4_raw")
_HEAD = 16  # bytes: the sizes of the text and of everything behind it


def packed(value: Any) -> bytes:
    """A value as bytes; what can be packed is what `recrawl.core.snapshot` can take.

    >>> unpacked(packed({"links": np.array([3, 5]), "why": "new"}))
    {'links': array([3, 5]), 'why': 'new'}
    """
    tree, arrays = taken(value)
    plain = [np.ascontiguousarray(each) for each in arrays]
    listed = [{"dtype": each.dtype.str, "shape": each.shape} for each in plain]
    text = orjson.dumps({"tree": tree, "arrays": listed})
    body = b"".join(each.tobytes() for each in plain)
    head = len(text).to_bytes(8, "little") + len(body).to_bytes(8, "little")
    return head + text + bytes(_LZ4.compress(pa.py_buffer(body)))


def unpacked(data: bytes) -> Any:
    """The inverse of `packed`."""
    n_text, n_body = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:_HEAD], "little")
    about = orjson.loads(data[_HEAD : _HEAD + n_text])
    body = _LZ4.decompress(data[_HEAD + n_text :], n_body) if n_body else b""
    arrays, at = list[NDArray[Any]](), 0
    for each in about["arrays"]:
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        n_bytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if at + n_bytes > n_body:
            raise BadState("a parcel is cut")
        arrays.append(np.frombuffer(body, dtype, n_bytes // dtype.itemsize, at).reshape(shape).copy())
        at += n_bytes
    return restored(about["tree"], arrays)
