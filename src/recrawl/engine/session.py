"""An engine: a session of Sail or Apache Spark, and functions that run on its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recrawl.core.places import Place
from recrawl.core.workers import cores
from recrawl.engine.aside import read_aside, tried_aside
from recrawl.engine.connection import connected, first_sentence
from recrawl.engine.names import EngineName, engine_name
from recrawl.engine.parcels import MOST_INLINE, Parcels, parcels_in
from recrawl.engine.server_process import Server
from recrawl.engine.worker import TASKS, Function, Job, name_of, read
from recrawl.errors import EngineError, MissingPackage

MOST_AT_ONCE = 64 << 20  #: bytes of all tasks together that are sent without files
STOP_SECONDS = 3.0  #: that a server has to stop what is not wanted any more
CLUSTER_INLINE = 3 << 20  #: Sail's workers refuse larger messages among each other
_ANSWERS = "number bigint, failed boolean, is_file boolean, data binary"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Workers that do tasks. Open one with `open_engine`."""

    name: EngineName
    spark: Any  # its Spark Connect session, for work on tables
    work: Place | str | None = None  # a folder that all workers see, for large tasks and results
    is_alive: Callable[[], bool] = lambda: True  # whether its server, if it is one of ours, still runs

    @property
    def is_here(self) -> bool:
        """Whether its workers are on this machine, with the same files and the same working directory."""
        return self.name.kind == "sail" or (self.name.kind == "spark" and self.name.where.startswith("local"))

    def map(self, function: Function, tasks: Sequence[bytes], n_parallel: int | None = None) -> Iterator[bytes]:
        """What a function makes of each task, in their order; workers import it by its name and call it once per task.

        `n_parallel`: how many tasks are under way at once, at most; None: as many as the engine has room for. A task that fails
        raises its error here: one of ours with its class and text, any other as an `EngineError` that names the task.
        """
        text = name_of(function)
        return self._results(text, list(tasks), n_parallel)

    def _results(self, function: str, tasks: list[bytes], n_parallel: int | None) -> Iterator[bytes]:
        if not tasks:
            return
        parcels = parcels_in(self.work, self._most_inline())
        try:
            table = _packed(tasks, parcels)
            job = Job(function=function, parcels=parcels)
            rows = self._rows(table, job, min(n_parallel or self._room(len(tasks)), len(tasks)))
            yield from _in_order(rows, len(tasks), parcels)
        finally:
            parcels.remove()

    def _rows(self, table: pa.Table, job: Job, n_parts: int) -> Iterator[Any]:
        """The answers as they arrive; whoever stops listening stops the work."""
        done = False
        try:
            with self.errors_named():
                tasks = self.spark.createDataFrame(table).repartition(n_parts)
                done_by_workers = tasks.mapInArrow(_on_worker(job), _ANSWERS)
                yield from read_aside(done_by_workers.toLocalIterator)
            done = True
        finally:
            if not done and self.is_alive():
                tried_aside(self.spark.interruptAll, STOP_SECONDS)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Errors of the engine as one sentence."""
        import grpc
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, grpc.RpcError) as error:
            if not self.is_alive():
                raise EngineError(
                    f"the engine {self.name.shown} was killed, perhaps because memory ran out: run the same again with "
                    "fewer tasks at once, or on more machines"
                ) from error
            raise EngineError(f"the engine {self.name.shown} has failed: {first_sentence(error)}") from error

    def _room(self, n_tasks: int) -> int:
        """Tasks at once: Sail on this machine would begin all of them."""
        return cores() if self.name.kind == "sail" else n_tasks

    def _most_inline(self) -> int:
        return CLUSTER_INLINE if self.name.text == "sail:local-cluster" else MOST_INLINE


@contextmanager
def open_engine(name: str, *, work: Place | str | None = None) -> Iterator[Engine]:
    """An engine by its name, for as long as the block lasts.

    `sail` and `sail:local-cluster` (threads on this machine), `spark` or `spark:MASTER` (a JVM on this machine, which knows its
    workers), or `sc://HOST:PORT`, a Spark Connect server that runs already. `work`: a folder that all workers see, for tasks and
    results of more than a mebibyte.
    """
    parsed = engine_name(name)
    _check_installed(parsed)
    with _server(parsed) as server:
        is_here = parsed.kind != "remote"
        shown = f"{parsed.shown} on this machine" if is_here else parsed.shown
        spark = connected(server.url, shown, is_here=is_here)
        try:
            yield Engine(name=parsed, spark=spark, work=work, is_alive=server.is_alive)
        finally:
            # A server of ours ends anyway, and with it what it is at.
            tried_aside(spark.client.close if is_here else spark.stop, STOP_SECONDS)


def _server(name: EngineName) -> AbstractContextManager[Server]:
    if name.kind == "remote":
        return nullcontext(Server(url=name.where))
    if name.kind == "sail":
        from recrawl.engine.sail_server import sail_server

        return sail_server(name.where)
    from recrawl.engine.spark_server import spark_server

    return spark_server(name.where)


def _check_installed(name: EngineName) -> None:
    try:
        import grpc  # noqa: F401
        import pyspark.sql.connect.session  # noqa: F401

        if name.kind == "sail":
            import pysail.spark  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            f"--engine {name.shown} needs pysail and pyspark: pip install 'recrawl[engine]'"
        ) from error


def _packed(tasks: Iterable[bytes], parcels: Parcels) -> pa.Table:
    packed = [parcels.packed(task, f"task {number}") for number, task in enumerate(tasks)]
    n_bytes = sum(len(data) for _, data in packed)
    if n_bytes > MOST_AT_ONCE:
        raise EngineError(
            f"{len(packed):,} tasks have {n_bytes / 2**20:,.0f} MiB together; at most {MOST_AT_ONCE >> 20} MiB are sent at once: "
            "give fewer at a time, or larger ones with open_engine(…, work=FOLDER)"
        )
    is_file, data = ([each[i] for each in packed] for i in range(2))
    return pa.table([list(range(len(packed))), is_file, data], schema=TASKS)


def _in_order(rows: Iterable[Any], n: int, parcels: Parcels) -> Iterator[bytes]:
    """The results in the order of the tasks; raises the error of the first one that is known to have failed."""
    waiting: dict[int, bytes] = {}
    following = 0
    for row in rows:
        if row.failed:
            raise read(row.data)
        waiting[row.number] = parcels.opened(row.is_file, row.data)
        while following in waiting:
            yield waiting.pop(following)
            following += 1
    if following < n:
        raise EngineError(f"the engine lost {n - following:,} of {n:,} tasks: run the same again")


def _on_worker(job: Job) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What is sent to workers: it imports recrawl itself, so that a worker without it can say so."""
    folder, most_inline, function, version = job.parcels.folder, job.parcels.most_inline, job.function, job.version

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        try:
            from recrawl.engine.parcels import Parcels
            from recrawl.engine.worker import Job, answers
        except ImportError as error:
            raise RuntimeError(f"a worker has no recrawl {version} ({error}); install the same version there") from None
        yield from answers(
            batches, Job(function=function, parcels=Parcels(folder=folder, most_inline=most_inline), version=version)
        )

    return run
