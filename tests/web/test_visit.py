"""The visit record: what is taken, and what is refused with which reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadRecord
from recrawl.web.visit import CLOCK_SKEW, EARLIEST, Outcome, Visit, from_record, parse_at

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GOOD = {"url": "https://e.org/", "at": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    "value",
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02 04:04:05+01:00", "20260102T030405Z", 1767323045,
     1767323045.0, "1767323045", " 1767323045.0 ", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)],
)  # fmt: skip
def test_a_time_may_be_iso_8601_or_epoch_seconds(value: Any) -> None:
    assert parse_at(value, now=NOW) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert parse_at(value, now=NOW).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-01-02T03:04:05", "time without zone"),
        ("2026-01-02", "time without zone"),
        (datetime(2026, 1, 2), "time without zone"),
        ("2026-06-03T00:00:01Z", "time in the future"),
        ("9999-12-31T23:59:59Z", "time in the future"),
        ("1989-12-31T23:59:59Z", "time before 1990"),
        (0, "time before 1990"),
        (-1e9, "time before 1990"),
        (1767323045000, "unreadable time"),  # milliseconds
        (1e400, "unreadable time"),
        (float("nan"), "unreadable time"),
        ("yesterday", "unreadable time"),
        ("²²²²²²²²²", "unreadable time"),
        ("", "unreadable time"),
        ("0001-01-01T00:00:00+14:00", "unreadable time"),
        (None, "no time"),
        (True, "no time"),
        ([], "no time"),
    ],
)
def test_a_time_that_cannot_be_used_is_refused_with_its_reason(value: Any, reason: str) -> None:
    with pytest.raises(BadRecord) as refused:
        parse_at(value, now=NOW)
    assert refused.value.reason == reason


def test_clocks_may_differ_by_a_day() -> None:
    assert parse_at(NOW + CLOCK_SKEW, now=NOW) == NOW + CLOCK_SKEW
    assert parse_at(EARLIEST, now=NOW) == EARLIEST


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("url", "", "no url"),
        ("url", None, "no url"),
        ("url", 5, "no url"),
        ("status", -1, "status out of range"),
        ("status", 1000, "status out of range"),
        ("status", "ok", "status is not a whole number"),
        ("status", 200.5, "status is not a whole number"),
        ("status", True, "status is not a whole number"),
        ("status", [200], "status is not a whole number"),
        ("links", 5, "links is not a list of texts"),
        ("links", [5], "links is not a list of texts"),
        ("links", [None], "links is not a list of texts"),
        ("links", {"a": 1}, "links is not a list of texts"),
        ("text", 5, "text is not a text"),
        ("html", ["<p>"], "html is not a text"),
        ("terms", "word", "terms is not an object"),
        ("terms", [1], "terms is not an object"),
        ("terms", [["word", 1]], "terms is not an object"),
        ("terms", [["word"]], "terms is not an object"),
        ("terms", [(None, 1)], "terms is not an object"),
        ("terms", {"word": 0}, "terms holds a count that is not a positive whole number"),
        ("terms", {"word": True}, "terms holds a count that is not a positive whole number"),
        ("terms", {"word": 1 << 31}, "terms holds a count that is not a positive whole number"),
        ("content_bytes", -1, "content_bytes out of range"),
        ("content_bytes", 1e30, "content_bytes out of range"),
        ("content_bytes", 1e400, "content_bytes is not a whole number"),
        ("text_bytes", "many", "text_bytes is not a whole number"),
        ("relevance", 1.1, "relevance not between 0 and 1"),
        ("relevance", "nan", "relevance not between 0 and 1"),
        ("text_quality", [], "text_quality not between 0 and 1"),
        ("baseline", "perhaps", "baseline is neither true nor false"),
        ("baseline", [], "baseline is neither true nor false"),
    ],
)
def test_a_field_that_cannot_be_used_is_refused_with_its_reason(field: str, value: Any, reason: str) -> None:
    with pytest.raises(BadRecord) as refused:
        from_record({**GOOD, field: value}, now=NOW)
    assert refused.value.reason == reason


def test_all_fields_of_a_record_arrive() -> None:
    given = {
        "status": 404, "links": ["https://e.org/a"], "text": "words", "terms": {"words": 2}, "html": "<p>", "text_digest": "d",
        "payload_digest": "sha1:X", "content_bytes": 10, "text_bytes": 5, "text_quality": 0.5, "etag": '"e"',
        "last_modified": "Fri, 02 Jan 2026 00:00:00 GMT", "content_type": "text/html", "title": "T", "relevance": 0.25,
        "baseline": True, "note": "n",
    }  # fmt: skip
    visit = from_record({**GOOD, **given, "unknown": 1}, now=NOW)
    assert {name: getattr(visit, name) for name in given} == given


def test_table_cells_are_read_as_the_values_they_mean() -> None:
    cells = {
        "status": "200.0",
        "content_bytes": "10",
        "relevance": "0.5",
        "baseline": "True",
        "links": " https://a/  https://b/ ",
    }
    visit = from_record({**GOOD, **cells}, now=NOW)
    assert (visit.status, visit.content_bytes, visit.relevance, visit.baseline) == (200, 10, 0.5, True)
    assert visit.links == ["https://a/", "https://b/"]
    assert from_record({**GOOD, "terms": [("a", 1)]}, now=NOW).terms == {"a": 1}  # how Parquet maps arrive


def test_empty_and_missing_fields_are_not_known() -> None:
    nothing = dict.fromkeys(("status", "links", "text", "relevance", "baseline"), "")
    assert (
        from_record({**GOOD, **nothing}, now=NOW)
        == from_record(GOOD, now=NOW)
        == Visit(url="https://e.org/", at=parse_at(GOOD["at"]))
    )
    assert from_record({**GOOD, "links": []}, now=NOW).links == []


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, Outcome.OK), (204, Outcome.OK), (301, Outcome.OK), (399, Outcome.OK), (304, Outcome.UNCHANGED), (404, Outcome.GONE),
     (410, Outcome.GONE), (0, Outcome.FAILED), (100, Outcome.FAILED), (400, Outcome.FAILED), (503, Outcome.FAILED),
     (999, Outcome.FAILED)],
)  # fmt: skip
def test_a_status_says_what_became_of_the_page(status: int, outcome: Outcome) -> None:
    assert Outcome.of(status) is outcome


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(
            sorted({"url", "at", "status", "links", "terms", "html", "baseline", "relevance", "text_bytes"})
        ),
        VALUES,
    )
)
def test_any_record_is_taken_or_refused(record: dict[str, Any]) -> None:
    try:
        visit = from_record({**GOOD, **record}, now=NOW)
    except BadRecord:
        return
    assert visit.at.tzinfo is UTC
    assert 0 <= visit.status <= 999
