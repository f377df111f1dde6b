"""Pages of a topic have similar texts and behave alike, so related pages predict each other."""

import itertools

import numpy as np
import pytest

from recrawl.synth.settings import SynthSettings
from recrawl.synth.world import SynthWorld


@pytest.fixture(scope="module")
def world() -> SynthWorld:
    return SynthWorld(SynthSettings(pages=6_000, seed=2, vectors=True))


@pytest.mark.slow
def test_the_nearest_pages_predict_a_pages_link_change_rate(world) -> None:
    pages = np.arange(world.settings.pages)
    vectors = world.texts.vectors(pages, pages * 0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert vectors.shape == (6_000, 192)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -1)
    nearest = np.argpartition(-likeness, 30, axis=1)[:, :30]
    assert (world.web.topic[nearest] == world.web.topic[:, None]).mean() > 0.8
    rate = (world.behaviour.n_internal[:, 1:] > 0).mean(axis=1)
    assert np.corrcoef(rate, rate[nearest].mean(axis=1))[0, 1] > 0.5


def test_texts_of_a_topic_share_words(world) -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6_000, 300)
    same = np.array([rng.choice(np.flatnonzero(world.web.topic == world.web.topic[page])) for page in first])
    other = rng.integers(0, 6_000, 300)
    assert _cosines(world, first, same).mean() > _cosines(world, first, other).mean() + 0.2


def _cosines(world: SynthWorld, first, second):
    def bags(pages):
        words, starts = world.texts.tokens(pages, pages * 0)
        table = np.zeros((len(pages), world.settings.vocabulary))
        np.add.at(table, (np.repeat(np.arange(len(pages)), np.diff(starts)), words), 1)
        return table / np.linalg.norm(table, axis=1, keepdims=True)

    return (bags(first) * bags(second)).sum(axis=1)


def test_a_new_version_changes_a_part_of_the_words(world) -> None:
    pages = np.arange(200)
    shares = []
    for version in (1, 2, 3):
        counts = [dict(zip(*_words(world, pages, v), strict=True)) for v in (version - 1, version)]
        shares += [counts[0][page] != counts[1][page] for page in pages]
    assert all(shares)


def _words(world: SynthWorld, pages, version: int):
    words, starts = world.texts.tokens(pages, np.full(len(pages), version))
    return pages, [tuple(words[a:b]) for a, b in itertools.pairwise(starts)]
