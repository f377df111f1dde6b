from __future__ import annotations

import statistics

import numpy as np
import pytest

from recrawl.report.stats import gaps
from recrawl.report.stats.gaps import capture_gaps, captured_pages


def irregular_visits(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    page = np.sort(random.integers(-50, 50, 1000))
    at = np.datetime64("2015-06-01", "us") + (random.random(1000) * 1e9).astype(np.int64) * np.timedelta64(
        100_000, "us"
    )
    return page, at[np.lexsort((at, page))]


def test_quantiles_agree_with_gaps_taken_page_by_page() -> None:
    page, at = irregular_visits()
    lengths, medians = [], []
    for one in np.unique(page):
        days = np.diff(at[page == one]).astype("timedelta64[us]").astype(float) / 86_400_000_000
        lengths += days.tolist()
        if days.size:
            medians.append(statistics.median(days))
    found = capture_gaps(page, at)
    assert found is not None
    assert (found.n_gaps, found.n_pages) == (len(lengths), len(medians))
    for row in found.quantiles:
        assert row.days == pytest.approx(np.quantile(lengths, row.quantile))
        assert row.page_median_days == pytest.approx(np.quantile(medians, row.quantile))
    assert sum(span.n_gaps for span in found.spans) == len(lengths)
    assert (found.cdf_days[0], found.cdf_days[-1]) == (pytest.approx(min(lengths)), pytest.approx(max(lengths)))


def test_a_weekly_crawl_that_is_a_few_hours_late_stays_in_one_bar() -> None:
    weeks = np.datetime64("2020-07-13", "us") + np.arange(5) * np.timedelta64(7, "D")
    late = weeks + np.array([0, 5, -3, 11, 0]) * np.timedelta64(1, "h")
    found = capture_gaps(np.zeros(5, dtype=np.int64), late)
    assert found is not None
    assert {span.span: span.n_gaps for span in found.spans if span.n_gaps} == {"about a week": 4}


def test_there_are_no_gaps_without_a_second_visit() -> None:
    at = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[us]")
    assert capture_gaps(np.array([1, 2]), at) is None
    assert capture_gaps(np.array([], dtype=np.int64), at[:0]) is None


def test_sampled_pages_come_by_first_visit_and_the_seed_picks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MAX_SAMPLE_PAGES", 20)
    page, at = irregular_visits()
    sample = captured_pages(page, at, seed=1)
    firsts = [row.at[0] for row in sample]
    assert firsts == sorted(firsts)
    assert [row.order for row in sample] == list(range(1, len(sample) + 1))
    assert len(sample) == 20
    assert sample == captured_pages(page, at, seed=1)
    assert sample != captured_pages(page, at, seed=2)
    assert captured_pages(page[:0], at[:0], seed=1) == []
