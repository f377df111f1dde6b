"""Does a page belong to the user's topic? Told from its URL, or from its text, by TF-IDF and logistic regression.

The model is a file of plain JSON: words, their weights and nothing that could be run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from recrawl.core.arrays import Flags, Floats
from recrawl.errors import NotEnoughData, RecrawlError

MAX_WORDS = 50_000
_WORD = re.compile(r"[^\W_]{2,}")


def words(text: str) -> list[str]:
    """Words of a text or a URL, in lower case; the scheme and ``www`` say nothing.

    >>> words("https://www.e.org/news/Oil-spill_2024")
    ['org', 'news', 'oil', 'spill', '2024']
    """
    return [word for word in _WORD.findall(text.lower()) if word not in ("http", "https", "www")]


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
        """The probability of each text, URL or count of words; that of an empty one is what the intercept says."""
        return np.array([self._one(text if isinstance(text, Counter) else Counter(words(text))) for text in texts])

    def _one(self, counts: Counter[str]) -> float:
        at = [(self.vocabulary[word], n) for word, n in counts.items() if word in self.vocabulary]
        index = np.array([i for i, _ in at], np.int64)
        tfidf = (1.0 + np.log([n for _, n in at])) * self.idf[index] if at else np.empty(0)
        norm = float(np.linalg.norm(tfidf)) or 1.0
        return float(1.0 / (1.0 + np.exp(-(self.intercept + tfidf @ self.weight[index] / norm))))

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        told: dict[str, Any] = {
            "kind": "recrawl relevance",
            "words": list(self.vocabulary),
            "idf": self.idf.tolist(),
            "weight": self.weight.tolist(),
            "intercept": self.intercept,
            "n_positive": self.n_positive,
            "n_negative": self.n_negative,
            "accuracy": self.accuracy,
        }
        try:
            Path(path).write_bytes(orjson.dumps(told))
        except OSError as error:
            raise RecrawlError(f"cannot write {path}: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Relevance:
        """Read it again."""
        try:
            told = orjson.loads(Path(path).read_bytes())
            vocabulary = {str(word): i for i, word in enumerate(told["words"])}
            idf, weight = (np.array(told[name], np.float64) for name in ("idf", "weight"))
            if told["kind"] != "recrawl relevance" or not len(vocabulary) == len(idf) == len(weight):
                raise ValueError("its lists do not fit each other")
            counts = (int(told["n_positive"]), int(told["n_negative"]), told["accuracy"])
            return cls(vocabulary, idf, weight, float(told["intercept"]), *counts)
        except FileNotFoundError:
            raise RecrawlError(
                f"there is no file {path}; make one with: recrawl relevance --labels FILE --out {path}"
            ) from None
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise RecrawlError(f"{path} is no relevance classifier of recrawl ({error})") from error


def train(texts: Iterable[str], labels: Iterable[bool], seed: int = 0, folds: int = 5) -> Relevance:
    """Learn from labelled texts or URLs; its balanced accuracy is measured by cross-validation where there are enough."""
    texts, truth = list(texts), np.array(list(labels), np.bool_)
    n_positive, n_negative = int(truth.sum()), int((~truth).sum())
    if min(n_positive, n_negative) < 2:
        raise NotEnoughData(
            f"{n_positive} relevant and {n_negative} irrelevant examples: at least two of each are needed to learn the difference"
        )
    model = _fitted(texts, truth, seed)
    n_folds = min(folds, n_positive, n_negative)
    return Relevance(
        **model, n_positive=n_positive, n_negative=n_negative, accuracy=_validated(texts, truth, seed, n_folds)
    )


def _fitted(texts: list[str], truth: Flags, seed: int) -> dict[str, Any]:
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

    told = np.zeros(len(truth))
    for teach, ask in StratifiedKFold(folds, shuffle=True, random_state=seed).split(texts, truth):
        model = Relevance(**_fitted([texts[i] for i in teach], truth[teach], seed))
        told[ask] = model.predict([texts[i] for i in ask])
    return float(balanced_accuracy_score(truth, told > 0.5))
