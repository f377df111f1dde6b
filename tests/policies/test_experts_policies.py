"""The policies of Radinsky and Bennett's section 8.3 beside plain versions, and what they learn beside `models.experts.learn`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse

from made_visits import Stage, days, made_visits, order, unseen
from recrawl.models.experts import learn, svm
from recrawl.models.experts.examples import ExpertExamples
from recrawl.policies import Budget, Policy, expert_panel, named
from recrawl.policies.choice import by_number
from recrawl.policies.expert_panel import ExpertPanel, ExpertSelection
from recrawl.policies.experts import throws
from recrawl.policies.freshness_oracle import FreshnessOracle
from recrawl.policies.related_experts import RelatedExperts
from recrawl.replay import replay
from recrawl.testing import cases, check_generated, check_policy, choices, tiny_world
from recrawl.world.contents import Contents
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Pages, Visits
from recrawl.world.recorded import FAILED

SOLVER = 2e-3  # solutions are this close to each other where kernels differ by rounding
NAMES = ("change-frequency", "single-expert", "related-experts")
SETTINGS: tuple[dict[str, Any], ...] = (
    {"n_train": 4, "reselect": 2, "k": 3},
    {"n_train": 2, "retrain": 3, "reselect": 5, "k": 2, "pick": "gain", "experts": "content", "vote": "accuracy"},
    {"n_train": 5, "k": 2, "experts": "graph", "target": "new-links", "window": 2, "ahead": 3, "retrain": 2},
    {"n_train": 3, "retrain": 20, "k": 30, "experts": "dtw", "c": 10.0},
    {"n_train": 5, "experts": "random", "word_scale": 0.0},
)


# -- the coin ------------------------------------------------------------------------------------------------------------------


def slow_throw(p: float, uniform: float) -> float:
    """Throw by throw: how likely has the coin shown heads by now?"""
    still_tails = 1.0
    for throw in range(1, 10_000):
        still_tails *= 1.0 - p
        if uniform < 1.0 - still_tails:
            return throw
    return float("inf")


def test_the_coin_first_shows_heads_at_the_throw_of_a_loop() -> None:
    chance = np.random.default_rng(3)
    p, uniform = np.append(chance.random(300), [0.0, 1.0, 0.5]), chance.random(303)
    assert throws(p, uniform).tolist() == [slow_throw(*each) for each in zip(p.tolist(), uniform.tolist(), strict=True)]


def picked_by_throwing(p: list[float], budget: int, chance: np.random.Generator) -> list[int]:
    """Throw the coins of all pages that are left, again and again; of the last round only as many count as fit."""
    picked: list[int] = []
    while len(picked) < budget:
        heads = [page for page in range(len(p)) if page not in picked and chance.random() < p[page]]
        picked += chance.permutation(heads).tolist()[: budget - len(picked)]
    return picked


def test_pages_are_drawn_as_often_as_when_coins_are_really_thrown() -> None:
    p, chance, n = [0.05, 0.2, 0.2, 0.5, 0.9], np.random.default_rng(1), 20_000
    thrown = np.bincount([page for _ in range(n) for page in picked_by_throwing(p, 2, chance)], minlength=5) / n
    drawn = np.zeros(5)
    for _ in range(n):
        throw, lot = throws(np.array(p), chance.random(5)), chance.random(5)
        drawn[np.lexsort((lot, throw))[:2]] += 1 / n
    np.testing.assert_allclose(drawn, thrown, atol=0.015)


# -- how often a page changed --------------------------------------------------------------------------------------------------


def slow_shares(outcomes: dict[int, list[int]], n_pages: int, n_train: int) -> list[float]:
    last = {page: outcomes.get(page, [])[-n_train:] for page in range(n_pages)}
    every = [changed for of_page in last.values() for changed in of_page]
    mean = sum(every) / len(every) if every else 0.5
    return [(sum(last[page]) + mean) / (len(last[page]) + 1) for page in range(n_pages)]


@pytest.mark.parametrize("pick", ["coin", "gain"])
def test_change_frequency_is_that_of_the_plain_version(pick: str) -> None:
    stage, chance = Stage(named("change-frequency", n_train=4, pick=pick, seed=9), unseen(8)), np.random.default_rng(5)
    outcomes: dict[int, list[int]] = {}
    last = dict.fromkeys(range(8), 0)
    stage.first()
    for day in range(1, 40):
        choice = stage.policy.choose(stage.pages, Budget(3), days(day))
        shares = slow_shares(outcomes, 8, 4)
        if pick == "coin":
            assert order(choice) == slow_coin(shares, 9, day)[:3]
        waited = [1 if pick == "coin" else day - last[page] for page in order(choice)]
        expected = [1 - (1 - shares[page]) ** n for page, n in zip(order(choice), waited, strict=True)]
        np.testing.assert_allclose(choice.reason.sentence.values["probability"], expected)
        page = sorted(order(choice))
        changed = chance.integers(-1, 2, len(page)).tolist()
        for visited, outcome in zip(page, changed, strict=True):
            outcomes.setdefault(visited, []).extend([outcome] if outcome >= 0 else [])
            last[visited] = day
        stage.see(made_visits(days(day), page, changed=changed))


def slow_coin(p: list[float], seed: int, n_cycles: int) -> list[int]:
    chance = np.random.default_rng([seed, n_cycles])
    uniform, lot = chance.random(len(p)).tolist(), chance.random(len(p)).tolist()
    return sorted(range(len(p)), key=lambda page: (slow_throw(p[page], uniform[page]), -lot[page]))


def test_by_gain_a_page_that_will_have_changed_again_tomorrow_is_left_for_one_that_will_not() -> None:
    stage = Stage(named("change-frequency", pick="gain"), unseen(2)).first()
    for day in range(1, 31):
        stage.see(made_visits(days(day), [0, 1], changed=[1, day % 4 == 0]))
    restless, calm = (1.0 - np.exp(-rate) for rate in stage.policy.rates_.per_day)  # type: ignore[attr-defined]
    assert restless > 0.9
    assert calm < 0.35
    assert order(stage.policy.choose(stage.pages, Budget(1), days(31))) == [1]


def test_pages_that_never_change_come_last_and_new_ones_first() -> None:
    stage = Stage(named("change-frequency", n_train=2, seed=1), unseen(3))
    stage.see(made_visits(days(0), [0, 1], changed=-1))
    for day in range(1, 4):
        stage.see(made_visits(days(day), [0, 1], changed=0))
    choice = stage.policy.choose(stage.pages, Budget(3), days(4))
    assert order(choice)[0] == 2
    assert choice.why(0) == "never visited yet"
    assert "by how often it changed so far" in choice.why(1)
    assert choice.reason.sentence.values["probability"].tolist() == [0.0, 0.0, 0.0]


# -- what experts learn -------------------------------------------------------------------------------------------------------


class Seen:
    """All that visits showed, column by column and none forgotten: what a slow version would learn from."""

    def __init__(self, n_pages: int, words: sparse.csr_matrix) -> None:
        self.words = words
        self.text: list[NDArray[Any]] = [np.full(n_pages, -1, np.int32)]
        self.change: list[NDArray[Any]] = []

    def add(self, visits: Visits) -> None:
        assert visits.text is not None
        text, change = self.text[-1].copy(), np.full(len(self.text[0]), -1, np.int8)
        for page, shown, changed in zip(visits.page, visits.text, visits.changed, strict=True):
            text[page] = shown if shown >= 0 else text[page]
            change[page] = changed
        self.text.append(text)
        self.change.append(change)

    def examples(self, word_scale: float, l: int = 1, sigma: int = 1) -> ExpertExamples:  # noqa: E741
        text, change = np.array(self.text[1:]).T, np.array(self.change).T
        never, ends = np.zeros(text.shape, np.bool_), np.arange(text.shape[1]).astype("datetime64[us]")
        contents = Contents(
            page=np.arange(len(text)),
            url=pa.nulls(len(text), pa.string()),
            rounds=ends,
            text=np.ascontiguousarray(text),
            seen=text >= 0,
            is_baseline=never,
            digest=never.astype(np.int64),
            counts=self.words,
            vocabulary=np.arange(self.words.shape[1]),
        )
        return ExpertExamples(contents, np.ascontiguousarray(change), word_scale=word_scale, l=l, sigma=sigma)


def talking_world(seed: int, n_cycles: int, n_pages: int = 7) -> Any:
    """Pages of which some say what their neighbour said a cycle ago; at times they fail or their words are not known."""
    chance = np.random.default_rng(seed)
    topic = np.cumsum(chance.random((n_cycles + 1, n_pages)) < np.linspace(0.2, 0.8, n_pages), axis=0)
    late = np.arange(n_pages) % 2 == 1
    topic[1:, late] = topic[:-1, np.flatnonzero(late) - 1]
    says = [[{50: 9, int(n % 40): 6, int(n % 7): 3} for n in cycle] for cycle in topic]
    shows = [[FAILED if t and chance.random() < 0.1 else [int(n)] for n in cycle] for t, cycle in enumerate(topic)]
    return tiny_world(shows, says=[[said if chance.random() < 0.9 else None for said in cycle] for cycle in says])


def batch_decisions(seen: Seen, panel: ExpertPanel, t: int) -> list[float]:
    """By `recrawl.models.experts.learn` over everything from the beginning, at one time."""
    examples, machine = seen.examples(panel.word_scale, panel.l, panel.sigma), panel.machine
    decisions = []
    for page in range(len(seen.text[0])):
        if panel.experts is None:
            decisions.append(float(machine.ask(examples, page, [page])[t]))
            continue
        experts, weight = panel.experts.of(page)
        own = float(panel.experts.own_weight[page])
        margin = learn.vote(learn.opinions(examples, page, [page, *experts], machine), np.append(own, weight))[t]
        decisions.append(float(margin / (np.abs(weight).sum() + abs(own))))
    return decisions


@pytest.mark.parametrize(("window", "sigma"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize(("k", "method"), [(0, "content"), (3, "content"), (3, "cross-correlation")])
def test_decisions_are_those_of_a_learner_that_looks_at_everything_again(
    k: int, method: str, share: float, window: int, sigma: int
) -> None:
    world, chance = talking_world(2, 30), np.random.default_rng(6)
    crawler = Crawler(world)
    selection = ExpertSelection(k=k, method=method, reselect=8)
    panel = ExpertPanel(7, learn.Machine(n_train=6, c=5.0), selection, word_scale=2.0, l=window, sigma=sigma)
    seen = Seen(7, world.words)
    for t in range(31):
        visits = (crawler.visit(np.flatnonzero(chance.random(7) < share)) if t else crawler.first).visits
        panel.observe(visits)
        seen.add(visits)
        panel = panel.decided()
        if t < 5:
            assert np.isnan(panel.decision).all()
        else:
            np.testing.assert_allclose(panel.decision[:, -1], batch_decisions(seen, panel, t), atol=SOLVER)
    assert len(np.unique(panel.decision[~np.isnan(panel.decision)] > 0)) == 2


def test_decisions_that_were_not_needed_are_made_up_for() -> None:
    world = talking_world(4, 40)
    crawler, n = Crawler(world), 6
    panel = ExpertPanel(7, learn.Machine(n_train=n), ExpertSelection(k=2))
    seen = Seen(7, world.words)
    for t in range(41):
        visits = (crawler.visit_recorded() if t else crawler.first).visits
        panel.observe(visits)
        seen.add(visits)
    panel = panel.decided()
    for ago in range(n + 1):
        np.testing.assert_allclose(panel.decision[:, -1 - ago], batch_decisions(seen, panel, 40 - ago), atol=SOLVER)
    assert np.isnan(panel.decision[:, : -n - 1]).all()


def test_between_two_lessons_a_learner_judges_by_the_last_one() -> None:
    world = talking_world(8, 30)
    crawler, n = Crawler(world), 6
    panel = ExpertPanel(7, learn.Machine(n_train=n), ExpertSelection(k=0), retrain=10)
    seen, trained = Seen(7, world.words), -1
    for t in range(31):
        visits = (crawler.visit_recorded() if t else crawler.first).visits
        panel.observe(visits)
        seen.add(visits)
        panel = panel.decided()
        if t < n - 1:
            continue
        trained = t if (t - (n - 1)) % 10 == 0 else trained
        examples = seen.examples(1.0)
        for page in range(7):
            rows = np.append(np.arange(trained - n + 1, trained), t)  # the lesson's examples, and now
            label = np.append(examples.label(page)[rows[:-1]], -1).astype(np.int8)
            inner = examples.inner(page, page)[np.ix_(rows, rows)]
            assert panel.decision[page, -1] == pytest.approx(panel.machine.decisions(inner, label, 1)[-1], abs=SOLVER)


def test_probabilities_are_platts_over_what_was_decided_and_then_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_panel, "N_OF_BOTH", 5)
    world = talking_world(2, 40)
    crawler, panel = Crawler(world), ExpertPanel(7, learn.Machine(n_train=8), ExpertSelection(k=2))
    decided: dict[int, list[tuple[float, int]]] = defaultdict(list)
    panel.observe(crawler.first.visits)
    for t in range(1, 41):
        panel = panel.decided()
        before = panel.decision[:, -1].copy()
        visits = crawler.visit(np.arange(t % 2, 7, 2)).visits
        panel.observe(visits)
        for page, changed in zip(visits.page, visits.changed, strict=True):
            if changed >= 0 and not np.isnan(before[page]):
                decided[t].append((before[page], int(changed)))
    recent = [pair for t in range(33, 41) for pair in decided[t]]
    probability = panel.probabilities()
    fitted = svm.platt(*(np.array(each) for each in zip(*recent, strict=True)))
    assert probability is not None
    decision = panel.decided().decision[:, -1]
    np.testing.assert_allclose(probability, svm.probability(decision, *fitted), rtol=1e-6)


# -- the policies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [SETTINGS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SETTINGS[1:])]
)
@pytest.mark.parametrize("name", NAMES)
def test_policies_that_learn_at_once_keep_the_contract(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expert_panel, "N_OF_BOTH", 1)
    check_policy(lambda: named(name, **settings))
    check_generated(lambda: named(name, **settings), 60, seed=7)


def test_learning_at_once_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_panel, "N_OF_BOTH", 1)
    made = chosen(talking_world(3, 25), named("related-experts", n_train=4, k=3))
    reasons = [choice.reason.sentence(0, by_number) for choice in made]
    assert "since too little was seen to learn from" in reasons[0]
    assert "by its own words and changes and those of up to 3 related pages" in reasons[-1]
    assert made[-1].why(0) == reasons[-1]


@pytest.mark.parametrize("name", ["single-expert", "related-experts"])
def test_without_words_experts_go_by_how_often_a_page_changed(name: str) -> None:
    case = cases()["an ordinary collection"]
    without_words = list(choices(named(name, n_train=4, seed=2), case))
    plain = list(choices(named("change-frequency", n_train=4, seed=2), case))
    assert [order(choice) for choice in without_words] == [order(choice) for choice in plain]
    assert "since its words are not known" in without_words[3].why(0)


@pytest.mark.parametrize("name", NAMES)
def test_no_choice_depends_on_words_not_yet_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_panel, "N_OF_BOTH", 3)
    world, settings, last = talking_world(3, 25), {"n_train": 5, "k": 3, "reselect": 6}, 15
    chance = np.random.default_rng(0)
    text, version = world.text.copy(), world.version.copy()
    later = world.cycle > last
    text[later] = chance.integers(-1, world.words.shape[0], later.sum())
    version[later] = chance.integers(0, 99, later.sum())
    other = replace(world, text=text, version=version)
    plain, noisy = ([order(c) for c in chosen(each, named(name, **settings))] for each in (world, other))
    assert plain[: last + 1] == noisy[: last + 1]
    if name != "change-frequency":
        assert plain != noisy


def chosen(world: Any, policy: Policy) -> Any:
    made: list[Any] = []
    choose = policy.choose

    def spy(pages: Pages, budget: Budget, now: Any) -> Any:
        made.append(choose(pages, budget, now))
        return made[-1]

    policy.choose = spy  # type: ignore[method-assign]
    list(replay(world, policy, Budget(3)))
    return made


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_train": 1}, "two cycles"),
        ({"pick": "dice"}, "'dice'.*coin and gain"),
        ({"retrain": 0}, "number of cycles"),
        ({"k": 0}, "single-expert"),
        ({"experts": "friends"}, "'friends'.*cross-correlation.*graph.*random"),
        ({"vote": "loudness"}, "'loudness'.*similarity or accuracy"),
        ({"target": "luck"}, "'luck'.*change and new-links"),
        ({"window": 0}, "number of cycles"),
        ({"ahead": 0}, "number of cycles"),
        ({"n_train": 4, "window": 3, "ahead": 2}, "window=3 and ahead=2 it must be 5 or more"),
        ({"reselect": 0}, "number of cycles"),
        ({"c": 0.0}, "above 0"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RelatedExperts(**settings)


def test_settings_are_the_papers() -> None:
    assert RelatedExperts.default_settings() == {
        "n_train": 50,
        "k": 20,
        "experts": "cross-correlation",
        "vote": "similarity",
        "pick": "coin",
        "target": "change",
        "window": 1,
        "ahead": 1,
        "retrain": 1,
        "reselect": 50,
        "c": 1.0,
        "word_scale": 1.0,
        "seed": 0,
    }


# -- the future ----------------------------------------------------------------------------------------------------------------


def test_knowledge_of_the_future_renews_what_lasts() -> None:
    # Page 0 is new every cycle, page 1 from cycle 1 to 2 and from 3 on, page 2 from cycle 2 on; page 3 never.
    world = tiny_world(
        [
            [{0}, {10}, {20}, {30}],
            [{1}, {11}, {20}, {30}],
            [{2}, {11}, {21}, {30}],
            [{3}, {12}, {21}, {30}],
            [{4}, {12}, {21}, {30}],
        ]
    )
    policy = FreshnessOracle()
    assert chosen_by(world, policy, Budget(1)) == [[1], [2], [1], [0]]
    assert [row["current"] for row in replay(world, FreshnessOracle(), Budget(1))] == [0.75, 0.75, 0.75, 1.0]


def chosen_by(world: Any, policy: Policy, budget: Budget) -> list[list[int]]:
    crawler, picked = Crawler(world, policy.needs), []
    policy.start(crawler.pages)
    for cycle in range(1, world.n_cycles + 1):
        picked.append(order(policy.choose(crawler.pages, budget, days(cycle))))
        crawler.visit(np.array(picked[-1], np.int64))
    return picked


def test_no_policy_keeps_more_copies_current_than_knowledge_of_the_future(tmp_path: Any) -> None:
    world = talking_world(1, 60)
    fresh = {
        name: float(np.mean([row["current"] for row in replay(world, named(name, n_train=10), Budget(2))]))
        for name in ("freshness-oracle", "oracle", "round-robin", *NAMES)
    }
    assert max(fresh, key=lambda name: fresh[name]) == "freshness-oracle"
