"""Why pages were picked by `expected-harvest`, in words, and how sure their numbers are."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.whole import Whole
from recrawl.core.words import HOURS_PER_YEAR, duration, rate, small_number
from recrawl.policies.choice import PageName, Spread
from recrawl.policies.harvest.interval import Calibration
from recrawl.policies.harvest.model import StockModel
from recrawl.policies.harvest.prediction import HarvestPrediction
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import half_gone

MIN_SHARE = 0.1  #: of the links, that a sibling must show to be named
LIKELY = 0.9  #: probability of an answer above which it is not mentioned


@dataclass(frozen=True, kw_only=True)
class HarvestReasons:
    """What was known of the pages picked when they were picked; sentences and intervals are made from it on demand."""

    page: Ints
    hours: float
    expected: Floats
    stock: Floats
    size: Floats  # links on the page; NaN: not known
    room: Floats  # the most links that it may show
    answers: Floats  # the probability that it answers
    is_unseen: Flags
    is_trial: Flags  # picked because it was not visited twice
    factor: Floats  # what is left of its value after the pages picked before it
    rate: Floats  # new links expected per hour since the last visit
    weights: Floats  # of the streams
    shape: Floats
    dispersion: float
    seen_at: Floats  # of every page
    pairs: Neighbours
    calibration: Calibration

    @classmethod
    def of(
        cls,
        page: Ints,
        hours: float,
        model: StockModel,
        predicted: HarvestPrediction,
        *,
        factor: Floats,
        is_trial: Flags,
        whole: Whole,
    ) -> HarvestReasons:
        """A copy of all that is needed of the model, which goes on learning."""
        size, room, answers = model.size[page], model.room(page, whole), predicted.answers[page]
        stock, shape = np.fmin(predicted.expected[page] / np.maximum(answers, 1e-9), room), model.shape(page)
        expected = np.minimum(predicted.expected[page] * factor, room * np.maximum(answers, 1e-300))
        # Where the page may show at most that many links, the expectation is at most that many times the probability of any.
        likely = model.calibration.probability(expected, answers, shape, model.dispersion)
        expected = np.minimum(expected, room * likely)
        now, last = model.clock(hours)
        # By the user's clock, and corrected by how right the model was so far: else the sentence would not add up.
        pace = (now - last[page]) / np.maximum(hours - model.seen_at[page], 1e-6)
        per_hour = predicted.rate[page] * pace * predicted.expected[page] / np.maximum(predicted.raw[page], 1e-300)
        return cls(
            page=page,
            hours=hours,
            expected=expected,
            stock=stock,
            size=size,
            room=room,
            answers=answers,
            is_unseen=predicted.is_unseen[page],
            is_trial=is_trial,
            factor=factor,
            rate=per_hour,
            weights=model.streams.weights(page),
            shape=shape,
            dispersion=model.dispersion,
            seen_at=model.seen_at.copy(),
            pairs=predicted.pairs,
            calibration=copy.deepcopy(model.calibration),
        )

    def sentence(self, i: int, name: PageName) -> str:
        """Why the i-th page was picked."""
        stock, answers = small_number(self.stock[i]), self.answers[i]
        if self.is_unseen[i]:
            return f"its links were never read yet; {answers:.0%} likely to answer, with {stock} new links then"
        waited, gone = self.hours - self.seen_at[self.page[i]], half_gone(self.weights[i])
        sentence = f"about {stock} unseen links: {rate(self.rate[i])} for {duration(waited)}"
        sentence += f", half of them gone after {duration(gone)}" if gone < HOURS_PER_YEAR else ", hardly any leave"
        sibling, share = self.pairs.closest(int(self.page[i]))
        if share >= MIN_SHARE:
            ago = duration(self.hours - self.seen_at[sibling])
            sentence += f"; {share:.0%} also on {name(sibling)}, visited {ago} ago"
        if self.factor[i] <= 1 - MIN_SHARE:
            sentence += f"; {1 - self.factor[i]:.0%} of them on pages picked before it"
        if self.stock[i] >= self.room[i]:
            whose = "on the page" if self.size[i] >= self.room[i] else "on an average page"
            sentence += f"; capped at the number of links {whose}"
        if self.is_trial[i]:
            sentence += "; read only once so far, tried to learn how it changes"
        return sentence if answers >= LIKELY else f"{sentence}; {answers:.0%} likely to answer"

    def spread(self, which: Ints, level: float) -> Spread:
        """Intervals for some of the pages picked."""
        law = (self.expected[which], self.answers[which], self.shape[which], self.dispersion)
        low, high, stated = self.calibration.interval(*law, level)
        room = self.room[which]
        return Spread(np.fmin(low, room), np.fmin(high, room), stated, self.calibration.probability(*law))
