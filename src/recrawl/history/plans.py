"""The plans that were made, kept beside the visits, so that they can be scored when the visits come back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from recrawl.errors import HistoryError

PLANS = pa.schema(
    [
        ("plan", pa.string()),  # id of the plan
        ("made_at", pa.timestamp("us", "UTC")),
        ("policy", pa.string()),
        ("budget", pa.int64()),
        ("every", pa.string()),
        ("rank", pa.int64()),
        ("page", pa.int64()),
        ("expected", pa.float64()),
        ("probability", pa.float64()),
        ("changed", pa.float64()),  # probability of a change since the last copy; null: not known, as in older plans
        ("change", pa.string()),  # what counts as one, as --change takes it; null: any difference, as in older plans
        ("due_at", pa.timestamp("us", "UTC")),
        ("reason", pa.string()),
    ]
)


def keep(folder: Path, rows: pa.Table) -> None:
    """Add the rows of a plan in one commit; a plan that is there already is not added again."""
    known = stored(folder, rows["plan"][0].as_py()) if rows.num_rows else rows
    if known.num_rows or not rows.num_rows:
        return
    try:
        write_deltalake(folder / "plans", rows.cast(PLANS), mode="append", schema_mode="merge")
    except (OSError, DeltaError) as error:
        raise HistoryError(f"cannot write the plan into {folder}: {str(error).splitlines()[0]}") from error


def stored(folder: Path, plan: str | None = None) -> pa.Table:
    """All plans, or one of them, in order of time and rank."""
    try:
        files = DeltaTable(folder / "plans").file_uris()
    except TableNotFoundError:
        return PLANS.empty_table()
    except (OSError, DeltaError) as error:
        raise HistoryError(f"cannot read the plans of {folder}: {str(error).splitlines()[0]}") from error
    where = None if plan is None else ds.field("plan") == plan
    rows = ds.dataset(files, schema=PLANS).to_table(filter=where)
    return rows.sort_by([("made_at", "ascending"), ("plan", "ascending"), ("rank", "ascending")])
