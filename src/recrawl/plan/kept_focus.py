"""Which links a plan counted, kept with it: its classifier is kept beside the history, so that plans can be scored by it."""

from __future__ import annotations

import orjson

from recrawl.errors import HistoryError, NotEnoughData
from recrawl.history import History
from recrawl.models.link_relevance import Focus
from recrawl.models.relevance import Relevance


def keep_focus(history: History, focus: Focus | None) -> str | None:
    """A text from which `kept_focus` makes the focus again; None: all links count."""
    if focus is None:
        return None
    digest = None
    if focus.model is not None:
        digest = focus.model.digest
        if not history.beside.exists(_file(digest)):
            history.beside.write_bytes(_file(digest), focus.model.to_bytes())
    return orjson.dumps({"above": focus.above, "model": digest, "source": focus.source}).decode()


def kept_focus(history: History, text: str | None) -> Focus | None:
    """The focus of a plan; raises `NotEnoughData` where its classifier is gone, `HistoryError` where the text is damaged."""
    if text is None:
        return None
    try:
        values = orjson.loads(text)
        above, digest, source = float(values["above"]), values["model"], str(values["source"])
        data = None if digest is None else history.beside.read_bytes(_file(digest))
    except (ValueError, KeyError, TypeError) as error:
        raise HistoryError(
            f"a plan stored in {history.folder} does not say which links it counted ({error}); give --relevance"
        ) from error
    if digest is None:
        return Focus(above=above, model=None, source=source)
    if data is None:
        raise NotEnoughData(
            f"{_file(digest)}, the classifier that a plan counted links by ({source}), is gone from "
            f"{history.folder}; give it with --relevance FILE"
        )
    return Focus(above=above, model=Relevance.from_bytes(data, source), source=source)


def _file(digest: str) -> str:
    return f"relevance-{digest}.json"
