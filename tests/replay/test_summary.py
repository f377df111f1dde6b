from typing import Any

import numpy as np
import pytest

from recrawl.replay import Replayed, coverage_over_time, summarise
from recrawl.replay.run import AGE_HOURS
from recrawl.replay.summary import age_counts


def ages(**counts: int) -> list[int]:
    """Links discovered by class: ``h0=3`` within the cycle, ``h4=1`` within four hours, ``later=1`` after all classes."""
    classes = [0] * (len(AGE_HOURS) + 1)
    for name, n in counts.items():
        classes[-1 if name == "later" else AGE_HOURS.index(float(name[1:]))] = n
    return classes


def row(cycle: int, **numbers: Any) -> dict[str, Any]:
    plain = {
        "fetches": 4,
        "answered": 4,
        "published": 0,
        "found": 0,
        "shown_new": 0,
        "hits": 0,
        "soon": 0,
        "hosts": 2,
        "changes": 0,
    }
    return {
        "cycle": cycle,
        "at": f"2026-01-0{cycle}T00:00:00+00:00",
        **plain,
        "ages": ages(),
        "most_of_host": 2,
        "current": 0.5,
        "seconds": 0.25,
        **numbers,
    }


ROWS = [
    row(1, published=10, found=4, shown_new=6, hits=2, soon=4, ages=ages(h0=4), current=0.9, most_of_host=3, hosts=2),
    row(2, published=0, answered=3, current=0.6, hosts=1, most_of_host=4),
    row(
        3, published=6, found=8, shown_new=10, hits=3, ages=ages(h1=2, h2=1, h4=2, h24=2, later=1), current=0.3, hosts=3
    ),
]


def run(rows: list[dict[str, Any]]) -> Replayed:
    return Replayed(policy="made-up", paper="MADE", sees_future=False, settings={}, budget=4, rows=rows)


def test_the_summary_is_what_the_rows_add_up_to() -> None:
    found = summarise(run(ROWS))
    assert (found.policy, found.paper, found.budget, found.cycles) == ("made-up", "MADE", 4, 3)
    assert (found.fetches, found.answered, found.discovered, found.discoverable) == (12, 11, 12, 16)
    assert found.coverage == 12 / 16
    assert (found.age_1h, found.age_4h) == (6 / 12, 9 / 12)
    assert (found.within_1h, found.within_4h) == (6 / 16, 9 / 16)
    assert found.within_4_cycles == 4 / 16
    assert (found.links_per_fetch, found.hit_rate, found.overlap_wasted) == (1.0, 5 / 12, 4 / 16)
    assert found.freshness == pytest.approx(0.6)
    assert (found.most_of_host, found.mean_of_host) == (4, 12 / 6)
    assert (found.seconds, found.seconds_per_cycle) == (0.75, 0.25)


def test_the_summary_has_the_keys_that_others_rely_on() -> None:
    keys = "policy budget cycles fetches discovered discoverable coverage age_1h age_4h freshness seconds"
    assert set(keys.split()) <= set(summarise(run(ROWS)).as_dict())


def test_what_has_nothing_to_divide_by_is_not_known() -> None:
    found = summarise(run([row(1, fetches=0, answered=0, hosts=0)]))
    unknown = (found.coverage, found.age_1h, found.within_4h, found.links_per_fetch, found.hit_rate, found.mean_of_host)
    assert unknown == (None,) * 6
    assert summarise(run([])).freshness is None


def test_coverage_over_time_counts_what_was_published_so_far() -> None:
    assert coverage_over_time(ROWS).tolist() == [0.4, 0.4, 0.75]
    assert np.isnan(coverage_over_time([row(1)])).all()


def test_the_age_distribution_ends_at_all_that_was_found() -> None:
    counts = dict(zip([*AGE_HOURS, np.inf], age_counts(ROWS).tolist(), strict=True))
    assert [counts[hours] for hours in (0.0, 1.0, 2.0, 4.0, 12.0, 24.0, 8760.0, np.inf)] == [4, 6, 7, 9, 9, 11, 11, 12]
