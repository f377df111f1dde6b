"""What is known is carried, not recomputed: a policy learns from the visits that are new since it last learnt.

Learning is a fold over the stream of visits (`recrawl.world.stream`). After the last batch that is complete, what was learnt is
kept beside the history (`recrawl.history.states`); visits of a batch that may still be going on are learnt from, but that is not
kept.
The next time only visits that came since are followed. Where visits were added that are older than what was learnt, learning goes
back to a checkpoint before them, or to the beginning. The numbers are the same in all cases.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import orjson
import xxhash

from recrawl.core.arrays import Ints
from recrawl.core.ids import places_of
from recrawl.core.snapshot import restored, taken
from recrawl.core.times import NEVER, iso_text, microseconds, moment
from recrawl.core.words import count
from recrawl.errors import BadState, NotEnoughData
from recrawl.history import History, Timeline
from recrawl.history.history import SLIM
from recrawl.history.past import PastVisits
from recrawl.history.states import Checkpoint, States
from recrawl.history.store import FilesReplaced
from recrawl.models.change_expectation import ChangeExpectation
from recrawl.models.link_expectation import LinkExpectation
from recrawl.models.link_relevance import Focus, LinkJudgements
from recrawl.plan.judging import LinkJudge
from recrawl.plan.keeping import Keeper
from recrawl.plan.new_visits import NewVisits, all_of
from recrawl.plan.own_plans import OwnPlans
from recrawl.policies.base import Policy
from recrawl.policies.registry import blaming
from recrawl.web.link_kinds import LinkKind
from recrawl.world.batches import BatchRule, CrawlPace, distinct_moments, rule_for
from recrawl.world.notions import ANY, Notion, spelled
from recrawl.world.pages import Need
from recrawl.world.roots import DOMAINS, Roots
from recrawl.world.stream import Stream, next_segment

FEW = 1000  #: visits that are learnt from before a thread would have begun
Say = Callable[[str], None]


@dataclass
class Learnt:
    """Everything that was learnt from the visits up to a moment."""

    policy: Policy
    stream: Stream = field(default_factory=Stream)
    links: LinkExpectation = field(default_factory=lambda: LinkExpectation(0))
    changes: ChangeExpectation = field(default_factory=lambda: ChangeExpectation(0))
    pace: CrawlPace = field(default_factory=CrawlPace)
    visits: PastVisits = field(default_factory=PastVisits)  # that it was learnt from
    rule: BatchRule | None = None
    plans: str = ""  # a digest of the policy's own plans up to then
    judged: LinkJudgements | None = None  # which links are relevant; None: all links count

    def go_on(
        self,
        fresh: NewVisits,
        until: int,
        *,
        own_plans: OwnPlans,
        notion: Notion | None = None,
        roots: Roots = DOMAINS,
        is_last: bool = False,
    ) -> None:
        """Learn from new visits up to a moment.

        With `is_last` nothing more will be asked of them, and they are let go before learning begins: both together would be the
        most that a plan has in memory.
        """
        assert self.rule is not None
        if self.stream.until == NEVER:
            with blaming(self.policy):
                self.policy.start(self.stream.pages)
        needs = self.policy.needs
        showings, self.visits = fresh.showings(self.visits, self.stream.until, until, needs, notion)
        if is_last:
            fresh.let_go()
        segment = next_segment(self.stream, fresh.history, showings, self.rule, needs=needs, roots=roots)
        del showings
        pages = self.stream.pages
        with blaming(self.policy), ThreadPoolExecutor(3) as threads:  # which begin when they are first needed
            for visits, n_before in self.stream.follow(segment):
                if len(pages) > n_before:
                    self.policy.extend(pages, n_before)
                    self.links.extend_to(len(pages))
                    self.changes.extend_to(len(pages))
                memo = own_plans.memo_for(self.stream.page[visits.page], visits.at)
                visits = replace(visits, memo=memo) if memo is not None else visits
                # They are independent of each other.
                learners = (self.links, self.changes, self.policy)
                if len(visits) < FEW:
                    for learner in learners:
                        learner.observe(visits)
                else:
                    list(threads.map(lambda learner, visits=visits: learner.observe(visits), learners))


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How to learn from a history.

    now: the moment of the plan; a batch that ended clearly before it is complete. carry: keep what was learnt beside the history.
    relearn: do not use what was kept before. on_note is called with what the user should know.
    """

    history: History
    policy: Policy
    now: datetime
    every: str = "auto"
    notion: Notion | None = None
    links: LinkKind = "all"
    focus: Focus | None = None  # only links to relevant pages count; None: all do
    roots: Roots = DOMAINS
    carry: bool = False
    relearn: bool = False
    on_step: Say = lambda step: None
    on_note: Say = lambda note: None
    keeper: Keeper = field(default_factory=Keeper, repr=False, compare=False)

    def learn(self) -> Learnt:
        """All that the past shows."""
        learnt = self.learn_and_keep_later()
        self.finish_keeping()
        return learnt

    def learn_and_keep_later(self) -> Learnt:
        """The same, while what was learnt is still being written: nothing of it may be changed before `finish_keeping`."""
        return self._learn(None)

    def finish_keeping(self) -> None:
        """Wait until what was learnt is written."""
        if (error := self.keeper.finish()) is not None:
            self._cannot_keep(error)

    def _learn(self, before: int | None) -> Learnt:
        """All that the past shows; `before`: without states that have learnt up to that moment or later."""
        learning = self
        while True:  # what was read in vain is let go between two attempts
            try:
                return learning._attempt(before)
            except _Again as again:
                before, relearn = again.before, learning.relearn or again.relearn
            except FilesReplaced:
                relearn = learning.relearn
            learning = replace(self, relearn=relearn)

    def _attempt(self, before: int | None) -> Learnt:
        self.on_step("looking for what was learnt before")
        learnt = None if self.relearn else self._restored(before)
        if learnt is None:
            learnt = Learnt(self.policy, visits=PastVisits(columns=(*SLIM, "terms") if self._with_words else SLIM))
        self.on_step("reading visits")
        fresh = self._new_visits(learnt)
        if learnt.visits.n and not learnt.visits.still_holds(self.history, learnt.stream.until, fresh.files):
            raise _Again(before)  # older visits were added just now
        if learnt.stream.until == NEVER and not len(fresh.at):
            until = " up to that time" if self.history.until else ""
            raise NotEnoughData(f"the history holds no visits{until}")
        rule = rule_for(self.every, self._pace(learnt, fresh))
        if learnt.rule is not None and not learnt.pace.is_same(rule, learnt.rule):
            self.on_note(f"learning again from the beginning, since visits now come {rule.why}")
            raise _Again(None, relearn=True)
        if self._continues(learnt, fresh, rule):
            raise _Again(learnt.stream.until)
        learnt.rule = rule
        in_segments = fresh.whole is None
        self._fold(learnt, fresh)
        if in_segments:
            self._finish_judging(learnt)
        self.on_note(f"learnt from {count(learnt.stream.n_visits, 'visit')}, {rule.why}")
        return learnt

    @property
    def _with_words(self) -> bool:
        return self.notion is not None or Need.WORDS in self.policy.needs

    def _continues(self, learnt: Learnt, fresh: NewVisits, rule: BatchRule) -> bool:
        """Whether the first new visits belong to a batch that was taken to be complete."""
        if learnt.stream.began is None or not len(fresh.at):
            return False
        return rule.is_one_batch(learnt.stream.until, int(fresh.at.min()), learnt.stream.began)

    def _fold(self, learnt: Learnt, fresh: NewVisits) -> None:
        assert learnt.rule is not None
        moments = distinct_moments(fresh.at)
        if not len(moments):
            return
        ends, last = learnt.rule.batch_ends(moments, learnt.stream.began), int(moments[-1])
        until = self._complete_until(learnt.rule, moments, ends)
        del moments  # of a large past as large as all that is learnt of its pages
        self.on_step(f"learning from {count(len(fresh.at), 'visit')}")
        pace, cuts = learnt.pace, list[int]()
        if until != NEVER:
            pace, cuts = self._pace(learnt, fresh, until), fresh.segment_ends(ends, until)
        fresh.forget_times()
        if until != NEVER:
            for end in cuts:
                self._go_on(learnt, fresh, end, is_last=end == last)
            learnt.pace, learnt.plans = pace, self._own_plans.digest(until)
            if self.carry:
                self.on_step("keeping what was learnt")
                self._begin_keeping(learnt)
        if until != last:
            self.finish_keeping()
            self._go_on(learnt, fresh, last, is_last=True)

    def _complete_until(self, rule: BatchRule, moments: Ints, ends: Ints) -> int:
        """The last visit of the last batch that cannot go on any more; NEVER: there is none."""
        if rule.is_over(int(moments[-1]), int(ends[-1]), microseconds(self.now)):
            return int(moments[-1])
        n_complete = int(np.searchsorted(moments, ends[-2], side="right")) if len(ends) > 1 else 0
        return int(moments[n_complete - 1]) if n_complete else NEVER

    def _go_on(self, learnt: Learnt, fresh: NewVisits, until: int, *, is_last: bool) -> None:
        learnt.go_on(
            fresh,
            until,
            own_plans=self._own_plans,
            notion=self.notion,
            roots=self.roots,
            is_last=is_last,
        )

    @cached_property
    def _own_plans(self) -> OwnPlans:
        return OwnPlans.of(self.history, repr(self.policy))

    def _pace(self, learnt: Learnt, fresh: NewVisits, until: int | None = None) -> CrawlPace:
        """How fast the history was crawled, up to a moment."""
        is_used = slice(None) if until is None or until >= fresh.at.max() else fresh.at <= until
        page, at = fresh.page[is_used], fresh.at[is_used]
        place = places_of(learnt.stream.page, page)
        is_known = place >= 0
        last = np.where(
            is_known, learnt.stream.pages.last_visit[np.maximum(place, 0)] if is_known.any() else NEVER, NEVER
        )
        n_new = len(np.unique(page[~is_known]))
        return learnt.pace.going_on(last, learnt.stream.until, page, at, n_new)

    # -- what is kept --------------------------------------------------------------------------------------------------

    @property
    def _subject(self) -> str:
        """A name for what is learnt: states with the same name are of the same past, policy and settings."""
        policy = self.policy
        change = spelled(self.notion) if self.notion else ANY
        about = [policy.name, type(policy).__module__, repr(policy), self.every, self.links, change]
        about += _sources(type(policy))
        if self.focus is not None:
            about += [self.focus.name]
        if self.roots != DOMAINS:
            about += [self.roots.spec, *sorted(self.roots.listed)]
        if self.history.store.part:
            about += [self.history.store.part]
        return xxhash.xxh64_hexdigest(orjson.dumps(about))

    def _begin_keeping(self, learnt: Learnt) -> None:
        head = {
            "policy": self.policy.name,
            "every": self.every,
            "n_visits": learnt.visits.n,
            "n_pages": len(learnt.stream.page),
            "n_batches": learnt.stream.n_batches,
            "visits": learnt.visits.as_dict(),
        }
        try:
            tree, arrays = taken(learnt)
        except Exception as error:  # whatever a policy holds
            self._cannot_keep(error)
            return
        states, until = States(self.history.beside), learnt.stream.until
        self.keeper.begin(lambda: states.save(self._subject, until, head, tree, arrays))

    def _cannot_keep(self, error: Exception) -> None:
        """The plan is made, and can be made again."""
        self.on_note(f"what was learnt could not be kept, so the next plan learns it again: {error}")

    def _restored(self, before: int | None) -> Learnt | None:
        """The newest state that fits the history as it is now; None where there is none."""
        states, is_late = States(self.history.beside), before is not None
        late = "visits were added to the past since the last plan"
        why = (
            late if before is None else "the first new visits belong to a batch that seemed to be over at the last plan"
        )
        for checkpoint in states.checkpoints(self._subject):
            if self.history.until is not None and moment(checkpoint.until) > self.history.until:
                continue
            if before is not None and checkpoint.until >= before:
                continue
            past = PastVisits.from_dict(checkpoint.head["visits"]).confirmed(self.history, checkpoint.until)
            if past is None:
                is_late, why = True, late
                continue
            learnt = self._loaded(states, checkpoint, past)
            if learnt is not None and learnt.visits.says_more(self.history):
                is_late, why = True, "more is known of what pages said at earlier visits since the last plan"
                continue
            if learnt is not None and self._judge is not None and not self._judge.still_holds(learnt.judged):
                is_late, why = True, "links that were learnt from are judged otherwise since the last plan"
                continue
            if learnt is not None:
                if is_late:
                    when = iso_text(moment(checkpoint.until))
                    self.on_note(f"{why}: learning continues from {when[:16]} UTC")
                return learnt
        if is_late:
            self.on_note(f"{why}: learning again from the beginning")
        return None

    def _loaded(self, states: States, checkpoint: Checkpoint, past: PastVisits) -> Learnt | None:
        try:
            tree, arrays = states.load(checkpoint)
            learnt = restored(tree, arrays, type(self.policy))
            if not isinstance(learnt, Learnt) or type(learnt.policy) is not type(self.policy):
                raise BadState("it is of something else")
            if learnt.plans != self._own_plans.digest(learnt.stream.until):
                raise BadState("the plans that were made until then are others now")
            learnt.visits = replace(past, lacking=learnt.visits.lacking)
        except BadState as error:
            self.on_note(f"what was learnt before cannot be used ({error}): learning again")
            with suppress(OSError):
                states.forget(checkpoint)
            return None
        return learnt

    def _new_visits(self, learnt: Learnt) -> NewVisits:
        """The visits that are not learnt from yet, with all earlier ones to the same pages."""
        only: Callable[[Timeline], Timeline] = all_of
        if self._judge is not None:
            self.on_step("judging links")
            learnt.judged = learnt.judged or LinkJudgements()
            only = partial(self._judge.focused, learnt.judged)
        fresh = NewVisits.after(
            self.history,
            learnt.stream.until,
            links=self.links,
            with_words=self._with_words,
            read_links="all" if Need.UPDATES in self.policy.needs else "compared",
            only=only,
        )
        if fresh.whole is not None:
            self._finish_judging(learnt)
        return fresh

    def _finish_judging(self, learnt: Learnt) -> None:
        if self._judge is not None and learnt.judged is not None:
            self._judge.finish(learnt.judged)

    @cached_property
    def _judge(self) -> LinkJudge | None:
        return None if self.focus is None else LinkJudge(self.history, self.focus, self.on_note)


class _Again(Exception):
    """What was learnt before does not fit what was read: start again, without states up to a moment or later, or without any."""

    def __init__(self, before: int | None, *, relearn: bool = False) -> None:
        super().__init__()
        self.before, self.relearn = before, relearn


def _sources(policy: type) -> list[str]:
    """Digests of the files that define a policy beside recrawl's own: what older code of a plug-in has learnt is not used."""
    digests = []
    for kind in policy.__mro__:
        if not kind.__module__.startswith(("recrawl.", "builtins")):
            file = getattr(sys.modules.get(kind.__module__), "__file__", None)
            digests.append(xxhash.xxh64_hexdigest(Path(file).read_bytes()) if file and Path(file).is_file() else "")
    return digests
