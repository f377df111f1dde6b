"""The support vector machine against libsvm, through scikit-learn, and Platt scaling against scipy."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn import calibration
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from recrawl.models.experts import svm
from recrawl.models.experts.svm import decisions, platt, polynomial, probability, solve

Floats = NDArray[np.float64]
N_PROBLEMS, N_ASKED = 1_000, 20


@dataclass(frozen=True)
class Problem:
    kernel: Floats  # of the n taught examples, then of those asked about
    y: Floats
    c: float
    has_duplicates: bool

    @property
    def own(self) -> Floats:
        return self.kernel[: len(self.y), : len(self.y)]

    @property
    def asked(self) -> Floats:
        return self.kernel[len(self.y) :, : len(self.y)]


@dataclass(frozen=True)
class Solution:
    alpha: Floats
    rho: float

    def objective(self, problem: Problem) -> float:
        weight = self.alpha * problem.y
        return float(weight @ problem.own @ weight / 2 - self.alpha.sum())

    def decisions(self, problem: Problem) -> Floats:
        found: Floats = problem.asked @ (self.alpha * problem.y) - self.rho
        return found


def made_up(seed: int) -> Problem:
    """Linear, polynomial and RBF kernels; labels that a plane parts and labels at random; some with duplicates."""
    random = np.random.default_rng(seed)
    n, n_features = int(random.integers(5, 81)), int(random.integers(1, 12))
    x = random.normal(size=(n + N_ASKED, n_features))
    has_duplicates = seed % 5 == 0
    if has_duplicates:
        x[:n] = x[random.integers(0, n // 2, n)]
    y = np.where(random.random(n) < random.uniform(0.1, 0.9), 1.0, -1.0)
    if seed % 2:
        y = np.where(x[:n] @ random.normal(size=n_features) + random.normal() > 0, 1.0, -1.0)
    y[:2] = -1, 1
    inner = x @ x.T
    squares = np.diag(inner)
    kernels = (inner, polynomial(inner, 1 / n_features), np.exp((2 * inner - squares - squares[:, None]) / n_features))
    return Problem(kernels[seed % 3], y, 10 ** random.uniform(-2, 1.5), has_duplicates)


def by_libsvm(
    kernel: Floats, y: Floats, c: float, shrinking: bool, weight: Floats | None = None, max_iter: int = -1
) -> Solution:
    machine = SVC(kernel="precomputed", C=c, shrinking=shrinking, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(kernel, y, sample_weight=weight)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return Solution(alpha, -float(machine.intercept_[0]))


def ours(problem: Problem) -> Solution:
    return Solution(*solve(problem.own, problem.y, np.full(len(problem.y), problem.c)))


@cache
def solved(shrinking: bool) -> list[tuple[Problem, Solution, Solution]]:
    """Every problem with our solution and libsvm's."""
    problems = [made_up(seed) for seed in range(N_PROBLEMS)]
    return [(p, ours(p), by_libsvm(p.own, p.y, p.c, shrinking)) for p in problems]


@pytest.mark.slow
def test_the_multipliers_of_1000_problems_are_libsvms_where_it_does_not_shrink() -> None:
    # Duplicates make the solution ambiguous, but the same steps end in the same one of them.
    assert max(np.abs(own.alpha - theirs.alpha).max() for _, own, theirs in solved(False)) < 1e-3
    assert max(abs(own.rho - theirs.rho) for _, own, theirs in solved(False)) < 1e-3


def test_the_decisions_of_1000_machines_are_libsvms_where_it_does_not_shrink() -> None:
    own = np.array([own.decisions(problem) for problem, own, _ in solved(False)])
    theirs = np.array([theirs.decisions(problem) for problem, _, theirs in solved(False)])
    assert np.abs(own - theirs).max() < 1e-3
    assert ((own > 0) == (theirs > 0)).mean() >= 0.999


def test_the_dual_of_1000_problems_is_as_low_as_that_of_libsvm_with_its_defaults() -> None:
    # With shrinking libsvm stops elsewhere within the tolerance: multipliers may differ, what they achieve does not.
    for problem, own, theirs in solved(True):
        assert own.objective(problem) == pytest.approx(theirs.objective(problem), rel=1e-5)


def test_the_predictions_of_1000_machines_are_those_of_libsvm_with_its_defaults() -> None:
    own = np.array([own.decisions(problem) for problem, own, _ in solved(True)])
    theirs = np.array([theirs.decisions(problem) for problem, _, theirs in solved(True)])
    assert ((own > 0) == (theirs > 0)).mean() >= 0.999
    assert np.quantile(np.abs(own - theirs), 0.99) < 1e-3


def test_with_a_small_tolerance_the_multipliers_of_distinct_examples_do_not_depend_on_the_way_there() -> None:
    for seed in (2, 8, 14, 26, 32, 38):  # RBF: strictly convex
        problem = made_up(seed)
        alpha, rho = solve(problem.own, problem.y, np.full(len(problem.y), problem.c), tolerance=1e-9)
        back, back_rho = solve(problem.own, -problem.y, np.full(len(problem.y), problem.c), tolerance=1e-9)
        np.testing.assert_allclose(back, alpha, atol=1e-4)
        assert back_rho == pytest.approx(-rho, abs=1e-4)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 5, 8, 13, 21])
def test_every_single_step_is_libsvms(n_steps: int) -> None:
    for seed in range(30):
        problem = made_up(seed)
        alpha, rho = solve(problem.own, problem.y, np.full(len(problem.y), problem.c), max_iterations=n_steps)
        theirs = by_libsvm(problem.own, problem.y, problem.c, False, max_iter=n_steps)
        np.testing.assert_allclose(alpha, theirs.alpha, atol=1e-9)
        assert rho == pytest.approx(theirs.rho, abs=1e-9)


def test_the_solution_meets_the_constraints_and_the_optimality_conditions() -> None:
    for problem, own, _ in solved(False)[:200]:
        assert own.alpha.min() >= 0
        assert own.alpha.max() <= problem.c
        assert own.alpha @ problem.y == pytest.approx(0, abs=1e-9)
        pull = problem.y - problem.own @ (own.alpha * problem.y)
        may_rise = np.where(problem.y > 0, own.alpha < problem.c, own.alpha > 0)
        may_fall = np.where(problem.y > 0, own.alpha > 0, own.alpha < problem.c)
        # The kernel is kept in single precision, so the conditions hold a little less exactly on the given one.
        slack = 1e-3 + 1e-6 * np.abs(problem.own).max() * own.alpha.sum()
        assert pull[may_rise].max() - pull[may_fall].min() < slack


def test_an_upper_of_0_is_the_same_as_leaving_the_example_out() -> None:
    for seed in range(60):
        problem = made_up(seed)
        used = np.random.default_rng(seed).random(len(problem.y)) < 0.6
        used[:2] = True
        kernel = problem.own.copy()
        kernel[~used] = kernel[:, ~used] = np.nan  # not even looked at
        alpha, rho = solve(kernel, problem.y, np.where(used, problem.c, 0))
        fewer, fewer_rho = solve(problem.own[np.ix_(used, used)], problem.y[used], np.full(used.sum(), problem.c))
        assert (alpha[~used] == 0).all()
        np.testing.assert_array_equal(alpha[used], fewer)
        assert rho == fewer_rho


def test_a_c_for_each_example_is_libsvms_sample_weight() -> None:
    for seed in range(100):
        problem = made_up(seed)
        weight = np.random.default_rng(seed).integers(0, 4, len(problem.y)).astype(float)
        weight[:2] = 1
        alpha, rho = solve(problem.own, problem.y, problem.c * weight)
        used = weight > 0  # scikit-learn drops the others too, but then counts its support vectors without them
        theirs = by_libsvm(problem.own[np.ix_(used, used)], problem.y[used], problem.c, False, weight[used])
        np.testing.assert_allclose(alpha[used], theirs.alpha, atol=1e-3)
        assert rho == pytest.approx(theirs.rho, abs=1e-3)
        assert not alpha[~used].any()


@pytest.mark.parametrize("seed", range(20))
def test_a_kernel_that_is_not_positive_semidefinite_ends_where_libsvm_ends(seed: int) -> None:
    random = np.random.default_rng(seed)
    half = random.normal(size=(40, 40))
    kernel = half + half.T
    y = np.where(random.random(40) < 0.5, 1.0, -1.0)
    alpha, rho = solve(kernel, y, np.ones(40))
    theirs = by_libsvm(kernel, y, 1.0, False)
    np.testing.assert_allclose(alpha, theirs.alpha, atol=1e-3)
    assert rho == pytest.approx(theirs.rho, abs=1e-3)


def test_a_kernel_of_nothing_but_the_same_number_ends() -> None:
    alpha, rho = solve(np.full((6, 6), 7.0), [-1, 1, 1, -1, 1, 1], np.ones(6))
    assert alpha @ [-1, 1, 1, -1, 1, 1] == 0
    assert np.isfinite(rho)


def test_two_examples_are_parted_in_the_middle() -> None:
    alpha, rho = solve(np.array([[0.0, 0.0], [0.0, 16.0]]), [-1, 1], [9, 9])  # at 0 and 4: the decision is x / 2 - 1
    np.testing.assert_allclose(alpha, [2 / 16, 2 / 16])
    assert rho == pytest.approx(1)


@pytest.mark.parametrize(("y", "decision"), [([1, 1, 1], 1.0), ([-1, -1], -1.0), ([], -1.0)])
def test_without_two_classes_the_decision_is_the_class_there_is(y: list[int], decision: float) -> None:
    alpha, rho = solve(np.ones((len(y), len(y))), y, np.ones(len(y)))
    assert not alpha.any()
    assert -rho == decision


def page(seed: int, n_times: int = 120) -> tuple[Floats, NDArray[np.int8]]:
    """Features of a slowly changing page: flags, magnitudes and its words; and whether it changes the next day."""
    random = np.random.default_rng(seed)
    changed = (random.random(n_times + 1) < 0.4).astype(np.int8)
    words = np.cumsum(changed[:-1, None] * random.dirichlet(np.full(60, 0.1), n_times), axis=0) + 0.01
    words /= words.sum(axis=1, keepdims=True)
    magnitude = np.append(0.0, np.linalg.norm(np.diff(words, axis=0), axis=1))
    return np.column_stack([changed[:-1], np.append(0, changed[:-2]), magnitude, words]), changed[1:]


def by_loop(kernel: Floats, label: NDArray[np.int8], n_train: int, sigma: int, c: float, shrinking: bool) -> Floats:
    """What `decisions` does, as its docstring says it."""
    found = np.full(len(label), np.nan)
    for t in range(n_train - 1, len(label)):
        taught = [s for s in range(t - n_train + 1, t - sigma + 1) if label[s] >= 0]
        classes = {int(label[s]) for s in taught}
        if len(classes) == 2:
            machine = SVC(kernel="precomputed", C=c, shrinking=shrinking).fit(
                kernel[np.ix_(taught, taught)], label[taught]
            )
            found[t] = machine.decision_function(kernel[[t]][:, taught])[0]
        else:
            found[t] = 1.0 if classes == {1} else -1.0
    return found


@pytest.mark.parametrize(
    ("n_train", "sigma", "c"), [(50, 1, 1.0), (30, 3, 10.0), (17, 1, 0.1), (2, 1, 1.0), (100, 20, 1.0)]
)
def test_sliding_windows_decide_as_a_loop_with_libsvm(n_train: int, sigma: int, c: float) -> None:
    features, label = page(n_train)
    label[np.random.default_rng(0).random(len(label)) < 0.1] = -1
    label[-sigma:] = -1
    kernel = polynomial(features @ features.T)
    found = decisions(kernel, label, n_train, sigma, c)
    np.testing.assert_allclose(found, by_loop(kernel, label, n_train, sigma, c, shrinking=False), atol=1e-6)
    theirs = by_loop(kernel, label, n_train, sigma, c, shrinking=True)
    np.testing.assert_array_equal(found > 0, theirs > 0)


def test_windows_of_one_class_or_none_need_no_machine() -> None:
    label = np.array([-1, -1, -1, 1, 1, 1, 0, 0, 0, 0], np.int8)
    found = decisions(np.eye(10), label, n_train=3)
    np.testing.assert_array_equal(found[[0, 1]], np.nan)
    np.testing.assert_array_equal(found[[2, 3, 4, 5, 6, 8, 9]], [-1, -1, 1, 1, 1, -1, -1])
    assert found[7] == 0  # one of each, and both as far from this time


def test_times_without_a_label_may_have_any_features() -> None:
    features, label = page(7)
    label[10] = label[40] = -1
    kernel = polynomial(features @ features.T)
    expected = decisions(kernel, label, 50)
    kernel[[10, 40]] = kernel[:, [10, 40]] = np.nan
    np.testing.assert_array_equal(decisions(kernel, label, 50), expected)


def test_what_lies_in_the_future_does_not_matter() -> None:
    features, label = page(3)
    kernel = polynomial(features @ features.T)
    before = decisions(kernel, label, 50, sigma=2)
    other = label.copy()
    other[99:] = 1 - other[99:]
    kernel[101:] = kernel[:, 101:] = 5.0
    np.testing.assert_array_equal(
        decisions(kernel, other, 50, sigma=2)[:101], before[:101]
    )  # 98 is the last taught at 100


def test_windows_longer_than_the_history_decide_nothing() -> None:
    assert np.isnan(decisions(np.eye(5), [0, 1, 0, 1, 0], n_train=6)).all()


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_the_polynomial_kernel_is_libsvms(degree: int) -> None:
    x = np.random.default_rng(degree).normal(size=(30, 4))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    machine = SVC(kernel="poly", degree=degree, gamma=0.5, coef0=2.0, shrinking=False).fit(x, y)
    kernel = polynomial(x @ x.T, 0.5, 2.0, degree)
    alpha, rho = solve(kernel, y, np.ones(30))
    np.testing.assert_allclose(kernel @ (alpha * y) - rho, machine.decision_function(x), atol=1e-3)


def test_the_polynomial_kernel_can_replace_the_inner_products() -> None:
    inner = np.arange(6.0).reshape(2, 3)
    expected = (2 * inner + 1) ** 3
    assert polynomial(inner, 2.0, out=inner) is inner
    np.testing.assert_array_equal(inner, expected)


def platts_loss(parameters: Floats, f: Floats, changed: NDArray[np.bool_]) -> float:
    n_1, n_0 = changed.sum(), (~changed).sum()
    target = np.where(changed, (n_1 + 1) / (n_1 + 2), 1 / (n_0 + 2))
    z = parameters[0] * f + parameters[1]
    return float((target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z)).sum())


def calibrated_example(seed: int) -> tuple[Floats, NDArray[np.bool_]]:
    random = np.random.default_rng(seed)
    f = random.normal(size=int(random.integers(3, 300))) * 10 ** random.uniform(-1, 1)
    return f, random.random(len(f)) < 1 / (1 + np.exp(-random.normal() * 2 * f + random.normal()))


@pytest.mark.parametrize("seed", range(40))
def test_platt_scaling_finds_the_minimum_that_scipy_finds(seed: int) -> None:
    f, changed = calibrated_example(seed)
    a, b = platt(f, changed)
    scipys = minimize(platts_loss, [0.0, 0.0], (f, changed), method="BFGS", options={"gtol": 1e-8})
    assert platts_loss(np.array([a, b]), f, changed) <= scipys.fun + 1e-7
    np.testing.assert_allclose(probability(f, a, b), probability(f, *scipys.x), atol=1e-3)


@pytest.mark.skipif(
    not hasattr(calibration, "_sigmoid_calibration"), reason="scikit-learn has it no more under this name"
)
@pytest.mark.parametrize("seed", range(40))
def test_platt_scaling_gives_scikit_learns_probabilities(seed: int) -> None:
    f, changed = calibrated_example(seed)
    theirs = calibration._sigmoid_calibration(f, np.where(changed, 1, 0))
    np.testing.assert_allclose(probability(f, *platt(f, changed)), probability(f, *theirs), atol=2e-3)


def test_platt_scaling_leaves_out_what_nobody_knows() -> None:
    f, changed = calibrated_example(5)
    label = np.concatenate([changed.astype(np.int8), [-1, 1]])
    assert platt(np.append(f, [100.0, np.nan]), label) == platt(f, changed)


@pytest.mark.parametrize(("label", "expected"), [([], 0.5), ([1, 1, 1], 4 / 5), ([0, 0, 0], 1 / 5)])
def test_platt_scaling_is_not_certain_after_a_few_examples(label: list[int], expected: float) -> None:
    a, b = platt(np.zeros(len(label)), label)
    assert probability(0.0, a, b) == pytest.approx(expected, abs=1e-4)


def test_platt_scaling_stands_decisions_of_any_size() -> None:
    f = np.array([-1e6, -1e5, 3e5, 1e6])
    p = probability(f, *platt(f, [0, 0, 1, 1]))
    assert np.isfinite(p).all()
    assert (np.diff(p) >= 0).all()
    assert probability([-1e9, 1e9], -1e9, 0.0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: solve(np.eye(3), [1, -1], [1, 1]), "must be 2 × 2"),
        (lambda: solve(np.eye(2), [1, 0], [1, 1]), "other than -1 and"),
        (lambda: solve(np.eye(2), [1, -1], [1, 1, 1]), "one for each"),
        (lambda: solve(np.eye(2), [1, -1], [1, -1]), "negative or not finite"),
        (lambda: solve(np.eye(2), [1, -1], [1, 1], tolerance=0), "tolerance is 0"),
        (lambda: solve(np.full((2, 2), np.nan), [1, -1], [1, 1]), "not finite"),
        (lambda: solve(np.eye(2) * 1e39, [1, -1], [1, 1]), "scale the features down"),
        (lambda: decisions(np.eye(3), [1, 0], 2), "must be 2 × 2"),
        (lambda: decisions(np.eye(2), [1, 0], 2, sigma=2), "sigma is 2"),
        (lambda: decisions(np.eye(2), [1, 0], 2, sigma=0), "sigma is 0"),
        (lambda: decisions(np.eye(2), [1, 0], 2, c=0), "c is 0"),
        (lambda: decisions(np.full((2, 2), np.inf), [1, 0], 2), "not finite"),
        (lambda: polynomial(np.eye(2), degree=0), "degree is 0"),
        (lambda: polynomial(np.eye(2), out=np.empty(3)), "contiguous"),
        (lambda: platt([1.0], [1, 0]), "one for each"),
    ],
)
def test_what_cannot_be_solved_is_said(call: object, sentence: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=sentence):
        call()


def test_compiled_functions_can_call_the_solver() -> None:
    problem = made_up(4)
    upper = np.full(len(problem.y), problem.c)
    alpha, rho = svm.compiled_solve(problem.own, problem.y, upper, svm.TOLERANCE, svm.MAX_ITERATIONS)
    assert rho == ours(problem).rho
    np.testing.assert_array_equal(alpha, ours(problem).alpha)
