"""Features of related pages by time: no round knows what comes after it, nor itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from recrawl.history import History
from recrawl.insight.features import FeatureInputs, known_before, look_back_look_around
from recrawl.insight.features.assemble import related_over_time
from recrawl.insight.series.alike import alike_pages
from recrawl.insight.targets import NewLinkCount
from recrawl.synth import SynthSettings, batches
from recrawl.world.panel import Panel, build

COLUMNS = look_back_look_around(NewLinkCount("all"))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    made = History.create(tmp_path_factory.mktemp("made") / "history")
    for batch in batches(SynthSettings(pages=40, rounds=14, every=timedelta(days=7), terms=False)):
        made.append(batch)
    return made


@pytest.fixture(scope="module")
def panel(history: History) -> Panel:
    return build(history, "crawl", 0.0)


def shuffled(panel: Panel, since: int) -> Panel:
    """The same panel in which the pages have swapped what they gain from a round on."""
    order = np.random.default_rng(1).permutation(panel.shape[0])

    def mixed(values: np.ndarray) -> np.ndarray:
        return np.hstack([values[:, :since], values[order][:, since:] + 3])

    return replace(panel, n_new_internal=mixed(panel.n_new_internal), n_new_external=mixed(panel.n_new_external))


@pytest.mark.parametrize("by", ["correlation", "dtw"])
def test_features_of_a_round_stay_the_same_if_it_and_all_later_rounds_are_shuffled(
    history: History, panel: Panel, by: str
) -> None:
    for of_round in (7, 10, 14):
        known, other = (
            known_before(history, seen, 14, COLUMNS, k=5, related_by=by) for seen in (panel, shuffled(panel, of_round))
        )
        for r in range(1, of_round + 1):
            np.testing.assert_array_equal(known.matrix(COLUMNS, r), other.matrix(COLUMNS, r))


def test_every_round_uses_the_pages_that_moved_alike_before_it(history: History, panel: Panel) -> None:
    known = known_before(history, panel, 14, COLUMNS, k=5, related_by="correlation")
    times = related_over_time(panel, 14, 5, "correlation")
    assert [each.of_round for each in times] == [6, 7, 8, 9, 10, 11, 12, 14]
    new = panel.n_new_internal + panel.n_new_external
    for of_round, determined in ((14, 14), (13, 12), (6, 6)):
        plain = FeatureInputs(panel, alike_pages(new[:, :determined], 5, "correlation"))
        np.testing.assert_array_equal(known.matrix(COLUMNS, of_round), plain.matrix(COLUMNS, of_round))
    nothing = FeatureInputs(panel)
    np.testing.assert_array_equal(known.matrix(COLUMNS, 5), nothing.matrix(COLUMNS, 5))


def test_a_short_history_has_no_related_pages_by_time(history: History, panel: Panel) -> None:
    known = known_before(history, panel.window(0, 4), 3, COLUMNS, related_by="dtw")
    assert known.related is None
    assert np.isnan(known.matrix(COLUMNS, 3)[:, -1]).all()
