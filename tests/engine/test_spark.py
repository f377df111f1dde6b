"""Apache Spark does the same as Sail. It needs Java, and takes half a minute to begin."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import engine_tasks
from commands import output
from making import page_record
from recrawl.engine import Engine, collection, open_engine
from recrawl.engine.bulk_import import import_with
from recrawl.engine.export import exported
from recrawl.engine.info import info_of
from recrawl.errors import BadSource, EngineError
from recrawl.history import History, summary
from recrawl.history.ingest import import_files
from recrawl.report import export as tables
from same_history import rows_of

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Apache Spark needs Java")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # quicker to begin
        with open_engine("spark:local[2]", work=tmp_path_factory.mktemp("work")) as engine:
            yield engine


def test_tasks_run_on_spark(spark: Engine) -> None:
    assert list(spark.map(engine_tasks.refused_if_bad, [b"a", b"b", b"c"])) == [b"a", b"b", b"c"]
    with pytest.raises(BadSource, match=r"^the third one is bad$"):
        list(spark.map(engine_tasks.refused_if_bad, [b"good", b"bad"]))


@pytest.mark.slow
def test_large_tasks_and_killed_workers(spark: Engine) -> None:
    large = bytes(range(256)) * (1 << 13)
    assert list(spark.map(engine_tasks.reversed_bytes, [large, b"ab"])) == [large[::-1], b"ba"]
    with pytest.raises(EngineError, match=r"the engine spark:local\[2\] has failed: Job aborted .*crashed"):
        list(spark.map(engine_tasks.killed, [b""]))
    assert list(spark.map(engine_tasks.reversed_bytes, [b"ab"])) == [b"ba"]


@pytest.mark.slow
def test_import_totals_and_exports_are_those_of_one_machine(spark: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    output("synth", "--pages", "60", "--out", str(tmp_path / "in" / "visits.jsonl.gz"))
    (tmp_path / "in" / "crawl.warc").write_bytes(b"".join(page_record(i) for i in range(5)))
    (tmp_path / "in" / "bad.jsonl").write_text(json.dumps({"url": "https://e.org/"}))
    files = sorted(str(path) for path in (tmp_path / "in").iterdir())
    here = History.create(tmp_path / "here")
    expected = import_files(here, files, workers=1)
    history = History.open(tmp_path / "there", missing_ok=True)
    report = import_with(spark, history, [str(tmp_path / "in")])
    assert report.as_dict() == expected.as_dict()
    assert rows_of(history) == rows_of(here)
    with collection.collection(spark, history) as opened:
        assert info_of(opened).summary == summary(here)
        assert pa.concat_tables(exported(opened, "visits")).equals(pa.concat_tables(tables.visits(here)))
        assert pa.concat_tables(exported(opened, "links")).equals(pa.concat_tables(tables.links(here)))
