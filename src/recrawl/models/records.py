"""Predictions as plain records, one per page, most expected new links first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recrawl.insight.choices import OUTLINKS
from recrawl.models.around import BASES
from recrawl.models.predictor import Prediction, Predictor
from recrawl.models.reasons import reasons

AT_ONCE = 10_000


def records(
    predictor: Predictor, predictions: Mapping[Any, Prediction], kind: str, top: int | None = None
) -> Iterator[dict[str, Any]]:
    """What is expected of every page (or of the first `top`), ordered by new links of a kind, with the reasons in words."""
    first = predictions[kind]
    order = np.argsort(-first.expected, kind="stable")[:top]
    for start in range(0, len(order), AT_ONCE):
        pages = order[start : start + AT_ONCE]
        why = reasons(predictor, first, pages)
        for i, page in enumerate(pages):
            row: dict[str, Any] = {"rank": start + i + 1, "url": first.panel.url[int(page)].as_py()}
            for name, prediction in predictions.items():
                row[f"expected_new_{name}"] = round(float(prediction.expected[page]), 4)
                row[f"probability_{name}"] = round(float(prediction.probability[page]), 4)
                row[f"interval_{name}"] = [int(prediction.low[page]), int(prediction.high[page])]
            if predictor.recipe.target != OUTLINKS:
                row["target"] = predictor.recipe.target
            row["basis"] = BASES[first.basis[page]]
            row["reasons"] = [str(reason) for reason in why[i]]
            yield row
