"""The whole evaluation on histories that have little to offer: a sentence or a sensible row, never a traceback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recrawl import panel
from recrawl.errors import NotEnoughData
from recrawl.experiments.outlinks import evaluate
from recrawl.experiments.settings import PARTS, Settings
from recrawl.history import History
from recrawl.visits import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
QUICK = Settings(links=("internal",), seeds=(0,), quick=True, trees=3)


def history_of(folder: Path, n_pages: int, n_rounds: int, **fields: object) -> History:
    history = History.create(folder)
    history.add(
        Visit(url=f"https://e.org/{i}", at=START + timedelta(days=7 * r), **fields)  # type: ignore[arg-type]
        for i in range(n_pages)
        for r in range(n_rounds)
    )
    return history


@pytest.mark.parametrize("split", ["pages", "time"])
@pytest.mark.parametrize(
    "fields",
    [
        {"links": []},  # no text, never a new link: one class, constant features
        {"links": [], "text": "the same words on every page", "content_bytes": 9},
    ],
)
def test_pages_that_never_change_are_evaluated_nevertheless(
    tmp_path: Path, split: str, fields: dict[str, object]
) -> None:
    history = history_of(tmp_path, 24, 4, **fields)
    settings = Settings(links=("internal",), seeds=(0,), quick=True, trees=3, split=split)
    found = evaluate(history, panel.build(history), settings)
    assert set(found.rows) == set(PARTS)
    rates = [row for row in found.rows["features"] if row["learner"] == "always-zero"]
    assert rates[0]["mae"] == 0


def test_unknown_links_say_what_is_missing(tmp_path: Path) -> None:
    history = history_of(tmp_path, 24, 4, text="words without links")
    with pytest.raises(NotEnoughData, match="too few"):
        evaluate(history, panel.build(history), QUICK)


@pytest.mark.parametrize(("n_pages", "n_rounds", "sentence"), [(24, 1, "1 round;"), (1, 4, "1 page in the panel")])
def test_one_round_or_one_page_is_refused_with_a_sentence(
    tmp_path: Path, n_pages: int, n_rounds: int, sentence: str
) -> None:
    history = history_of(tmp_path, n_pages, n_rounds, links=[])
    with pytest.raises(NotEnoughData, match=sentence):
        evaluate(history, panel.build(history), QUICK)
