"""Sessions of engines, and functions that run on their workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import engine_tasks
from patience import wait_for
from processes import running
from recrawl.engine import Engine, connection, open_engine
from recrawl.engine.parcels import AS_FILE
from recrawl.errors import BadOption, BadRecord, BadSource, EngineError, MissingPackage


def test_results_are_in_the_order_of_the_tasks(sail: Engine) -> None:
    tasks = [str(i).encode() for i in range(25)]
    assert list(sail.map(engine_tasks.reversed_bytes, tasks)) == [task[::-1] for task in tasks]
    assert list(sail.map(engine_tasks.reversed_bytes, tasks, n_parallel=3)) == [task[::-1] for task in tasks]


def test_a_quick_task_behind_a_slow_one_waits_for_it(sail: Engine) -> None:
    assert list(sail.map(engine_tasks.slow, [b"0.3", b"0", b"0.1"], n_parallel=3)) == [b"0.3", b"0", b"0.1"]


def test_no_tasks_have_no_results(sail: Engine) -> None:
    assert list(sail.map(engine_tasks.reversed_bytes, [])) == []


def test_large_tasks_and_results_travel_as_files_that_are_removed(sail: Engine) -> None:
    large = bytes(range(256)) * (AS_FILE // 128)
    assert list(sail.map(engine_tasks.reversed_bytes, [large, b"small"])) == [large[::-1], b"llams"]
    assert list(Path(str(sail.work)).iterdir()) == []


def test_without_a_folder_large_ones_are_refused() -> None:
    with open_engine("sail") as engine:
        with pytest.raises(EngineError, match=r"task 1 has 17 MiB; more than 16 MiB travel as files: .*work=FOLDER"):
            list(engine.map(engine_tasks.reversed_bytes, [b"", bytes(17 << 20)]))
        with pytest.raises(EngineError, match="the result of task 0 has 17 MiB"):
            list(engine.map(engine_tasks.sized, [str(17 << 20).encode()]))
        with pytest.raises(EngineError, match=r"5 tasks have 75 MiB together; at most 64 MiB"):
            list(engine.map(engine_tasks.reversed_bytes, [bytes(15 << 20)] * 5))


def test_an_error_of_ours_keeps_its_class_and_text(sail: Engine) -> None:
    with pytest.raises(BadRecord, match="not JSON: task 7") as caught:
        list(sail.map(engine_tasks.refused, [b"7"]))
    assert (caught.value.reason, caught.value.detail) == ("not JSON", "task 7")
    with pytest.raises(BadSource, match=r"^the third one is bad$"):
        list(sail.map(engine_tasks.refused_if_bad, [b"good", b"good", b"bad", b"good"]))


def test_another_error_names_its_task_and_its_place(sail: Engine) -> None:
    with pytest.raises(EngineError, match=r"^task 1 failed: ZeroDivisionError: .* \(engine_tasks.py, line \d+\)$"):
        list(sail.map(engine_tasks.broken, [b"1", b"0"]))
    with pytest.raises(EngineError, match="engine_tasks:nothing returned NoneType, not bytes"):
        list(sail.map(engine_tasks.nothing, [b""]))


def test_functions_that_workers_cannot_import_are_refused(sail: Engine) -> None:
    def inner(task: bytes) -> bytes:
        return task

    for function in (inner, lambda task: task):
        with pytest.raises(EngineError, match=r"workers cannot import .*; give a function that a module defines"):
            sail.map(function, [b""])


def test_the_engine_works_on_after_an_error(sail: Engine) -> None:
    with pytest.raises(EngineError):
        list(sail.map(engine_tasks.broken, [b"0"] * 5))
    assert list(sail.map(engine_tasks.broken, [b"1"] * 5)) == [b"x"] * 5


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with (
        pytest.raises(BadOption, match=r"No engine named 'snail'. Did you mean 'sail'\? Known: sail, "),
        open_engine("snail"),
    ):
        pass


def test_a_server_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    with socket.socket() as silent:  # takes connections, and never says a word
        silent.bind(("127.0.0.1", 0))
        for is_open in (False, True):
            if is_open:
                silent.listen()
            url = f"sc://127.0.0.1:{silent.getsockname()[1]}"
            refused = pytest.raises(EngineError, match=f"no Spark Connect server answers at {url}; is it running")
            with refused, open_engine(url + "/;token=secret"):
                pass


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(EngineError, match=r"sc://host/path: .*path"), open_engine("sc://host/path"):
        pass


def test_without_the_packages_the_way_to_install_them_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysail.spark", None)
    with pytest.raises(MissingPackage, match=r"pip install 'recrawl\[engine\]'"), open_engine("sail"):
        pass


def test_a_program_that_is_interrupted_ends_and_prints_nothing() -> None:
    program = (
        "from recrawl.engine import open_engine; import engine_tasks, os, signal, threading\n"
        "with open_engine('sail') as engine:\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try:\n"
        "        list(engine.map(engine_tasks.slow, [b'900', b'900']))\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("interrupted\n", "", 0)


def test_a_server_that_is_killed_is_reported() -> None:
    killed = pytest.raises(EngineError, match="the engine sail was killed, perhaps because memory ran out")
    with open_engine("sail") as engine, killed:
        list(engine.map(engine_tasks.killed, [b""]))


def test_a_server_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program = (
        "from recrawl.engine import open_engine; import engine_tasks, os, signal, sys\n"
        "with open_engine('sail') as engine:\n"
        "    print(*engine.map(engine_tasks.process, [b'']), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    number = int(eval(killed.stdout))
    assert killed.returncode == -signal.SIGKILL
    assert wait_for(lambda: not running(number))


def test_sail_as_a_cluster_does_the_same() -> None:
    with open_engine("sail:local-cluster") as engine:
        assert list(engine.map(engine_tasks.reversed_bytes, [b"ab", b"cd", b"ef"])) == [b"ba", b"dc", b"fe"]
