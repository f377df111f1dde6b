"""Which links a plan counted, kept with it: its classifier is kept beside the history, so that plans can be scored by it."""

from __future__ import annotations

import orjson

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
    """The focus of a plan; without a classifier where it is not there any more: then what is recorded counts."""
    if text is None:
        return None
    values = orjson.loads(text)
    data = None if values["model"] is None else history.beside.read_bytes(_file(values["model"]))
    model = None if data is None else Relevance.from_bytes(data, values["source"])
    return Focus(above=values["above"], model=model, source=values["source"])


def _file(digest: str) -> str:
    return f"relevance-{digest}.json"
