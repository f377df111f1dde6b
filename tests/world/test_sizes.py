"""What the size of a page shows: changes where no digest is known, and pages without content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.web.visit import Visit
from recrawl.world.panel import build

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def panel_of(folder: Path, visits: dict[str, list[dict[str, Any]]], **options: Any) -> Any:
    history = History.create(folder / "history")
    history.add(
        Visit(url=f"https://e.org/{page}", at=MONDAY + timedelta(weeks=week), **visit)
        for page, weeks in visits.items()
        for week, visit in enumerate(weeks)
    )
    return build(history, "7d", 0.0, **options)


def changes(folder: Path, *weeks: dict[str, Any]) -> list[float | None]:
    row = panel_of(folder, {"a": list(weeks)}).content_changed[0]
    return [None if np.isnan(value) else float(value) for value in row]


def test_where_only_sizes_are_known_another_size_is_a_change(tmp_path: Path) -> None:
    sizes = [5, 5, 6, 6, 5]
    assert changes(tmp_path, *({"content_bytes": size} for size in sizes)) == [None, 0, 1, 0, 1]


def test_the_size_of_the_text_counts_only_where_that_of_the_content_is_not_known(tmp_path: Path) -> None:
    weeks = [(5, 1), (5, 2), (None, 3), (None, 3), (6, 3)]
    visits = ({"content_bytes": content, "text_bytes": text} for content, text in weeks)
    assert changes(tmp_path, *visits) == [None, 0, 1, 0, 1]


def test_a_digest_counts_more_than_a_size(tmp_path: Path) -> None:
    weeks = [("x", 5), ("x", 6), ("y", 6), (None, 7)]
    visits = ({"text_digest": digest, "content_bytes": size} for digest, size in weeks)
    assert changes(tmp_path, *visits) == [None, 0, 1, 1]


def test_sizes_are_not_compared_across_a_baseline_and_not_between_pages(tmp_path: Path) -> None:
    weeks = [{"content_bytes": 5}, {"content_bytes": 6, "baseline": True}, {"content_bytes": 6}]
    panel = panel_of(tmp_path, {"a": weeks, "b": [{"content_bytes": 9}]})
    found = dict(zip(panel.url.to_pylist(), panel.content_changed.tolist(), strict=True))
    np.testing.assert_array_equal(found["https://e.org/a"], [np.nan, np.nan, 0])
    assert np.isnan(found["https://e.org/b"]).all()


def test_a_304_is_as_long_as_the_copy_it_confirms(tmp_path: Path) -> None:
    assert changes(tmp_path, {"content_bytes": 5}, {"status": 304}, {"content_bytes": 5}) == [None, 0, 0]


def test_visits_that_found_an_empty_page_do_not_count(tmp_path: Path) -> None:
    full, empty = {"content_bytes": 5, "links": ["https://e.org/x"]}, {"content_bytes": 0, "links": []}
    visits = {
        "always": [full, full, full],
        "never": [empty, empty, empty],
        "failed once": [full, empty, full],
        "no text": [{"text_bytes": 0}, {"text_bytes": 0}, {"text_bytes": 0}],
        "no text but content": [{"text_bytes": 0, "content_bytes": 7}, {}, {}],
        "unchanged": [empty, {"status": 304}, full],
    }
    every = panel_of(tmp_path, visits)
    assert every.shape[0] == 6
    panel = panel_of(tmp_path, visits, with_content=True)
    n_seen = dict(zip(panel.url.to_pylist(), (~np.isnat(panel.at)).sum(axis=1).tolist(), strict=True))
    assert {url.rpartition("/")[2]: n for url, n in n_seen.items()} == {
        "always": 3, "failed%20once": 2, "no%20text%20but%20content": 3, "unchanged": 1,
    }  # fmt: skip
    page = panel.url.to_pylist().index("https://e.org/failed%20once")
    assert (every.n_new_internal[every.url.to_pylist().index("https://e.org/failed%20once"), 2]) == 1
    assert panel.n_new_internal[page, 2] == 0  # nothing is new because the page was empty for a while


def test_a_history_of_empty_pages_has_no_panel(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughData, match="no page was seen"):
        panel_of(tmp_path, {"a": [{"content_bytes": 0}] * 3}, with_content=True)
