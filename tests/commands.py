"""The command line within the test's own process, from its arguments to its exit code."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from typer.testing import CliRunner

from recrawl.cli import main


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def message(self) -> str:
        """Standard error without the frames around usage errors and without line breaks."""
        return " ".join(re.sub(r"[│╭╮╰╯─]+", " ", self.stderr).split())


def command(*arguments: str | Path, stdin: bytes = b"") -> Done:
    """Run ``recrawl`` with these arguments, as a shell would; 0 is success, 1 a failed job, 2 wrong usage."""
    code, given = 0, ["recrawl", *map(str, arguments)]
    with CliRunner().isolation(stdin) as (stdout, stderr, _), patch.object(sys, "argv", given):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, stdout.getvalue().decode(), stderr.getvalue().decode())


def output(*arguments: str) -> str:
    """What a command prints that ends well."""
    done = command(*arguments)
    assert done.code == 0, done
    return done.stdout
