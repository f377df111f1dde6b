"""Which links a plan counted, kept with it: its classifier is kept beside the history, so that plans can be scored by it."""

from __future__ import annotations

import orjson

from recrawl.errors import NotEnoughData
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
    """The focus of a plan; raises `NotEnoughData` where its classifier is not there any more."""
    if text is None:
        return None
    values, model = orjson.loads(text), None
    if values["model"] is not None:
        data = history.beside.read_bytes(_file(values["model"]))
        if data is None:
            raise NotEnoughData(
                f"{_file(values['model'])}, the classifier that a plan counted links by ({values['source']}), is gone from "
                f"{history.folder}; give it with --relevance FILE"
            )
        model = Relevance.from_bytes(data, values["source"])
    return Focus(above=values["above"], model=model, source=values["source"])


def _file(digest: str) -> str:
    return f"relevance-{digest}.json"
