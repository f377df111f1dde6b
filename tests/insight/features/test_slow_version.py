"""Features as arrays against features by a loop over pages (`benchmarks.slow_features`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import slow_features as slow
from benchmarks.features import made_up
from benchmarks.slow_features import slow_features

from recrawl.history import History
from recrawl.insight import related
from recrawl.insight.choices import LINKS
from recrawl.insight.features import (
    FEATURE_SETS,
    Feature,
    FeatureInputs,
    Features,
    default,
    everything,
    known_before,
    preset,
    static_network,
    vector,
)
from recrawl.insight.features.quantities import QUANTITIES
from recrawl.insight.targets import ALL, HasNewLinks, LinkChangeRate, NewLinkCount
from recrawl.synth import SynthSettings, batches
from recrawl.world.panel import build

ROUNDS = 10


def same(known: FeatureInputs, features: Features, of_round: int, expected: pd.DataFrame) -> None:
    found = known.matrix(features, of_round)
    assert found.dtype == np.float32
    for column, feature in zip(found.T, features, strict=True):
        np.testing.assert_allclose(
            column, expected[str(feature)], rtol=2e-5, atol=1e-6, err_msg=f"{feature}, {of_round}"
        )


def every_preset(history: int) -> Features:
    """The columns of every preset for every target."""
    targets = [target(links) for target in ALL for links in LINKS]
    sets = [preset(name, target, history) for name in FEATURE_SETS for target in targets]
    return tuple(dict.fromkeys(column for features in sets for column in features))


@pytest.fixture(scope="module")
def complete() -> FeatureInputs:
    return made_up(6, k=3, seed=1, n_vector=20)


@pytest.fixture(scope="module")
def holey() -> FeatureInputs:
    """A third of the visits were not made; some pages were hardly ever seen."""
    return made_up(11, k=5, missing=0.35, seed=2, n_vector=20)


@pytest.mark.parametrize("history", range(9))
@pytest.mark.parametrize("panel", ["complete", "holey"])
def test_every_history_size_equals_the_loop(panel: str, history: int, request: pytest.FixtureRequest) -> None:
    known = request.getfixturevalue(panel)
    expected = slow_features(known, ROUNDS - 1, history)
    same(known, (*every_preset(history), *static_network(page_rank=True), *vector()), ROUNDS - 1, expected)


@pytest.mark.parametrize("of_round", [1, 2, 3, 6, ROUNDS])
def test_every_round_equals_the_loop_and_so_does_the_future(holey: FeatureInputs, of_round: int) -> None:
    expected = slow_features(holey, of_round)
    same(holey, (*every_preset(8), *static_network(page_rank=True)), of_round, expected)


@pytest.mark.parametrize("of_round", [2, 5, ROUNDS - 1, ROUNDS])
def test_the_papers_rates_of_related_pages_equal_the_loop(holey: FeatureInputs, of_round: int) -> None:
    expected = slow_features(holey, of_round, 4, papers_rate=True)
    columns = everything(4, papers_rate=True)
    assert [str(feature) for feature in columns if feature.leaks] == ["related rate_internal", "related rate_external"]
    same(holey, columns, of_round, expected)
    same(holey, preset("lbla", NewLinkCount("external"), 4, papers_rate=True), of_round, expected)
    same(holey, preset("lbla", LinkChangeRate("all"), 4, papers_rate=True), of_round, expected)


@pytest.mark.parametrize("of_round", [2, 5, ROUNDS - 1, ROUNDS])
def test_the_leaks_of_the_authors_program_equal_the_loop(holey: FeatureInputs, of_round: int) -> None:
    both = {"papers_rate": True, "papers_leaks": True}
    expected = slow_features(holey, of_round, 4, **both)
    for columns in (everything(4, **both), preset("lbla", NewLinkCount("external"), 4, **both)):
        same(holey, columns, of_round, expected)
    known = ~np.isnan(holey.matrix((Feature("new_internal", around="related"),), of_round)).all()
    assert known == (of_round < ROUNDS), "nothing of the future is known, or the test would be empty"


def test_pages_that_were_never_seen_and_sites_of_one_page_equal_the_loop() -> None:
    known = made_up(9, 5, k=3, missing=0.85, seed=3)
    assert np.isnat(known.panel.at).all(axis=1).any()
    for of_round in (1, 3, 5):
        same(known, every_preset(3), of_round, slow_features(known, of_round, 3))


@pytest.mark.parametrize("left_out", ["related", "graph", "vectors"])
def test_what_is_not_given_is_nan(complete: FeatureInputs, left_out: str) -> None:
    features = (*everything(2), *default(HasNewLinks("all"), 2))
    poorer = replace(complete, **{left_out: None, "_cache": {}})
    same(poorer, features, 4, slow_features(poorer, 4, 2))
    if left_out == "vectors":
        assert np.isnan(poorer.matrix(vector(), 4)).all()
        same(complete, vector(), 4, slow_features(complete, 4, 2))


def test_the_past_of_a_page_worked_out_by_hand() -> None:
    known = made_up(1, 6, k=1)
    known.panel.n_new_internal[0] = [np.nan, 4, np.nan, 0, 0, 99]
    weights = 0.5 ** (np.array([3, 1, 0]) / 3)
    expected = {
        Feature("new_internal", 1): 0,
        Feature("new_internal", 3): np.nan,
        Feature("new_internal", 4): 4,
        Feature("new_internal", 5): np.nan,
        Feature("new_internal", mean_of=2): 0,
        Feature("new_internal", mean_of=8): 4 / 3,
        Feature("mean_internal", 1): 4 / 3,
        Feature("rate_internal", 1): 1 / 3,
        Feature("rate_internal"): 2 / 4,
        Feature("recent_internal", 1): 4 * weights[0] / weights.sum(),
        Feature("recent_rate_internal", 1): weights[0] / weights.sum(),
        Feature("quiet_internal", 1): 2,
        Feature("quiet_internal"): 0,
        Feature("quiet_internal", 4): 0,
        Feature("watched_internal", 1): 3,
        Feature("watched_internal", 3): 1,
    }
    assert known.matrix([*expected], 5)[0] == pytest.approx([*expected.values()], nan_ok=True)


def test_all_quantities_at_all_lags_equal_the_loop_also_those_in_no_preset(holey: FeatureInputs) -> None:
    stories = slow.all_stories(holey)
    assert set(stories[0].columns) == set(QUANTITIES)
    for around in ("", "related"):
        frames = [slow.related(holey, stories, i) if around else stories[i] for i in range(len(stories))]
        for name, quantity in QUANTITIES.items():
            expected = np.array([frame[name] for frame in frames])
            found = holey.values(name, around)  # type: ignore[arg-type]
            if quantity.of_interval:
                expected, found = expected[:, 1:], found[:, :-1]
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6, err_msg=f"{around} {name}")


@pytest.mark.parametrize("of_round", [-1, 0, ROUNDS + 1])
def test_a_round_without_past_or_beyond_the_next_is_refused(holey: FeatureInputs, of_round: int) -> None:
    with pytest.raises(ValueError, match=f"round {of_round} cannot be predicted: the panel has rounds 0 to 9"):
        holey.matrix(everything(1), of_round)


def test_a_panel_of_one_page_and_one_round_has_a_future() -> None:
    known = made_up(1, 1)
    same(known, every_preset(8), 1, slow_features(known, 1))
    assert known.matrix(everything(8), 1).shape == (1, len(everything(8)))


def test_features_of_a_made_up_web_equal_the_loop(tmp_path: Path) -> None:
    """From files to columns: related pages, vectors and graph are those of the history."""
    history = History.create(tmp_path / "h")
    for batch in batches(SynthSettings(pages=40, rounds=5, failure_rate=0.1, words_per_text=30, seed=4)):
        history.append(batch)
    panel = build(history, "7d", min_share=0.2)
    known = known_before(history, panel, 4, k=5)
    assert isinstance(known.related, related.Related)
    assert known.vectors is not None
    pages = range(0, panel.shape[0], 6)
    expected = slow_features(known, 4, 3, pages=pages).set_index(pd.Index(pages))
    features = (*every_preset(3), *static_network(page_rank=True), *vector()[: known.vectors.shape[1]])
    found = known.matrix(features, 4)[pages]
    wanted = expected[[str(feature) for feature in features]]
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
    assert np.isfinite(found).mean() > 0.7
