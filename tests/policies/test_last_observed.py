"""The longest without an update first."""

from __future__ import annotations

from made_visits import Stage, hours, made_visits, order, unseen
from recrawl.policies.budget import Budget
from recrawl.policies.last_observed import LastObserved


def test_pages_come_by_the_time_since_their_last_update_not_since_their_last_visit() -> None:
    stage = Stage(LastObserved(), unseen(3)).first()
    stage.see(made_visits(hours(1), [0, 1, 2], updated=[1, 0, 0]))
    stage.see(made_visits(hours(5), [0, 1, 2], updated=[0, 1, 0]))
    choice = stage.policy.choose(stage.pages, Budget(3), hours(10))
    assert order(choice) == [0, 1, 2]  # updated 9 h and 5 h ago; never, and visited 5 h ago
    assert choice.score.tolist() == [9, 5, 5]
    assert choice.why(0) == "no update seen for 9 h"


def test_without_any_update_it_is_the_time_since_the_last_visit() -> None:
    stage = Stage(LastObserved(), unseen(3)).first()
    stage.see(made_visits(hours(2), [0], updated=0))
    stage.see(made_visits(hours(3), [1], answered=False))
    assert order(stage.policy.choose(stage.pages, Budget(3), hours(4))) == [2, 0, 1]


def test_pages_never_visited_come_first() -> None:
    stage = Stage(LastObserved(), unseen(3))
    stage.see(made_visits(hours(0), [0, 2], changed=-1, updated=-1))
    assert order(stage.policy.choose(stage.pages, Budget(1), hours(1000))) == [1]


def test_a_clock_that_goes_backwards_makes_no_negative_times() -> None:
    stage = Stage(LastObserved(), unseen(2)).first()
    stage.see(made_visits(hours(5), [0, 1], updated=[1, 0]))
    assert stage.policy.choose(stage.pages, Budget(2), hours(-5)).score.tolist() == [0, 0]
