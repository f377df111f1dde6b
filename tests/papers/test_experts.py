"""The evaluation of experts against the plain version of the paper."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import slow_experts as slow
from models.experts.test_against_slow import N_PAGES, N_TRAIN, made_up
from recrawl.errors import NotEnoughData
from recrawl.models.experts.selection import choose
from recrawl.papers.experts.evaluation import evaluate_contents, predictable, sampled
from recrawl.papers.experts.predictions import PagePredictions, choices, page_predictions
from recrawl.papers.experts.settings import ExpertSettings
from recrawl.world.contents import Contents

SETTINGS = ExpertSettings(
    n_train=N_TRAIN,
    n_trains=(12, N_TRAIN),
    k=3,
    ks=(1, 3),
    method="content",
    methods=("content", "random"),
    alpha=0.0,
    n_models=2,
    n_jobs=1,
)


def rows(found: object, part: str) -> dict[tuple[str, str, int, int], dict[str, float]]:
    wanted = found.rows[part]  # type: ignore[attr-defined]
    return {(row["method"], row["experts"], row["k"], row["n_train"]): row for row in wanted}


def test_the_tables_are_those_of_the_plain_version() -> None:
    contents, change, pages = made_up(11)
    setting = slow.Setting(1, 1, N_TRAIN, 1.0, partial(slow.svm, tol=1e-5))
    found = rows(evaluate_contents(contents, change, SETTINGS), "settings")
    chosen = choose(contents.window(0, N_TRAIN), 3, "content")
    judged = [page for page in range(N_PAGES) if slow.judged_times(pages, page, setting)]
    single = [slow.accuracy(pages, p, slow.single_expert(pages, p, setting), setting) for p in judged]
    coin = [slow.coin_accuracy(pages, p, setting) for p in judged]
    threshold = [slow.accuracy(pages, p, slow.baseline(pages, p, setting), setting) for p in judged]
    related = []
    for p in judged:
        experts, weights = chosen.of(p)
        votes = slow.multiple_experts(pages, p, experts, weights, float(chosen.own_weight[p]), setting)
        related.append(slow.accuracy(pages, p, votes, setting))
    assert found["single-expert", "", 0, N_TRAIN]["accuracy"] == pytest.approx(np.mean(single), abs=0.01)
    assert found["related-experts", "content", 3, N_TRAIN]["accuracy"] == pytest.approx(np.mean(related), abs=0.01)
    assert found["change-frequency, coin", "", 0, N_TRAIN]["accuracy"] == pytest.approx(np.mean(coin))
    assert found["change-frequency, threshold", "", 0, N_TRAIN]["accuracy"] == pytest.approx(np.mean(threshold))


def predictions(contents: Contents, change: np.ndarray, settings: ExpertSettings) -> list[PagePredictions]:
    pages = np.arange(N_PAGES)
    return list(page_predictions(contents, change, pages, choices(contents, settings), settings.n_trains, settings))


@pytest.mark.parametrize("reselect", [None, 6])
@pytest.mark.parametrize("method", ["content", "cross-correlation"])
def test_noise_in_later_rounds_changes_no_earlier_prediction(method: str, reselect: int | None) -> None:
    contents, change, _ = made_up(11)
    settings = replace(SETTINGS, method=method, methods=(method, "random"), reselect=reselect)
    random, last = np.random.default_rng(0), 30
    noisy, texts = change.copy(), contents.text.copy()
    noisy[:, last + 1 :] = random.integers(0, 2, noisy[:, last + 1 :].shape)
    texts[:, last + 1 :] = random.integers(0, contents.counts.shape[0], texts[:, last + 1 :].shape)
    before = predictions(contents, change, settings)
    after = predictions(replace(contents, text=texts), noisy, settings)
    differ_later = False
    for one, other in zip(before, after, strict=True):
        for key, decisions in one.decisions.items():
            assert np.array_equal(decisions[: last + 1], other.decisions[key][: last + 1], equal_nan=True), key
            differ_later |= not np.array_equal(decisions, other.decisions[key], equal_nan=True)
        for n, share in one.share.items():
            assert np.array_equal(share[: last + 1], other.share[n][: last + 1], equal_nan=True)
    assert differ_later


def test_every_part_has_its_methods_and_the_same_rounds_for_all_of_them() -> None:
    contents, change, _ = made_up(7)
    found = evaluate_contents(contents, change, SETTINGS)
    assert set(found.rows) == {"settings", "combining", "selection", "history", "number"}
    for part in found.rows:
        assert len({row["n_predictions"] for row in found.rows[part]}) == 1
    assert ("related-experts", "random", 3, N_TRAIN) in rows(found, "selection")
    assert ("related-experts", "content", 1, N_TRAIN) in rows(found, "number")
    assert ("related-experts", "content", 3, 12) in rows(found, "history")
    assert {"relational union", "boosting", "bagging"} <= {row["method"] for row in found.rows["combining"]}


def test_experts_chosen_again_vote_from_then_on_only() -> None:
    contents, change, _ = made_up(7)
    settings = replace(SETTINGS, parts=("settings",), k=2, ks=(2,))
    once = predictions(contents, change, settings)
    often = predictions(contents, change, replace(settings, reselect=8))
    second = N_TRAIN - 1 + 8
    key = ("related-experts", "content", 2, N_TRAIN)
    for one, other in zip(once, often, strict=True):
        assert np.array_equal(one.decisions[key][:second], other.decisions[key][:second], equal_nan=True)
    assert any(
        not np.array_equal(a.decisions[key], b.decisions[key], equal_nan=True) for a, b in zip(once, often, strict=True)
    )  # some page has other experts, or other weights, by then


def test_pages_that_hardly_alternate_and_short_histories_are_named() -> None:
    contents, change, _ = made_up(5)
    quiet = np.zeros_like(change)
    assert len(predictable(quiet, 0.3)) == 0
    with pytest.raises(NotEnoughData, match="alternates"):
        evaluate_contents(contents, quiet, ExpertSettings(n_train=10, n_trains=(10,)))
    with pytest.raises(NotEnoughData, match="44 rounds"):
        evaluate_contents(contents, change, ExpertSettings())
    late = change.copy()
    late[:, N_TRAIN - 1 :] = -1
    with pytest.raises(NotEnoughData, match="nothing can be scored"):
        evaluate_contents(contents, late, SETTINGS)


@pytest.mark.slow
def test_a_classifier_takes_the_place_of_the_machines_everywhere() -> None:
    contents, change, _ = made_up(11)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    found = evaluate_contents(contents, change, replace(SETTINGS, classifier=tree))
    usual = evaluate_contents(contents, change, SETTINGS)
    for part in ("settings", "combining"):
        ours, theirs = rows(found, part), rows(usual, part)
        assert ours.keys() == theirs.keys()
        assert any(ours[key]["accuracy"] != theirs[key]["accuracy"] for key in ours)


def test_the_last_rounds_alone_are_predicted_as_in_a_history_that_begins_with_their_training() -> None:
    contents, change, _ = made_up(11)
    settings = replace(SETTINGS, parts=("settings",), n_trains=(N_TRAIN,))
    start = contents.shape[1] - (N_TRAIN + 1 + 12 - 1)
    found = rows(evaluate_contents(contents, change, replace(settings, last=12)), "settings")
    cut = rows(evaluate_contents(contents.window(start, contents.shape[1]), change[:, start:], settings), "settings")
    assert {key: row["accuracy"] for key, row in found.items()} == {key: row["accuracy"] for key, row in cut.items()}
    one = rows(evaluate_contents(contents, change, replace(settings, last=1)), "settings")
    assert all(row["n_predictions"] <= N_PAGES for row in one.values())


def test_memory_that_holds_one_page_changes_nothing() -> None:
    contents, change, _ = made_up(11)
    settings = replace(SETTINGS, parts=("settings",))
    plenty, little = (predictions(contents, change, replace(settings, memory=each)) for each in (10**9, 1))
    for one, other in zip(plenty, little, strict=True):
        for key, decisions in one.decisions.items():
            np.testing.assert_array_equal(decisions, other.decisions[key])


def test_an_expert_that_disappears_has_no_vote_and_is_counted() -> None:
    contents, change, _ = made_up(11)
    settings = replace(SETTINGS, parts=("settings",), k=1, ks=(1,))
    experts = choose(contents.window(0, N_TRAIN), 1, "content")
    page = int(np.flatnonzero(experts.neighbour[:, 0] >= 0)[0])
    seen = contents.seen.copy()
    seen[experts.neighbour[page, 0], N_TRAIN - 1 :] = False
    gone = replace(contents, seen=seen)
    voted, single = (("related-experts", "content", 1, N_TRAIN), ("single-expert", "", 0, N_TRAIN))
    found = predictions(gone, change, settings)[page].decisions
    silent = 2 * N_TRAIN
    np.testing.assert_array_equal(found[voted][silent:], found[single][silent:])  # type: ignore[index]
    assert any("disappeared for 16 rounds" in note for note in evaluate_contents(gone, change, settings).notes)


def test_experts_are_named_with_their_weight_and_how_often_they_were_right() -> None:
    contents, change, _ = made_up(11)
    found = evaluate_contents(contents, change, replace(SETTINGS, parts=("settings", "experts"))).rows["experts"]
    chosen = choose(contents.window(0, N_TRAIN), 3, "content")
    for page in range(N_PAGES):
        rows_of_page = [row for row in found if row["url"] == contents.url[page].as_py()]
        experts, weight = chosen.of(page)
        assert [row["expert"] for row in rows_of_page] == [contents.url[expert].as_py() for expert in experts]
        assert [row["weight"] for row in rows_of_page] == weight.tolist()
        assert all(0 <= row["right"] <= 1 for row in rows_of_page if row["right"] is not None)


def drawn_one_by_one(weight: list[float], n: int, chance: np.random.Generator) -> list[int]:
    """A sample without replacement in proportion to weights, drawn page by page."""
    left = list(range(len(weight)))
    drawn = []
    for _ in range(n):
        total = sum(weight[page] for page in left)
        point, page = chance.random() * total, left[-1]
        for each in left:
            point -= weight[each]
            if point < 0:
                page = each
                break
        left.remove(page)
        drawn.append(page)
    return drawn


def test_samples_of_pages_are_drawn_in_proportion_to_importance() -> None:
    weight = [1.0, 2.0, 4.0, 8.0, 0.5]
    chance, n_draws = np.random.default_rng(1), 4_000
    fast, slow_ = np.zeros(5), np.zeros(5)
    for seed in range(n_draws):
        fast[sampled(np.arange(5), 2, np.array(weight), seed)] += 1
        slow_[drawn_one_by_one(weight, 2, chance)] += 1
    np.testing.assert_allclose(fast / n_draws, slow_ / n_draws, atol=0.03)


def test_pages_of_no_importance_are_drawn_only_if_there_are_too_few_others() -> None:
    importance = np.array([0.0, 1e-300, 0.0, 1e300, 0.0, 5.0])
    pages = np.array([0, 1, 2, 3, 4])  # the last one does not pass the filter
    assert {tuple(sampled(pages, 2, importance, seed).tolist()) for seed in range(20)} == {(1, 3)}
    three = {tuple(sampled(pages, 3, importance, seed).tolist()) for seed in range(40)}
    assert three == {(0, 1, 3), (1, 2, 3), (1, 3, 4)}


def test_importance_decides_which_pages_are_predicted_and_nothing_else() -> None:
    contents, change, _ = made_up(11)
    settings = replace(SETTINGS, parts=("settings",), most_pages=3)
    plain = evaluate_contents(contents, change, settings)
    important = np.zeros(N_PAGES)
    important[[1, 2, 4]] = 5.0
    found = evaluate_contents(contents, change, settings, importance=important)
    assert found.n_predicted == plain.n_predicted == 3
    assert any("importance" in note for note in found.notes)
    assert not any("importance" in note for note in plain.notes)
    everyone = {p.page: p for p in predictions(contents, change, settings)}
    chosen = choices(contents, settings)
    kept = page_predictions(contents, change, np.array([1, 2, 4]), chosen, settings.n_trains, settings)
    for each in kept:
        for method, decisions in each.decisions.items():
            assert decisions.tolist() == everyone[each.page].decisions[method].tolist()
    all_of_them = replace(settings, most_pages=None)
    assert rows(evaluate_contents(contents, change, all_of_them, importance=important), "settings") == rows(
        evaluate_contents(contents, change, all_of_them), "settings"
    )
