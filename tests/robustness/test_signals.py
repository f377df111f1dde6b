"""Ctrl-C and SIGTERM in the middle of every command that may take long: one line, nothing half made, and the same again is whole.

Each command halts at a step of its work (`halting.py`), gets the signal exactly there, and is run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from commands import Done, command, output
from crawl.crawling import visits
from crawl.held import Crawl, gates, plan_file
from making import story
from patience import patience, wait_for
from processes import members
from recrawl.cli import app
from recrawl.errors import HistoryError
from recrawl.history import History, ingest
from recrawl.history.plans import stored
from recrawl.history.repair import repair
from recrawl.history.watching import newest
from recrawl.models.saved import load
from sources.archive_server import ArchiveServer

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a list of processes")

VISITS_PER_COMMIT = 20
INT, TERM = signal.SIGINT, signal.SIGTERM
CODES = {INT: 130, TERM: 143}
LAST_LINE = r"stopped([:;] .*)?"
PLANNED_AT = "2020-09-01T00:00Z"


@dataclass(frozen=True)
class Case:
    """A command, and where it is disturbed: the first step in every run of the tests, all of them in the slow ones."""

    arguments: str
    steps: tuple[str, ...]
    n_disk: int = 0  # how many of all steps to the disk are tried besides, in the slow ones
    adds: str = ""  # a history that visits are added to
    shows_progress: bool = False  # what it says depends on how much of the work was done before
    is_slow: bool = False  # left to the slow tests


CASES = {
    "import": Case(
        "import visits.jsonl --history new --verbose --workers 1 --json",
        ("recrawl.history.store:Store._append_visits#3", "recrawl.history.commits:_add#7"),
        n_disk=12,
        adds="new",
    ),
    "import in processes": Case(
        "import visits.jsonl --history new --workers 2 --json",
        ("recrawl.history.ingest:_result#1",),
        2,
        adds="new",
        is_slow=True,
    ),
    "info": Case("info --history history --json", ("recrawl.history.summary:summary#1",)),
    "show": Case("show URL --history history --json", ("recrawl.history.page_timeline:page_timeline#1",), is_slow=True),
    "stats": Case(
        "stats --history history --out page.html --json",
        ("recrawl.report.page:render#1", "recrawl.report.stats.analysis:analyse#1", "recrawl.core.files:draft#2"),
        n_disk=4,
    ),
    "train": Case(
        "train --history history --learner average-count --out trained.recrawl --json",
        ("os:replace#1", "recrawl.models.predictor:train#1"),
        n_disk=3,
    ),
    "predict": Case(
        "predict --model model.recrawl --history history --out rows.jsonl",
        ("orjson:dumps#20", "os:replace#1"),
        n_disk=3,
    ),
    "evaluate": Case(
        "evaluate --history history --method history-aware --windows 1,2 --out page.html --json",
        ("recrawl.report.page:render#1", "recrawl.papers.updates.evaluation:evaluate_updates#1"),
        n_disk=2,
    ),
    "replay": Case(
        "replay --history history --policies round-robin,bandit --rows rows.jsonl --resume kept --json",
        ("recrawl.replay.runs:Run.rows#2", "orjson:dumps#9", "os:replace#1"),
        n_disk=4,
    ),
    "replay in processes": Case(
        "replay --history history --policies round-robin,bandit --workers 2 --json",
        ("recrawl.core.workers:Workers.submit#2", "recrawl.replay.many:_result#1"),
        is_slow=True,
    ),
    "tune": Case(
        "tune --history history --json", ("recrawl.replay.runs:Run.rows#2", "recrawl.replay.runs:Run.rows#5"), n_disk=3
    ),
    "experiments": Case(
        "experiments harvest --history history --parts ablation --budget 5 --orders 1 --workers 1 --out page.html --json",
        ("recrawl.replay.runs:Run.rows#1",),
        n_disk=2,
        is_slow=True,
    ),
    "plan": Case(
        f"plan --history history --budget 4 --as-of {PLANNED_AT} --out plan.jsonl",
        ("recrawl.history.plans:keep#1", "recrawl.plan.planner:Planner.plan#1", "orjson:dumps#3"),
        n_disk=8,
    ),
    "explain": Case(
        f"explain URL --history history --budget 4 --as-of {PLANNED_AT} --json",
        ("recrawl.plan.planner:Planner.explain#1",),
    ),
    "score": Case("score --history history --json", ("recrawl.plan.score:_score#1",)),
    "watch": Case("watch --stop *e* --history history --json", ("recrawl.history.commits:_add#1",), n_disk=6),
    "seeds": Case(
        "seeds --history history --out seeds.txt", ("os:replace#1", "recrawl.report.seeds:seeds#1"), n_disk=2
    ),
    "relevance": Case(
        "relevance --labels labels.csv --out topic.json --json",
        ("os:replace#1", "recrawl.models.relevance:_fitted#2"),
        n_disk=2,
    ),
    "synth": Case(
        "synth --pages 30 --rounds 3 --history new --json",
        ("recrawl.history.commits:DurableTable._commit#2", "recrawl.history.commits:_add#1"),
        n_disk=12,
        adds="new",
    ),
    "synth as a file": Case(
        "synth --pages 30 --rounds 3 --out web.jsonl", ("orjson:dumps#20", "os:replace#1"), n_disk=2
    ),
    "synth as WARC": Case(
        "synth --pages 30 --rounds 3 --out web.warc.gz", ("recrawl.synth.write:warc_record#20",), n_disk=2, is_slow=True
    ),
    "export": Case("export visits --history history --out rows.jsonl", ("orjson:dumps#20", "os:replace#1"), n_disk=2),
    "export as Parquet": Case(
        "export links --history history --out rows.parquet",
        ("recrawl.cli.export:_write_parquet#1",),
        n_disk=2,
        is_slow=True,
    ),
    "compact": Case(
        "compact --history history",
        ("recrawl.history.commits:DurableTable._commit#2", "recrawl.history.commits:_add#2"),
        n_disk=12,
        shows_progress=True,
    ),
    "compact in buckets": Case(
        "compact --buckets 5 --history history",
        ("recrawl.history.layout:Layout._uses#1", "recrawl.history.commits:_add#20"),
        n_disk=12,
        shows_progress=True,
    ),
    "repair": Case("repair --history damaged --json", ("recrawl.history.commits:DurableTable.adopt#1",), n_disk=5),
}
QUICK = [name for name, case in CASES.items() if not case.is_slow]
Undisturbed = Callable[[list[str]], tuple[Done, dict[str, Any]]]


@pytest.fixture(autouse=True)
def commits_as_in_the_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "COMMIT_VISITS", VISITS_PER_COMMIT)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        output("synth", "--pages", "40", "--rounds", "6", "--seed", "1", "--history", "history")
        output("synth", "--pages", "40", "--rounds", "6", "--seed", "2", "--out", "visits.jsonl")
        output("train", "--history", "history", "--learner", "average-count", "--out", "model.recrawl")
        output("plan", "--history", "history", "--budget", "4", "--as-of", "2020-08-10T00:00Z")
        lines = (f"https://e.org/{('wine', 'iron')[i % 2]}/{i},{i % 2}\n" for i in range(40))
        Path("labels.csv").write_text("url,label\n" + "".join(lines))
    return folder


@pytest.fixture(scope="module")
def undisturbed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """What a command says, and what is there afterwards, if nothing disturbs it."""
    found: dict[str, tuple[Done, dict[str, Any]]] = {}

    def ask(arguments: list[str]) -> tuple[Done, dict[str, Any]]:
        if (key := " ".join(arguments)) not in found:
            folder = tmp_path_factory.mktemp("undisturbed") / "folder"
            prepare(made, folder, arguments)
            found[key] = done_in(folder, arguments), contents(folder)
        return found[key]

    return ask


def prepare(made: Path, folder: Path, arguments: list[str]) -> None:
    """What a command needs; what it repairs is damaged."""
    folder.parent.mkdir(exist_ok=True)
    shutil.copytree(made, folder)
    if arguments[0] == "repair":
        (folder / "history").rename(folder / "damaged")
        next((folder / "damaged" / "visits" / "_delta_log").glob("*1.json")).write_bytes(b"")


def done_in(folder: Path, arguments: list[str]) -> Done:
    with chdir(folder):
        done = command(*arguments)
    assert done.code == 0, done
    return done


def contents(folder: Path) -> dict[str, Any]:
    """All that the files of a folder say; histories and models by what they tell, not by when that was noted."""
    histories = [marker.parent for marker in folder.glob("*/recrawl.json")]
    found: dict[str, Any] = {path.name: content_of(path) for path in histories}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(history) for history in histories):
            found[str(path.relative_to(folder))] = content(path)
    return found


contents_of = cache(contents)  #: a folder that stays as it is


def content(path: Path) -> Any:
    if path.suffix == ".recrawl":
        return sorted(load(path).scores.items())
    return lasting(path.read_text()) if path.suffix == ".jsonl" else path.read_bytes()


def content_of(folder: Path) -> dict[str, Any]:
    try:
        history = History.open(folder)
    except HistoryError:
        return {"is damaged": True}
    tuned = history.beside.read_bytes("tuned.json")
    return {
        **story(history),
        "plans": stored(history.beside).to_pylist(),
        "watched": newest(history).drop_columns(["at"]).to_pylist(),
        "is tuned": tuned is not None,
    }


# -- one command, one signal -------------------------------------------------------------------------------------------


class Processes:
    """Begins commands that halt, one after the other."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("halting.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, folder: Path, steps: list[str], arguments: list[str]) -> int:
        """Begin a command; the number of its process."""
        folder.with_name("temporary").mkdir()
        os.mkfifo(folder.with_name("go"))
        given = {"folder": str(folder), "steps": steps, "arguments": arguments, "visits_per_commit": VISITS_PER_COMMIT}
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(given)}\n")
        self._process.stdin.flush()
        return int(self.answer())

    def answer(self) -> str:
        """The next line that is said of the command."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(patience(60)) == 0


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    begun = Processes()
    yield begun
    begun.end()


def send(process: int, number: signal.Signals) -> None:
    """As a terminal sends Ctrl-C, to all processes of the command; as a supervisor sends SIGTERM, to the first one."""
    if number == INT:
        os.killpg(process, number)
    else:
        os.kill(process, number)


def stopped(processes: Processes, folder: Path, steps: list[str], arguments: list[str], number: signal.Signals) -> Done:
    """Send a signal at each of the steps; what the command says then."""
    process = processes.begin(folder, steps, arguments)
    while (answer := processes.answer()) == "halted":
        send(process, number)
        folder.with_name("go").write_text("\n")
        steps = steps[1:]
    said = Done(int(answer.split()[1]), folder.with_name("out").read_text(), folder.with_name("err").read_text())
    assert not steps, f"{steps} was never reached: {said}"
    assert wait_for(lambda: not members(process)), "a process is left"
    return said


def check_said(done: Done, number: signal.Signals, usual: str) -> None:
    """One line besides what the command says anyway."""
    assert done.code == CODES[number], done
    *before, last = done.stderr.splitlines()
    assert re.fullmatch(LAST_LINE, last), done.stderr
    assert not Counter(before) - Counter(usual.splitlines()), done.stderr


def check_nothing_half_made(folder: Path, made: Path, whole: dict[str, Any], adds: str = "") -> dict[str, Any]:
    """Files are absent, as before or complete, and histories whole; all that they say."""
    assert not any((folder.parent / "temporary").iterdir())
    left = [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix in (".draft", ".scratch")]
    assert not left
    for marker in folder.glob("*/recrawl.json"):
        if marker.parent.name != "damaged":
            assert repair(marker.parent) == []
            check_files(marker.parent, made / marker.parent.name)
    now, before = contents(folder), contents_of(made)
    for name, found in now.items():
        if name == adds:
            seen = Counter(zip(found["urls"], found["rows"], strict=True))
            assert not seen - Counter(zip(whole[name]["urls"], whole[name]["rows"], strict=True))
        elif name != "damaged" and not (adds and name.startswith(f"{adds}/")):  # a history that is not made yet
            assert found in (before.get(name), whole.get(name)), name
    return now


def check_files(history: Path, before: Path) -> None:
    """No data file is there that no version ever named; those that a compaction replaced may be."""
    store = History.open(history).store
    for name in store.n_files():
        named = {Path(file).name for file in store.files(name)} | {
            path.name for path in (before / name).glob("*.parquet")
        }
        assert {path.name for path in (history / name).glob("*.parquet")} <= named, name


def disturb(
    case: Case,
    step: str,
    number: signal.Signals,
    folder: Path,
    made: Path,
    processes: Processes,
    undisturbed: Undisturbed,
) -> None:
    arguments = words(case, made)
    usual, whole = undisturbed(arguments)
    prepare(made, folder, arguments)
    done = stopped(processes, folder, [step], arguments, number)
    check_said(done, number, usual.stderr)
    now = check_nothing_half_made(folder, made, whole, case.adds)
    if case.adds:
        safe = [int(n) for n in re.findall(r"safe: (\d+) visits", done.stderr)]
        assert n_visits(folder / case.adds) >= max(safe, default=0)
    again = done_in(folder, arguments)
    was_done = now == whole != contents_of(made)
    assert case.shows_progress or was_done or lasting(again.stdout) == lasting(usual.stdout)
    assert contents(folder) == whole


def words(case: Case, made: Path) -> list[str]:
    history = History.open(made / "history")
    url = history.urls_of(history.timeline.pages[:1])[0].as_py()
    return [url if word == "URL" else word for word in case.arguments.split()]


def n_visits(folder: Path) -> int:
    return History.open(folder).timeline.n_visits if (folder / "recrawl.json").exists() else 0


def lasting(text: str) -> str:
    """What a command says, but for how long it took, when that was, and how much was there already."""
    return re.sub(r'"(added|duplicates|seconds\w*|made_at|wrong)":("[^"]*"|\[[^\]]*\]|[\d.e-]+)', "", text)


@pytest.mark.parametrize("name", QUICK)
def test_a_signal_ends_a_command_in_order_and_the_same_again_is_whole(
    name: str, made: Path, tmp_path: Path, processes: Processes, undisturbed: Undisturbed
) -> None:
    number = (INT, TERM)[QUICK.index(name) % 2]
    disturb(CASES[name], CASES[name].steps[0], number, tmp_path / "folder", made, processes, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("number", [INT, TERM], ids=["INT", "TERM"])
@pytest.mark.parametrize("name", CASES)
def test_either_signal_at_many_steps(
    name: str, number: signal.Signals, made: Path, tmp_path: Path, processes: Processes, undisturbed: Undisturbed
) -> None:
    case, broken = CASES[name], {}
    for i, step in enumerate([*case.steps, *disk_steps(case, made, tmp_path / "counted" / "folder", processes)]):
        try:
            disturb(case, step, number, tmp_path / str(i) / "folder", made, processes, undisturbed)
        except AssertionError as error:
            broken[step] = str(error)
    assert broken == {}


def disk_steps(case: Case, made: Path, folder: Path, processes: Processes) -> list[str]:
    """Some of the steps to the disk, from the first to the last."""
    if not case.n_disk:
        return []
    prepare(made, folder, words(case, made))
    processes.begin(folder, ["disk#0"], words(case, made))
    n = int(processes.answer())
    assert processes.answer() == "ended 0"
    k = min(n, case.n_disk)
    return [f"disk#{1 + i * (n - 1) // max(k - 1, 1)}" for i in range(k)]


# -- commands that need more, or end in another way ----------------------------------------------------------------------


def test_every_command_is_disturbed_somewhere() -> None:
    tried = {case.arguments.split()[0] for case in CASES.values()} | {"archive", "crawl", "demo"}
    assert {each.name for each in get_command(app).commands.values()} == tried  # type: ignore[attr-defined]


ARCHIVE = "archive example.org --contact me@e.org --interface internet-archive --history history --json --server"


@pytest.mark.parametrize(
    ("number", "step", "n_kept"),
    [
        (TERM, "recrawl.sources.wayback.client:Client.ask#3", 1),  # for the list, the first copy, the second one
        pytest.param(INT, "recrawl.sources.wayback.client:Client.ask#3", 1, marks=pytest.mark.slow),
        pytest.param(INT, "recrawl.sources.wayback.client:Client.ask#1", 0, marks=pytest.mark.slow),
        pytest.param(TERM, "recrawl.history.store:Store.append#1", 0, marks=pytest.mark.slow),
        pytest.param(INT, "recrawl.sources.wayback.archive:Archive.acknowledge#1", 3, marks=pytest.mark.slow),
    ],
)
def test_what_an_archive_has_sent_is_kept(
    number: signal.Signals, step: str, n_kept: int, tmp_path: Path, processes: Processes
) -> None:
    arguments = ARCHIVE.split()
    folder = tmp_path / "folder"
    with ArchiveServer() as server:
        for day, link in ((1, "a"), (2, "b"), (3, "c")):
            server.capture(
                f"2020010{day}000000", "http://example.org/", link * 32, body=f"<a href=/{link}>x</a>".encode()
            )
        folder.mkdir()
        (tmp_path / "whole").mkdir()
        done_in(tmp_path / "whole", [*arguments, server.base_url])
        check_said(stopped(processes, folder, [step], [*arguments, server.base_url], number), number, "")
        assert n_visits(folder / "history") == n_kept
        done_in(folder, [*arguments, server.base_url])
    assert story(History.open(folder / "history")) == story(History.open(tmp_path / "whole" / "history"))
    assert repair(folder / "history") == []


@pytest.mark.parametrize("number", [TERM, pytest.param(INT, marks=pytest.mark.slow)])
def test_a_crawl_keeps_what_was_fetched_and_the_next_one_continues(number: signal.Signals, tmp_path: Path) -> None:
    history = tmp_path / "history"
    History.create(history)
    with gates(1) as (gate,):
        urls = [*gate.urls(), *(gate.sites.url(f"/{i}") for i in range(20))]
        plan = plan_file(tmp_path / "pages.plan", urls)
        held = Crawl(history, "--plan", plan, "--delay", "0.3")
        held.hold(gate)
        held.process.send_signal(number)
        gate.open()
        summary = held.end()  # a crawl that was asked to end has done its job: exit code 0
        assert summary["ended"] == "shutdown"
        assert repair(history) == []
        n_there = n_visits(history)
        assert 0 < n_there == summary["visits"] < len(urls)
        assert Crawl(history, "--plan", plan).end()["planned"] == len(urls) - n_there
    assert {url: len(seen) for url, seen in visits(history).items()} == dict.fromkeys(urls, 1)


@pytest.mark.parametrize(
    ("number", "code", "word"), [(TERM, 143, "stopped"), pytest.param(INT, 0, "ended", marks=pytest.mark.slow)]
)
def test_a_served_web_ends_by_either_signal(
    number: signal.Signals, code: int, word: str, tmp_path: Path, processes: Processes
) -> None:
    (tmp_path / "folder").mkdir()
    done = stopped(processes, tmp_path / "folder", ["time:sleep#1"], ["synth", "--serve", "--pages", "20"], number)
    assert done.code == code  # for a server, Ctrl-C is the usual end
    assert done.stderr.splitlines()[-1] == word
    assert "Traceback" not in done.stderr
    assert not any((tmp_path / "folder").iterdir())


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (INT, "orjson:dumps#20"),
        pytest.param(TERM, "orjson:dumps#20", marks=pytest.mark.slow),
        pytest.param(INT, "recrawl.history.store:Store.append#1", marks=pytest.mark.slow),
        pytest.param(TERM, "recrawl.models.saved:save#1", marks=pytest.mark.slow),
        pytest.param(INT, "recrawl.replay.runs:Run.rows#3", marks=pytest.mark.slow),
        pytest.param(TERM, "recrawl.plan.score:store#1", marks=pytest.mark.slow),
    ],
)
def test_a_demo_leaves_no_half_of_a_file(
    number: signal.Signals, step: str, tmp_path: Path, processes: Processes, request: pytest.FixtureRequest
) -> None:
    folder, arguments = tmp_path / "folder", ["demo", "--pages", "30", "--folder", "demo"]
    folder.mkdir()
    done = stopped(processes, folder, [step], arguments, number)
    *steps, last = done.stderr.splitlines()
    assert (done.code, last) == (CODES[number], "stopped")
    assert all(re.match(r"\d/6 |    ", line) for line in steps), done.stderr
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]
    assert not any(folder.with_name("temporary").iterdir())
    crawl = folder / "demo" / "crawl.jsonl"
    assert not crawl.exists() or len(crawl.read_bytes().splitlines()) == 30 * 10
    for marker in folder.glob("demo/*/recrawl.json"):
        assert repair(marker.parent) == []
    if request.node.get_closest_marker("slow"):
        done_in(folder, arguments)
        assert len(crawl.read_bytes().splitlines()) == 30 * 10


@pytest.mark.slow
def test_a_second_sigterm_does_not_keep_a_command_from_tidying_up(
    made: Path, tmp_path: Path, processes: Processes
) -> None:
    shutil.copytree(made, tmp_path / "folder")
    arguments = CASES["export"].arguments.split()
    done = stopped(processes, tmp_path / "folder", ["orjson:dumps#20", "os:unlink#1"], arguments, TERM)
    assert (done.code, done.stderr) == (143, "stopped\n")
    check_nothing_half_made(tmp_path / "folder", made, {})
