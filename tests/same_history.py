"""Whether two histories hold the same rows."""

from __future__ import annotations

from recrawl.history import History
from recrawl.history.schema import KEY, TABLES
from recrawl.history.timeline import ordered


def rows_of(history: History) -> dict[str, list[dict[str, object]]]:
    """Every row that counts, in the order of keys; of the tables beside the visits none may be there twice."""
    tables = {"visits": ordered(history.store.read("visits")).to_pylist()}
    for name, key in KEY.items():
        rows = history.store.read(name).sort_by(key)
        assert len(rows) == len(rows[key].unique()), name
        tables[name] = rows.to_pylist()
    assert set(tables) == set(TABLES)
    return tables
