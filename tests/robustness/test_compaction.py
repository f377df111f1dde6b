"""Writers, readers and several compactions at once."""

import subprocess
import sys
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


def compact(folder: str, end: str) -> None:
    """Again and again, until a file says that the writers have ended."""
    while not Path(end).exists():
        History.open(folder).compact()


def test_compactions_disturb_no_reader_and_no_writer(tmp_path: Path) -> None:
    folder = str(History.create(tmp_path / "h").store.folder)
    end = tmp_path / "end"
    tasks = [("write", "a"), ("write", "b"), ("compact", str(end)), ("compact", str(end))]
    workers = [subprocess.Popen([sys.executable, __file__, folder, *task]) for task in tasks]
    while any(worker.poll() is None for worker in workers):
        assert History.open(folder).timeline.n_visits >= 0
        if all(writer.poll() is not None for writer in workers[:2]):
            end.touch()
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert History.open(folder).timeline.n_visits == 2 * APPENDS * PAGES


if __name__ == "__main__":
    what, argument = sys.argv[2:]
    if what == "write":
        write(sys.argv[1], argument)
    else:
        compact(sys.argv[1], argument)
