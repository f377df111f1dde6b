from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from made_visits import laid_out
from recrawl.policies import ALL, Budget, Policy, named
from recrawl.policies.budget import Cause
from recrawl.policies.choice import Choice, PageName, Sentence
from recrawl.policies.explanation import Explanation
from recrawl.policies.round_robin import RoundRobin
from recrawl.testing import cases, check_choice, check_generated, check_policy, choices, tiny_world
from recrawl.world.pages import Pages, Visits
from recrawl.world.recorded import FAILED, GONE, NOTHING

NAMES = [policy.name for policy in ALL]
#: They have one trainer: one of them is enough for every run.
ALIKE = ("predicted-count", "predicted-presence", "predicted-probability")
#: So that short histories train, and forget; and a small tree where a policy would train a large model.
QUICK = {"bootstrap": 1, "retrain": 1, "window": 3, "memory": 2, "rounds": 4, "n_train": 4, "learner": "small-tree"}
#: Those that train, or forget; for the others it is the same contract again.
TRAINED = [policy.name for policy in ALL if policy.default_settings().keys() & QUICK.keys()]
#: Their contract is in test_experts_policies.py, with settings by which they learn even sooner.
EXPERTS = ("change-frequency", "single-expert", "related-experts")


def marked(name: str, *, slow: Iterable[str], more: Iterable[str]) -> Any:
    """The name of a policy, as a parameter of the tests in which it belongs."""
    marks = [pytest.mark.slow] if name in slow else [pytest.mark.more] if name in more else []
    return pytest.param(name, marks=marks)


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("name", [marked(name, slow=ALIKE[1:], more=set(TRAINED) - set(ALIKE)) for name in NAMES])
def test_every_policy_keeps_the_contract(name: str) -> None:
    check_policy(lambda: named(name, learner="small-tree"))


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("name", [marked(name, slow=ALIKE, more=EXPERTS) for name in TRAINED])
def test_policies_that_train_at_once_keep_the_contract(name: str) -> None:
    check_policy(lambda: named(name, **QUICK))


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("n_collections", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_no_generated_collection_leads_over_a_budget_or_to_a_page_that_is_barred(name: str, n_collections: int) -> None:
    check_generated(lambda: named(name, **QUICK), -(-n_collections // len(NAMES)), seed=NAMES.index(name))


@pytest.mark.parametrize("name", [policy.name for policy in ALL if "learner" in policy.default_settings()])
def test_policies_keep_the_contract_with_the_models_that_they_train_by_default(name: str) -> None:
    for case in ("an ordinary collection", "two pages a host", "pages that always fail"):
        assert len(list(choices(named(name), cases()[case]))) == 15


class Spoilt(RoundRobin):
    """Round robin with one fault."""

    def __init__(self, fault: Callable[[Choice, Pages], Choice]) -> None:
        self.fault = fault

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        return self.fault(super().choose(pages, budget, now), pages)


def with_page(choice: Choice, page: Any) -> Choice:
    page = np.asarray(page, np.int64)
    return Choice(page=page, score=np.zeros(len(page)), reason=Sentence("because"))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (lambda c, p: with_page(c, np.arange(len(p))), "9 pages chosen with a budget of 3"),
        (lambda c, p: with_page(c, np.zeros(len(c))), "a page was chosen twice"),
        (lambda c, p: with_page(c, np.arange(len(c)) + len(p)), "of 9 pages these were chosen"),
        (lambda c, p: with_page(c, np.arange(len(c))), "barred pages were chosen: .1"),
        (lambda c, p: replace(c, cause=np.full(len(p), Cause.PICKED, np.int8)), "do not say whether they were picked"),
        (lambda c, p: replace(c, score=c.score[:-1]), "score has 2 entries for 3 pages"),
        (lambda c, p: replace(c, factors={"hours": c.score[1:]}), "hours has 2 entries for 3 pages"),
        (lambda c, p: replace(c, expected=c.score[1:]), "expected has 2 entries for 3 pages"),
        (lambda c, p: replace(c, reason=lambda i, name: ("a",)[i]), "index out of range"),
        (lambda c, p: replace(c, reason=Sentence(" ")), "chosen without a reason"),
        (lambda c, p: replace(c, reason=Sentence("{unknown}")), "unknown"),
        (lambda c, p: replace(c, expected=c.score - 1e9), "fewer than 0 new links"),
    ],
)
def test_a_fault_is_reported_in_a_sentence(fault: Callable[[Choice, Pages], Choice], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_policy(lambda: Spoilt(fault))


class Careless(RoundRobin):
    """Changes what it is given."""

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        pages.n_visits += 1
        return super().choose(pages, budget, now)


class KeepsState(RoundRobin):
    """Keeps something that `start` should have cleared."""

    n = 0

    def observe(self, visits: Visits) -> None:
        self.n += 1

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        choice = super().choose(pages, budget, now)
        return replace(choice, score=choice.score + self.n)


class LearnsByChoosing(RoundRobin):
    """Counts its own choices, so that to ask for one changes the next."""

    def start(self, pages: Pages) -> None:
        self.n_ = 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        self.n_ += 1
        choice = super().choose(pages, budget, now)
        return replace(choice, score=choice.score + self.n_)


class LearnsByExplaining(RoundRobin):
    """The same by explanations."""

    def start(self, pages: Pages) -> None:
        self.n_ = 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        choice = super().choose(pages, budget, now)
        return replace(choice, score=choice.score + self.n_)

    def explain(self, *question: Any, **more: Any) -> Explanation:
        self.n_ += 1
        return super().explain(*question, **more)


class Contradicts(RoundRobin):
    """Explains that it would never pick the first page, and picks it."""

    def explain(self, pages: Pages, page: int, now: datetime, *more: Any) -> Explanation:
        return Explanation(page=page, rank=None, score=None, reason="")


class ExplainsNothing(RoundRobin):
    """Explains a rank without a reason."""

    def explain(
        self, pages: Pages, page: int, now: datetime, budget: Budget | None = None, name: PageName = str
    ) -> Explanation:
        return replace(super().explain(pages, page, now, budget, name), reason="")


class ForgetsSettings(RoundRobin):
    """Does not remember what its constructor was given."""

    def __init__(self, share: float = 0.5) -> None:
        self.rest = 1 - share


class ChangesSettings(RoundRobin):
    """Remembers something else than it was given."""

    def __init__(self, share: float = 0.5) -> None:
        self.share = share / 2


class Unseeded(RoundRobin):
    """Draws random numbers without a seed."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng()

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        choice = super().choose(pages, budget, now)
        return replace(choice, score=self.chance.random(len(choice)))


class Meddler(RoundRobin):
    """Changes the visits that it is shown."""

    def observe(self, visits: Visits) -> None:
        visits.page[:] = 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Careless, "changed the pages"),
        (KeepsState, "a used policy does not choose like a new one"),
        (Unseeded, "two new policies choose differently"),
        (Meddler, "changed the visits"),
        (LearnsByChoosing, "`choose` is not pure"),
        (LearnsByExplaining, "`choose` is not pure"),
        (Contradicts, "is chosen, but `explain` has no rank for it"),
        (ExplainsNothing, "and the reason ''"),
        (ForgetsSettings, "does not remember its setting 'share'"),
        (ChangesSettings, "made again from its settings is ChangesSettings.share=0.125."),
    ],
)
def test_a_policy_that_breaks_the_contract_is_detected(make: type[Policy], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_policy(make)


def test_caps_are_checked() -> None:
    pages = Pages.unseen(np.array([0, 0, 1]), np.array([0, 1, 1]))
    choice = with_page(RoundRobin().choose(pages, Budget(0), datetime.now().astimezone()), [0, 1, 2])
    check_choice(choice, pages, Budget(3, per_host=2, per_site=2))
    for budget in (Budget(3, per_host=1), Budget(3, per_site=1)):
        with pytest.raises(AssertionError, match=r"pages of one .* chosen, 1 are allowed"):
            check_choice(choice, pages, budget)


def test_a_tiny_world_is_what_it_was_made_from() -> None:
    world = tiny_world([[{10}, {20, 21}, NOTHING], [{10, 30}, FAILED, {21, 31}], [{30}, {32}, GONE]])
    assert world.discoverable == 3
    assert world.n_cycles == 2
    assert world.link.tolist() == [10, 20, 21, 30, 31, 32]
    assert world.first_shown.tolist() == [0, 0, 0, 1, 1, 2]
    shows = laid_out(world, world.shows)
    assert shows[0][2] == NOTHING
    assert [world.link[world.sets[number]].tolist() for number in shows[1][[0, 2]]] == [[10, 30], [21, 31]]
    assert shows[1][1] == FAILED
    assert shows[2][2] == GONE
    assert laid_out(world, world.version)[:, 1].tolist() == [shows[0][1], -1, shows[2][1]]
