"""How long pages wait between visits: the rhythm of the history, which limits what can be seen in it.

Archives are irregular: a change happened somewhere in the gap, not at its end.
References: HACS (2020) section IV and Fig. 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Floats, Ints, Times

DAY = np.timedelta64(1, "D")
QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
N_CURVE_POINTS = 200
MAX_SAMPLE_PAGES = 200  # rows of dots that can still be distinguished
MAX_SAMPLE_VISITS = 10_000  # dots a browser draws without effort

#: Upper ends of the histogram's bars in days. They are between the usual rhythms, so that a daily or weekly crawl that
#: comes an hour early or late stays in one bar.
SPANS = (
    (1 / 24, "up to 1 hour"), (0.25, "1–6 hours"), (0.75, "6–18 hours"), (1.5, "about a day"), (5.5, "2–5 days"),
    (9.5, "about a week"), (24.5, "10–24 days"), (45.0, "about a month"), (366.0, "2–12 months"),
    (np.inf, "over a year"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GapQuantile:
    """The greatest length among this share of the gaps, the shortest first."""

    quantile: float
    days: float  # over all gaps
    page_median_days: float  # over pages, each by the median of its gaps


@dataclass(frozen=True, slots=True)
class GapSpan:
    """How many gaps are of about this length."""

    span: str
    n_gaps: int
    share: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """The days between a page's visits that follow each other."""

    n_pages: int  # pages visited at least twice
    n_gaps: int
    quantiles: tuple[GapQuantile, ...]
    spans: tuple[GapSpan, ...]
    cdf_days: tuple[float, ...]
    cdf_share: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CapturedPage:
    """The visit times of one page of the sample."""

    order: int  # by first visit
    at: tuple[str, ...]  # ISO 8601, UTC


def capture_gaps(page: Ints, at: Times) -> Gaps | None:
    """Distribution of the gaps between visits sorted by (page, at); None where no page was visited twice.

    >>> at = np.array(["2026-01-01", "2026-01-08", "2026-01-10", "2026-01-01"], dtype="datetime64[us]")
    >>> gaps = capture_gaps(np.array([1, 1, 1, 2]), at)
    >>> gaps.n_gaps, gaps.quantiles[0].days, gaps.quantiles[-1].days
    (2, 2.0, 7.0)
    """
    same = page[1:] == page[:-1]
    days = (np.diff(at)[same] / DAY).astype(np.float64)
    if not days.size:
        return None
    medians = _median_per_page(page[1:][same], days)
    share = np.linspace(0, 1, N_CURVE_POINTS + 1)
    return Gaps(
        n_pages=medians.size,
        n_gaps=days.size,
        quantiles=tuple(
            GapQuantile(q, float(a), float(b))
            for q, a, b in zip(QUANTILES, np.quantile(days, QUANTILES), np.quantile(medians, QUANTILES), strict=True)
        ),
        spans=_spans(days),
        cdf_days=tuple(np.quantile(days, share).tolist()),
        cdf_share=tuple(share.tolist()),
    )


def _median_per_page(page: Ints, days: Floats) -> Floats:
    ordered = days[np.lexsort((days, page))]
    _, start, size = np.unique(page, return_index=True, return_counts=True)
    medians: Floats = (ordered[start + (size - 1) // 2] + ordered[start + size // 2]) / 2
    return medians


def _spans(days: Floats) -> tuple[GapSpan, ...]:
    ends = [end for end, _ in SPANS]
    n_gaps = np.bincount(np.searchsorted(ends, days), minlength=len(SPANS))
    return tuple(GapSpan(name, int(n), float(n / days.size)) for (_, name), n in zip(SPANS, n_gaps, strict=True))


def captured_pages(page: Ints, at: Times, *, seed: int) -> list[CapturedPage]:
    """When a random sample of pages was visited, sorted by first visit (HACS Fig. 3)."""
    _, start, size = np.unique(page, return_index=True, return_counts=True)
    picked = np.random.default_rng(seed).permutation(start.size)[:MAX_SAMPLE_PAGES]
    picked = picked[np.cumsum(size[picked]) <= MAX_SAMPLE_VISITS]
    picked = picked[np.argsort(at[start[picked]], kind="stable")]
    visits = (at[start[row] : start[row] + size[row]] for row in picked)
    return [
        CapturedPage(order, tuple(np.datetime_as_string(times, unit="s").tolist()))
        for order, times in enumerate(visits, 1)
    ]
