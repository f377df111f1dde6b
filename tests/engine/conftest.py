"""One session of Sail for each file of tests."""

from collections.abc import Iterator

import pytest

from recrawl.engine import Engine, open_engine


@pytest.fixture(scope="module")
def sail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with open_engine("sail", work=tmp_path_factory.mktemp("work")) as engine:
        yield engine
