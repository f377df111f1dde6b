"""The engines that ``--engine`` can name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recrawl.core.suggest import unknown
from recrawl.errors import BadOption

KNOWN = ("sail", "sail:local-cluster", "spark", "spark:MASTER", "sc://HOST:PORT")
DEFAULT_MASTER = "local[*]"


@dataclass(frozen=True, kw_only=True)
class EngineName:
    """What a name means: which program does the work, and where."""

    text: str
    kind: Literal["sail", "spark", "remote"]
    where: str  # Sail's mode, Spark's master, or the URL of a Spark Connect server

    @property
    def shown(self) -> str:
        """The name for messages: a URL may hold a token."""
        return self.text.partition("/;")[0]


def engine_name(text: str) -> EngineName:
    """The engine of this name; raises `BadOption` where there is none.

    >>> engine_name("sail").where, engine_name("spark:local[4]").where, engine_name("sc://host:15002/;token=x").shown
    ('local', 'local[4]', 'sc://host:15002')
    """
    head, _, rest = text.partition(":")
    if text.startswith("sc://") and len(text) > len("sc://"):
        return EngineName(text=text, kind="remote", where=text)
    if text in ("sail", "sail:local-cluster"):
        return EngineName(text=text, kind="sail", where=rest or "local")
    if head == "spark" and (rest or text == "spark"):
        return EngineName(text=text, kind="spark", where=rest or DEFAULT_MASTER)
    raise BadOption(unknown("engine", text, KNOWN))
