"""Classes in a Python file: found by name, refused in a sentence, and known to other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.core.plugins import from_file
from recrawl.errors import BadPlugin

FILE = "class Mine:\n    def __init__(self, decay=1.0):\n        self.decay = decay\n"


def test_an_object_of_a_files_class_reaches_a_process_that_has_not_loaded_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    mine = from_file(f"{tmp_path / 'mine.py'}:Mine")(decay=0.5)
    (tmp_path / "object").write_bytes(pickle.dumps(mine))
    program = f"import pickle; print(pickle.loads(open({str(tmp_path / 'object')!r}, 'rb').read()).decay)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "0.5\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("none.py:Mine", "there is no file"), ("mine.py:Yours", "has no 'Yours'"), ("broken.py:Mine", "cannot load")],
)
def test_what_cannot_be_loaded_is_a_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(BadPlugin, match=sentence):
        from_file(f"{tmp_path}/{name}")
