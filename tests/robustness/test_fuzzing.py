"""`make fuzz`: it finds what is planted, the same again with the same seed, and what it found in recrawl stays mended."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fuzz import fuzzer
from fuzz.fuzzer import Fuzzer, TooMuchWork, described
from fuzz.target import Target
from fuzz.targets import targets

from recrawl.core.times import parse_period
from recrawl.errors import BadState, RecrawlError

BY_NAME = {target.name: target for target in targets()}
CARD: dict[str, Any] = json.loads(BY_NAME["model-card"].seeds[0])
STATE: dict[str, Any] = json.loads(BY_NAME["state"].seeds[1])
RELEVANCE: dict[str, Any] = json.loads(BY_NAME["relevance"].seeds[0])
ARRAY = STATE["arrays"][0]


def changed(value: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps(value | changes).encode()


#: Each of these once ended in an exception that was not recrawl's own, or in worse.
FINDINGS: tuple[tuple[str, bytes], ...] = (
    ("times", b"0001-01-01T00:00+01:00"),
    ("times", b"9999-12-31T23:59:59-01:00"),
    ("times", b"2 Jan 6 4294967296:3"),
    ("times", b"9" * 400 + b"d"),
    ("times", b"999999999999d"),
    ("crawl-options", changed({}, hints_every="99999999999d")),
    ("plan-options", changed({}, policy="t", settings=None)),
    ("plan-options", changed({}, policy=["3"], settings="%")),
    ("roots", b"\xbb" * 300),
    ("roots", b"a\0b"),
    ("url", b"\xed\xa0\x80"),
    ("archive-question", b"!\\[/*"),
    ("focus", b"{"),
    ("focus", b'{"above": 0.5, "model": "../x", "source": "x"}'),
    ("relevance", changed(RELEVANCE, weight=[[0]])),
    ("relevance", changed(RELEVANCE, accuracy={})),
    ("relevance", changed(RELEVANCE, n_positive=1e400)),
    ("relevance", changed(RELEVANCE, n_negative=1e308)),
    ("state", changed(STATE, until=[])),
    ("state", changed(STATE, head="<")),
    ("state", changed(STATE, arrays=0)),
    ("state", changed(STATE, arrays=[{"at": 0}])),
    ("state", changed(STATE, arrays=[1])),
    ("state", changed(STATE, arrays=[{**ARRAY, "shape": [1 << 40]}])),
    ("state", changed(STATE, arrays=[{**ARRAY, "shape": [-1]}])),
    ("state", changed(STATE, arrays=[{**ARRAY, "dtype": "O"}])),
    ("state", changed(STATE, arrays=[{**ARRAY, "at": [3]}])),
    ("state", changed(STATE, arrays=[{**ARRAY, "at": ["../../x"]}])),
    ("model-card", changed(CARD, sha256=1)),
    ("model-card", changed(CARD, versions=1, format=9)),
    ("model-card", changed(CARD, overall={"all": []})),
    ("model-card", changed(CARD, pages=[str(2**70)])),
    ("model-card", changed(CARD, window=[])),
)  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _ in FINDINGS}))
def test_what_was_found_stays_mended(name: str) -> None:
    target = BY_NAME[name]
    for data in (data for of, data in FINDINGS if of == name):
        with suppress(*target.errors):  # any other error fails the test
            target.run(data)


@pytest.mark.parametrize("target", BY_NAME.values(), ids=BY_NAME)
def test_every_target_reads_its_samples_and_a_little_damage(target: Target) -> None:
    done = Fuzzer(target, seed=7).run(n_runs=min(len(target.seeds), 20) + 60)
    assert [finding.what for finding in done.findings] == []
    assert done.n_runs > done.n_refused  # something is read: a target that refuses its samples fuzzes nothing


FORGED = (
    b'{"tree": {"_setattr__": "owner"}, "arrays": []}',
    b'{"tree": {"strings": [{"array": 0}, {"array": 1}]}, "arrays": [["<i8", [0, 999999999]], ["|u1", [97]]]}',
    b'{"tree": {"sparse": [{"array": 0}, {"array": 0}, {"array": 0}], "shape": [2, 1]}, "arrays": [["<i8", [0, 9]]]}',
)


@pytest.mark.parametrize("data", FORGED, ids=["an attribute", "texts", "a matrix"])
def test_a_forged_snapshot_is_refused_before_it_is_used(data: bytes) -> None:
    with pytest.raises(BadState):
        BY_NAME["snapshot"].run(data)


def test_a_parquet_file_with_names_that_are_no_text_is_refused() -> None:
    damaged = BY_NAME["parquet"].seeds[0].replace(b"element", b"\xff\xfe\xfdment")
    with pytest.raises(RecrawlError, match="damaged"):
        BY_NAME["parquet"].run(damaged)


# -- the fuzzer itself -------------------------------------------------------------------------------------------------


def _planted(data: bytes) -> None:
    text = data.decode("latin-1")
    try:
        period = parse_period(text)
    except ValueError:
        return
    if period.total_seconds() > 1e6:
        raise ZeroDivisionError("planted")


PLANTED = Target(name="planted", run=_planted, seeds=[b"7d", b"1h"])


def test_a_planted_fault_is_found_and_made_small() -> None:
    done = Fuzzer(PLANTED, seed=1).run(n_runs=4_000)
    (finding,) = done.findings
    assert finding.what.startswith("ZeroDivisionError")
    assert "planted" in finding.trace
    assert len(finding.data) < 12
    with pytest.raises(ZeroDivisionError):
        _planted(finding.data)


def test_the_same_seed_gives_the_same_inputs() -> None:
    runs = [Fuzzer(PLANTED, seed).run(n_runs=1_500) for seed in (5, 5)]
    assert runs[0] == runs[1]


def test_inputs_that_reach_something_new_are_kept() -> None:
    fuzzer_ = Fuzzer(BY_NAME["times"], seed=0)
    assert fuzzer_.once(b"7d")
    assert not fuzzer_.once(b"8d")
    assert fuzzer_.once(b"2026-01-02")


def test_too_much_time_and_memory_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(data: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr(fuzzer, "SECONDS", 0.2)
    with pytest.raises(TooMuchWork, match="processor time"):
        fuzzer.with_bounds(lambda: endless(b""))
    monkeypatch.setattr(fuzzer, "MEMORY", -1)
    with pytest.raises(TooMuchWork, match="memory"):
        fuzzer.with_bounds(lambda: None)


def test_findings_are_told_apart_by_kind_and_place() -> None:
    texts = []
    for target, data in (("times", b"\xff"), ("notion", b"x")):
        try:
            BY_NAME[target].run(data)
            raise AssertionError
        except Exception as error:
            texts.append(described(error))
    assert texts[0] != texts[1]
    assert "notions.py" in texts[1]


def test_a_target_that_ends_the_process_is_a_finding_with_its_input(tmp_path: Path) -> None:
    from fuzz.__main__ import _ended

    fuzzer.Current(tmp_path / "current").note(b"the input")
    (finding,) = _ended("times", -signal.SIGSEGV, tmp_path).findings
    assert (finding.what, finding.data) == ("the process ended: SIGSEGV", b"the input")
