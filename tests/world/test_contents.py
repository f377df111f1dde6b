from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.web.visit import Visit
from recrawl.world.contents import contents_of

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
URL = "https://e.org/"


def test_words_are_carried_forward_and_an_unchanged_page_says_what_it_said(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add(
        [
            Visit(url=URL, at=START, terms={"rain": 2}),
            Visit(url=URL, at=START + DAY, status=304),
            Visit(url=URL, at=START + 2 * DAY, status=503),
            Visit(url=URL, at=START + 3 * DAY, terms={"sun": 1, "rain": 1}),
        ]
    )
    contents = contents_of(history, "1d")
    assert contents.seen.tolist() == [[True, True, False, True]]
    first, last = contents.text[0, 0], contents.text[0, 3]
    assert contents.text.tolist() == [[first, first, first, last]]
    assert contents.counts[[first, last]].sum(axis=1).ravel().tolist() == [[2.0, 2.0]]
    assert first != last


def test_the_last_visit_with_words_speaks_for_its_round(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    for day in range(3):
        history.add([Visit(url=URL, at=START + day * DAY, terms={"rain": day + 1}, links=[])])
        history.add([Visit(url=URL, at=START + day * DAY + DAY / 2, links=["https://e.org/a"])])  # links alone
    contents = contents_of(history, "1d")
    assert contents.seen.all()
    assert len(set(contents.text[0].tolist())) == 3


def test_a_history_without_words_and_one_with_too_few_say_so(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    with pytest.raises(NotEnoughData, match="no visits"):
        contents_of(history)
    history.add([Visit(url=URL, at=START, links=[])])
    with pytest.raises(NotEnoughData, match="the words of no page are known"):
        contents_of(history)
    history.add([Visit(url=URL, at=START + 9 * DAY, terms={"rain": 1})])
    with pytest.raises(NotEnoughData, match="--min-share"):
        contents_of(history, "1d", min_share=0.5)
