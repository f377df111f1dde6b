"""Apache Spark as a Spark Connect server of its own: a JVM on this machine, whose work is done where its master says."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from recrawl.engine.server_process import Server, server_process

START_SECONDS = 180  #: a JVM on a busy machine takes its time
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: Starts the JVM, and ends it when standard input ends.
_PROGRAM = """
import subprocess, sys, threading, os
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def end():
    sys.stdin.buffer.read()
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
    os._exit(0)
threading.Thread(target=end).start()
server.wait()
os._exit(1)
"""


@contextmanager
def spark_server(master: str) -> Iterator[Server]:
    """A server that lasts as long as the block."""
    token, port = token_hex(16), _free_port()
    what = f"Apache Spark (master {master})"
    with server_process(what, _PROGRAM, _command(master, port), _environment(token)) as server:
        server.wait_until(lambda printed: _listens(port), START_SECONDS, _failure)
        # By this name, since the client sends a token without TLS to localhost only.
        yield server.at(f"sc://localhost:{port}/;token={token}")


def _command(master: str, port: int) -> list[str]:
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.maxInboundMessageSize": 256 << 20,
        "spark.ui.enabled": "false",
        **({"spark.driver.host": "127.0.0.1"} if master.startswith("local") else {}),
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = _home() / "bin" / ("spark-submit.cmd" if os.name == "nt" else "spark-submit")
    return [str(submit), "--master", master, "--name", "recrawl", "--class", SERVER, *given, "spark-internal"]


def _environment(token: str) -> dict[str, str]:
    """Workers on this machine run the Python of this process."""
    return {"SPARK_HOME": str(_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}


def _home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _failure(printed: str) -> str | None:
    """What a log says of a failure; None: nothing.

    >>> _failure('Exception in thread "main" org.apache.spark.SparkException: Could not parse Master URL: x')
    'org.apache.spark.SparkException: Could not parse Master URL: x'
    """
    for line in printed.splitlines():
        if "JAVA_HOME is not set" in line or ("java" in line and "No such file" in line):
            return "it needs Java 17 or newer, and a JAVA_HOME or PATH that leads to it; --engine sail needs no Java"
        if line.startswith("Exception in thread"):
            return line.rpartition('" ')[2][:300]
    return None


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
