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
_PATIENCE = 240.0  # seconds


def environment(cache: Path) -> Path:
    """The folder of pywb's programs; skips the test, and says why, where pywb cannot be installed."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache / f"pywb-{digest}"
    programs = folder / "bin"
    with _alone(cache / "pywb.lock"):
        if (folder / "ready").exists():
            return programs
        steps = (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)],
            [str(programs / "python"), "-c", "import pywb.apps.wayback"],
        )
        for step in steps:
            try:
                subprocess.run(step, check=True, capture_output=True, text=True, timeout=_PATIENCE)
            except (OSError, subprocess.SubprocessError) as error:
                said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
                pytest.skip(f"pywb cannot be installed here: {said[-1] if said else error}")
        (folder / "ready").touch()
    return programs


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
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)


@contextmanager
def serving(programs: Path, folder: Path) -> Iterator[str]:
    """The address of pywb, which serves the collections of a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = [str(programs / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=alone)
        try:
            _wait_for(f"http://127.0.0.1:{port}/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "pywb has ended"
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("pywb does not answer")
