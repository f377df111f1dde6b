"""Kinds of links: internal ones lead to the page's own scheme and host (the papers' rule), external ones elsewhere."""

from __future__ import annotations

from typing import Literal

LinkKind = Literal["internal", "external", "all"]
LINKS: tuple[LinkKind, ...] = ("internal", "external", "all")
