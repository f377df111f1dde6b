"""Experts on whether pages will change, trained with what a crawler happened to visit; for the policies in `experts`.

What was seen is kept as columns, one per cycle: the text of every page (carried forward) and whether it had changed since its last
visit (not known where it was not visited). Features and inner products follow from them, and are worked out when a decision is
due: kept for all pages and experts, they would take many times the memory of the texts.

References: Radinsky and Bennett (2013), sections 4, 5, 8.3 and 9.2.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints8
from recrawl.core.growing import grown
from recrawl.models.experts import svm
from recrawl.models.experts.examples import ExpertExamples
from recrawl.models.experts.learn import Machine
from recrawl.models.experts.online_choice import OnlineChoice
from recrawl.models.experts.selection import Experts, choose
from recrawl.policies.expert_columns import Columns, ShownTexts, contents_from, foregone, is_foregone
from recrawl.policies.expert_votes import PastVotes
from recrawl.policies.explanation import ExpertOnPage
from recrawl.policies.linked_pages import LinkedPages
from recrawl.policies.recent_texts import RecentTexts
from recrawl.world.pages import Visits

N_OF_BOTH = 20  #: decisions of either outcome that it takes to turn decisions into probabilities
LOST = 3  #: failures in a row after which an expert has no vote; a page that is gone has none at once
GRAPH, CORRELATION = "graph", "cross-correlation"


@dataclass(frozen=True, kw_only=True)
class ExpertSelection:
    """How the experts of a page are chosen and heard: `k` of them (0: none) by a method, and again after `reselect` cycles."""

    k: int = 0
    method: str = "content"
    reselect: int = 50
    vote: str = "similarity"  # one of `votes.VOTES`
    seed: int = 0


class ExpertPanel:
    """Predicts for every page whether it will have changed `sigma` cycles from now.

    It is trained with the last `n_train` cycles (of `machine`), as far as a page was visited in them, and again after `retrain`
    cycles; features look back over `l` cycles. Without experts (`selection.k` is 0) a page is judged by itself alone.
    """

    not_kept: ClassVar[tuple[str, ...]] = ("_next",)

    def __init__(
        self,
        n_pages: int,
        machine: Machine,
        selection: ExpertSelection,
        *,
        word_scale: float = 1.0,
        retrain: int = 1,
        l: int = 1,  # noqa: E741 (the paper's name)
        sigma: int = 1,
    ) -> None:
        self.machine, self.selection, self.word_scale, self.retrain = machine, selection, word_scale, retrain
        self.l, self.sigma = l, sigma
        self.texts, self.linked = RecentTexts(), LinkedPages()
        self.n_cycles = 0
        # Decisions of n_train cycles are compared with their outcomes, and each was trained with n_train cycles before it.
        self.n_kept = 2 * machine.n_train + l + 2 * sigma
        self.columns = Columns.empty(n_pages, self.n_kept)
        self.decision: Floats = np.full((n_pages, self.n_kept), np.nan)
        self.n_lost: Ints8 = np.zeros(n_pages, np.int8)  # failures in a row, LOST for a page that is gone
        self.experts: Experts | None = None
        self.votes = PastVotes.for_panel(n_pages, selection.k, machine.n_train + sigma, selection.vote)
        self._online: OnlineChoice | None = (
            None  # the experts to come, by the words of the cycles since the last choice
        )
        self._n_decided, self._selected_at, self._trained_at = 0, 0, 0
        self._lesson: Columns | None = None  # what the learners were last trained with
        self._next: ExpertPanel | None = None  # as `decided` made it

    def extend_to(self, n_pages: int) -> None:
        """More pages are known; they have no experts until these are chosen again."""
        self._next = None
        self.columns.extend_to(n_pages)
        if self._lesson is not None:
            self._lesson.extend_to(n_pages)
        self.decision, self.n_lost = grown(self.decision, n_pages, np.nan), grown(self.n_lost, n_pages)
        self.votes.extend_to(n_pages)

    # -- what was seen -------------------------------------------------------------------------------------------------

    def observe(self, visits: Visits) -> None:
        """Keep what the visits of a cycle showed."""
        self.n_cycles += 1
        text, change = self.columns.text, self.columns.change
        text[:, :-1], change[:, :-1] = text[:, 1:], change[:, 1:]
        change[:, -1] = -1
        change[visits.page, -1] = visits.changed
        self.n_lost[visits.page] = np.where(visits.failed, np.minimum(self.n_lost[visits.page] + 1, LOST), 0)
        self.n_lost[visits.page[visits.gone]] = LOST
        if self.selection.method == GRAPH:
            self.linked.add(visits)
        if visits.text is not None and visits.words is not None:
            read = visits.text >= 0
            text[visits.page[read], -1] = self.texts.add(visits.text[read], visits.words)
            if self.n_cycles % max(self.n_kept // 4, 1) == 0:
                self._forget_texts()
        if self.selection.k and self.selection.method == CORRELATION and len(self.texts):
            self._follow_words()

    def _forget_texts(self) -> None:
        """Keep only the texts that some column still shows."""
        shown = [self.columns] if self._lesson is None else [self.columns, self._lesson]
        number = self.texts.keep(np.unique(np.concatenate([np.unique(each.text) for each in shown])))
        for each in shown:
            each.text = number[each.text]

    def _follow_words(self) -> None:
        """Add a cycle to the correlations, and choose experts by them when it is time; nothing is computed again."""
        text, counts = self.texts.shown(self.columns.text[:, -1:])
        if self._online is None:
            self._online = OnlineChoice(contents_from(text, counts), self.selection.k)
        self._online.add(counts, text[:, 0])
        is_first = self.experts is None and self.n_cycles >= self.machine.n_train
        if is_first or (self.experts is not None and self._online.n_rounds >= self.selection.reselect):
            self._appoint(self._online.experts())
            self._online = None

    def _appoint(self, experts: Experts) -> None:
        self.votes = self.votes.of_new(self.experts, experts)
        self.experts, self._selected_at = experts, self.n_cycles

    # -- what is predicted ---------------------------------------------------------------------------------------------

    def probabilities(self) -> Floats | None:
        """The probability that each page will have changed; None where too little was seen.

        Platt's sigmoid, fitted to the decisions of the last `n_train` cycles of all pages whose outcome was seen.
        """
        return self.decided()._probabilities()

    def decided(self) -> ExpertPanel:
        """The panel after it decided for the present cycle: a copy, so that asking changes nothing."""
        if self._n_decided == self.n_cycles:
            return self
        if self._next is None or self._next.n_cycles != self.n_cycles:
            self._next = copy.copy(self)
            self._next.decision, self._next.votes = self.decision.copy(), self.votes.copy()
            self._next._decide()
        return self._next

    def _probabilities(self) -> Floats | None:
        n, sigma = self.machine.n_train, self.sigma
        decision, outcome = self.decision[:, -n - sigma : -sigma], self.columns.change[:, -n:]
        known = ~np.isnan(decision) & (outcome >= 0)
        n_changed = int((outcome[known] == 1).sum())
        if min(n_changed, int(known.sum()) - n_changed) < N_OF_BOTH:
            return None
        return svm.probability(self.decision[:, -1], *svm.platt(decision[known], outcome[known]))

    def _decide(self) -> None:
        """Decide for this cycle, and for those since the last decision."""
        n, n_seen = self.machine.n_train, min(self.n_cycles, self.n_kept)
        missed = min(self.n_cycles - self._n_decided, n_seen)
        self._next = None
        if n_seen < n or not missed:
            return
        self.decision[:, :-missed], self.decision[:, -missed:] = self.decision[:, missed:].copy(), np.nan
        self.votes.shift(missed)
        self._choose_experts()
        is_due = self._lesson is None or self._selected_at > self._trained_at
        is_due = is_due or self.n_cycles - self._trained_at >= self.retrain
        n_decisions = min(missed, n_seen - n + 1, n + self.sigma)
        if is_due or n_decisions > 1:  # decisions for the past are made as if trained for each
            self._decide_last(n_decisions)
        if is_due:
            self._lesson, self._trained_at = self._columns(n), self.n_cycles
        elif self._lesson is not None:
            self._decide_by_lesson(self._lesson)
        self._n_decided = self.n_cycles

    def _choose_experts(self) -> None:
        """By a method that looks back: when experts are first needed, and again after a while."""
        selection = self.selection
        is_due = self.experts is None or self.n_cycles - self._selected_at >= selection.reselect
        if not selection.k or selection.method == CORRELATION or not is_due:
            return
        text, counts = self.texts.shown(self.columns.text[:, -self.machine.n_train :])
        links = self.linked.between(len(text)) if selection.method == GRAPH else None
        self._appoint(
            choose(contents_from(text, counts), selection.k, selection.method, links=links, seed=selection.seed)
        )

    def _columns(self, n: int) -> Columns:
        """The last `n` columns with those that their features look back at, if there are any."""
        return self.columns.last(min(n + self.l + self.sigma, self.n_cycles, self.n_kept))

    def _examples(self, columns: Columns) -> ExpertExamples:
        shown = ShownTexts(*self.texts.shown(columns.text))
        return ExpertExamples(shown, columns.change, l=self.l, sigma=self.sigma, word_scale=self.word_scale)

    def _decide_last(self, n: int) -> None:
        """For every page and each of the last `n` cycles."""
        examples = self._examples(self._columns(self.machine.n_train + n - 1))
        since = examples.n_rounds - n
        for page, label, experts in self._asked(examples.change):
            known = label[-self.machine.n_train :]
            if n == 1 and is_foregone(known):
                opinions = np.full((1 + len(experts), 1), foregone(known))
            else:
                asked = (self.machine.ask(examples, page, [expert], since) for expert in [page, *experts])
                opinions = np.array([decisions[since:] for decisions in asked])
            self._vote(page, experts, opinions)

    def _decide_by_lesson(self, lesson: Columns) -> None:
        """For this cycle, by the examples of an earlier one."""
        n, n_lesson = self.machine.n_train, lesson.text.shape[1]
        examples = self._examples(lesson.then(self.columns.last(self.l + self.sigma + 1)))
        rows = np.append(np.arange(n_lesson - n, n_lesson - 1), examples.n_rounds - 1)  # the lesson's examples, and now
        for page, label, experts in self._asked(lesson.change):
            known = label[-n:]
            if is_foregone(known):
                opinions = np.full((1 + len(experts), 1), foregone(known))
            else:
                inner = (examples.inner(page, expert)[np.ix_(rows, rows)] for expert in [page, *experts])
                opinions = np.array([self.machine.decisions(each, known, self.sigma)[-1:] for each in inner])
            self._vote(page, experts, opinions)

    def _asked(self, change: Ints8) -> Iterator[tuple[int, Ints8, list[int]]]:
        """Every page, what is to be learnt from each column, and its experts."""
        label = np.full(change.shape, -1, np.int8)
        label[:, : -self.sigma] = change[:, self.sigma :]
        for page in range(len(change)):
            yield page, label[page], self.experts_of(page)[0]

    def experts_of(self, page: int) -> tuple[list[int], Floats, float]:
        """The experts of a page, the weights of their votes, and that of the page itself; lost ones have no weight."""
        if self.experts is None or page >= len(self.experts.own_weight):
            return [], np.empty(0), 1.0
        experts, weight = self.experts.of(page)
        weight, own = np.where(self.is_lost[experts], 0.0, weight), float(self.experts.own_weight[page])
        return experts, weight, own if own > 0 or weight.any() else 1.0

    def named_experts(self, page: int) -> tuple[ExpertOnPage, ...]:
        """The experts of a page, for people."""
        experts, weight, own = self.experts_of(page)
        right = self.votes.right(page, self.columns.change[page], self.sigma)[1:]
        total = float(weight.sum()) + own
        return tuple(
            ExpertOnPage(
                page=expert,
                weight=float(weight[i]) / (total if total > 0 else 1.0),
                right=float(right[i]) if i < len(right) and np.isfinite(right[i]) else None,
                is_lost=bool(self.is_lost[expert]),
            )
            for i, expert in enumerate(experts)
        )

    @property
    def is_lost(self) -> Flags:
        """Pages that disappeared: gone, or failing again and again. As experts they have no vote until they are back."""
        lost: Flags = self.n_lost >= LOST
        return lost

    def _vote(self, page: int, experts: list[int], opinions: Floats) -> None:
        """The decision of the page itself, or the result of the vote as a share of all votes, for the last cycles."""
        n = opinions.shape[1]
        if not self.selection.k:
            self.decision[page, -n:] = opinions[0]
            return
        _, weight, own = self.experts_of(page)
        change = self.columns.change[page]
        self.decision[page, -n:] = self.votes.result(page, opinions, np.append(own, weight), change, self.sigma)
