"""A history whose files are damaged in ways that its reader does not notice by itself: a sentence, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import command, output

DAMAGE = {
    "rows are missing": lambda urls: urls.slice(0, 3),
    "URLs are missing": lambda urls: with_urls(urls, [None] * len(urls)),
    "URLs are nonsense": lambda urls: with_urls(urls, ["x"] * len(urls)),
}


def with_urls(table: pa.Table, urls: list[str | None]) -> pa.Table:
    return table.set_column(1, table.schema.field(1), [pa.array(urls, table.schema.field(1).type)])


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_visited_page_without_its_url_is_named_as_damage(tmp_path: Path, damage: str) -> None:
    history = str(tmp_path / "h")
    output("synth", "--pages", "20", "--rounds", "4", "--no-terms", "--history", history)
    for file in (tmp_path / "h" / "urls").glob("*.parquet"):
        table = pq.read_table(file)
        assert table.column_names[:2] == ["id", "url"]
        pq.write_table(DAMAGE[damage](table), file)
    for arguments in [
        ("plan", "--budget", "5"),
        ("plan", "--budget", "5", "--policy", "bandit"),
        ("train",),
        ("seeds",),
        ("stats",),
    ]:
        done = command(*arguments, "--history", history)
        assert done.code == 1, (arguments, done)
        assert "Traceback" not in done.stderr
        assert f"{history}/urls has no URL for" in done.message, (arguments, done)
        assert "visited pages: files of it are damaged or missing. Restore the history from a copy" in done.message
