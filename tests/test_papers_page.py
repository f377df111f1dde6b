"""docs/papers.md names files of the package and of the tests: all of them exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")


def test_every_file_that_the_page_on_the_papers_names_exists() -> None:
    named = set(re.findall(r"`([a-z_/0-9]+(?:/[a-z_0-9]+|\.py))`", PAGE))
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / "src" / "recrawl" / name).exists()]
    assert len(named) > 60
    assert not missing


def test_every_row_of_the_page_names_code_and_a_check() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    for item, code, checks, differs in rows:
        assert item.strip() == "item" or ("`" in code and "tests/" in checks and differs.strip())
