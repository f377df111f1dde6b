"""What all tests share."""

import gc
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

# Tests are imported by path, each by itself; this lets them import the helpers that lie beside this file, and `fuzz`.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

# A job in the background ignores Ctrl-C, and so would every process that a test starts to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run; how long one takes depends on who else uses the machine.
settings.register_profile("recrawl", derandomize=True, deadline=None)
settings.load_profile("recrawl")


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data; tests that need it are skipped where it is not."""
    from shared_data import DATA, MISSING

    if not DATA.is_dir():
        pytest.skip(MISSING)
    return DATA


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """The environment of a process whose object store is a server on this machine."""
    from s3_server import s3_server

    with s3_server() as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def s3_url(s3: None) -> str:
    """A place for a history there."""
    from s3_server import BUCKET

    return f"s3://{BUCKET}/{uuid4().hex}"


#: Tests that take a minute and more: they begin first, so that no worker waits for them at the end.
LONG = ("test_the_tour_of_the_readme", "test_the_loop_closes", "test_the_demo_ends_in")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was collected stays to the end: no collection of garbage need look at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.name.startswith(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """In files of tests there are no examples to be looked for, as there are in the helpers beside them."""
    found = yield
    return [
        each for each in found if not (file_path.name.startswith("test_") and type(each).__name__ == "DoctestModule")
    ]
