"""The texts of the pages: words by topic, semantic vectors, titles and sizes; any version of any page, in any order.

A text is drawn from three Zipf-distributed vocabularies: common words, those of the topic's field, and those of the
topic. A new version replaces a part of the words, a small one on some pages and a large one on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.array_hashing import hash64_slices, hash64_strings
from recrawl.core.arrays import Floats, Floats32, Ints, Ints32
from recrawl.synth.chance import scatter, stream
from recrawl.synth.web import Web
from recrawl.synth.words import vocabulary

DIMENSIONS = 192  # of a semantic vector (Dang et al. 2022, section 5.2)
_COMMON, _TOPICAL = 1_000, 400  # words of a vocabulary
_DRAWS = 4096  # resolution of the Zipf tables
_FIELD_WEIGHT, _TOPIC_WEIGHT, _SECTION_WEIGHT, _PAGE_WEIGHT, _VERSION_WEIGHT = 0.45, 0.75, 0.35, 0.35, 0.1
_BYTES_PER_WORD = 7
_PURPOSE_LENGTH, _PURPOSE_QUALITY, _PURPOSE_MARKUP, _PURPOSE_TITLE, _PURPOSE_WORDS = range(11, 16)


@dataclass(frozen=True)
class WordCounts:
    """The words of many texts: those of text i are ``terms[starts[i]:starts[i + 1]]``, ascending."""

    terms: Ints  # ids
    counts: Ints32
    starts: Ints


class Texts:
    """The texts of all pages; (page, version) names one of them."""

    def __init__(self, web: Web) -> None:
        rng = stream(web.settings.seed, "text")
        self.web, self.seed = web, web.settings.seed
        self.vocabulary = vocabulary(web.settings.vocabulary)
        self.term_ids = hash64_strings(self.vocabulary)
        lengths = web.settings.words_per_text * rng.lognormal(-0.32, 0.8, web.n_pages)
        self._n_words = np.clip(lengths, 20, 5_000)
        self._cycle = rng.choice(np.array([1, 2, 4, 8]), web.n_pages)  # versions until all that changes has changed
        self._topic_center = _unit(rng.standard_normal((len(web.field), DIMENSIONS)))
        self._field_center = _unit(rng.standard_normal((web.field[-1] + 1, DIMENSIONS)))

    def n_words(self, page: Ints, version: Ints) -> Ints:
        """Length in words; versions differ by a few percent."""
        drift = 0.97 + 0.06 * self._chance(page, version, _PURPOSE_LENGTH)
        return np.asarray(self._n_words[page] * drift).astype(np.int64)

    def text_bytes(self, page: Ints, version: Ints) -> Ints:
        """Size of the visible text."""
        return self.n_words(page, version) * _BYTES_PER_WORD

    def content_bytes(self, page: Ints, version: Ints, n_links: Ints) -> Ints:
        """Size of the whole page: text, links, and markup of the page's style."""
        markup = 2 + 10 * self._chance(page, page * 0, _PURPOSE_MARKUP) ** 2
        return np.asarray(4_000 + self.text_bytes(page, version) * markup + 90 * n_links).astype(np.int64)

    def quality(self, page: Ints, version: Ints) -> Floats32:
        """Text quality between 0 and 1, mostly high."""
        own, now = (self._chance(page, which, _PURPOSE_QUALITY) for which in (page * 0, version + 1))
        return np.clip(0.3 + 0.65 * np.sqrt(own) + 0.04 * (now - 0.5), 0, 1).astype(np.float32)

    def titles(self, page: Ints) -> pa.Array:
        """Three words, two of them from the topic's vocabulary."""
        topic = self.web.topic[page] * _TOPICAL
        ranks = (scatter(page, _PURPOSE_TITLE + 10 * i) % _TOPICAL for i in (1, 2))
        indices = [scatter(topic + rank, _PURPOSE_WORDS) % self.web.settings.vocabulary for rank in ranks]
        indices.append(scatter(page, _PURPOSE_TITLE) % self.web.settings.vocabulary)
        return pc.binary_join_element_wise(*(pc.utf8_title(self.vocabulary.take(pa.array(i))) for i in indices), " ")

    def tokens(self, page: Ints, version: Ints) -> tuple[Ints, Ints]:
        """The words of each text in order, as indices into the vocabulary, and where each text starts."""
        starts = np.r_[0, np.cumsum(self.n_words(page, version))]
        topic = self.web.topic[page]
        tables = (_zipf(_COMMON), _zipf(_TOPICAL))
        words = _tokens(
            starts,
            page,
            version,
            self._cycle[page],
            topic,
            self.web.field[topic],
            self.seed,
            *tables,
            len(self.vocabulary),
        )
        return np.asarray(words), starts

    def word_counts(self, page: Ints, version: Ints) -> WordCounts:
        """The words of each text with their counts."""
        words, starts = self.tokens(page, version)
        return WordCounts(*_count(self.term_ids[words], starts))

    def vectors(self, page: Ints, version: Ints) -> Floats32:
        """A unit vector per text: near to those of its section, its topic and its field."""
        topic = self.web.topic[page]
        center = _TOPIC_WEIGHT * self._topic_center[topic] + _FIELD_WEIGHT * self._field_center[self.web.field[topic]]
        vectors = np.ascontiguousarray(center, np.float32)
        _scatter_around(vectors, self.web.section[page], page, version, self.seed)
        return vectors

    def _chance(self, page: Ints, version: Ints, purpose: int) -> Floats:
        mixed = scatter(scatter(page, purpose + (self.seed << 8)) + version, purpose)
        return (mixed >> 11) / 2.0**52


def text_digests(words: WordCounts, vectors: Floats32 | None) -> Ints:
    """`recrawl.history.digests.terms_digest` of many texts."""
    n_words = np.diff(words.starts)
    n_vector = 0 if vectors is None else 4 * vectors.shape[1]
    starts = np.r_[0, np.cumsum(12 * n_words + n_vector)]
    data = np.empty(starts[-1], np.uint8)
    _copy_bytes(data, starts[:-1], words.terms.view(np.uint8), 8 * words.starts)
    _copy_bytes(data, starts[:-1] + 8 * n_words, words.counts.view(np.uint8), 4 * words.starts)
    if vectors is not None:
        _copy_bytes(
            data, starts[1:] - n_vector, vectors.reshape(-1).view(np.uint8), n_vector * np.arange(len(n_words) + 1)
        )
    return hash64_slices(data, starts)


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _zipf(size: int) -> Ints:
    """Ranks such that a uniform draw from the table is Zipf-distributed."""
    cumulated = np.cumsum(1 / np.arange(1, size + 1))
    return np.searchsorted(cumulated / cumulated[-1], (np.arange(_DRAWS) + 0.5) / _DRAWS)


# -- kernels ----------------------------------------------------------------------------------------------------------

_jit = numba.njit(cache=True, nogil=True)


def _mix_py(a: int, b: int) -> int:
    """`chance.scatter` of one number."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]


_mix = _jit(_mix_py)


def _tokens_py(
    starts: Any,
    page: Any,
    version: Any,
    cycle: Any,
    topic: Any,
    field: Any,
    seed: int,
    common: Any,
    topical: Any,
    n_words: int,
) -> Any:
    words = np.empty(starts[-1], np.int64)
    for i in range(len(page)):
        own = _mix(page[i], seed)
        # The first word counts the versions, so that two versions in a row are never the same text.
        words[starts[i]] = (own + version[i]) % n_words
        for k in range(1, starts[i + 1] - starts[i]):
            # Two words in five change, each in its turn.
            written = version[i] - (version[i] - k // 5) % cycle[i] if k % 5 < 2 else 0
            x = _mix(own + k, written + 1_000)
            kind, draw = x & 255, (x >> 8) & 4095
            if kind < 77:
                words[starts[i] + k] = common[draw]
            elif kind < 141:
                words[starts[i] + k] = _mix(field[i] * _TOPICAL + topical[draw], _PURPOSE_WORDS + 100) % n_words
            else:
                words[starts[i] + k] = _mix(topic[i] * _TOPICAL + topical[draw], _PURPOSE_WORDS) % n_words
    return words


_tokens = _jit(_tokens_py)


def _count_py(ids: Any, starts: Any) -> Any:
    """Sort the ids of each text and count equal ones."""
    terms, counts = np.empty_like(ids), np.empty(len(ids), np.int32)
    ends = np.zeros(len(starts), np.int64)
    n = 0
    for i in range(len(starts) - 1):
        ordered = np.sort(ids[starts[i] : starts[i + 1]])
        for k in range(len(ordered)):
            if k == 0 or ordered[k] != ordered[k - 1]:
                terms[n], counts[n] = ordered[k], 0
                n += 1
            counts[n - 1] += 1
        ends[i + 1] = n
    return terms[:n].copy(), counts[:n].copy(), ends


_count = _jit(_count_py)


def _noise_py(a: int, b: int, j: int) -> float:
    """Nearly normal with mean 0 and deviation 1: the sum of four 15-bit uniforms."""
    x = _mix(a + j, b)
    total = (x & 32767) + ((x >> 15) & 32767) + ((x >> 30) & 32767) + ((x >> 45) & 32767)
    return (total / 32767.0 - 2.0) * 1.7320508


_noise = _jit(_noise_py)


def _scatter_around_py(center: Any, section: Any, page: Any, version: Any, seed: int) -> None:
    for i in range(center.shape[0]):
        of_section, own = _mix(section[i], seed + 7), _mix(page[i], seed + 8)
        norm = 0.0
        for j in range(center.shape[1]):
            drift = _VERSION_WEIGHT * _noise(own, version[i] + 2, j)
            noise = _SECTION_WEIGHT * _noise(of_section, 0, j) + _PAGE_WEIGHT * _noise(own, 1, j) + drift
            center[i, j] += noise / np.sqrt(center.shape[1])
            norm += center[i, j] ** 2
        for j in range(center.shape[1]):
            center[i, j] /= np.sqrt(norm)


_scatter_around = _jit(_scatter_around_py)


def _copy_bytes_py(out: Any, at: Any, source: Any, starts: Any) -> None:
    for i in range(len(at)):
        for k in range(starts[i + 1] - starts[i]):
            out[at[i] + k] = source[starts[i] + k]


_copy_bytes = _jit(_copy_bytes_py)
