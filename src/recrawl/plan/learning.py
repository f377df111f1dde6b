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
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson
import xxhash

from recrawl.core.arrays import Ints, places_of
from recrawl.core.snapshot import restored, taken
from recrawl.core.times import NEVER, iso_text, microseconds, moment
from recrawl.core.words import count
from recrawl.errors import BadState, NotEnoughData
from recrawl.history import History, Timeline
from recrawl.history.past import PastVisits
from recrawl.history.states import Checkpoint, States
from recrawl.models.change_expectation import ChangeExpectation
from recrawl.models.link_expectation import LinkExpectation
from recrawl.plan.own_plans import OwnPlans
from recrawl.policies.base import Policy
from recrawl.policies.registry import blaming
from recrawl.web.link_kinds import LinkKind
from recrawl.world.batches import BatchRule, CrawlPace, distinct_moments, rule_for
from recrawl.world.notions import ANY, Notion, spelled
from recrawl.world.pages import Need
from recrawl.world.roots import DOMAINS, Roots
from recrawl.world.stream import Stream, next_segment

Say = Callable[[str], None]
SEGMENT = 5_000_000  #: visits, about, that are followed at once; never less than a batch


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

    def go_on(
        self,
        history: History,
        held: list[Timeline],
        until: int,
        *,
        own_plans: OwnPlans,
        notion: Notion | None = None,
        roots: Roots = DOMAINS,
        is_last: bool = False,
    ) -> None:
        """Learn from the visits of a timeline up to a moment that come after those learnt from so far.

        `held` holds nothing but the timeline. With `is_last` nothing more will be asked of it, and it is let go before learning
        begins: both together would be the most that a plan has in memory.
        """
        assert self.rule is not None
        if self.stream.until == NEVER:
            with blaming(self.policy):
                self.policy.start(self.stream.pages)
        segment = next_segment(
            self.stream,
            history,
            held[0],
            self.rule,
            until=until,
            needs=self.policy.needs,
            notion=notion,
            roots=roots,
        )
        if is_last:
            held.clear()
            history.release()
        pages = self.stream.pages
        with blaming(self.policy), ThreadPoolExecutor(3) as threads:
            for visits, n_before in self.stream.follow(segment):
                if len(pages) > n_before:
                    self.policy.extend(pages, n_before)
                    self.links.extend_to(len(pages))
                    self.changes.extend_to(len(pages))
                memo = own_plans.memo_for(self.stream.page[visits.page], visits.at)
                visits = replace(visits, memo=memo) if memo is not None else visits
                # They are independent of each other.
                learners = (self.links, self.changes, self.policy)
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
    roots: Roots = DOMAINS
    carry: bool = False
    relearn: bool = False
    on_step: Say = lambda step: None
    on_note: Say = lambda note: None

    def learn(self, before: int | None = None) -> Learnt:
        """All that the past shows; `before`: without states that have learnt up to that moment or later."""
        self.on_step("looking for what was learnt before")
        learnt = None if self.relearn else self._restored(before)
        if learnt is None:
            learnt = Learnt(self.policy)
        self.on_step("reading visits")
        held = [self._new_visits(learnt)]
        timeline = held[0]
        if learnt.visits.n and not learnt.visits.still_holds(self.history, learnt.stream.until, timeline.files):
            return self.learn(before)  # older visits were added just now
        if learnt.stream.until == NEVER and not timeline.n_visits:
            until = " up to that time" if self.history.until else ""
            raise NotEnoughData(f"the history holds no visits{until}")
        rule = rule_for(self.every, self._pace(learnt, timeline))
        if learnt.rule is not None and not learnt.pace.is_same(rule, learnt.rule):
            self.on_note(f"learning again from the beginning, since visits now come {rule.why}")
            return replace(self, relearn=True).learn()
        if self._continues(learnt, timeline, rule):
            return self.learn(before=learnt.stream.until)
        learnt.rule = rule
        del timeline
        self._fold(learnt, held)
        self.on_note(f"learnt from {count(learnt.stream.n_visits, 'visit')}, {rule.why}")
        return learnt

    def _continues(self, learnt: Learnt, timeline: Timeline, rule: BatchRule) -> bool:
        """Whether the first new visits belong to a batch that was taken to be complete."""
        fresh = timeline.at[timeline.at > learnt.stream.until]
        if learnt.stream.began is None or not len(fresh):
            return False
        return rule.is_one_batch(learnt.stream.until, int(fresh.min()), learnt.stream.began)

    def _fold(self, learnt: Learnt, held: list[Timeline]) -> None:
        fresh = held[0].at[held[0].at > learnt.stream.until]
        moments = distinct_moments(fresh)
        own_plans = self._own_plans
        assert learnt.rule is not None
        ends = learnt.rule.batch_ends(moments, learnt.stream.began)
        complete = moments[moments <= ends[-2]] if len(ends) > 1 and len(moments) else moments[:0]
        if len(moments) and learnt.rule.is_over(int(moments[-1]), int(ends[-1]), microseconds(self.now)):
            complete = moments
        self.on_step(f"learning from {count(len(fresh), 'visit')}")
        if len(complete):
            until = int(complete[-1])
            pace = self._pace(learnt, held[0], until)
            past = learnt.visits.with_more(held[0], learnt.stream.until, until)
            for end in _segment_ends(fresh[fresh <= until], ends):
                self._go_on(learnt, held, end, is_last=end == moments[-1])
            learnt.pace, learnt.visits, learnt.plans = pace, past, own_plans.digest(until)
            if self.carry:
                self.on_step("keeping what was learnt")
                self._keep(learnt)
        if len(moments) > len(complete):
            self._go_on(learnt, held, int(moments[-1]), is_last=True)

    def _go_on(self, learnt: Learnt, held: list[Timeline], until: int, *, is_last: bool) -> None:
        learnt.go_on(
            self.history,
            held,
            until,
            own_plans=self._own_plans,
            notion=self.notion,
            roots=self.roots,
            is_last=is_last,
        )

    @cached_property
    def _own_plans(self) -> OwnPlans:
        return OwnPlans.of(self.history, repr(self.policy))

    def _pace(self, learnt: Learnt, timeline: Timeline, until: int | None = None) -> CrawlPace:
        """How fast the history was crawled, up to a moment."""
        fresh = timeline.at > learnt.stream.until
        if until is not None:
            fresh &= timeline.at <= until
        page, at = timeline.page[fresh], timeline.at[fresh]
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
        if self.roots != DOMAINS:
            about += [self.roots.spec, *sorted(self.roots.listed)]
        return xxhash.xxh64_hexdigest(orjson.dumps(about))

    def _keep(self, learnt: Learnt) -> None:
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
            States(self.history.beside).save(self._subject, learnt.stream.until, head, tree, arrays)
        except Exception as error:  # whatever a policy holds, or a disk does: the plan is made, and can be made again
            self.on_note(f"what was learnt could not be kept, so the next plan learns it again: {error}")

    def _restored(self, before: int | None) -> Learnt | None:
        """The newest state that fits the history as it is now; None where there is none."""
        states, is_late = States(self.history.beside), before is not None
        for checkpoint in states.checkpoints(self._subject):
            if self.history.until is not None and moment(checkpoint.until) > self.history.until:
                continue
            if before is not None and checkpoint.until >= before:
                continue
            past = PastVisits.from_dict(checkpoint.head["visits"])
            if not past.is_unchanged(self.history, checkpoint.until):
                is_late = True
                continue
            learnt = self._loaded(states, checkpoint)
            if learnt is not None:
                if is_late:
                    when = iso_text(moment(checkpoint.until))
                    self.on_note(
                        f"visits were added to the past since the last plan: learning continues from {when[:16]} UTC"
                    )
                return learnt
        if is_late:
            self.on_note("visits were added to the past since the last plan: learning again from the beginning")
        return None

    def _loaded(self, states: States, checkpoint: Checkpoint) -> Learnt | None:
        try:
            tree, arrays = states.load(checkpoint)
            learnt = restored(tree, arrays, type(self.policy))
            if not isinstance(learnt, Learnt) or type(learnt.policy) is not type(self.policy):
                raise BadState("it is of something else")
            if learnt.plans != self._own_plans.digest(learnt.stream.until):
                raise BadState("the plans that were made until then are others now")
        except BadState as error:
            self.on_note(f"what was learnt before cannot be used ({error}): learning again")
            with suppress(OSError):
                states.forget(checkpoint)
            return None
        return learnt

    def _new_visits(self, learnt: Learnt) -> Timeline:
        """The visits that are not learnt from yet, with all earlier ones to the same pages."""
        with_words = self.notion is not None or Need.WORDS in self.policy.needs
        if learnt.stream.until != NEVER:
            timeline = self.history.timeline_after(moment(learnt.stream.until), with_words=with_words)
        else:
            timeline = self.history.timeline if with_words else self.history.slim_timeline
        return timeline.with_links(self.links)


def _segment_ends(at: Ints, ends: Ints) -> list[int]:
    """Where to cut some visits, at ends of batches, so that few are in memory at once; the last one ends with the last visit."""
    n_until = np.searchsorted(np.sort(at), ends, side="right")
    cuts, done = [], 0
    for end, n in zip(ends.tolist(), n_until.tolist(), strict=True):
        if n - done >= SEGMENT or n == len(at):
            cuts.append(int(end))
            done = n
        if n == len(at):
            break
    return [*cuts[:-1], int(at.max())]


def _sources(policy: type) -> list[str]:
    """Digests of the files that define a policy beside recrawl's own: what older code of a plug-in has learnt is not used."""
    digests = []
    for kind in policy.__mro__:
        if not kind.__module__.startswith(("recrawl.", "builtins")):
            file = getattr(sys.modules.get(kind.__module__), "__file__", None)
            digests.append(xxhash.xxh64_hexdigest(Path(file).read_bytes()) if file and Path(file).is_file() else "")
    return digests
