"""The plans that were made, kept beside the visits, so that they can be scored once their pages were visited."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from recrawl.history.beside import Beside
from recrawl.history.side_tables import SideTable

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
        ("links", pa.string()),  # kind of links that count; null: all, as in older plans
        ("chosen_by", pa.string()),  # the policy with its settings; null in older plans
        ("focus", pa.string()),  # JSON: which links count as relevant; null: all count, as in older plans
        ("memo", pa.string()),  # JSON: what the policy must remember of the choice; null in older plans
    ]
)


PLANS_TABLE = SideTable("plans", PLANS)


def keep(beside: Beside, rows: pa.Table) -> None:
    """Add the rows of a plan in one commit; a plan that is there already is not added again."""
    if rows.num_rows and not stored(beside, rows["plan"][0].as_py()).num_rows:
        PLANS_TABLE.append(beside, rows)


def stored(beside: Beside, plan: str | None = None) -> pa.Table:
    """All plans, or one of them, in order of time and rank."""
    rows = PLANS_TABLE.read(beside, None if plan is None else ds.field("plan") == plan)
    return rows.sort_by([("made_at", "ascending"), ("plan", "ascending"), ("rank", "ascending")])
