"""Writers, readers and several compactions at once."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import cycle
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
            Visit(url=f"https://e{page}.org/{name}", at=at, links=[f"https://e.org/{name}/{page % 2}/{hour % 4}"])
            for page in range(PAGES)
        )


def compact(folder: str, end: str) -> None:
    """Again and again, until a file says that the writers have ended."""
    while not Path(end).exists():
        History.open(folder).compact()


def lay_out(folder: str, end: str) -> None:
    """The same in other buckets every time."""
    for n in cycle((3, 4, 0, 4)):
        if Path(end).exists():
            return
        History.open(folder).compact(buckets=n)


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


def test_no_reader_of_a_bucket_and_no_writer_is_disturbed_while_it_is_laid_out(tmp_path: Path) -> None:
    folder = str(History.create(tmp_path / "h").store.folder)
    end = tmp_path / "end"
    tasks = [("write", "a"), ("write", "b"), ("lay_out", str(end)), ("lay_out", str(end))]
    workers = [subprocess.Popen([sys.executable, __file__, folder, *task]) for task in tasks]
    whole = History.open(folder)
    while any(worker.poll() is None for worker in workers):
        before = whole.n_rows()
        views = [whole.bucket(number, 4) for number in range(4)]
        seen = [view.timeline for view in views]
        assert sum(timeline.n_visits for timeline in seen) >= min(before, 2 * APPENDS * PAGES)
        assert all((timeline.links >= 0).all() for timeline in seen)
        if all(writer.poll() is not None for writer in workers[:2]):
            end.touch()
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    assert whole.timeline.n_visits == 2 * APPENDS * PAGES
    for n in (3, 4):
        views = [whole.bucket(number, n).timeline for number in range(n)]
        assert sum(view.n_visits for view in views) == 2 * APPENDS * PAGES
        assert all((view.links >= 0).all() for view in views)


if __name__ == "__main__":
    what, argument = sys.argv[2:]
    {"write": write, "compact": compact, "lay_out": lay_out}[what](sys.argv[1], argument)
