"""What the log of a new table says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from deltalake import DeltaTable

from recrawl.history.commits import CONFIGURATION, entry_bytes, first_actions
from recrawl.history.delta import LOG, entry_name
from recrawl.history.schema import TABLES


def said(entry: bytes) -> dict[str, Any]:
    """The protocol and the schema in a log entry, without what differs from table to table."""
    actions: dict[str, Any] = {}
    for line in entry.splitlines():
        actions |= orjson.loads(line)
    metadata = {key: value for key, value in actions["metaData"].items() if key not in ("id", "createdTime")}
    return {
        "protocol": actions["protocol"],
        "metaData": metadata | {"schemaString": orjson.loads(metadata["schemaString"])},
    }


@pytest.mark.parametrize("name", TABLES)
def test_the_first_entry_is_the_one_that_the_engine_would_write(name: str, tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, TABLES[name], configuration=CONFIGURATION)
    engines = (tmp_path / LOG / entry_name(0)).read_bytes()
    assert said(entry_bytes(first_actions(TABLES[name]))) == said(engines)
