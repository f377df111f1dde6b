"""How the pages of the made-up web behave from round to round.

Every page has two numbers per kind of link (internal, external): the probability q of gaining links in a week, and
the number m it gains in a week in which it gains any. q is 0 for a fixed share of the pages and Beta-distributed
(U-shaped) for the others: many pages never change and many always do; m follows a stretched exponential. Which
page gets which quantile is decided by a hidden normal number, shared by the pages of a topic and of a section (a
Gaussian copula over ranks), so related pages behave alike while the distribution over all pages is the same for every
seed. A week's count is 0 with probability 1 − q, else 1 + Poisson(m·g − 1) with g log-normal with mean 1: mostly
steady pages, and some with bursts.

For rounds that are not a week apart, τ (the time since the last round in weeks, stretched by the rhythm of hours and
weekdays) thins both: q(τ) = 1 − (1 − q)^τ, and m(τ) such that the mean stays q·m·τ. A page's text changes on most
rounds that bring links, and on others with a probability of its own. Pages die, visits fail and servers respond with 304 at
the rates of the settings.

References: Dang et al. (2022), Look back, look around, section 4, Table 2, Figures 3 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.synth.chance import shares, stream
from recrawl.synth.rhythm import elapsed_weeks
from recrawl.synth.settings import Activity, SynthSettings
from recrawl.synth.web import Web, latent, liveliness

_BURSTY_RATE, _BURSTY_VOLATILITY = 0.25, 0.7
_SMALLEST = 0.7  # where the stretched exponential of m begins; it then counts as 1
_SIZE_FOLLOWS_REGULARITY = 0.6  # correlation of m with q
_EXTERNAL_FOLLOWS_INTERNAL = 0.35
_TEXT_FOLLOWS_LINKS = 0.7  # probability that a text changes in a round with new links
_TEXT_FOLLOWS_REGULARITY = 0.3
_NEVER_TEXT, _ALWAYS_TEXT = 0.4, 0.12  # shares of pages whose text changes only with the links, or in every round
_REGULAR_LIMIT = 0.9995  # a probability of 1 would mean infinitely many occasions per week


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What happens on every page in every round; all arrays are [page, round]. Nothing is new in the first round."""

    n_internal: Ints32  # links gained
    n_external: Ints32
    pruned: Flags  # a fixed internal link went away
    text_changed: Flags
    status: NDArray[np.int16]
    has_validators: Flags  # [page]

    @property
    def links_changed(self) -> Flags:
        """Rounds in which the set of links is not that of the round before."""
        return np.asarray((self.n_internal > 0) | (self.n_external > 0) | self.pruned)


def simulate(web: Web) -> Behaviour:
    """What happens on the web in all rounds of its settings."""
    settings, rng = web.settings, stream(web.settings.seed, "behaviour")
    weeks = elapsed_weeks(web, rng)
    regular = latent(web, rng) + liveliness(web)
    large = _correlated(regular, latent(web, rng), _SIZE_FOLLOWS_REGULARITY)
    outward = _correlated(regular, latent(web, rng), _EXTERNAL_FOLLOWS_INTERNAL)
    large_outward = _correlated(outward, latent(web, rng), _SIZE_FOLLOWS_REGULARITY)
    n_internal = link_counts(settings.internal, regular, large, weeks, rng)
    n_external = link_counts(settings.external, outward, large_outward, weeks, rng)
    pruned = rng.random(weeks.shape) < _thinned(np.full((web.n_pages, 1), settings.pruning_rate), weeks)
    wordy = _correlated(regular, latent(web, rng), _TEXT_FOLLOWS_REGULARITY)
    text_changed = _text_changes((n_internal > 0) | (n_external > 0), wordy, weeks, rng)
    has_validators = rng.random(web.n_pages) < settings.validator_rate
    still = ~text_changed & (n_internal == 0) & (n_external == 0) & ~pruned
    status = _statuses(settings, still & has_validators[:, None], weeks, rng)
    return Behaviour(
        n_internal=n_internal,
        n_external=n_external,
        pruned=pruned,
        text_changed=text_changed,
        status=status,
        has_validators=has_validators,
    )


def link_counts(activity: Activity, regular: Floats, large: Floats, weeks: Floats, rng: np.random.Generator) -> Ints32:
    """New links per page and round; `regular` and `large` only order the pages, `weeks` is the time each round took."""
    q, m = weekly_rates(activity, regular, large)
    q_round = np.minimum(_thinned(q[:, None], weeks), (q * m)[:, None] * weeks)
    page, number = np.nonzero(rng.random(weeks.shape) < q_round)
    mean = q[page] * m[page] * weeks[page, number] / q_round[page, number]
    spread = np.where(rng.random(len(q)) < _BURSTY_RATE, _BURSTY_VOLATILITY, activity.volatility)[page]
    mean *= np.exp(spread * rng.standard_normal(len(page)) - spread**2 / 2)
    counts = np.zeros(weeks.shape, np.int32)
    counts[page, number] = 1 + rng.poisson(np.maximum(mean - 1, 0))
    return counts


def weekly_rates(activity: Activity, regular: Floats, large: Floats) -> tuple[Floats, Floats]:
    """The probability q of gaining links in a week, and the number m gained in such a week, of every page."""
    from scipy.stats import beta

    q, m = np.zeros(len(regular)), np.zeros(len(regular))
    share = shares(regular)
    able = share >= activity.never_rate
    q[able] = beta.ppf((share[able] - activity.never_rate) / (1 - activity.never_rate), *activity.regularity)
    smallest = (_SMALLEST / activity.size) ** activity.tail
    m[able] = activity.size * (smallest - np.log1p(-shares(large[able]))) ** (1 / activity.tail)
    return np.minimum(q, _REGULAR_LIMIT), np.maximum(m, 1)


def _correlated(first: Floats, second: Floats, correlation: float) -> Floats:
    return np.asarray(correlation * first / (first.std() or 1.0) + np.sqrt(1 - correlation**2) * second)


def _thinned(weekly: Floats, weeks: Floats) -> Floats:
    """The probability of at least one event in these weeks."""
    return np.asarray(-np.expm1(np.log1p(-np.minimum(weekly, _REGULAR_LIMIT)) * weeks))


def _text_changes(gained: Flags, hidden: Floats, weeks: Floats, rng: np.random.Generator) -> Flags:
    share = shares(hidden)
    between = np.clip((share - _NEVER_TEXT) / (1 - _ALWAYS_TEXT - _NEVER_TEXT), 0, 1)
    weekly = np.where(share > 1 - _ALWAYS_TEXT, 0.98, 0.6 * between**2)
    alone = _thinned(weekly[:, None], weeks)
    probability = np.where(gained, np.maximum(alone, _TEXT_FOLLOWS_LINKS), alone)
    return np.asarray(rng.random(weeks.shape) < probability)


def _statuses(settings: SynthSettings, may_be_304: Flags, weeks: Floats, rng: np.random.Generator) -> NDArray[np.int16]:
    n_pages = len(weeks)
    status = np.full(weeks.shape, 200, np.int16)
    failed = rng.random(weeks.shape) < settings.failure_rate
    status[failed] = rng.choice(np.array([503, 0, 500], np.int16), failed.sum(), p=[0.6, 0.25, 0.15])
    answered = np.zeros(weeks.shape, np.bool_)
    # 304 means "as your last copy": only straight after a visit that succeeded.
    answered[:, 1:] = (status == 200)[:, 1:] & (status == 200)[:, :-1]
    status[answered & may_be_304 & (rng.random(weeks.shape) < settings.not_modified_rate)] = 304
    dies = rng.random(weeks.shape) < _thinned(np.full((n_pages, 1), settings.death_rate), weeks)
    dead = np.logical_or.accumulate(dies, axis=1)
    gone = np.where(rng.random(n_pages) < 0.2, 410, 404).astype(np.int16)
    return np.where(dead & ~failed, gone[:, None], status).astype(np.int16)


def last_change(changed: Flags) -> Ints:
    """For each round, the last round up to it in which something changed; round 0 if none.

    >>> last_change(np.array([[True, False, True, False]]))
    array([[0, 0, 2, 2]])
    """
    rounds = np.where(changed, np.arange(changed.shape[1]), 0)
    return np.maximum.accumulate(rounds, axis=1)
