"""A file that another process has compacted away is looked for again, however the error is wrapped."""

from __future__ import annotations

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from recrawl.history.commits import Conflict
from recrawl.history.store import _despite_compaction

WRAPPED = "Generic DeltaTable error: C Data interface error: IOError: part-0.parquet. Detail: raise FileNotFoundError(info.path)"


@pytest.mark.parametrize("error", [FileNotFoundError("part"), CommitFailedError("raced"), DeltaError(WRAPPED)])
def test_work_that_met_a_compaction_is_done_again(error: Exception) -> None:
    errors = [error]

    def work() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert _despite_compaction(work) == "done"


def test_a_table_that_is_always_written_to_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.store.CONFLICTS", 5)
    calls = []

    def work() -> None:
        calls.append(1)
        raise Conflict("another process has written version 7")

    with pytest.raises(Conflict):
        _despite_compaction(work)
    assert len(calls) == 5


def test_other_errors_are_not_repeated() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise DeltaError("the table is damaged")

    with pytest.raises(DeltaError, match="damaged"):
        _despite_compaction(work)
    assert len(calls) == 1
