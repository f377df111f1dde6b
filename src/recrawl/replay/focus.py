"""The focused setting: only links that lead to relevant pages count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recrawl.history import History
from recrawl.models.link_relevance import Focus
from recrawl.world.recorded import World


def focused(history: History, world: World, focus: Focus, on_note: Callable[[str], None] = lambda note: None) -> World:
    """The world with only the links whose relevance is above a threshold (Pham et al. 2018, section 3).

    Relevance is a property of a link, as in the paper: a link that a policy discovers is judged at once, by all that the history
    knows of its page (`recrawl.models.link_relevance`). A policy learns of it only when it finds the link.
    """
    judgements = focus.judged(history, world.link)
    judgements.check_any(focus)
    judgements.tell(focus, on_note)
    return world.relevant(np.isin(world.link, judgements.relevant))
