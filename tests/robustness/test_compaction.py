"""Writers, readers and several compactions at once."""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recrawl.history import History
from recrawl.web.visit import Visit

START = datetime(2024, 1, 1, tzinfo=UTC)
APPENDS, PAGES = 15, 10


def write(folder: str, name: str) -> None:
    history = History.open(folder)
    for hour in range(APPENDS):
        at = START + timedelta(hours=hour)
        history.add(
            Visit(url=f"https://e.org/{name}-{page}", at=at, links=[f"https://e.org/{name}/{page}/{hour}"])
            for page in range(PAGES)
        )


def compact(folder: str, until: float) -> None:
    while time.time() < until:
        History.open(folder).compact()


def test_compactions_disturb_no_reader_and_no_writer(tmp_path: Path) -> None:
    folder = str(History.create(tmp_path / "h").store.folder)
    tasks = [("write", "a"), ("write", "b"), ("compact", str(time.time() + 8)), ("compact", str(time.time() + 8))]
    workers = [subprocess.Popen([sys.executable, __file__, folder, *task]) for task in tasks]
    while any(worker.poll() is None for worker in workers):
        assert History.open(folder).timeline.n_visits >= 0
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert History.open(folder).timeline.n_visits == 2 * APPENDS * PAGES


if __name__ == "__main__":
    what, argument = sys.argv[2:]
    if what == "write":
        write(sys.argv[1], argument)
    else:
        compact(sys.argv[1], float(argument))
