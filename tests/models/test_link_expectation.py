from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recrawl.core.arrays import LinkLists
from recrawl.core.times import microseconds
from recrawl.models.link_expectation import LinkExpectation
from recrawl.world.pages import Pages, Visits

START = datetime(2026, 1, 5, tzinfo=UTC)


def watched(new: np.ndarray, hours: float = 1.0, size: int = 100) -> tuple[LinkExpectation, Pages, datetime]:
    """Pages that were visited at equal intervals and showed these numbers of new links: [cycle, page]."""
    n_cycles, n = new.shape
    pages = Pages.unseen(np.zeros(n, np.int64), np.zeros(n, np.int64))
    expectation = LinkExpectation(n)
    for cycle in range(n_cycles + 1):
        at = START + cycle * timedelta(hours=hours)
        n_new = new[cycle - 1] if cycle else np.zeros(n, np.int64)
        start, shown = np.append(0, np.cumsum(n_new)), np.arange(n + 1) * size
        visits = Visits(
            at=np.full(n, microseconds(at)),
            ended_at=at,
            page=np.arange(n),
            age_hours=pages.age_hours(at),
            is_first=pages.n_visits == 0,
            answered=np.ones(n, np.bool_),
            gone=np.zeros(n, np.bool_),
            failed=np.zeros(n, np.bool_),
            changed=np.zeros(n, np.int8),
            n_new_since=n_new.astype(np.int32),
            updated=np.zeros(n, np.int8),
            shown=LinkLists(shown, np.zeros(shown[-1], np.int32)),
            new=LinkLists(start, np.arange(start[-1], dtype=np.int32)),
            n_found=int(n_new.sum()),
        )
        expectation.observe(visits)
        pages.note(visits)
    return expectation, pages, START + n_cycles * timedelta(hours=hours)


def test_a_long_past_speaks_for_itself() -> None:
    random = np.random.default_rng(0)
    rates = np.array([0.1, 1.0, 5.0, 0.0])
    expectation, pages, now = watched(random.poisson(rates, (400, 4)))
    expected, probability = expectation.expect(pages, now + timedelta(hours=1))
    np.testing.assert_allclose(expected, rates, atol=0.25)
    np.testing.assert_allclose(probability, 1 - np.exp(-rates), atol=0.06)


def test_a_short_past_is_drawn_towards_that_of_all_pages() -> None:
    new = np.zeros((30, 50), np.int64)
    new[:, :25] = 2
    new[:, 49] = 0
    expectation, pages, now = watched(new)
    for sums in (expectation.n_links, expectation.n_visits, expectation.n_hits, expectation.hours):
        sums[49] = 0.0  # as if it had been seen once
    expected, _ = expectation.expect(pages, now + timedelta(hours=1))
    assert expected[30] < 0.2
    assert 0.5 < expected[49] < 1.5
    assert expected[0] == pytest.approx(2.0, abs=0.2)


def test_the_sums_of_expected_and_found_agree_on_made_up_pages() -> None:
    """Gamma rates, few visits each: the expectation is calibrated where it matters, in the sum and by class."""
    random = np.random.default_rng(1)
    rates = random.gamma(0.5, 2.0, 3000)
    expectation, pages, now = watched(random.poisson(rates, (6, 3000)))
    expected, probability = expectation.expect(pages, now + timedelta(hours=1))
    came = random.poisson(rates)
    assert expected.sum() == pytest.approx(came.sum(), rel=0.05)
    top = np.argsort(-expected)[:300]
    assert expected[top].sum() == pytest.approx(came[top].sum(), rel=0.1)
    assert probability.mean() == pytest.approx((came > 0).mean(), abs=0.05)


def test_no_page_is_expected_to_show_more_new_links_than_it_has_links() -> None:
    expectation, pages, now = watched(np.full((20, 3), 5), size=12)
    expected, _ = expectation.expect(pages, now + timedelta(days=30))
    assert (expected <= 12).all()


def test_pages_without_any_past_are_not_nan() -> None:
    expectation = LinkExpectation(3)
    pages = Pages.unseen(np.zeros(3, np.int64), np.zeros(3, np.int64))
    expected, probability = expectation.expect(pages, START)
    assert expected.tolist() == probability.tolist() == [0.0, 0.0, 0.0]
