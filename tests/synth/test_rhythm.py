from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recrawl.synth.behaviour import simulate
from recrawl.synth.settings import SynthSettings
from recrawl.synth.web import make_web

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
HOURLY = SynthSettings(pages=3_000, rounds=24 * 14 + 1, every=timedelta(hours=1), start=START, rhythm=True, seed=5)


@pytest.fixture(scope="module")
def per_hour():
    """Pages that gained links, by day and hour: the number of links is too heavy-tailed to compare single hours."""
    return (simulate(make_web(HOURLY)).n_internal > 0).sum(axis=0)[1:].reshape(14, 24)


def test_nights_are_slow(per_hour) -> None:
    by_hour = per_hour.mean(axis=0)
    assert by_hour.max() > 2 * by_hour.min()
    assert 12 <= by_hour.argmax() <= 21  # UTC; America's working hours included


def test_weekends_are_slow(per_hour) -> None:
    days = per_hour.sum(axis=1).reshape(2, 7).mean(axis=0)
    assert days[5:].max() < 0.8 * days[:5].min()


def test_a_week_of_hours_brings_as_many_links_as_a_week_at_once() -> None:
    weekly = simulate(make_web(SynthSettings(pages=3_000, rounds=20, seed=5, weekly_variation=0))).n_internal.sum() / 19
    flat = SynthSettings(pages=3_000, rounds=24 * 14 + 1, every=timedelta(hours=1), seed=5, weekly_variation=0)
    hourly = simulate(make_web(flat)).n_internal.sum() / 2
    assert hourly == pytest.approx(weekly, rel=0.1)


def test_without_rhythm_all_hours_are_alike() -> None:
    flat = SynthSettings(pages=3_000, rounds=24 * 14 + 1, every=timedelta(hours=1), seed=5)
    by_hour = (simulate(make_web(flat)).n_internal > 0).sum(axis=0)[1:].reshape(14, 24).mean(axis=0)
    assert by_hour.max() < 1.5 * np.median(by_hour)
