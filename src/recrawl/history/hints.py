"""What sitemaps and feeds said about pages, kept beside the visits: comparing both shows how far they can be trusted."""

from __future__ import annotations

import pyarrow as pa

from recrawl.history.side_tables import SideTable

#: One row for each reading (page and changed_at are null), one for each page for which a reading gave a new time of change, and
#: one for each page that names a feed (changed_at is null).
HINTS = SideTable(
    "hints",
    pa.schema(
        [
            ("kind", pa.string()),  # sitemap or feed
            ("source", pa.string()),  # its URL
            ("host", pa.string()),
            ("page", pa.int64()),
            ("read_at", pa.timestamp("us", "UTC")),
            ("changed_at", pa.timestamp("us", "UTC")),
        ]
    ),
)
