"""What is expected of a page before its own past says much: from pages like it in size, site, folder, name or text.

How much each of these counts is not set but learnt, by the likelihood of the arrivals on all other pages (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.exact_sums import ExactSums
from recrawl.core.growing import grown
from recrawl.core.hashtable import numbers_of
from recrawl.core.whole import ONE_PIECE, Columns, Whole, sampled, sorted_rows
from recrawl.policies.harvest.mixture import Mixture

if TYPE_CHECKING:
    from recrawl.world.related import Related

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  #: powers of a page's size to which its rate may be proportional
#: Links of others that weigh as much as the level above; infinite: unused.
WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
CYCLES_PER_LINK = 10.0  #: cycles in which a page gains one link, as long as nothing else is known
MAX_FITTED = 20_000  #: pages from which the weights are learnt; more would not change them


class Prior:
    """The expected rate of every page (links per clock hour), and how much pages differ from it.

    The expected rate of page p is mean_p = level · size_p^power · site_p · folder_p · name_p · related_p. The factors of the groups
    that a page belongs to, and of its related pages, are ratios of arrivals to expected arrivals there, without the page itself,
    each given those before it (`_Evidence`), shrunk towards 1 by a number of links that is learnt. Rates differ from the expected
    ones by a `Mixture`, by which the past of a page is weighed against the expectation. Counts are over-dispersed by φ: links
    arrive in batches.
    """

    def __init__(self, n_pages: int) -> None:
        self.mean: Floats = np.ones(n_pages)
        self.typical = 1.0  # of a page of which nothing is known
        self.power, self.mixture = 1.0, Mixture()

    def extend_to(self, n_pages: int) -> None:
        """More pages are known; until the next fit they are like all others."""
        self.mean = grown(self.mean, n_pages, self.typical)

    def posterior(
        self, arrivals: Floats, exposure: Floats, page: Ints | slice, dispersion: float
    ) -> tuple[Floats, Floats]:
        """Links per hour, by the page's own past and the expected rate, and the shape of a gamma distribution around that."""
        mean = self.mean[page]
        factor, shape = self.mixture.posterior(arrivals / dispersion, mean * exposure / dispersion)
        return mean * factor, shape

    def refit(
        self,
        arrivals: Floats,
        exposure: Floats,
        *,
        size: Floats,
        groups: Sequence[Ints],
        related: Related | None,
        dispersion: float,
        cycle_hours: float,
        around: bool = True,
        levels: bool = True,
        whole: Whole = ONE_PIECE,
        ids: Ints | None = None,
    ) -> None:
        """Learn all weights again. `size`: links on each page, NaN where not known; `groups`: numbers that similar pages share.

        Without `around` all pages begin equal; without `levels` it is not learnt how much pages differ. `ids` are as good as
        random, and decide which pages are sampled.
        """
        ids = np.arange(len(size)) if ids is None else ids
        n_links, n_known, n_fitted, n_pages = whole.counts(
            "sizes", lambda: np.append(sizes(size), [np.count_nonzero(exposure > 0), len(size)])
        ).tolist()
        usual = n_links / n_known if n_known else 1.0
        size = whole.once("size", lambda: np.maximum(np.where(np.isnan(size), usual, size), 1.0))
        powers = POWERS if around else POWERS[:1]
        totals = whole.totals("levels", lambda: _level_sums(size, exposure, arrivals, (*powers, self.power)))

        def level(which: int, power: float) -> Floats:
            base, due = totals[2 * which : 2 * which + 2]
            scale = (totals[-1] + 1.0) / (due + base / n_pages * cycle_hours * CYCLES_PER_LINK)
            mean: Floats = size**power * scale
            return mean

        if n_fitted < 3:
            self._set(level(len(powers), self.power), ids, n_pages, whole)
            return
        fitted = np.flatnonzero(exposure > 0)
        fitted = fitted[sampled(ids[fitted], n_fitted, MAX_FITTED)]
        sample = _Sample(
            id=ids[fitted],
            n_batches=arrivals[fitted] / dispersion,
            due=exposure[fitted] / dispersion,
            mixture=self.mixture,
            whole=whole,
        )
        power = sample.best("power", powers, lambda: [level(i, each)[fitted] for i, each in enumerate(powers)])
        mean = whole.once("level", lambda: level(powers.index(power), power))
        evidence = whole.once("evidence", lambda: _Evidence.none(arrivals, mean * exposure))
        for number, group in enumerate(groups if around else ()):
            factor = whole.once(f"group {number}", partial(_GroupFactor, group, evidence))
            weight = sample.best_weight(f"weight of group {number}", factor, mean, fitted, dispersion)
            evidence, mean = whole.once(f"with group {number}", partial(factor.applied, weight, mean))
        if around and related is not None:
            of_related = _RelatedFactor(related, evidence, whole)
            weight = sample.best_weight("weight of related pages", of_related, mean, fitted, dispersion)
            mean = mean * of_related(weight)
        shares = sample.learnt_shares(mean[fitted]) if levels else self.mixture.shares
        self._set(mean, ids, n_pages, whole)
        self.power, self.mixture = power, Mixture(shares)

    def _set(self, mean: Floats, ids: Ints, n_pages: int, whole: Whole) -> None:
        some = sampled(ids, n_pages, MAX_FITTED)
        rates = whole.rows("typical rate", lambda: {"id": ids[some], "mean": mean[some]})["mean"]
        self.mean, self.typical = mean, float(np.median(rates)) if len(rates) else 1.0


def sizes(size: Floats) -> Ints:
    """The links on all pages of which they are known, and how many pages these are."""
    known = size[~np.isnan(size)]
    return np.array([known.sum(), len(known)], np.int64)


def _level_sums(size: Floats, exposure: Floats, arrivals: Floats, powers: Sequence[float]) -> ExactSums:
    """For each power the sum of the sizes, raised to it, and the same weighted by exposure; then the sum of the arrivals."""
    sums = ExactSums(2 * len(powers) + 1)
    for i, power in enumerate(powers):
        base = size**power
        for which, terms in ((2 * i, base), (2 * i + 1, base * exposure)):
            sums.add_to(which, terms)
    sums.add_to(2 * len(powers), arrivals)
    return sums


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """The pages, of this part, from which weights are learnt: how many batches of links arrived, and the time for it."""

    id: Ints
    n_batches: Floats
    due: Floats  # hours, in units of the dispersion
    mixture: Mixture
    whole: Whole

    def best(self, name: str, values: Sequence[float], means: Callable[[], Sequence[Floats]]) -> float:
        """The value whose expected rates explain the arrivals best; the first of equal ones."""
        best: int = self.whole.together(name, lambda: self._columns(means()), _best)
        return values[best]

    def best_weight(
        self, name: str, factor: _GroupFactor | _RelatedFactor, mean: Floats, fitted: Ints, dispersion: float
    ) -> float:
        """The weight (in links) that explains the arrivals best; infinite, which leaves the factor out, unless one is better."""
        weights = WEIGHTS[::-1]

        def means() -> list[Floats]:
            return [mean[fitted] * factor(weight * dispersion, fitted) for weight in weights]

        return self.best(name, weights, means) * dispersion

    def learnt_shares(self, mean: Floats) -> Floats:
        """How common each level is, given the expected rates."""
        shares: Floats = self.whole.together("levels of rates", lambda: self._columns([mean]), _shares)
        return shares

    def _columns(self, means: Sequence[Floats]) -> Columns:
        due = {f"due {i}": mean * self.due for i, mean in enumerate(means)}
        return {"id": self.id, "n_batches": self.n_batches, **due, "shares": self.mixture.shares}


def _joined(parts: Sequence[Columns]) -> tuple[Mixture, Floats, list[Floats]]:
    """The rows of all parts: the mixture that all of them have, batches that arrived, and those due by each of several means."""
    mixture = Mixture(parts[0]["shares"])
    rows = sorted_rows([{name: values for name, values in part.items() if name != "shares"} for part in parts])
    return mixture, rows["n_batches"], [values for name, values in rows.items() if name.startswith("due")]


def _best(parts: Sequence[Columns]) -> int:
    """Which of several expectations explains the arrivals best."""
    mixture, arrived, expected = _joined(parts)
    return int(np.argmax([mixture.log_likelihood(arrived, due) for due in expected]))


def _shares(parts: Sequence[Columns]) -> Floats:
    """The shares of the levels, learnt from all parts."""
    mixture, arrived, (expected,) = _joined(parts)
    mixture.learn(arrived, expected)
    return mixture.shares


@dataclass(frozen=True, kw_only=True)
class _Evidence:
    """What the groups so far say. A page must not count for its own prior, nor twice for that of another.

    The expectation of another page q, seen from p, rests on everything but p. If q is in all groups of p so far, it is that of p
    itself. If not, it is that of q with its own past: p has no part in that, or a small one.
    """

    arrived: Floats
    expected: Floats  # of pages of this size
    within: Ints  # a number for each set of groups so far
    without_it: Floats  # the factor of each page by the groups so far, without its own past
    with_it: Floats  # the same with its own past

    @classmethod
    def none(cls, arrived: Floats, expected: Floats) -> _Evidence:
        """Before any group."""
        ones = np.ones(len(arrived))
        within = np.zeros(len(arrived), np.int64)
        return cls(arrived=arrived, expected=expected, within=within, without_it=ones, with_it=ones)


class _GroupFactor:
    """Arrivals on the other pages of the group, divided by those expected there."""

    def __init__(self, group: Ints, evidence: _Evidence) -> None:
        self.before = evidence
        self.within: Ints = numbers_of(evidence.within * (group.max(initial=0) + 1) + group)
        with_it = evidence.expected * evidence.with_it
        self.all_arrived, self.all_expected = _summed(group, evidence.arrived), _summed(group, with_it)
        same, same_with_it = _summed(self.within, evidence.expected), _summed(self.within, with_it)
        self.arrived = self.all_arrived - evidence.arrived
        self.expected = self.all_expected - same_with_it + (same - evidence.expected) * evidence.without_it

    def __call__(self, weight: float, page: Ints | slice = slice(None)) -> Floats:
        return _ratio(self.arrived[page], self.expected[page], weight)

    def applied(self, weight: float, mean: Floats) -> tuple[_Evidence, Floats]:
        """The evidence and the expected rates with this group."""
        return self.evidence(weight), mean * self(weight)

    def evidence(self, weight: float) -> _Evidence:
        """The evidence with this group."""
        return replace(
            self.before,
            within=self.within,
            without_it=self.before.without_it * self(weight),
            with_it=self.before.with_it * _ratio(self.all_arrived, self.all_expected, weight),
        )


class _RelatedFactor:
    """Arrivals on related pages, divided by those expected there; each counts by its weight."""

    def __init__(self, related: Related, evidence: _Evidence, whole: Whole) -> None:
        place = np.arange(len(related.neighbour)) if related.place is None else related.place
        within = np.full(evidence.within.max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(within, evidence.within, place)  # named by one of their pages, so that all parts mean the same
        mine = {name: getattr(evidence, name) for name in ("arrived", "expected", "with_it")}
        own = within[evidence.within]
        others = whole.rows("evidence on related pages", lambda: {"place": place, **mine, "within": own})
        near, is_there = related.neighbour, related.neighbour >= 0
        weight = np.where(is_there, related.weight, 0.0) * is_there.sum(axis=1, keepdims=True)
        is_same = others["within"][near] == own[:, None]
        factor = np.where(is_same, evidence.without_it[:, None], others["with_it"][near])
        self.arrived = (weight * others["arrived"][near]).sum(axis=1)
        self.expected = (weight * factor * others["expected"][near]).sum(axis=1)

    def __call__(self, weight: float, page: Ints | slice = slice(None)) -> Floats:
        return _ratio(self.arrived[page], self.expected[page], weight)


def _summed(group: Ints, values: Floats) -> Floats:
    """The sum over each page's group."""
    whole: Floats = np.bincount(group, values)[group].astype(np.float64, copy=False)
    return whole


def _ratio(arrived: Floats, expected: Floats, weight: float) -> Floats:
    return np.ones(len(arrived)) if np.isinf(weight) else (arrived + weight) / (expected + weight)
