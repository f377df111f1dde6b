import numpy as np
import pytest

from recrawl.policies.budget import Cause
from recrawl.policies.harvest.pick import no_caps, pick
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import HALF_LIVES, N_STREAMS, Streams
from recrawl.policies.picking import Caps

NOW = 500.0


def of(streams: Streams) -> dict[str, np.ndarray]:
    """What is known of the streams of all pages."""
    return {"followed": streams.followed, "prior": streams.pseudo_links * streams.shares}


class Random:
    """Pages to pick from, with siblings, caps and barred pages."""

    def __init__(self, seed: int, n: int = 30) -> None:
        chance = np.random.default_rng(seed)
        self.n, self.budget = n, int(chance.integers(0, n + 3))
        self.score = np.round(chance.gamma(0.5, 4.0, n), 1)  # with ties, and some zeros
        self.may = chance.random(n) < 0.85
        self.first = chance.permutation(np.flatnonzero(self.may))[: chance.integers(0, 5)]
        self.host, self.site = chance.integers(0, 8, n), chance.integers(0, 4, n)
        self.per_host, self.per_site = (int(chance.choice([0, 1, 3, n + 1], p=[0.05, 0.2, 0.25, 0.5])) for _ in "12")
        self.taken = chance.integers(0, n, 2)
        self.last = np.where(chance.random(n) < 0.15, np.nan, NOW - chance.gamma(1.0, 9.0, n))
        self.streams = Streams(n, pseudo_links=2.0)
        self.streams.followed = chance.gamma(0.3, 5.0, (n, N_STREAMS))
        self.unshared = np.where(chance.random(n) < 0.5, chance.random(n), 0.0)
        self.shared = {  # (r, p): the share of r's shared links that p shows
            (r, p): float(chance.random()) for r in range(n) for p in range(n) if r != p and chance.random() < 0.15
        }

    def seen(self, r: int, hours: float) -> float:
        own = self.streams.followed[r] + 2.0 * self.streams.shares
        hazards = [np.log(2) / h for h in HALF_LIVES]
        return own[-1] * hours + sum(w * (1 - np.exp(-d * hours)) / d for w, d in zip(own[:-1], hazards, strict=True))

    def fast(self):
        order = sorted(self.shared, key=lambda pair: (pair[1], pair[0]))
        start = np.append(0, np.cumsum(np.bincount([p for _, p in order], minlength=self.n)))
        if_shared = np.array([self.shared[pair] for pair in order])
        pairs = Neighbours(
            start=start,
            other=np.array([r for r, _ in order]),
            share=if_shared,
            if_shared=if_shared,
            unshared=self.unshared,
        )
        counts = [np.bincount(group[self.taken], minlength=self.n) for group in (self.host, self.site)]
        return pick(
            score=self.score,
            unshared=self.unshared,
            first=self.first,
            may=self.may,
            k=self.budget,
            caps=Caps(
                host=self.host,
                per_host=self.per_host,
                of_host=counts[0],
                site=self.site,
                per_site=self.per_site,
                of_site=counts[1],
            ),
            now=NOW,
            last=self.last,
            **of(self.streams),
            pairs=pairs,
        )

    def slow(self):
        factor, left, chosen = [1.0] * self.n, [1.0] * self.n, []
        capped: dict[int, int] = {}
        queue = self.first.tolist()
        while len(chosen) < self.budget:
            if queue:
                p = queue.pop(0)
            else:
                others = [p for p in range(self.n) if self.may[p] and p not in chosen and p not in capped]
                if not others:
                    break
                p = max(others, key=lambda p: (self.score[p] * factor[p], -p))
            taken = [*self.taken, *chosen]
            is_full = {
                Cause.SITE_CAP: sum(self.site[q] == self.site[p] for q in taken) >= self.per_site,
                Cause.HOST_CAP: sum(self.host[q] == self.host[p] for q in taken) >= self.per_host,
            }
            if any(is_full.values()):
                capped[p] = Cause.HOST_CAP if is_full[Cause.HOST_CAP] else Cause.SITE_CAP
                continue
            chosen.append(p)
            for r in range(self.n):
                if (r, p) in self.shared and r not in chosen and not np.isnan(self.last[r]):
                    waited = NOW - self.last[r]
                    newer = waited if np.isnan(self.last[p]) else min(waited, NOW - self.last[p])
                    left[r] *= 1 - self.shared[r, p] * self.seen(r, newer) / self.seen(r, waited)
                    factor[r] = self.unshared[r] + (1 - self.unshared[r]) * left[r]
        cause = [capped.get(p, Cause.BELOW_CUT) if p not in chosen else Cause.PICKED for p in range(self.n)]
        return chosen, factor, cause


@pytest.mark.parametrize("seed", range(60))
def test_picks_are_those_of_a_greedy_loop(seed: int) -> None:
    made = Random(seed)
    chosen, factor, cause, _ = made.fast()
    slow_chosen, slow_factor, slow_cause = made.slow()
    assert chosen.tolist() == slow_chosen
    assert np.allclose(factor, slow_factor)
    assert cause.tolist() == slow_cause


def test_a_page_whose_links_were_all_taken_comes_last() -> None:
    whole = np.array([1.0])  # page 0 shows everything that arrives on page 1
    pairs = Neighbours(
        start=np.array([0, 1, 1, 1]), other=np.array([1]), share=whole, if_shared=whole, unshared=np.zeros(3)
    )
    score, last = np.array([9.0, 8.0, 1.0]), np.full(3, NOW - 5.0)
    chosen, factor, cause, _ = pick(
        score=score,
        unshared=np.zeros(3),
        first=np.empty(0, np.int64),
        may=np.ones(3, bool),
        k=2,
        caps=no_caps(3),
        now=NOW,
        last=last,
        **of(Streams(3)),
        pairs=pairs,
    )
    assert chosen.tolist() == [0, 2]
    assert factor.tolist() == [1.0, 0.0, 1.0]
    assert cause.tolist() == [Cause.PICKED, Cause.BELOW_CUT, Cause.PICKED]


def test_pages_that_are_worth_the_same_are_picked_in_their_order() -> None:
    empty = np.empty(0)
    none = Neighbours(
        start=np.zeros(6, np.int64), other=empty.astype(np.int64), share=empty, if_shared=empty, unshared=np.zeros(5)
    )
    score, every, last = np.array([1.0, 2.0, 1.0, 2.0, 1.0]), np.ones(5, bool), np.full(5, NOW)
    chosen, _, _, _ = pick(
        score=score,
        unshared=np.zeros(5),
        first=np.array([4]),
        may=every,
        k=9,
        caps=no_caps(5),
        now=NOW,
        last=last,
        **of(Streams(5)),
        pairs=none,
    )
    assert chosen.tolist() == [4, 1, 3, 0, 2]
