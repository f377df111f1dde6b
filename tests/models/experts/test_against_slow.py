"""The experts against the plain version of the paper in `slow_experts`."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import slow_experts as slow
from recrawl.models.experts import learn
from recrawl.models.experts.examples import ExpertExamples
from recrawl.world.contents import Contents

N_PAGES, N_ROUNDS, N_WORDS, N_TRAIN = 5, 44, 12, 16


def made_up(seed: int) -> tuple[Contents, np.ndarray, slow.Pages]:
    """Pages whose words drift, some of them unseen now and then, one of them unseen at first."""
    random = np.random.default_rng(seed)
    rows, text = [], np.full((N_PAGES, N_ROUNDS), -1, np.int32)
    seen = random.random((N_PAGES, N_ROUNDS)) < 0.9
    seen[:, 0] = True
    seen[1, :3] = False
    change = np.full((N_PAGES, N_ROUNDS), -1, np.int8)
    texts: list[list[dict[str, int] | None]] = [[None] * N_ROUNDS for _ in range(N_PAGES)]
    for page in range(N_PAGES):
        counts, last = random.integers(0, 5, N_WORDS), -1
        for t in range(N_ROUNDS):
            if random.random() < 0.5:
                counts = np.maximum(counts + random.integers(-2, 3, N_WORDS), 0)
            if seen[page, t]:
                if last >= 0:
                    change[page, t] = not np.array_equal(rows[last], counts)
                rows.append(counts.copy())
                last = len(rows) - 1
                texts[page][t] = {f"w{i:02}": int(n) for i, n in enumerate(counts) if n}
            text[page, t] = last
    contents = Contents(
        page=np.arange(N_PAGES),
        url=pa.array([f"https://e.org/{i}" for i in range(N_PAGES)]),
        rounds=np.arange(N_ROUNDS).astype("datetime64[D]").astype("datetime64[us]"),
        text=text,
        seen=seen,
        is_baseline=np.zeros_like(seen),
        digest=np.zeros(text.shape, np.int64),
        counts=sparse.csr_matrix(np.array(rows, np.float32)),
        vocabulary=np.arange(N_WORDS),
    )
    return contents, change, slow.watched(texts, seen, change)


@pytest.fixture(scope="module", params=[(1, 1, 1.0), (2, 1, 3.0), (1, 2, 1.0)], ids=str)
def both(request: pytest.FixtureRequest) -> tuple[ExpertExamples, slow.Pages, slow.Setting]:
    l, sigma, scale = request.param  # noqa: E741
    contents, change, pages = made_up(l * 10 + sigma)
    setting = slow.Setting(l, sigma, N_TRAIN, scale, partial(slow.svm, tol=1e-5))
    return ExpertExamples(contents, change, l=l, sigma=sigma, word_scale=scale), pages, setting


MACHINE = learn.Machine(N_TRAIN)


def assert_agree(decisions: np.ndarray, expected: np.ndarray, at_least: float = 1.0) -> None:
    """The same predictions at every decision time, but for decisions on the very edge."""
    times = expected >= 0
    assert times.any()
    assert not np.isnan(decisions[times]).any()
    assert np.mean((decisions[times] > 0) == (expected[times] == 1)) >= at_least


def test_features_are_those_of_the_paper(both: tuple[ExpertExamples, slow.Pages, slow.Setting]) -> None:
    examples, pages, setting = both
    for page, expert in ((0, 0), (0, 1), (1, 0), (3, 2)):
        fast = examples.inner(page, expert)
        vectors = np.array([slow.features_3d(pages, expert, page, t, setting) for t in range(N_ROUNDS)])
        assert np.abs(fast - vectors @ vectors.T).max() < 1e-9
        matrix = examples.matrix(page, expert).toarray()
        assert np.abs(matrix @ matrix.T - vectors @ vectors.T).max() < 1e-9
    assert examples.label(2).tolist() == slow.labels(pages, 2, setting).tolist()


def test_single_and_related_experts_predict_the_same(both: tuple[ExpertExamples, slow.Pages, slow.Setting]) -> None:
    examples, pages, setting = both
    weights = np.array([0.7, 0.2, 0.45])
    for page in (0, 1, 4):
        experts = [(page + i) % N_PAGES for i in (1, 2, 3)]
        assert_agree(MACHINE.ask(examples, page, [page]), slow.single_expert(pages, page, setting))
        votes = learn.vote(learn.opinions(examples, page, [page, *experts], MACHINE), np.append(0.8, weights))
        assert_agree(votes, slow.multiple_experts(pages, page, experts, weights, 0.8, setting))


def test_union_bagging_and_boosting_predict_the_same(both: tuple[ExpertExamples, slow.Pages, slow.Setting]) -> None:
    examples, pages, setting = both
    page, experts = 2, [0, 4]
    assert_agree(learn.relational_union(examples, page, experts, MACHINE), slow.union(pages, page, experts, setting))
    boosted = learn.boosting(examples, page, experts, MACHINE, n_models=4)
    assert_agree(boosted, slow.boosting(pages, page, experts, 4, setting))
    uniform = np.random.default_rng(5).random((3, N_ROUNDS, N_TRAIN))
    draws = {}
    for t in slow.decision_times(pages, setting):
        n = len(slow.training_times(pages, page, t, setting))
        draws[t] = [[int(u * n) for u in uniform[model, t, :n]] for model in range(3)]
    bagged = learn.bagging(examples, page, experts, MACHINE, n_models=3, seed=5)
    assert_agree(bagged, slow.bagging(pages, page, experts, draws, setting))


def test_any_classifier_may_take_the_place_of_the_machine(
    both: tuple[ExpertExamples, slow.Pages, slow.Setting],
) -> None:
    examples, pages, setting = both
    decisions = learn.by_classifier(slow.svm(), examples.matrix(3, 1), examples.label(3), N_TRAIN, examples.sigma)
    assert_agree(decisions, slow.expert_opinion(pages, 3, 1, setting))
    learners = learn.Classifier(slow.svm(), N_TRAIN), MACHINE
    weights = np.array([0.5, 0.25])
    for one, other in (
        [learner.ask(examples, 3, [3]) for learner in learners],
        [learn.vote(learn.opinions(examples, 2, [2, 0, 4], learner), np.append(1.0, weights)) for learner in learners],
        [learn.relational_union(examples, 2, [0, 4], learner) for learner in learners],
    ):
        assert (one > 0).any()
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(one > 0, other > 0)


def test_the_frequency_is_that_of_the_known_labels(both: tuple[ExpertExamples, slow.Pages, slow.Setting]) -> None:
    examples, pages, setting = both
    fast = learn.change_frequency(examples.label(1), N_TRAIN, examples.sigma)
    plain = slow.change_frequency(pages, 1, setting)
    times = list(slow.decision_times(pages, setting))
    assert np.allclose(fast[times], plain[times], equal_nan=True)


def test_calibration_takes_the_setting_that_was_right_most_often_so_far() -> None:
    label = np.array([1, 1, 0, 1, 1, 1], np.int8)
    always, never = np.ones(6), -np.ones(6)
    decisions = learn.calibrated([never, always], label, memory=2, sigma=1)
    # At time 0 nothing is known yet: the first. From then on the last two outcomes decide; of equals the first.
    assert decisions.tolist() == [-1, 1, 1, -1, -1, 1]
