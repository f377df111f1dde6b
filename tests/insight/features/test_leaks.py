"""Nothing may leak: whatever happens from the predicted round on, the features known before it stay the same to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.history import History
from recrawl.insight.choices import LINKS
from recrawl.insight.features import (
    Feature,
    FeatureInputs,
    Features,
    default,
    everything,
    known_before,
    now,
    past,
    static_network,
    summaries,
    vector,
)
from recrawl.insight.features.quantities import QUANTITIES
from recrawl.insight.features.sets import related_rates
from recrawl.insight.targets import ALL
from recrawl.synth import SynthSettings, batches
from recrawl.web.visit import Visit
from recrawl.world.panel import build

START = datetime(2026, 1, 5, tzinfo=UTC)
WEEK = timedelta(days=7)
ROUNDS = 7
WORDS = np.array([f"word{i}" for i in range(60)])
PAGES = [f"https://site{i % 5}.org/{'' if i < 5 else i}" for i in range(40)]

Page = dict[str, Any]


def preset_columns() -> Features:
    sets = [everything(8), static_network(page_rank=True), vector()]
    targets = [target(links) for target in ALL for links in LINKS]
    sets += [columns(target) for target in targets for columns in (default, summaries)]
    return tuple(dict.fromkeys(column for features in sets for column in features))


def every_lag() -> Features:
    """Every quantity at every lag: its own, of related pages and of the site."""
    lags = [feature for around in ("", "related", "site") for feature in all_of(around)]
    return (*preset_columns(), *(feature for feature in lags if not feature.leaks))


def all_of(around: Any) -> Iterator[Feature]:
    """But not of a site what pages have before they are seen: that would count pages to come; no set of features asks for it."""
    for name in QUANTITIES:
        if around == "site" and name.startswith("shrunk_"):
            continue
        yield from (Feature(name, lag, around) for lag in range(ROUNDS))
        yield Feature(name, 0, around, mean_of=3)


def visits(seed: int, rounds: range, pages: list[str], given_vectors: bool) -> Iterator[Visit]:
    """Pages on a few topics that gain links and words; one in ten is not visited, one in ten answers with an error."""
    for page, url in enumerate(pages):
        for r in rounds:
            rng = np.random.default_rng([seed, page, r])
            fate = rng.random()
            if fate < 0.1:
                continue
            at = START + r * WEEK + timedelta(hours=float(rng.uniform(0, 160)))
            version = np.random.default_rng([seed, page, rng.integers(2)])
            words = version.choice(WORDS[page % 4 * 15 : page % 4 * 15 + 20], 30)
            changing = [f"https://site{page % 5}.org/in{rng.integers(2)}", f"https://out.org/{rng.integers(2)}"]
            fixed = [PAGES[(page * 7 + i * i) % len(PAGES)] for i in range(1, 5)]
            yield Visit(
                url=url,
                at=at,
                status=503 if fate < 0.2 else 200,
                text=" ".join(words),
                links=[*fixed, *changing, *rng.choice(pages, rng.integers(0, 2))],
                content_bytes=int(rng.integers(100, 10_000)),
                text_bytes=int(rng.integers(100, 1_000)),
                text_quality=float(rng.random()),
                vector=rng.normal(size=24).tolist() if given_vectors else None,
            )


def known(
    folder: Path, of_round: int, seed_of_future: int, new: list[str], given_vectors: bool = False
) -> FeatureInputs:
    """What is known before a round of a history in which the rounds from it on are made from another seed."""
    history = History.create(folder)
    history.add(visits(0, range(of_round), PAGES[:30], given_vectors))
    history.add(visits(seed_of_future, range(of_round, ROUNDS), PAGES + new, given_vectors))
    ends = [START + r * WEEK for r in range(1, ROUNDS + 1)]
    return known_before(history, build(history, ends, min_share=0), of_round, k=5)


def of_pages(known: FeatureInputs, features: Features, of_round: int, pages: np.ndarray) -> np.ndarray:
    return known.matrix(features, of_round)[np.searchsorted(known.panel.page, pages)]


def seen_before(known: FeatureInputs, of_round: int) -> np.ndarray:
    return known.panel.page[~np.isnat(known.panel.at[:, :of_round]).all(axis=1)]


def assert_same(features: Features, first: np.ndarray, second: np.ndarray) -> None:
    changed = [
        str(feature)
        for feature, a, b in zip(features, first.T, second.T, strict=True)
        if not np.array_equal(a, b, equal_nan=True)
    ]
    assert not changed


NOISE = [f"https://{name}/" for name in ("site1.org/new", "site1.org/newer", "new.org", "newer.org", "site0.org/other")]


@pytest.fixture(scope="module", params=[1, 3, 6], ids=lambda r: f"round {r}")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, FeatureInputs, FeatureInputs]:
    """The truth, and noise in its place: other texts, links and sizes, other pages, and home pages of new hosts."""
    folder, r = tmp_path_factory.mktemp("leaks"), request.param
    return r, known(folder / "true", r, 1, []), known(folder / "noise", r, 2, NOISE)


def test_features_do_not_know_what_comes(both: tuple[int, FeatureInputs, FeatureInputs]) -> None:
    r, truth, noise = both
    pages = seen_before(truth, r)
    assert set(pages) == set(seen_before(noise, r))
    assert truth.panel.shape[0] != noise.panel.shape[0]
    features = every_lag()
    found = of_pages(truth, features, r, pages)
    assert_same(features, found, of_pages(noise, features, r, pages))
    wanted = preset_columns() if r == 6 else ()
    unknown = [str(f) for f, column in zip(features, found.T, strict=True) if f in wanted and np.isnan(column).all()]
    assert set(unknown) <= {f"{name} -{lag}" for lag in (6, 7, 8) for name in all_names()}, (
        "or it would be an easy test"
    )


def all_names() -> set[str]:
    return {around + name for around in ("", "related ", "site ") for name in QUANTITIES}


def test_earlier_rounds_do_not_know_either(both: tuple[int, FeatureInputs, FeatureInputs]) -> None:
    """What a model learns from."""
    r, truth, noise = both
    pages = seen_before(truth, r)
    for earlier in range(1, r):
        first, second = (of_pages(known, every_lag(), earlier, pages) for known in (truth, noise))
        assert_same(every_lag(), first, second)


def test_the_papers_rates_of_related_pages_do_know_it(both: tuple[int, FeatureInputs, FeatureInputs]) -> None:
    r, truth, noise = both
    pages = seen_before(truth, r)
    leaking = related_rates(papers_rate=True)
    assert all(feature.leaks for feature in leaking)
    first, second = (of_pages(known, leaking, r, pages) for known in (truth, noise))
    assert [str(f) for f, a, b in zip(leaking, first.T, second.T, strict=True) if (a != b).any()] == [
        "related rate_internal",
        "related rate_external",
    ]


def test_whatever_is_said_to_leak_does(both: tuple[int, FeatureInputs, FeatureInputs]) -> None:
    """Or the word would be of no use: all quantities of the predicted interval, save counts of visits that both made."""
    r, truth, noise = both
    pages = seen_before(truth, r)
    leaking = tuple(feature for feature in now(*QUANTITIES) if feature.leaks)
    first, second = (of_pages(known, leaking, r, pages) for known in (truth, noise))
    equal = [str(f) for f, a, b in zip(leaking, first.T, second.T, strict=True) if np.array_equal(a, b, equal_nan=True)]
    assert not equal


def test_noise_does_change_the_round_after(both: tuple[int, FeatureInputs, FeatureInputs]) -> None:
    """Or the histories would not differ enough to show a leak."""
    r, truth, noise = both
    pages = seen_before(truth, r)
    features = past(now(*QUANTITIES), [1])
    if r + 1 <= ROUNDS:
        first, second = (of_pages(known, now("content_bytes", "n_internal"), r + 1, pages) for known in (truth, noise))
        assert (first != second).any(axis=0).all()
        first, second = (of_pages(known, features, r + 1, pages) for known in (truth, noise))
        assert not np.array_equal(first, second, equal_nan=True)


def test_vectors_that_came_with_the_data_do_not_know_what_comes(tmp_path: Path) -> None:
    truth, noise = known(tmp_path / "a", 3, 1, [], True), known(tmp_path / "b", 3, 2, NOISE, True)
    assert truth.vectors is not None
    assert truth.vectors.shape[1] == 20
    pages, features = seen_before(truth, 3), preset_columns()
    assert_same(features, of_pages(truth, features, 3, pages), of_pages(noise, features, 3, pages))


def test_a_history_that_ends_before_the_round_gives_the_same_features(tmp_path: Path) -> None:
    """A made-up web with deaths, failures and unchanged answers: predicting round r later is as good as predicting it then."""
    history = History.create(tmp_path / "h")
    settings = SynthSettings(pages=60, rounds=6, failure_rate=0.1, death_rate=0.05, words_per_text=30)
    for batch in batches(settings):
        history.append(batch)
    features = preset_columns()
    r, ends = 4, [settings.start + i * WEEK for i in range(1, 7)]
    later = known_before(history, build(history, ends, min_share=0), r, k=5)
    past_history = history.as_of(ends[r - 1])
    then = known_before(past_history, build(past_history, ends[:r], min_share=0), r, k=5)
    assert then.panel.shape[1] == r, "the predicted round is the future"
    pages = then.panel.page
    assert_same(features, of_pages(then, features, r, pages), of_pages(later, features, r, pages))
