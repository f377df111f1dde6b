"""Did you mean …? One sentence for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence that names the thing, the value and the way out.

    >>> unknown("policy", "bandits", ["bandit", "round-robin"])
    "No policy named 'bandits'. Did you mean 'bandit'? Known: bandit, round-robin"
    >>> unknown("format", "x", ["csv"])
    "No format named 'x'. Known: csv"
    """
    names = list(known)
    near = get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"No {what} named {name!r}.{hint} Known: {', '.join(names)}"
