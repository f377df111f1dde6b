import numpy as np

from recrawl.core.arrays import LinkLists
from recrawl.policies.harvest.cohorts import Cohorts


def lists(sets: list[set[int]]) -> LinkLists:
    start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return LinkLists(start, np.array([link for links in sets for link in sorted(links)], np.int32))


def some(chance: np.random.Generator, most: int) -> set[int]:
    return set(chance.choice(60, chance.integers(0, most), replace=False).tolist())


def test_cohorts_agree_with_sets_over_many_visits() -> None:
    chance = np.random.default_rng(0)
    cohorts, slow, gap = Cohorts(20), [set[int]() for _ in range(20)], np.zeros(20)
    n_written = 0
    for _ in range(400):
        page = np.flatnonzero(chance.random(20) < 0.4)
        shown = [some(chance, 40) for _ in page]
        place = chance.permutation(len(page))  # some of the visits, in any order
        place = place[: chance.integers(0, len(page) + 1)]
        stayed = cohorts.stayed(page[place], place, lists(shown))
        assert stayed.tolist() == [len(slow[page[i]] & shown[i]) for i in place]
        links, begin, size = cohorts.held(page[place])
        held = [set(links[at : at + n].tolist()) for at, n in zip(begin, size, strict=True)]
        assert held == [slow[p] for p in page[place]]
        new, keep, gaps = [some(chance, 30) for _ in page], chance.random(len(page)) < 0.8, chance.random(len(page))
        cohorts.replace(page, lists(new), gaps, keep)
        for i, p in enumerate(page):
            slow[p] = new[i] if keep[i] else set()
            n_written += len(slow[p])
        gap[page] = gaps
        assert cohorts.size.tolist() == [len(links) for links in slow]
    assert np.array_equal(cohorts.gap, gap)
    assert n_written > 10 * len(cohorts._links)  # so room was made many times
