"""Hooks for mkdocs: pages that include a file of the repository's root."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``<!-- include: FILE -->`` by that file."""
    return INCLUDE.sub(lambda match: included(match[1]), markdown)


def included(name: str) -> str:
    """A file of the root, with links as they are seen from docs/."""
    text = (ROOT / name).read_text("utf-8")
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((GLOSSARY|CHANGELOG)\.md", lambda match: f"]({match[1].lower()}.md", text)


def on_config(config: Any) -> Any:
    """Rebuild pages with ``mkdocs serve`` when an included file changes."""
    config["watch"] += [str(ROOT / name) for name in ("GLOSSARY.md", "CHANGELOG.md")]
    return config
