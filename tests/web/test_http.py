from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.http import retry_after

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@given(st.integers(0, 999_999_999))
def test_a_number_is_a_number_of_seconds(seconds: int) -> None:
    assert retry_after(f" {seconds} ", NOW) == seconds


@given(st.integers(-(10**8), 10**8), st.integers(-12, 12))
def test_a_date_is_the_time_until_then_and_never_negative(seconds: int, zone: int) -> None:
    then = (NOW + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=zone)))
    assert retry_after(format_datetime(then), NOW) == max(seconds, 0)


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "٣", "Mon, 99 Jan 2026 00:00:00 GMT", "1e9", "\x00"])
def test_an_unreadable_value_is_the_default(text: str) -> None:
    assert retry_after(text, NOW, 7.0) == 7.0


def test_a_huge_number_is_still_a_number() -> None:
    assert retry_after("9" * 400, NOW) > 10**8
