"""The bandit: which share gets the reward, and policies made of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from made_visits import Stage, hours, made_visits, unseen
from recrawl.policies import AverageCount, Bandit, Budget, RandomChoice, Regression, RegressionRoundRobin, RoundRobin
from recrawl.policies.learning_to_rank import LearningToRank, Ranking
from recrawl.testing import Case, cases, check_generated, check_policy, choices, tiny_world
from recrawl.world.pages import Need


def settled(**settings: object) -> tuple[Bandit, Stage]:
    """A bandit that has seen a first crawl, over two policies that need no bootstrap."""
    bandit = Bandit(AverageCount(), RoundRobin(), **settings)  # type: ignore[arg-type]
    return bandit, Stage(bandit, unseen(6)).first()


def test_the_share_that_was_used_is_rewarded_when_its_visits_come_back() -> None:
    bandit, stage = settled(shares=(0.5, 1.0))
    choice = stage.policy.choose(stage.pages, Budget(2), hours(1))
    assert choice.memo == {"arm": 0}
    assert bandit.n_.tolist() == [0, 0]  # to choose is not to learn
    visits = made_visits(hours(1), sorted(choice.page.tolist()), memo=choice.memo)
    stage.see(replace(visits, n_found=7))
    assert bandit.n_.tolist() == [1, 0]
    assert bandit.sum_.tolist() == [7, 0]
    assert stage.policy.choose(stage.pages, Budget(2), hours(2)).memo == {"arm": 1}


def test_visits_that_the_bandit_did_not_choose_reward_no_share() -> None:
    bandit, stage = settled()
    for memo in (None, {}):
        stage.see(replace(made_visits(hours(1), [0, 1], memo=memo), n_found=9))
    assert bandit.n_.sum() == bandit.sum_.sum() == 0
    assert bandit.inner.n_.tolist()[:2] == [2, 2]  # type: ignore[attr-defined]  # but both policies learn from them


def test_visits_that_come_back_late_reward_the_share_of_their_own_choice() -> None:
    bandit, stage = settled(shares=(0.0, 0.5, 1.0))
    early = stage.policy.choose(stage.pages, Budget(2), hours(1))
    stage.see(made_visits(hours(1), [0]))  # visits of someone else in between
    late = replace(made_visits(hours(5), sorted(early.page.tolist()), memo={"arm": 2}), n_found=4)
    stage.see(late)
    assert bandit.n_.tolist() == [0, 0, 1]
    assert bandit.sum_.tolist() == [0, 0, 4]


def test_until_the_inner_policy_is_settled_it_gets_everything_and_no_share_is_marked() -> None:
    case = cases()["an ordinary collection"]
    marked = [bool(choice.memo) for choice in choices(Bandit(bootstrap=4), case)]
    assert marked == [cycle > 4 for cycle in range(1, len(marked) + 1)]


def test_the_arm_is_that_of_ucb1() -> None:
    bandit, _ = settled(shares=(0.1, 0.2, 0.3), exploration=2.0)
    bandit.n_, bandit.sum_, bandit.greatest_ = np.array([5.0, 3.0, 9.0]), np.array([10.0, 9.0, 9.0]), 5
    by_hand = [s / n / 5 + 2.0 * (2 * np.log(17) / n) ** 0.5 for n, s in zip((5, 3, 9), (10, 9, 9), strict=True)]
    assert bandit.next_arm() == int(np.argmax(by_hand))


# -- policies made of others -------------------------------------------------------------------------------------------


COMPOSED = {
    "a bandit over averages and lots": lambda: Bandit(inner=AverageCount(), rest=RandomChoice(seed=3)),
    "a bandit over a bandit": lambda: Bandit(inner=Bandit(bootstrap=2), rest=RoundRobin()),
    "a fixed share": lambda: RegressionRoundRobin(inner=AverageCount(), rest=RandomChoice(), share=0.5),
    "a regression that ranks": lambda: Regression(bootstrap=2, learner=Ranking(depth=3)),
    "a ranking": lambda: LearningToRank(Regression(bootstrap=2), Ranking(depth=3)),
}


#: Those that are made of what the others are made of, too.
REPEATED = ("a bandit over a bandit", "a ranking")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] if name in REPEATED else [])
        for name, make in COMPOSED.items()
    ],
)
def test_policies_made_of_others_keep_the_contract(make: type[Bandit]) -> None:
    check_policy(make)
    check_generated(make, 20)


def pages_chosen(policy: Bandit | LearningToRank | RegressionRoundRobin) -> list[list[int]]:
    gains = [[{100 * page + page * t + i for i in range(page)} for page in range(6)] for t in range(20)]
    return [choice.page.tolist() for choice in choices(policy, Case(tiny_world(gains), (Budget(3),)))]


def test_settings_by_name_equal_settings_by_object() -> None:
    pairs = (
        (Bandit(window=8, bootstrap=2), Bandit(inner=Regression(window=8, bootstrap=2))),
        (
            RegressionRoundRobin(share=0.7, window=8, bootstrap=2),
            RegressionRoundRobin(Regression(window=8, bootstrap=2), share=0.7),
        ),
        (
            LearningToRank(window=8, bootstrap=2, depth=4),
            LearningToRank(Regression(window=8, bootstrap=2), Ranking(depth=4)),
        ),
    )
    for by_name, by_object in pairs:
        assert by_name.settings() == by_object.settings()
        assert repr(by_name) == repr(by_object)
        assert pages_chosen(by_name) == pages_chosen(by_object)


def test_a_setting_that_no_part_has_is_refused_by_name() -> None:
    for kind in (Bandit, RegressionRoundRobin, LearningToRank):
        with pytest.raises(TypeError, match=f"{kind.__name__} has no setting 'windw'. It has: .*window"):
            kind(windw=3)


def test_an_object_and_its_settings_together_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Bandit: give inner or its settings \(bootstrap, window\), not both"):
        Bandit(Regression(), window=3, bootstrap=2)
    with pytest.raises(TypeError, match=r"LearningToRank: give learner or its settings \(depth\), not both"):
        LearningToRank(learner=Ranking(), depth=3)


def test_other_parts_than_usual_are_among_the_settings_and_in_the_representation() -> None:
    mixed = Bandit(inner=AverageCount(), rest=RandomChoice(seed=3), exploration=2.0)
    assert repr(mixed) == "Bandit(exploration=2.0, inner=AverageCount(), rest=RandomChoice(seed=3))"
    assert list(mixed.settings()) == ["exploration", "inner", "rest", "shares"]
    ranks = Bandit(inner=Regression(window=9, learner=Ranking(depth=3)))
    assert repr(ranks).startswith("Bandit(learner=Ranking(depth=3")
    assert repr(Bandit(**ranks.settings())) == repr(ranks)


def test_a_policy_needs_what_its_parts_need() -> None:
    class NeedsWords(RoundRobin):
        needs = frozenset({Need.WORDS})

    assert Bandit().needs == frozenset()
    assert Bandit(rest=NeedsWords()).needs == {Need.WORDS}
    assert RegressionRoundRobin(inner=NeedsWords()).needs == {Need.WORDS}


def test_the_overlaps_of_an_explanation_are_those_of_the_inner_policy() -> None:
    bandit, world = Bandit(bootstrap=1), tiny_world([[{t}, {t}, {100 + t}] for t in range(6)])
    list(choices(bandit, Case(world, (Budget(3),))))
    assert bandit._overlaps(0) == bandit.inner._overlaps(0) == ((1, 1.0),)
