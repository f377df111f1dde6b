"""How the panel chooses experts, hears them, and does without those that disappear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from made_visits import Stage, days, made_visits, unseen
from policies.test_experts_policies import Seen, talking_world
from recrawl.core.snapshot import restored, taken
from recrawl.models.experts import learn
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.series import Series, heaviest_words, read_words, tfidf
from recrawl.models.experts.votes import vote_by_accuracy
from recrawl.policies import Budget, named
from recrawl.policies.expert_columns import contents_from
from recrawl.policies.expert_panel import LOST, ExpertPanel, ExpertSelection
from recrawl.policies.linked_pages import LinkedPages
from recrawl.policies.recent_texts import RecentTexts
from recrawl.testing import tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Need
from recrawl.world.recorded import NOTHING

N = 6


def watched(panel: ExpertPanel, world: Any, n_cycles: int, decide: bool = True) -> tuple[ExpertPanel, Seen]:
    """The panel after it saw all pages in some cycles, and decided in each."""
    crawler, seen = Crawler(world, frozenset({Need.GRAPH})), Seen(world.n_pages, world.words)
    for t in range(n_cycles):
        visits = (crawler.visit_recorded() if t else crawler.first).visits
        panel.observe(visits)
        seen.add(visits)
        panel = panel.decided() if decide else panel
    return panel, seen


# -- votes that know who was right -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1, 2])
def test_votes_by_accuracy_are_those_of_the_plain_version_over_what_was_said_so_far(sigma: int) -> None:
    world = talking_world(5, 40)
    selection = ExpertSelection(k=3, method="content", reselect=1000, vote="accuracy")
    panel = ExpertPanel(7, learn.Machine(n_train=N), selection, sigma=sigma)
    panel, seen = watched(panel, world, 41)
    assert panel.experts is not None
    for page in range(7):
        experts, weight, own = panel.experts_of(page)
        opinions = learn.opinions(seen.examples(1.0, 1, sigma), page, [page, *experts], panel.machine)
        remembered = slice(41 - N - sigma, 41)
        label = seen.examples(1.0, 1, sigma).label(page)[remembered]
        plain = vote_by_accuracy(opinions[:, remembered], np.append(own, weight), label, sigma)
        assert panel.decision[page, -1] == pytest.approx(plain[-1], abs=1e-9)


def test_those_who_stay_experts_keep_their_record_and_new_ones_begin_without() -> None:
    selection = ExpertSelection(k=2, method="content", reselect=5, vote="accuracy")
    panel, _ = watched(ExpertPanel(7, learn.Machine(n_train=N), selection), talking_world(5, 30), 20)
    assert panel.experts is not None
    before = panel.experts
    after = replace(before, neighbour=before.neighbour[:, ::-1].copy())
    after.neighbour[0, 0] = 6 if 6 not in before.neighbour[0] else 5
    moved = panel.votes.of_new(before, after)
    both = (before.neighbour >= 0).all(axis=1) & (np.arange(7) > 0)
    assert both.any()
    np.testing.assert_array_equal(moved.said[both][:, [0, 2, 1]], panel.votes.said[both])
    assert not moved.said[0, 1].any()
    assert panel.votes.said[0].any()


# -- online cross-correlation ----------------------------------------------------------------------------------------------------


def slow_similarity(seen: Seen, start: int, stop: int, page: int, expert: int) -> float:
    """By `cross_correlation` over all texts of a window at once, for the words that both show as it begins."""
    text = np.ascontiguousarray(np.array(seen.text[1:])[start:stop].T)
    counts = sparse.csr_matrix(seen.words, dtype=np.float32)
    first = tfidf(contents_from(text[:, :1], counts))
    words = heaviest_words(first, 20)
    shown = set(first[expert].indices.tolist())
    is_shared = np.array([w in shown for w in words.word])
    ones = np.ones(counts.shape[1])
    values = read_words(counts, text, np.arange(len(text)), words.start, words.word, ones)
    weights = replace(words, weight=np.where(is_shared, words.weight, 0.0))
    series = Series(weights, values, text, counts, ones)
    return float(cross_correlation(series, [page], [expert], 1, 7)[0])


def test_experts_chosen_online_are_those_of_all_texts_of_the_window_at_once() -> None:
    world = talking_world(9, 40)
    selection = ExpertSelection(k=3, method="cross-correlation", reselect=12)
    panel, seen = watched(ExpertPanel(7, learn.Machine(n_train=N), selection), world, N + 12, decide=False)
    assert panel.experts is not None
    assert panel._selected_at == N + 12
    for page in range(7):
        plain = {other: slow_similarity(seen, N, N + 12, page, other) for other in range(7) if other != page}
        best = sorted((other for other in plain if plain[other] > 1e-12), key=lambda other: -plain[other])[:3]
        experts, weight = panel.experts.of(page)
        np.testing.assert_allclose(sorted(weight), sorted(plain[other] for other in best), atol=1e-9)
        np.testing.assert_allclose(weight, [plain[other] for other in experts], atol=1e-9)
    assert (panel.experts.neighbour >= 0).any()


def test_no_text_of_an_earlier_cycle_is_read_to_choose_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    shown = RecentTexts.shown
    monkeypatch.setattr(RecentTexts, "shown", lambda self, text: widths.append(text.shape[1]) or shown(self, text))
    selection = ExpertSelection(k=3, method="cross-correlation", reselect=4)
    watched(ExpertPanel(7, learn.Machine(n_train=N), selection), talking_world(9, 30), 30, decide=False)
    assert set(widths) == {1}


def test_what_is_kept_of_a_panel_goes_on_as_if_nothing_had_happened() -> None:
    world = talking_world(9, 40)
    for vote in ("similarity", "accuracy"):
        selection = ExpertSelection(k=3, method="cross-correlation", reselect=5, vote=vote)
        crawler, panel = Crawler(world), ExpertPanel(7, learn.Machine(n_train=N), selection)
        other = panel
        for t in range(41):
            visits = (crawler.visit_recorded() if t else crawler.first).visits
            if t in (7, 20, 33):
                tree, arrays = taken(panel)
                other = restored(tree, [values.copy() for values in arrays])
            panel.observe(visits)
            if other is not panel:
                other.observe(visits)
        np.testing.assert_array_equal(panel.decided().decision, other.decided().decision)


# -- the graph ---------------------------------------------------------------------------------------------------------------------


def test_pages_one_link_away_are_experts_by_the_graph() -> None:
    # A link with the number of a page leads to it: page 0 links to 1 and 2, page 2 back to 0, page 3 to itself and elsewhere.
    shows: Any = [[{1, 2}, {50}, {0, 60}, {3, 70}]] * 12
    says = [[{page: 3, t % 5 + 10: 2} for page in range(4)] for t in range(12)]
    policy = named("related-experts", n_train=3, k=2, experts="graph")
    crawler = Crawler(tiny_world(shows, says=says), policy.needs)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for _ in range(8):
        policy.observe(crawler.visit_recorded().visits)
    experts = policy.panel_.decided().experts  # type: ignore[attr-defined]
    assert [experts.of(page)[0] for page in range(4)] == [[2, 1], [0], [0], []]


def test_a_link_leads_to_a_page_that_is_known_and_what_a_page_shows_now_counts() -> None:
    world = tiny_world([[{1, 2}, {9}, NOTHING], [{2}, {0}, {1}]], known_from=[0, 0, 1])
    crawler = Crawler(world, frozenset({Need.GRAPH}))
    first, then = crawler.first.visits, crawler.visit_recorded().visits
    assert first.leads_to is not None
    assert first.leads_to[0].tolist() == [1]  # page 2 is not known yet
    linked = LinkedPages()
    linked.add(first)
    linked.add(then)
    assert sorted(zip(linked.source.tolist(), linked.target.tolist(), strict=True)) == [(0, 2), (1, 0), (2, 1)]
    assert Crawler(world).first.visits.leads_to is None


# -- experts that disappear -----------------------------------------------------------------------------------------------------


def test_an_expert_that_disappears_has_no_vote_until_it_is_back() -> None:
    panel, _ = watched(
        ExpertPanel(7, learn.Machine(n_train=N), ExpertSelection(k=2, method="random")), talking_world(3, 20), 15
    )
    experts, weight, own = panel.experts_of(0)
    assert weight.tolist() == [1.0, 1.0]
    panel.observe(made_visits(days(20), [experts[0]], gone=True))
    assert panel.experts_of(0)[1].tolist() == [0.0, 1.0]
    assert [each.is_lost for each in panel.named_experts(0)] == [True, False]
    for _ in range(LOST):
        panel.observe(made_visits(days(21), [experts[1]], answered=False))
    assert panel.experts_of(0)[1].tolist() == [0.0, 0.0]
    assert panel.experts_of(0)[2] == own == 1.0
    assert not np.isnan(panel.decided().decision[:, -1]).any()
    panel.observe(made_visits(days(22), [experts[0]]))
    assert panel.experts_of(0)[1].tolist() == [1.0, 0.0]


# -- what was read -------------------------------------------------------------------------------------------------------------


def test_texts_in_blocks_are_those_that_came_whatever_was_forgotten() -> None:
    chance = np.random.default_rng(1)
    words = sparse.csr_matrix(chance.integers(0, 3, (30, 8)).astype(np.float32))
    texts, known = RecentTexts(), {}
    for _ in range(12):
        some = np.unique(chance.integers(0, 30, 5)).astype(np.int32)
        known.update(zip(texts.add(some, words).tolist(), some.tolist(), strict=True))
        if chance.random() < 0.3:
            kept = np.array(sorted(chance.choice(list(known), min(4, len(known)), replace=False)))
            number = texts.keep(np.append(kept, -1))
            known = {int(number[old]): known[old] for old in kept.tolist()}
            assert number[-1] == -1
        some_known = np.array(sorted(known))
        np.testing.assert_array_equal(
            texts.rows(some_known).toarray(), words[[known[i] for i in sorted(known)]].toarray()
        )
    text = np.array([[-1, some_known[0]], [some_known[-1], -1]], np.int32)
    row, counts = texts.shown(text)
    assert (row < 0).tolist() == [[True, False], [False, True]]
    np.testing.assert_array_equal(counts[row[0, 1]].toarray(), words[known[int(text[0, 1])]].toarray())


def test_new_links_can_be_what_is_predicted() -> None:
    stage_visits = [
        made_visits(days(day), [0, 1], changed=[1, 1], n_new_since=[day % 2, 0] if day else [-1, -1])
        for day in range(9)
    ]
    policy = named("change-frequency", target="new-links", n_train=8)
    stage = Stage(policy, unseen(2))
    for visits in stage_visits:
        stage.see(visits)
    assert policy.outcomes_.n_changed.tolist() == [4, 0]  # type: ignore[attr-defined]
    assert policy.outcomes_.n_known.tolist() == [8, 8]  # type: ignore[attr-defined]
    assert len(policy.choose(stage.pages, Budget(1), days(9))) == 1
