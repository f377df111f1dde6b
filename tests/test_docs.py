import subprocess
import sys
from pathlib import Path

from recrawl.sources import ALL

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_commands_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "-m", "docs.make", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_help_of_import_names_every_format() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    assert {source.name for source in ALL if source.name not in page} == set()
