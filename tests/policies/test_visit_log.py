"""Notes of visits, against plain lists."""

from __future__ import annotations

import numpy as np

from recrawl.policies.visit_log import VisitLog


def test_the_log_gives_back_what_a_list_of_rows_would() -> None:
    random = np.random.default_rng(5)
    log = VisitLog(40, at=np.int64, updated=np.int8)
    plain: list[tuple[int, int, int]] = []
    for cycle in range(300):
        page = np.sort(random.choice(40, random.integers(0, 20), replace=False))
        updated = random.integers(-1, 2, len(page)).astype(np.int8)
        log.add(page, at=np.full(len(page), cycle), updated=updated)
        plain += zip(page.tolist(), [cycle] * len(page), updated.tolist(), strict=True)
        n = int(random.integers(0, min(len(plain), 10) + 1))
        assert log.drop(n).tolist() == [row[0] for row in plain[:n]]
        del plain[:n]
        asked = random.choice(40, 6, replace=False)
        start, row = log.of(asked)
        for i, page_asked in enumerate(asked.tolist()):
            rows = row[start[i] : start[i + 1]]
            rows_of_page = list(zip(log["at"][rows].tolist(), log["updated"][rows].tolist(), strict=True))
            assert rows_of_page == [(at, what) for p, at, what in plain if p == page_asked]
    assert len(log) == len(plain) > 1024
