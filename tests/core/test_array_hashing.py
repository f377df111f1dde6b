import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.core.array_hashing import hash64_slices, hash64_strings
from recrawl.core.hashing import hash64


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_slices_hash_as_the_same_bytes_one_by_one(parts: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, parts)])
    digests = hash64_slices(np.frombuffer(b"".join(parts), np.uint8), offsets)
    assert digests.tolist() == [hash64(part) for part in parts]


@settings(deadline=None)  # the first example compiles
@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=100), max_size=20), st.integers(0, 5)
)
def test_strings_hash_as_one_by_one_also_in_a_slice(texts: list[str], skipped: int) -> None:
    array = pa.array(texts, pa.string()).slice(skipped)
    assert hash64_strings(array).tolist() == [hash64(text) for text in texts[skipped:]]


def test_chunks_and_large_strings_hash_alike() -> None:
    chunked = pa.chunked_array([["a", "bc"], ["äöü"]])
    assert hash64_strings(chunked).tolist() == [hash64(text) for text in ("a", "bc", "äöü")]
    assert hash64_strings(chunked.cast(pa.large_string())).tolist() == hash64_strings(chunked).tolist()
    assert hash64_strings(pa.array([], pa.string())).tolist() == []
