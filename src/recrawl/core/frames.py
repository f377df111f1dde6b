"""Tables for pandas, where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.errors import MissingPackage

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A table as a pandas data frame."""
    try:
        return table.to_pandas()
    except (ImportError, ModuleNotFoundError):
        raise MissingPackage("to_pandas needs pandas: pip install pandas; to_arrow works without it") from None
