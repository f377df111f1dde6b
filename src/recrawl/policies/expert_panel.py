"""Experts on whether pages will change, trained with what a crawler happened to visit; for the policies in `experts`.

What was seen is kept as columns, one per cycle: the text of every page (carried forward) and whether it had changed since its last
visit (not known where it was not visited). Learners predict the coming cycle only. Features of a cycle never change, so each is
computed once; so are the inner products of texts.

References: Radinsky and Bennett (2013), sections 4, 5 and 8.3.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numba import njit
from scipy import sparse

from recrawl.core.arrays import Floats, Ints, Ints8, Ints32, places_of
from recrawl.core.growing import grown
from recrawl.models.experts import svm
from recrawl.models.experts.examples import ExpertExamples, Gram, distributions, dot
from recrawl.models.experts.learn import Machine, vote
from recrawl.models.experts.selection import Experts, choose
from recrawl.world.contents import Contents
from recrawl.world.pages import Visits

LOOKBACK, AHEAD = 1, 1  #: l and σ of the paper: features of one cycle ago, predictions for the next one
UNKNOWN = 0  #: the text of a page whose words are not known yet
N_OF_BOTH = 20  #: decisions of either outcome that it takes to turn decisions into probabilities
_NO_TEXTS = np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0))
_N_OWN, _N_RELATION = 1 + 3 * LOOKBACK, 3 * LOOKBACK


@dataclass(frozen=True, kw_only=True)
class ExpertSelection:
    """How the experts of a page are chosen: `k` of them (0: none) by a method, and again after `reselect` cycles."""

    k: int = 0
    method: str = "content"
    reselect: int = 50
    seed: int = 0


@dataclass
class Columns:
    """What learners look at; the last axis but one of features, else the last one, is time."""

    text: Ints32  # [page, time]: row of the words; -1: not known yet
    change: Ints8  # [page, time]
    own: Floats  # [page, time, feature]
    relation: Floats  # [page, expert, time, feature]

    @classmethod
    def empty(cls, n_pages: int, n_experts: int, n: int) -> Columns:
        """Nothing was seen yet."""
        return cls(
            np.full((n_pages, n), -1, np.int32),
            np.full((n_pages, n), -1, np.int8),
            np.zeros((n_pages, n, _N_OWN)),
            np.zeros((n_pages, n_experts, n, _N_RELATION)),
        )

    def extend_to(self, n_pages: int) -> None:
        """More pages are known, of which nothing was seen yet."""
        for each in fields(self):
            values = getattr(self, each.name)
            setattr(self, each.name, grown(values, n_pages, 0 if each.name in ("own", "relation") else -1))

    def last(self, n: int, but: int = 0) -> Columns:
        """Copies of the last `n`, without the very last of them."""
        part = slice(self.text.shape[1] - n, self.text.shape[1] - but)
        return Columns(
            self.text[:, part].copy(),
            self.change[:, part].copy(),
            self.own[:, part].copy(),
            self.relation[:, :, part].copy(),
        )

    def then(self, other: Columns) -> Columns:
        """These and, after them, others."""
        axis = {"own": 1, "relation": 2}
        both = ((name, getattr(self, name), getattr(other, name)) for name in (f.name for f in fields(self)))
        return Columns(*(np.concatenate(pair, axis=axis.get(name, 1)) for name, *pair in both))


class ExpertPanel:
    """Predicts for every page whether it will have changed in the next cycle.

    It is trained with the last `n_train` cycles (of `machine`), as far as a page was visited in them, and again after `retrain`
    cycles. Without experts (`selection.k` is 0) a page is judged by itself alone.
    """

    not_kept: ClassVar[tuple[str, ...]] = ("_next", "_grams")

    def __init__(
        self,
        n_pages: int,
        machine: Machine,
        selection: ExpertSelection,
        *,
        word_scale: float = 1.0,
        retrain: int = 1,
    ) -> None:
        self.machine, self.selection, self.word_scale, self.retrain = machine, selection, word_scale, retrain
        self.texts = RecentTexts()
        self.n_cycles = 0
        # Decisions of n_train cycles are compared with their outcomes, and each was trained with n_train cycles before it.
        self.n_kept = 2 * machine.n_train + LOOKBACK + AHEAD + 1
        self.columns = Columns.empty(n_pages, selection.k, self.n_kept)
        self.decision: Floats = np.full((n_pages, self.n_kept), np.nan)
        self.experts: Experts | None = None
        self._n_decided, self._selected_at, self._trained_at = 0, 0, 0
        self._lesson: Columns | None = None  # what the learners were last trained with
        self._next: ExpertPanel | None = None  # as `decided` made it
        self._grams: _KeptGrams | None = None

    @property
    def grams(self) -> _KeptGrams:
        """Inner products of what pages showed; forgotten where texts got other numbers."""
        if self._grams is None or self._grams.numbering != self.texts.numbering:
            self._grams = _KeptGrams(self.texts, 2 * self.n_kept)
        return self._grams

    def extend_to(self, n_pages: int) -> None:
        """More pages are known; they have no experts until these are chosen again."""
        self._next = None
        self.columns.extend_to(n_pages)
        if self._lesson is not None:
            self._lesson.extend_to(n_pages)
        self.decision = grown(self.decision, n_pages, np.nan)

    def observe(self, visits: Visits) -> None:
        """Keep what the visits of a cycle showed."""
        self.n_cycles += 1
        text, change = self.columns.text, self.columns.change
        text[:, :-1], change[:, :-1] = text[:, 1:], change[:, 1:]
        change[:, -1] = -1
        change[visits.page, -1] = visits.changed
        if visits.text is not None and visits.words is not None:
            read = visits.text >= 0
            text[visits.page[read], -1] = self.texts.add(visits.text[read], visits.words)
            if self.n_cycles % self.n_kept == 0:
                self._forget_texts()

    def _forget_texts(self) -> None:
        """Keep only the texts that some column still shows."""
        shown = [self.columns] if self._lesson is None else [self.columns, self._lesson]
        number = self.texts.keep(np.unique(np.concatenate([each.text.ravel() for each in shown])))
        for each in shown:
            each.text = number[each.text]

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
            self._grams = self.grams  # what is computed once serves for both
            self._next = copy.copy(self)
            self._next.columns, self._next.decision = self.columns.last(self.n_kept), self.decision.copy()
            self._next._decide()
        return self._next

    def _probabilities(self) -> Floats | None:
        n = self.machine.n_train
        decision, outcome = self.decision[:, -n - 1 : -1], self.columns.change[:, -n:]
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
        self._shift(missed)
        is_reselected = self._choose_experts()
        self._add_features(missed, n_seen if is_reselected else missed)
        is_due = self._lesson is None or is_reselected or self.n_cycles - self._trained_at >= self.retrain
        n_decisions = min(missed, n_seen - n + 1, n + 1)
        if is_due or n_decisions > 1:  # decisions for the past are made as if trained for each
            self.decision[:, -n_decisions:] = self._decisions(self.columns.last(n + n_decisions - 1), n_decisions)
        if is_due:
            self._lesson, self._trained_at = self.columns.last(n), self.n_cycles
        elif self._lesson is not None:
            self.decision[:, -1:] = self._decisions(
                self._lesson.last(n, but=1).then(self.columns.last(1)), 1, self._lesson
            )
        self._n_decided = self.n_cycles

    def _shift(self, n: int) -> None:
        for values, axis in ((self.columns.own, 1), (self.columns.relation, 2), (self.decision, 1)):
            moved = np.moveaxis(values, axis, 0)
            moved[:-n] = moved[n:].copy()
        self.decision[:, -n:] = np.nan

    def _choose_experts(self) -> bool:
        """Whether there are new ones: chosen when first needed, and again after a while."""
        selection = self.selection
        is_due = self.experts is None or self.n_cycles - self._selected_at >= selection.reselect
        if not selection.k or not is_due:
            return False
        self.experts = choose(self._contents(), selection.k, selection.method, seed=selection.seed)
        self._selected_at = self.n_cycles
        return True

    def _contents(self) -> Contents:
        """What was seen in the last `n_train` cycles, in the form from which experts are chosen."""
        text = self.columns.text[:, -self.machine.n_train :].copy()
        nothing, (n_pages, n_terms) = np.zeros(text.shape, np.int64), (len(text), self.texts.counts.shape[1])
        return Contents(
            page=np.arange(n_pages),
            url=pa.nulls(n_pages, pa.string()),
            rounds=np.arange(text.shape[1]).astype("datetime64[us]"),
            text=text,
            seen=text >= 0,
            is_baseline=nothing.astype(np.bool_),
            digest=nothing,
            counts=self.texts.counts,
            vocabulary=np.arange(n_terms),
        )

    def _add_features(self, n: int, n_relation: int) -> None:
        """Those of the last cycles; `n_relation` differs where experts are new."""
        of_pages, of_pairs = (self._view(each) for each in (n, n_relation))
        for page in range(len(self.columns.text)):
            self.columns.own[page, -n:] = of_pages.own(page)[-n:]
            for place, expert in enumerate(self._experts_of(page)[0]):
                self.columns.relation[page, place, -n_relation:] = of_pairs.relation(page, expert)[-n_relation:]

    def _view(self, n: int) -> _View:
        """The last `n` columns with those that their features look back at, if there are any."""
        n = min(n + LOOKBACK + AHEAD, self.n_cycles, self.n_kept)
        return _View(self.grams, self.columns.text[:, -n:], self.columns.change[:, -n:])

    def _experts_of(self, page: int) -> tuple[list[int], Floats, float]:
        if self.experts is None or page >= len(self.experts.own_weight):
            return [], np.empty(0), 1.0
        return *self.experts.of(page), float(self.experts.own_weight[page])

    def _decisions(self, columns: Columns, n: int, lesson: Columns | None = None) -> Floats:
        """For every page and each of the last `n` columns; the changes to learn from are those of the `lesson`, if given."""
        change = columns.change if lesson is None else lesson.change
        decisions = np.empty((len(change), n))
        label = np.full(change.shape, -1, np.int8)
        label[:, :-AHEAD] = change[:, AHEAD:]
        inner: dict[int, Floats] = {}
        for page in range(len(decisions)):
            known = label[page][label[page] >= 0]
            if n == 1 and (not len(known) or known.min() == known.max()):
                decisions[page] = 1.0 if len(known) and known[0] == 1 else -1.0  # nothing else could have been learnt
            else:
                decisions[page] = self._decisions_of(page, columns, label[page], inner)[-n:]
        return decisions

    def _decisions_of(self, page: int, columns: Columns, label: Ints8, inner: dict[int, Floats]) -> Floats:
        """The decision of the page itself, or the result of the vote as a share of all votes, at every time."""
        experts, weight, own_weight = self._experts_of(page)
        for expert in (page, *experts):
            if expert not in inner:
                inner[expert] = self._inner(expert, columns)
        alone = self.machine.decisions(inner[page], label, AHEAD)
        if not self.selection.k:
            return alone
        opinions = [alone]
        for place, expert in enumerate(experts):
            relation = columns.relation[page, place]
            opinions.append(self.machine.decisions(inner[expert] + relation @ relation.T, label, AHEAD))
        weights = np.append(own_weight, weight)
        total = float(np.abs(weights).sum())
        return vote(np.array(opinions), weights) / (total if total > 0 else 1.0)

    def _inner(self, page: int, columns: Columns) -> Floats:
        """Inner products of a page's features at all pairs of times, without those that relate it to another."""
        gram, own = self.grams.of(page, np.maximum(columns.text[page], UNKNOWN).astype(np.int64)), columns.own[page]
        products: Floats = self.word_scale**2 * gram.inner[np.ix_(gram.of, gram.of)] + own @ own.T
        return products


class RecentTexts:
    """The texts that pages showed lately, as word counts, with numbers of their own from 1 on; 0 stands for one without words."""

    not_kept: ClassVar[tuple[str, ...]] = ("_words",)

    def __init__(self) -> None:
        self.counts = sparse.csr_matrix((1, 0), dtype=np.float32)
        self.text: Ints = np.array([-1])  # their numbers in the stream of visits
        self.numbering = 0  # another one after some were forgotten
        self._words: sparse.csr_matrix | None = None

    def __len__(self) -> int:
        return len(self.text) - 1

    @property
    def words(self) -> sparse.csr_matrix:
        """Word distributions."""
        if self._words is None or self._words.shape[0] <= len(self):
            self._words = distributions(self.counts)
        return self._words

    def add(self, text: Ints32, words: sparse.csr_matrix) -> Ints:
        """The numbers of some texts, given as rows of word counts."""
        fresh = np.setdiff1d(text, self.text)
        if len(fresh):
            n_words = max(words.shape[1], self.counts.shape[1])
            self.counts.resize(self.counts.shape[0], n_words)
            more = words[fresh]
            more.resize(len(fresh), n_words)
            self.counts = sparse.vstack([self.counts, more], format="csr")
            self.text, self._words = np.append(self.text, fresh), None
        return places_of(self.text, text.astype(np.int64))

    def keep(self, some: Ints) -> Ints32:
        """Forget all but some of them; their new numbers, by the old ones, and -1 at the end."""
        kept = np.union1d(some[some >= 0], [UNKNOWN])
        number = np.full(len(self.text) + 1, -1, np.int32)
        number[kept] = np.arange(len(kept))
        self.counts, self.text, self._words = self.counts[kept], self.text[kept], None
        self.numbering += 1
        return number


class _View(ExpertExamples):
    """Some columns as examples; word distributions and inner products are those that are kept from cycle to cycle."""

    def __init__(self, grams: _KeptGrams, text: Ints32, change: Ints8) -> None:
        self.l, self.sigma, self.word_scale = LOOKBACK, AHEAD, 1.0
        self.words, self.change = grams.words, change
        self.text = np.maximum(text, UNKNOWN).astype(np.int64)
        self._kept = grams
        self._grams: dict[int, Gram] = {}

    def gram(self, page: int) -> Gram:
        """The inner products of what a page showed."""
        if page not in self._grams:
            self._grams[page] = self._kept.of(page, self.text[page])
        return self._grams[page]


class _KeptGrams:
    """Inner products of the texts of each page; a text that is new is only compared with those of its page."""

    def __init__(self, texts: RecentTexts, most: int) -> None:
        self._texts, self.most, self.numbering = texts, most, texts.numbering
        self._known: dict[int, tuple[Ints, Ints, Floats]] = {}  # texts ascending, their places, products by place

    @property
    def words(self) -> sparse.csr_matrix:
        """Word distributions of all texts."""
        return self._texts.words

    def of(self, page: int, text: Ints) -> Gram:
        """Those of the texts that a page showed, one per column."""
        texts, place, inner = self._known.get(page, _NO_TEXTS)
        at = np.minimum(np.searchsorted(texts, text), len(texts) - 1)
        if not len(texts) or (texts[at] != text).any():
            texts, place, inner = self._known[page] = self._with_new(texts, place, inner, text)
            at = np.searchsorted(texts, text)
        return Gram(place[at], inner)

    def _with_new(self, texts: Ints, place: Ints, inner: Floats, text: Ints) -> tuple[Ints, Ints, Floats]:
        fresh = np.setdiff1d(text, texts)
        if len(texts) + len(fresh) > self.most:  # forget what is long gone
            (texts, place, inner), fresh = _NO_TEXTS, np.unique(text)
        n_old, by_place = len(texts), np.append(texts[np.argsort(place)], fresh)
        inner = np.pad(inner, (0, len(fresh)))
        _fill_products(self.words.indptr, self.words.indices, self.words.data, by_place, n_old, inner)
        place = np.argsort(by_place)
        return by_place[place], place, inner


@njit(cache=True)
def _fill_products(indptr, indices, data, texts, n_old, inner):  # type: ignore[no-untyped-def]
    """Products of the texts from `n_old` on with all before them and with themselves; words ascend."""
    for a in range(n_old, len(texts)):
        for b in range(a + 1):
            inner[a, b] = inner[b, a] = dot(indptr, indices, data, texts[a], texts[b])
