import numpy as np
import pytest
from scipy.integrate import quad

from recrawl.policies.harvest.appraisal import Appraisal, appraise, kept_until_next
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import HALF_LIVES, HAZARDS, N_STREAMS, Streams

NOW = 1_000.0
Pairs = dict[tuple[int, int], float]


def neighbours(pairs: Pairs, unshared: np.ndarray) -> Neighbours:
    """Each pair with its share of the shared links."""
    n = len(unshared)
    first, other = (np.array([pair[i] for pair in sorted(pairs)], np.int64) for i in (0, 1))
    start = np.append(0, np.cumsum(np.bincount(first, minlength=n)))
    if_shared = np.array([pairs[pair] for pair in sorted(pairs)])
    share = if_shared * (1 - unshared[first])
    return Neighbours(start=start, other=other, share=share, if_shared=if_shared, unshared=unshared)


def only(*stream: int) -> Streams:
    """One page for each of these streams, whose links are all of it."""
    streams = Streams(len(stream), pseudo_links=1e-9)
    streams.followed[np.arange(len(stream)), stream] = 1e3
    return streams


def appraised(
    streams: Streams,
    last: list[float],
    pairs: Pairs | None = None,
    *,
    rate: float = 2.0,
    cycle: float = 1.0,
    patience: float = 1e12,
    gap: float = 5.0,
    unshared: float = 0.0,
) -> Appraisal:
    n = len(last)
    return appraise(
        np.arange(n),
        now=np.full(n, NOW),
        last=np.array(last),
        rate=np.full(n, rate),
        followed=streams.followed,
        prior=streams.pseudo_links * streams.shares,
        pairs=neighbours(pairs or {}, np.full(n, unshared)),
        keeps=kept_until_next(NOW, np.array(last), np.full(n, gap), streams, cycle, patience),
        cycle=cycle,
        patience=patience,
    )


class Random:
    """Pages with any mix of streams and any siblings."""

    def __init__(self, seed: int, n: int = 7) -> None:
        chance = np.random.default_rng(seed)
        self.n, self.streams = n, Streams(n, pseudo_links=3.0)
        self.streams.followed = chance.gamma(0.3, 10.0, (n, N_STREAMS))
        self.streams.shares = chance.dirichlet(np.ones(N_STREAMS))
        self.last, self.rate, self.gap = (
            NOW - chance.gamma(1.0, 15.0, n),
            chance.gamma(1.0, 2.0, n),
            chance.gamma(1, 9, n),
        )
        self.last[1] = self.last[0]  # visited together
        self.last[2] = -np.inf  # never seen, but a sibling
        self.pairs = {
            (p, q): float(chance.random()) for p in range(n) for q in range(n) if p != q and chance.random() < 0.5
        }
        self.seen = np.flatnonzero(np.isfinite(self.last))
        self.unshared = chance.random(n) * (chance.random(n) < 0.7)

    def survival(self, p: int, hours: float) -> float:
        own = self.streams.followed[p] + 3.0 * self.streams.shares
        return sum(w * 0.5 ** (hours / h) for w, h in zip(own, [*HALF_LIVES, np.inf], strict=True)) / sum(own)

    def appraise(self, cycle: float, patience: float) -> Appraisal:
        return appraise(
            self.seen,
            now=np.full(len(self.seen), NOW),
            last=self.last,
            rate=self.rate[self.seen],
            followed=self.streams.followed,
            prior=self.streams.pseudo_links * self.streams.shares,
            pairs=neighbours(self.pairs, self.unshared),
            keeps=kept_until_next(NOW, self.last, self.gap, self.streams, cycle, patience),
            cycle=cycle,
            patience=patience,
        )


@pytest.mark.parametrize("seed", range(5))
def test_the_stock_is_what_arrived_and_stayed_and_no_sibling_has_shown(seed: int) -> None:
    made = Random(seed)
    result = made.appraise(1.0, 50.0)
    for i, p in enumerate(made.seen):
        siblings = {q: share for (first, q), share in made.pairs.items() if first == p and made.last[q] > made.last[p]}

        def waiting(s: float, p: int = p, siblings: dict[int, float] = siblings) -> float:
            unseen = np.prod([1 - share for q, share in siblings.items() if made.last[q] > s])
            own = made.unshared[p]
            return made.rate[p] * made.survival(p, NOW - s) * (own + (1 - own) * unseen)

        points = sorted(made.last[q] for q in siblings)
        ends = [made.last[p], *points, NOW]
        slow = sum(quad(waiting, *ends[j : j + 2])[0] for j in range(len(ends) - 1))
        assert np.isclose(result.stock[i], slow, rtol=1e-6)
        own = (
            made.unshared[p]
            * made.rate[p]
            * quad(lambda t, p=p: made.survival(p, t), 0, NOW - made.last[p], limit=200)[0]
        )
        assert np.isclose(result.unshared[i], own / slow, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("cycle", "patience"), [(1.0, 30.0), (24.0, 5.0), (0.5, 1e5)])
def test_the_urgency_is_the_index_of_what_is_gained_with_time(seed: int, cycle: float, patience: float) -> None:
    made = Random(seed)
    result = made.appraise(cycle, patience)
    for i, p in enumerate(made.seen):

        def gained(cycles: float, p: int = p) -> float:
            return quad(lambda t: made.survival(p, t) * 0.5 ** (t / patience), 0, cycles * cycle, limit=200)[0]

        waited = (NOW - made.last[p]) / cycle
        slow = (gained(waited) - waited * (gained(waited + 1) - gained(waited))) / gained(waited)
        assert np.isclose(result.urgency[i], slow, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_safety_is_the_part_that_no_sibling_will_show_unless_it_is_overdue(seed: int) -> None:
    made = Random(seed)
    for p, safety in zip(made.seen, made.appraise(1.0, 50.0).safety, strict=True):
        worth = [0.5 ** (gap / 50.0) for gap in made.gap]  # of a link discovered so late
        is_due = [NOW - last <= 2 * gap + 1.0 for last, gap in zip(made.last, made.gap, strict=True)]
        saved = [
            share * made.survival(q, made.gap[q]) * worth[q] * is_due[q]
            for (first, q), share in made.pairs.items()
            if first == p
        ]
        assert np.isclose(safety, made.unshared[p] + (1 - made.unshared[p]) * np.prod(1 - np.array(saved)))


def test_nothing_is_urgent_where_nothing_leaves_and_everything_where_no_more_can_be_gained() -> None:
    forever, at_once = N_STREAMS - 1, 0
    result = appraised(only(forever, at_once), [NOW - 30.0] * 2)
    assert np.allclose(result.urgency, [0.0, 1.0], atol=1e-6)
    assert np.allclose(result.stock, [2.0 * 30.0, 2.0 / HAZARDS[0]])


def test_links_that_stay_are_urgent_too_without_patience() -> None:
    stays = only(N_STREAMS - 1, N_STREAMS - 1)
    urgency = [appraised(stays, [NOW - 30.0, NOW - 3.0], patience=p).urgency for p in (1e9, 100.0, 1.0)]
    assert urgency[0][0] < urgency[1][0] < urgency[2][0]
    assert urgency[2][0] > 0.99
    assert (np.array(urgency)[:, 1] < np.array(urgency)[:, 0]).all()


def test_safety_worked_out_by_hand() -> None:
    streams = only(3, 0, N_STREAMS - 1)  # the siblings' links: gone after half an hour by half, and never
    siblings, last = {(0, 1): 0.8, (0, 2): 0.5}, [NOW - 4.0, NOW - 9.0, NOW - 9.0]
    result = appraised(streams, last, siblings, gap=0.5, cycle=8.0)
    assert np.allclose(result.safety, [(1 - 0.8 * 0.5) * (1 - 0.5 * 1.0), 1.0, 1.0], atol=1e-6)
    assert (appraised(streams, last, siblings, gap=0.5, cycle=7.9).safety == 1.0).all()  # both are overdue
    assert np.isclose(
        result.stock[0], appraised(streams, [NOW - 4.0] * 3).stock[0]
    )  # visited before: they took nothing


def test_a_stock_worked_out_by_hand() -> None:
    streams = only(*[N_STREAMS - 1] * 3)
    result = appraised(streams, [NOW - 10.0, NOW - 4.0, NOW - 1.0], {(0, 1): 0.5, (0, 2): 0.2})
    assert np.isclose(result.stock[0], 2.0 * (1 + 3 * 0.8 + 6 * 0.8 * 0.5))


def test_unshared_links_wait_however_many_siblings_are_visited() -> None:
    n = 61
    streams = only(*[N_STREAMS - 1] * n)
    siblings, last = {(0, q): 0.9 for q in range(1, n)}, [NOW - 50.0] + [NOW - 1.0] * (n - 1)
    result = appraised(streams, last, siblings, unshared=0.1)
    assert np.isclose(result.stock[0], 2.0 * (1 + 49 * 0.1))
    assert np.isclose(result.unshared[0], 0.1 * 50 / (1 + 49 * 0.1))
    assert np.isclose(result.safety[0], 0.1)
    assert appraised(streams, last, siblings).stock[0] < 2.1
