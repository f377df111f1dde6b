import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.core.files import draft, write_bytes, write_text, writing


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with writing(target) as stream:
        stream.write(b"half")
        stream.flush()
        assert not target.exists()
        stream.write(b" and half")
    assert target.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_text(target, "old")

    def interrupted() -> None:
        with writing(target) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_drafts_of_two_writers_do_not_meet(tmp_path: Path) -> None:
    with draft(tmp_path / "a") as one, draft(tmp_path / "b") as other:
        one.write_text("1")
        other.write_text("2")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("1", "2")


def test_file_and_folder_are_synced_before_the_write_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: kinds.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    write_bytes(tmp_path / "x", b"1")
    assert kinds == [False, True]


def test_a_device_is_written_directly() -> None:
    write_bytes("/dev/null", b"1")
    assert not Path("/dev/null").is_file()


def test_a_pipe_is_written_directly() -> None:
    code = "from recrawl.core.files import write_bytes; write_bytes('/dev/stdout', b'1')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1"


def test_a_missing_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_bytes(tmp_path / "missing" / "x", b"1")


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o600)


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 240)
    write_bytes(path, b"whole")
    assert path.read_bytes() == b"whole"
