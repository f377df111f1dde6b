"""Which links lead to relevant pages: as recorded with visits to these pages, else as a classifier judges them.

A link is judged by what is known of its page at the moment of the question (``history.as_of``), and by nothing later:

1. by the relevance recorded at the page's last visit that has one;
2. else, with a classifier, by the words that the page showed first, where the history has them;
3. else, with a classifier, by the words of its URL. If the classifier knows none of these, the link is not judged.

A link that is not judged does not count.

References: Pham, Santos and Freire (2018), section 3: r(o), the relevance of a discovered page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.core.ids import places_of
from recrawl.core.words import count
from recrawl.errors import BadOption, NotEnoughData
from recrawl.history import History, LinkSets, Timeline
from recrawl.history.keys import distinct
from recrawl.models.page_words import newest, oldest, words_of_texts
from recrawl.models.relevance import Relevance

RELEVANT = 0.5  #: above which a link counts, where nothing else is asked for
_EXAMPLE = "write recorded:0.8, or the file of a classifier, as in topic.json:0.8"
RECORDED = "recorded"  #: in the place of a classifier: only what is recorded counts
AT_ONCE = 100_000  #: URLs that are looked up and judged together


@dataclass(frozen=True, kw_only=True)
class Focus:
    """Which links count: those to pages whose relevance is above a threshold, as recorded or as a classifier predicts it."""

    above: float = RELEVANT
    model: Relevance | None = None
    source: str = RECORDED  # what the user calls it: a file

    @classmethod
    def of(cls, relevance: str | None, above: float | None = None) -> Focus | None:
        """What ``--relevance`` asks for: a classifier's file or ``recorded``, and perhaps a threshold; None: all links count.

        `above`: the threshold where the text has none. Raises `BadOption` or another error of recrawl.

        >>> Focus.of("recorded:0.8")
        Focus(above=0.8, model=None, source='recorded')
        """
        if relevance is None and above is None:
            return None
        source, threshold = _parsed(relevance or RECORDED)
        if threshold is not None and above is not None and threshold != above:
            raise BadOption(f"relevance {relevance} has the threshold {threshold:g}, and relevant-above says {above:g}")
        default = RELEVANT if above is None else above
        model = None if source == RECORDED else Relevance.load(source)
        return cls(above=default if threshold is None else threshold, model=model, source=source)

    @property
    def name(self) -> str:
        """Different for each that counts other links, wherever its classifier is kept."""
        return f"{self.model.digest if self.model else RECORDED}>{self.above!r}"

    def __str__(self) -> str:
        return f"{self.source} above {self.above:g}"

    def judged(self, history: History, link: Ints) -> LinkJudgements:
        """The judgements of some links."""
        judgements = LinkJudgements()
        judgements.add(self, history, RelevanceEvidence.of(history, self), distinct(link))
        return judgements

    def only_relevant(self, history: History, sets: LinkSets) -> LinkSets:
        """The sets with only the links that count; an error where none does."""
        judgements = self.judged(history, sets.links)
        judgements.check_any(self)
        return sets.among(judgements.relevant)


def shown_links(timeline: Timeline, until: int | None = None) -> Ints:
    """The links that visits showed, up to a moment, each once, ascending."""
    shown = timeline.links if until is None else timeline.links[timeline.at <= until]
    sets, is_shown = timeline.sets, np.zeros(len(timeline.sets.digest), np.bool_)
    is_shown[shown[shown >= 0]] = True
    return distinct(sets.links if is_shown.all() else sets.links[np.repeat(is_shown, np.diff(sets.start))])


def _parsed(text: str) -> tuple[str, float | None]:
    """A file, or `RECORDED`, and the threshold after it."""
    source, _, number = text.rpartition(":")
    if text == RECORDED or Path(text).is_file():
        return text, None
    try:
        above = float(number)
    except ValueError:
        if RECORDED in (text.lower(), source.lower()) or Path(source).is_file():
            raise BadOption(f"relevance {text!r} is not understood; {_EXAMPLE}") from None
        return text, None
    if not source:
        raise BadOption(f"relevance {text!r} is a threshold without a classifier; {_EXAMPLE}")
    if not 0 <= above <= 1:
        raise BadOption(f"the threshold {number} of {text!r} is not between 0 and 1")
    return source, above


@dataclass(frozen=True, kw_only=True)
class RelevanceEvidence:
    """What visits say of the relevance of pages."""

    page: Ints  # with a recorded relevance, ascending
    relevance: Floats  # the last one
    read: Ints  # pages whose words are known, ascending
    words: Ints  # digests of the words that each showed first

    @classmethod
    def of(cls, history: History, focus: Focus) -> RelevanceEvidence:
        """All of it that a focus needs: words are for a classifier."""
        page, relevance = newest(history.visits_with("relevance"), "relevance")
        read = words = np.empty(0, np.int64)
        if focus.model is not None:
            read, words = oldest(history.visits_with("terms"), "terms")
        return cls(page=page, relevance=relevance.astype(np.float64), read=read, words=words)

    def recorded(self, link: Ints) -> Floats:
        """The relevance recorded for the page of each link; NaN where none was."""
        return _at(self.page, self.relevance, link, np.nan)

    def basis(self, link: Ints) -> Ints:
        """What the judgement of each link rests on: 0, its URL; another number for every relevance and every text."""
        recorded = self.recorded(link)
        # Beyond 2 no number is 0, and the sum is exact: a relevance is kept with 24 bits.
        return np.where(np.isnan(recorded), _at(self.read, self.words, link, 0), (recorded + 2.0).view(np.int64))


def _at(pages: Ints, values: NDArray[Any], link: Ints, missing: float) -> NDArray[Any]:
    """The value of each link's page."""
    if not len(pages):
        return np.full(len(link), missing, values.dtype)
    place = np.minimum(np.searchsorted(pages, link), len(pages) - 1)
    return np.where(pages[place] == link, values[place], values.dtype.type(missing))


@dataclass
class LinkJudgements:
    """What was judged so far: one entry per link."""

    link: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # ids, ascending
    verdict: Ints8 = field(default_factory=lambda: np.empty(0, np.int8))  # 1: it counts; 0: it does not; -1: not judged
    basis: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # see `RelevanceEvidence`

    @property
    def relevant(self) -> Ints:
        """The links that count, ascending."""
        relevant: Ints = self.link[self.verdict == 1]
        return relevant

    @property
    def n_unjudged(self) -> int:
        """How many links are not judged."""
        return int((self.verdict < 0).sum())

    def only(self, link: Ints) -> LinkJudgements:
        """Those of some links."""
        kept = np.isin(self.link, link)
        return LinkJudgements(self.link[kept], self.verdict[kept], self.basis[kept])

    def add(self, focus: Focus, history: History, evidence: RelevanceEvidence, link: Ints) -> None:
        """Judge those of some links that were not judged yet."""
        fresh = link[places_of(self.link, link) < 0]
        if not len(fresh):
            return
        basis = evidence.basis(fresh)
        every = np.concatenate([self.link, fresh])
        order = np.argsort(every, kind="stable")
        self.link = every[order]
        self.verdict = np.concatenate([self.verdict, _verdicts(focus, history, evidence, fresh, basis)])[order]
        self.basis = np.concatenate([self.basis, basis])[order]

    def still_hold(self, focus: Focus, history: History, evidence: RelevanceEvidence) -> bool:
        """Whether all links would be judged the same by what is known now; what that rests on is brought up to date."""
        basis = evidence.basis(self.link)
        other = np.flatnonzero(basis != self.basis)
        if not len(other):
            return True
        verdict = _verdicts(focus, history, evidence, self.link[other], basis[other])
        is_same = bool(((verdict == 1) == (self.verdict[other] == 1)).all())
        self.basis, self.verdict = basis, self.verdict.copy()
        self.verdict[other] = verdict
        return is_same

    def check_any(self, focus: Focus) -> None:
        """Refuse to go on where no link counts."""
        self.check_judged(focus)
        if len(self.link) and not len(self.relevant):
            raise NotEnoughData(
                f"no link has a relevance above {focus.above:g}; lower the threshold, as in --relevance {focus.source}:0.2"
            )

    def check_judged(self, focus: Focus) -> None:
        """Refuse to go on where no link could be judged at all."""
        if not len(self.link) or self.n_unjudged < len(self.link):
            return
        links = count(len(self.link), "link")
        if focus.model is None:
            raise NotEnoughData(
                f"no link has a relevance above {focus.above:g}: no visit to any of the {links} has one; train a classifier with "
                "recrawl relevance and give it with --relevance FILE"
            )
        raise NotEnoughData(
            f"{focus.source} knows no word of any of the {links}: is it for another language? Train a classifier on examples of "
            "this collection with recrawl relevance"
        )

    def tell(self, focus: Focus, say: Callable[[str], None]) -> None:
        """Say how many links count, and how many could not be judged."""
        counted = f"{count(len(self.relevant), 'link')} of {len(self.link):,} above the relevance {focus.above:g}"
        why = "without a recorded relevance" if focus.model is None else "without a word that the classifier knows"
        unjudged = f"; {self.n_unjudged:,} {why} do not count" if self.n_unjudged else ""
        say(f"only relevant links count: {counted}{unjudged}")


def _verdicts(focus: Focus, history: History, evidence: RelevanceEvidence, link: Ints, basis: Ints) -> Ints8:
    """Whether links count; -1: not judged."""
    recorded = evidence.recorded(link)
    is_above = recorded > float(np.float32(focus.above))  # a relevance is kept with as many digits
    verdict = np.where(np.isnan(recorded), -1, is_above).astype(np.int8)
    if focus.model is None:
        return verdict
    is_open = np.isnan(recorded)
    by_words = np.flatnonzero(is_open & (basis != 0))
    if len(by_words):
        probability, knows = _by_words(focus.model, history, basis[by_words])
        verdict[by_words] = np.where(knows, probability > focus.above, -1)
    by_url = np.flatnonzero(is_open & (basis == 0))
    for low in range(0, len(by_url), AT_ONCE):
        some = by_url[low : low + AT_ONCE]
        probability, knows = _by_url(focus.model, history, link[some])
        verdict[some] = np.where(knows, probability > focus.above, -1)
    return verdict


def _by_url(model: Relevance, history: History, link: Ints) -> tuple[Floats, Flags]:
    """The classifier's prediction from URLs, and whether it knows any word of them."""
    urls = [url or "" for url in history.urls_of(link).to_pylist()]
    return model.predict(urls), model.knows(urls)


def _by_words(model: Relevance, history: History, digest: Ints) -> tuple[Floats, Flags]:
    """The classifier's prediction from texts, and whether it knows any word of them."""
    texts, place = np.unique(digest, return_inverse=True)
    counted = words_of_texts(history, texts)
    of_text = [counted.get(int(key), Counter()) for key in texts]
    knows = np.array([any(each in model.vocabulary for each in words) for words in of_text], np.bool_)
    return model.predict(of_text)[place], knows[place]


def recorded_examples(history: History, above: float = RELEVANT) -> list[tuple[str, bool]]:
    """The URL of every page that was judged, and whether it is relevant: what a classifier of unvisited links can learn from."""
    page, relevance = newest(history.visits_with("relevance"), "relevance")
    urls = history.urls_of(page).to_pylist()
    return [
        (url, bool(value > np.float32(above))) for url, value in zip(urls, relevance, strict=True) if url is not None
    ]
