"""Small tables, taught on one thread: for forty rows the threads of OpenMP cost more than the work."""

from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    with threadpool_limits(1, "openmp"):
        yield


@pytest.fixture(scope="session")
def ngboost_is_loaded() -> None:
    """A package that it needs warns when it is first imported. That takes seconds, so no test does so while it is collected."""
    import ngboost  # noqa: F401


@pytest.fixture(scope="session")
def awkward() -> tuple[np.ndarray, np.ndarray]:
    """Features with holes, an empty column and a constant one; counts that follow the first column."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(80, 4))
    counts = rng.poisson(np.exp(features[:, 0]))
    features[::3, 1], features[:, 2], features[:, 3] = np.nan, np.nan, 1.0
    return features, counts
