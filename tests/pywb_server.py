"""A real pywb on loopback, in an environment of its own, made once and kept in pytest's cache."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).with_name("sources") / "pywb-requirements.txt"
_PATIENCE = 240.0  # seconds that an installation from the network may take


def environment(cache: Path) -> Path:
    """The folder of pywb's programs; skips the test, and says why, where pywb cannot be installed."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache / f"pywb-{digest}"
    programs = folder / "bin"
    with _alone(cache / "pywb.lock"):
        if (folder / "ready").exists():
            return programs
        install = [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        steps = (
            ([sys.executable, "-m", "venv", "--clear", str(folder)], None),
            (install, _PATIENCE),
            ([str(programs / "python"), "-c", "import pywb.apps.wayback"], None),
        )
        for step, patience in steps:
            try:
                subprocess.run(step, check=True, capture_output=True, text=True, timeout=patience, env=_own_variables())
            except (OSError, subprocess.SubprocessError) as error:
                said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
                pytest.skip(f"pywb cannot be installed here: {said[-1] if said else error}")
        (folder / "ready").touch()
    return programs


def _own_variables() -> dict[str, str]:
    """The variables of pywb's programs, which must not see the project's packages."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time: tests run in several."""
    import fcntl

    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def collection(programs: Path, folder: Path, warcs: Iterable[Path], name: str = "web") -> None:
    """A collection of WARC files in a folder that pywb serves."""
    folder.mkdir(exist_ok=True)
    for arguments in (["init", name], ["add", name, *map(str, warcs)]):
        command = [str(programs / "wb-manager"), *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=_own_variables())


@contextmanager
def serving(programs: Path, folder: Path) -> Iterator[str]:
    """The address of pywb, which serves the collections of a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = [str(programs / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=_own_variables())
        try:
            _wait_for(f"http://127.0.0.1:{port}/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()  # it has nothing to save
            process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until pywb responds or ends; how long its start takes depends on who else uses the machine."""
    while True:
        assert process.poll() is None, "pywb has ended"
        try:
            urllib.request.urlopen(address).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
