"""Two hosts whose sitemaps are read every night: one names what changed, the other all pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
N_DAYS, N_PAGES = 20, 6
NOW = START + (N_DAYS + 0.5) * DAY


def url(host: str, page: int) -> str:
    return f"https://{host}.org/{page}"


def changes(host: str, page: int, day: int) -> bool:
    """A third of the pages change on a day."""
    return (day + page + (host == "liar")) % 3 == 0


def hinted_history(folder: Path, n_pages: int = N_PAGES, changes: Callable[[str, int, int], bool] = changes) -> History:
    """Two hosts visited daily at noon. Each midnight their sitemaps are read: one names what changed since, the other all pages.

    In the last night page 4 of each host is named; on the truthful one nothing else is.
    """
    made = History.create(folder)
    rows: list[dict[str, object]] = []
    for host in ("honest", "liar"):
        links = dict.fromkeys(range(n_pages), 3)
        visits = []
        for day in range(N_DAYS + 1):
            read_at = START + (day - 0.4) * DAY
            rows.append(hint_row(host, None, read_at, None))
            for page in range(n_pages):
                if changes(host, page, day):
                    links[page] += 2
                if host == "liar" or changes(host, page, day):
                    rows.append(hint_row(host, page, read_at, read_at - timedelta(minutes=1)))
                shown = [url(host, 1000 * page + i) for i in range(links[page])]
                visits.append(Visit(url=url(host, page), at=START + day * DAY, links=shown, text=f"{links[page]}"))
        made.add(visits)
        last = START + (N_DAYS + 0.4) * DAY
        rows += [hint_row(host, None, last, None), hint_row(host, 4, last, last - timedelta(minutes=1))]
    HINTS.append(made.beside, pa.Table.from_pylist(rows, schema=HINTS.schema))
    return made


def hint_row(host: str, page: int | None, read_at: datetime, changed_at: datetime | None) -> dict[str, object]:
    number = None if page is None else page_id(url(host, page))
    source = f"https://{host}.org/sitemap.xml"
    return {
        "kind": "sitemap", "source": source, "host": f"{host}.org", "page": number, "read_at": read_at, "changed_at": changed_at,
    }  # fmt: skip
