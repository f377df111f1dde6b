"""Whether a page belongs to the user's topic, by its URL or its text: TF-IDF and logistic regression.

The model is a file of plain JSON: words and their weights, and nothing that could be executed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from recrawl.core.arrays import Flags, Floats
from recrawl.core.files import write_bytes
from recrawl.errors import BadModel, NotEnoughData, RecrawlError

MAX_WORDS = 50_000
MAX_BYTES = 64 << 20  #: of a file with a classifier
_WORD = re.compile(r"[^\W_]{2,}")
_ENDING = re.compile(r"^[a-z]+://[^/?#]*?\.([^./?#:]+)(?=[:/?#]|$)")  # the last name of the host: com, org, de


def words(text: str) -> list[str]:
    """Words of a text or a URL, in lower case, without the scheme and ``www``.

    >>> words("https://www.e.org/news/Oil-spill_2024")
    ['org', 'news', 'oil', 'spill', '2024']
    """
    return [word for word in _WORD.findall(text.lower()) if word not in ("http", "https", "www")]


def telling(url: str) -> list[str]:
    """The words of a URL that say something of its page: not numbers, and not the last name of the host.

    >>> telling("https://www.e.org/news/oil-spill/2024")
    ['news', 'oil', 'spill']
    """
    plain = url.lower()
    ending = _ENDING.match(plain)
    text = plain if ending is None else plain[: ending.start(1)] + plain[ending.end(1) :]
    return [word for word in words(text) if not word.isdigit()]


@dataclass(frozen=True)
class Relevance:
    """A trained classifier: the probability that a page is relevant is logistic in the weighted words of its text or URL."""

    vocabulary: dict[str, int]
    idf: Floats
    weight: Floats
    intercept: float
    n_positive: int = 0
    n_negative: int = 0
    accuracy: float | None = None  # balanced, by cross-validation

    def predict(self, texts: Sequence[str | Counter[str]]) -> Floats:
        """The probability of each text, URL or count of words; that of an empty one follows from the intercept."""
        return np.array([self._of(text if isinstance(text, Counter) else Counter(words(text))) for text in texts])

    def knows(self, urls: Sequence[str]) -> Flags:
        """Whether it has learnt any word that says something of each page; else it would only say how common the topic is."""
        vocabulary = self.vocabulary
        return np.array([any(word in vocabulary for word in telling(url)) for url in urls], np.bool_)

    def _of(self, counts: Counter[str]) -> float:
        at = [(self.vocabulary[word], n) for word, n in counts.items() if word in self.vocabulary]
        index = np.array([i for i, _ in at], np.int64)
        tfidf = (1.0 + np.log([n for _, n in at])) * self.idf[index] if at else np.empty(0)
        norm = float(np.linalg.norm(tfidf)) or 1.0
        return float(1.0 / (1.0 + np.exp(-(self.intercept + tfidf @ self.weight[index] / norm))))

    def to_bytes(self) -> bytes:
        """The model as JSON."""
        content: dict[str, Any] = {
            "kind": "recrawl relevance",
            "words": list(self.vocabulary),
            "idf": self.idf.tolist(),
            "weight": self.weight.tolist(),
            "intercept": self.intercept,
            "n_positive": self.n_positive,
            "n_negative": self.n_negative,
            "accuracy": self.accuracy,
        }
        return orjson.dumps(content)

    @cached_property
    def digest(self) -> str:
        """A short text that is different for models that judge differently."""
        return xxhash.xxh64_hexdigest(self.to_bytes())

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        try:
            write_bytes(path, self.to_bytes())
        except OSError as error:
            raise RecrawlError(f"cannot write {path}: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Relevance:
        """Read it again."""
        try:
            with Path(path).open("rb") as file:
                return cls.from_bytes(file.read(MAX_BYTES + 1), path)
        except FileNotFoundError:
            raise BadModel(
                f"there is no file {path}; make one with: recrawl relevance --labels FILE --out {path}"
            ) from None
        except OSError as error:
            raise BadModel(f"cannot read {path}: {error.strerror or error}") from error

    @classmethod
    def from_bytes(cls, data: bytes, name: str | Path = "this") -> Relevance:
        """The model that `to_bytes` wrote."""
        try:
            if len(data) > MAX_BYTES:
                raise ValueError("it is too large")
            content = orjson.loads(data)
            vocabulary = {str(word): i for i, word in enumerate(content["words"])}
            idf, weight = (np.array(content[name], np.float64) for name in ("idf", "weight"))
            if content["kind"] != "recrawl relevance" or not (len(vocabulary),) == idf.shape == weight.shape:
                raise ValueError("its lists differ in length")
            accuracy = content["accuracy"]
            numbers = [*idf, *weight, float(content["intercept"]), 0.0 if accuracy is None else float(accuracy)]
            if not np.isfinite(numbers).all():
                raise ValueError("it holds a value that is no number")
            if not all(0 <= content[name] < 1 << 53 for name in ("n_positive", "n_negative")):
                raise ValueError("its numbers of examples are none")
            return cls(
                vocabulary=vocabulary,
                idf=idf,
                weight=weight,
                intercept=float(content["intercept"]),
                n_positive=int(content["n_positive"]),
                n_negative=int(content["n_negative"]),
                accuracy=None if accuracy is None else float(accuracy),
            )
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise BadModel(
                f"{name} is not a relevance classifier of recrawl; make one with: recrawl relevance"
            ) from error


def train(texts: Iterable[str], labels: Iterable[bool], seed: int = 0, folds: int = 5) -> Relevance:
    """Learn from labelled texts or URLs; the balanced accuracy is measured by cross-validation."""
    texts, truth = list(texts), np.array(list(labels), np.bool_)
    n_positive, n_negative = int(truth.sum()), int((~truth).sum())
    if min(n_positive, n_negative) < 2:
        raise NotEnoughData(
            f"{n_positive} relevant and {n_negative} irrelevant examples: at least two of each are needed to learn the "
            "difference; --labels FILE adds some"
        )
    model = _fitted(texts, truth, seed)
    n_folds = min(folds, n_positive, n_negative)
    return Relevance(
        **model, n_positive=n_positive, n_negative=n_negative, accuracy=_validated(texts, truth, seed, n_folds)
    )


def _fitted(texts: list[str], truth: Flags, seed: int) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True, max_features=MAX_WORDS)
    x = vectorizer.fit_transform(texts)
    model = LogisticRegression(class_weight="balanced", C=10.0, max_iter=1000, random_state=seed).fit(x, truth)
    return {
        "vocabulary": {str(word): i for i, word in enumerate(vectorizer.get_feature_names_out())},
        "idf": vectorizer.idf_,
        "weight": model.coef_[0],
        "intercept": float(model.intercept_[0]),
    }


def _validated(texts: list[str], truth: Flags, seed: int, folds: int) -> float:
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold

    probability = np.zeros(len(truth))
    for training, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(texts, truth):
        model = Relevance(**_fitted([texts[i] for i in training], truth[training], seed))
        probability[test] = model.predict([texts[i] for i in test])
    return float(balanced_accuracy_score(truth, probability > 0.5))
