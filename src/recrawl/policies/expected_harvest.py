"""Visit the pages where most unseen links wait that would be lost: recrawl's own policy."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.policies.base import US_PER_HOUR, Budget, Choice, Floats, Ints, Pages, Policy, Visits, microseconds
from recrawl.policies.stock.model import Foreseen, Parts, StockModel
from recrawl.policies.stock.pick import pick
from recrawl.policies.stock.streams import half_gone

FAVOURS = ("coverage", "freshness")
MIN_SHARE = 0.1  # of the links, that a sibling must show to be named


class ExpectedHarvest(Policy):
    """Visit the pages whose stock of unseen links is largest and about to be lost.

    A page holds links that nobody has seen: they came since its last visit, some have left, and some were met on siblings. The
    score is stock · urgency · safety · probability of an answer (see `recrawl.policies.stock`), picked greedily.

    favour: "coverage" finds most links in the end, and lets those wait that stay; "freshness" takes the largest stock at once.
    explore: share of the budget for pages that were not yet visited twice, while there are any; the largest first.
    patience: sweeps (the time in which the budget visits every page once) after which a link is worth half as much.
    half_life_days, half_life_visits: the past counts half after the longer of these. The others are parts of the model that can be
    left out, to see what they are worth: the busy-hour clock, learnt lifetimes of links, siblings that show the same links and
    their discount within a cycle, urgency, safety, failures, what pages of the same size, site and text tell.

    References: the urgency is an index as of Whittle (1988) for restless bandits; weights of own past against that of others are
    credibility as of Bühlmann and Straub (1970).
    """

    name: ClassVar[str] = "expected-harvest"

    def __init__(
        self,
        favour: str = "coverage",
        explore: float = 0.25,
        patience: float = 3.5,
        half_life_days: float = 60.0,
        half_life_visits: float = 30.0,
        rhythm: bool = True,
        lifetimes: bool = True,
        overlap: bool = True,
        discount: bool = True,
        urgency: bool = True,
        safety: bool = True,
        failures: bool = True,
        around: bool = True,
        related: bool = True,
    ) -> None:
        if favour not in FAVOURS:
            raise ValueError(f"favour is {favour!r}; it must be coverage or freshness")
        if not 0 <= explore <= 1:
            raise ValueError(f"explore is {explore}; it must be a share between 0 and 1")
        for what, value in (
            ("patience", patience),
            ("half_life_days", half_life_days),
            ("half_life_visits", half_life_visits),
        ):
            if not 0 < value < np.inf:
                raise ValueError(f"{what} is {value}; it must be above 0")
        self.favour, self.explore, self.patience = favour, explore, patience
        self.half_life_days, self.half_life_visits = half_life_days, half_life_visits
        self.rhythm, self.lifetimes, self.overlap, self.discount = rhythm, lifetimes, overlap, discount
        self.urgency, self.safety, self.failures, self.around, self.related = urgency, safety, failures, around, related

    @property
    def needs_related(self) -> bool:  # type: ignore[override]
        """Whether related pages are looked at."""
        return self.related and self.around

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self.model_ = StockModel(
            pages,
            Parts(
                self.half_life_days, self.half_life_visits, self.rhythm, self.lifetimes, self.overlap, self.discount,
                self.failures, self.around, self.related,
            ),
        )  # fmt: skip

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        self.model_.observe(visits)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest score first, each given those before it."""
        n, hours = len(pages), microseconds(now) / US_PER_HOUR
        if n == 0:
            return Choice(np.empty(0, np.int64), np.empty(0))
        sweep = self.model_.cycle_hours * max(n / max(budget.pages, 1), 1.0)
        foreseen = self.model_.foresee(np.arange(n), hours, sweep, self.patience * sweep)
        score = foreseen.expected
        if self.favour == "coverage":
            score = score * (foreseen.worth.urgency if self.urgency else 1.0)
            score = score * (foreseen.worth.safety if self.safety else 1.0)
        may = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
        clock, last = self.model_.clock(hours)
        chosen, factor, cause = pick(
            score, self._unexplored(pages, foreseen, budget, may), may, min(budget.pages, n), _caps(pages, budget), clock, last,
            self.model_.streams, self.model_.pairs(is_reversed=True),
        )  # fmt: skip
        if budget.barred is not None:
            cause[~may] = budget.barred[~may]
        expected = (foreseen.expected * factor)[chosen]
        reason, detail = self._why(chosen, foreseen, expected, hours)
        return Choice(chosen, (score * factor)[chosen], reason, detail, expected, cause)

    def _unexplored(self, pages: Pages, foreseen: Foreseen, budget: Budget, may: NDArray[np.bool_]) -> Ints:
        """Pages not yet visited twice, those that answer and are large first, as many as the budget has room for."""
        new = np.flatnonzero(pages.is_new & may)
        worth = foreseen.answers[new] * np.nan_to_num(self.model_.size[new])
        return new[np.argsort(-worth, kind="stable")][: round(self.explore * budget.pages)]

    # -- why -----------------------------------------------------------------------------------------------------------

    def _why(
        self, page: Ints, foreseen: Foreseen, expected: Floats, hours: float
    ) -> tuple[tuple[str, ...], dict[str, NDArray[np.float64]]]:
        """One sentence a page, and the numbers in it."""
        model = self.model_
        weights = model.streams.weights(page)
        unseen = foreseen.is_unseen[page]
        sibling, share = _closest(page, model)
        low, high, _ = model.calibration.interval(expected, foreseen.answers[page], model.shape(page), model.dispersion)
        gone, waited = half_gone(weights), hours - model.seen_at[page]
        detail = {
            "stock": foreseen.worth.stock[page],
            "rate": model.rate()[page],
            "waited": waited,
            "gone": gone,
            "answers": foreseen.answers[page],
            "urgency": foreseen.worth.urgency[page],
            "safety": foreseen.worth.safety[page],
            "share": share,
            "sibling": sibling.astype(np.float64),
            "sibling_waited": np.where(sibling >= 0, hours - model.seen_at[sibling], np.nan),
            "low": low,
            "high": high,
            "likely": model.calibration.probability(
                expected, foreseen.answers[page], model.shape(page), model.dispersion
            ),
        }
        sentences = []
        for i in range(len(page)):
            if unseen[i]:
                sentences.append("never answered yet; {answers:.0%} likely to answer, with {stock:.1f} new links then")
                continue
            text = (
                "about {stock:.1f} unseen links: "
                + _rate_words(detail["rate"][i])
                + " for "
                + _hours_words("waited", waited[i])
            )
            text += (
                ", hardly any leave"
                if not gone[i] < 1e5
                else ", half of them gone after " + _hours_words("gone", gone[i])
            )
            if share[i] >= MIN_SHARE:
                text += (
                    "; {share:.0%} also on {sibling}, visited "
                    + _hours_words("sibling_waited", detail["sibling_waited"][i])
                    + " ago"
                )
            if foreseen.answers[page[i]] < 0.9:
                text += "; {answers:.0%} likely to answer"
            sentences.append(text)
        return tuple(sentences), detail


def _caps(pages: Pages, budget: Budget) -> tuple[Ints, int, Ints, Ints, int, Ints]:
    n = len(pages)
    taken = np.empty(0, np.int64) if budget.taken is None else budget.taken
    of_host, of_site = np.bincount(pages.host[taken], minlength=n), np.bincount(pages.site[taken], minlength=n)
    per_host = n + 1 if budget.per_host is None else budget.per_host
    per_site = n + 1 if budget.per_site is None else budget.per_site
    return pages.host, per_host, of_host, pages.site, per_site, of_site


def _closest(page: Ints, model: StockModel) -> tuple[Ints, Floats]:
    """The sibling that shows most of each page's links, and which share; -1 where there is none."""
    pairs = model.pairs()
    sibling, share = np.full(len(page), -1, np.int64), np.zeros(len(page))
    for i, p in enumerate(page.tolist()):
        shares = pairs.share[pairs.start[p] : pairs.start[p + 1]]
        if len(shares):
            best = int(np.argmax(shares))
            sibling[i], share[i] = pairs.other[pairs.start[p] + best], shares[best]
    return sibling, share


def _hours_words(name: str, hours: float) -> str:
    """A place for hours in a sentence, as minutes, hours or days, whatever reads best.

    >>> _hours_words("gone", 2.3), _hours_words("gone", 100.0), _hours_words("gone", 0.25)
    ('{gone:.1f} h', '4.2 days', '15 min')
    """
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{{{name}:.1f}} h" if hours < 48 else f"{hours / 24:.1f} days"


def _rate_words(rate: float) -> str:
    """Links an hour, a day or a month, whatever reads best.

    >>> _rate_words(25.5), _rate_words(0.1), _rate_words(0.002)
    ('{rate:.1f} an hour', '2.4 a day', '1.5 a month')
    """
    if rate >= 1:
        return "{rate:.1f} an hour"
    return f"{24 * rate:.1f} a day" if rate >= 1 / 24 else f"{730.5 * rate:.1f} a month"
