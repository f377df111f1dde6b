"""Rhythms of the made-up web: nights and weekends are slow, and every site has its own time zone."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.synth.settings import WEEK
from recrawl.synth.web import TOP_LEVEL_DOMAINS, Web

_BUSIEST_HOUR, _DAILY_SWING = 14, 0.8
_WEEKDAYS = np.array([1.1, 1.15, 1.15, 1.15, 1.1, 0.7, 0.65])  # Monday to Sunday
_AMERICAN = ("com", "org", "net", "edu", "gov", "ca", "io")
_HOURS_BEHIND_UTC = 6
_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)


def hourly_profile() -> Floats:
    """Activity in each of the 168 hours of a week from Monday midnight, local time; its mean is 1.

    >>> profile = hourly_profile()
    >>> round(float(profile.mean()), 6), bool(profile[14] > 3 * profile[2])
    (1.0, True)
    """
    hours = np.arange(24)
    day = 1 + _DAILY_SWING * np.cos((hours - _BUSIEST_HOUR) * 2 * np.pi / 24)
    profile = np.outer(_WEEKDAYS, day).ravel()
    return np.asarray(profile / profile.mean())


def elapsed_weeks(web: Web, rng: np.random.Generator) -> Floats:
    """[page, round]: weeks since the round before, weighted by activity; 0 in the first round."""
    settings = web.settings
    common = np.exp(settings.weekly_variation * rng.standard_normal(settings.rounds))
    common /= common[1:].mean() if settings.rounds > 1 else 1  # rounds differ, webs do not
    common[0] = 0
    if not settings.rhythm:
        return np.broadcast_to(common * (settings.every / WEEK), (web.n_pages, settings.rounds))
    american = np.array([name in _AMERICAN for name in TOP_LEVEL_DOMAINS])
    behind = np.where(american[web.domain[: web.n_sites]], _HOURS_BEHIND_UTC, -1)
    per_zone = {hours: _felt_weeks(web, int(hours)) * common for hours in np.unique(behind)}
    zones = np.array(list(per_zone.values()))
    return np.asarray(zones[np.searchsorted(list(per_zone), behind)][web.site])


def _felt_weeks(web: Web, hours_behind: int) -> Floats:
    settings = web.settings
    first = (settings.start - _MONDAY).total_seconds() / 3600 - hours_behind
    ends = first + np.arange(settings.rounds) * (settings.every.total_seconds() / 3600)
    passed = np.r_[0.0, np.cumsum(hourly_profile())] / 168
    felt = np.floor(ends / 168) + np.interp(ends % 168, np.arange(169), passed)
    return np.asarray(np.r_[0.0, np.diff(felt)])
