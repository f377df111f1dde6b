"""The README's tour is run as it stands; what it prints must match, with ``...`` for anything."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patience import patience

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def matches(shown: str, printed: str) -> bool:
    return not shown or doctest.OutputChecker().check_output(shown, printed, FLAGS)


@pytest.mark.slow
def test_the_tour_of_the_readme_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("RECRAWL_HISTORY", None)
    n_steps = 0
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    for kind, block in sorted(blocks, key=lambda each: each[0] == "python"):  # Python reads what the commands made
        if kind == "python":
            test = doctest.DocTestParser().get_doctest(block, {}, "README", "README.md", 0)
            assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0
            n_steps += len(test.examples)
            continue
        for command, shown in steps(block):
            done = subprocess.run(
                command, shell=True, capture_output=True, text=True, env=environment, timeout=patience(120)
            )
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            assert matches(shown, done.stdout), f"{command}\nshould print\n{shown}\nbut printed\n{done.stdout}"
            n_steps += 1
    assert n_steps > 10


def test_every_command_of_the_help_is_in_the_readme() -> None:
    from recrawl.cli import app

    names = {command.name for command in app.registered_commands}
    readme = (ROOT / "README.md").read_text()
    assert {name for name in names if f"recrawl {name}" not in readme} == set()
