"""Topics of news links, for the focused tables: labels by the section in a URL, and a classifier that does not see sections."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.history import History
from recrawl.models.relevance import Relevance, train, words

#: Names of sections in paths of German news sites: what the editors say that an article is about.
SECTIONS = {
    "politics": {"politik", "ausland", "bundestagswahl", "netzpolitik"},
    "sport": {"sport", "fussball", "bundesliga", "formel1", "tennis"},
    "other": {
        "wirtschaft", "panorama", "kultur", "unterhaltung", "auto", "reise", "wissen", "wissenschaft", "gesundheit", "ratgeber",
        "regional", "regionales", "lifestyle", "geld", "finanzen", "digital", "netzwelt", "geschichte", "gesellschaft",
        "vermischtes", "blaulicht", "leben", "karriere", "stil", "campus", "arbeit", "kino", "leute", "tv", "muenchen", "bayern",
    },
}  # fmt: skip
MOST = 20_000  #: links that a classifier is trained on
EVERY_SECTION = frozenset().union(*SECTIONS.values())


def topic_of(url: str) -> str | None:
    """The topic by the first section that the path names; None: it names none that is known."""
    for name in urlsplit(url).path.lower().split("/")[:-1]:
        for topic, sections in SECTIONS.items():
            if name in sections:
                return topic
    return None


def without_sections(url: str) -> str:
    """The words of a URL but for names of sections: its host and its headline."""
    return " ".join(word for word in words(url) if word not in EVERY_SECTION)


@dataclass(frozen=True)
class Judged:
    """A classifier of a topic, and how good it is on labelled links that it was not trained on."""

    model: Relevance
    n_trained: int
    n_tested: int
    n_unlabelled: int  # links whose URL names no section: only the classifier judges them
    share: float  # of the labelled links, that belong to the topic
    precision: float
    recall: float
    balanced: float


def classifier(history: History, link: Ints, topic: str) -> Judged:
    """Train on half of the labelled links, by their hash; measure on the other half."""
    link = np.sort(link)  # ids are hashes: the first ones are a sample, the same however the history is stored
    urls = [url or "" for url in history.urls_of(link).to_pylist()]
    topics = [topic_of(url) for url in urls]
    is_labelled = np.array([each is not None for each in topics])
    is_on = np.array([each == topic for each in topics])
    half: Flags = (link & 1).astype(np.bool_)
    training = np.flatnonzero(is_labelled & half)[:MOST]
    test = np.flatnonzero(is_labelled & ~half)
    model = train([without_sections(urls[i]) for i in training], is_on[training], folds=2)
    said = model.predict([urls[i] for i in test]) > 0.5
    truth = is_on[test]
    recall, rejected = float(said[truth].mean()), float((~said[~truth]).mean())
    return Judged(
        model=model,
        n_trained=len(training),
        n_tested=len(test),
        n_unlabelled=int((~is_labelled).sum()),
        share=float(is_on[is_labelled].mean()),
        precision=float(truth[said].mean()),
        recall=recall,
        balanced=(recall + rejected) / 2,
    )
