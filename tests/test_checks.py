"""`make check-deps`: licences of everything that is installed, and what an answer about vulnerabilities means."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from checks import advisories, licences

ROOT = Path(__file__).resolve().parents[1]


def test_every_dependency_that_is_installed_has_an_allowed_licence(capsys: pytest.CaptureFixture[str]) -> None:
    assert licences.main() == 0, capsys.readouterr().out


def test_extras_and_what_they_need_are_looked_at() -> None:
    names = set(licences.needed("recrawl", ("crawl", "dev", "docs", "engine")))
    assert {"recrawl", "numpy", "scrapy", "twisted", "hypothesis", "mkdocs", "griffelib"} <= names
    assert "scrapy" not in licences.needed("recrawl", ())


def test_a_licence_that_is_not_on_the_list_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(licences, "ALLOWED", licences.ALLOWED - {"ZPL-2.1"})
    monkeypatch.setattr(licences, "BY_HAND", {})
    assert licences.main() == 1
    said = capsys.readouterr().out
    assert "zope-interface" in said
    assert "ZPL-2.1, which is not on the list" in said
    assert f"skops {distribution('skops').version}: states no licence" in said


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True), ("", False), ("GPL-3.0-only", False), ("MIT OR GPL-3.0-only", True), ("MIT AND GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True), ("MIT AND (AGPL-3.0-only OR (GPL-3.0-only AND MIT))", False),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True), ("Proprietary", False),
    ],
)  # fmt: skip
def test_all_parts_of_an_expression_count_and_of_alternatives_one(expression: str, allowed: bool) -> None:
    assert licences.is_allowed(expression) is allowed


def answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages})


KNOWN = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (2)"}
BAD = {"name": "c", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["4"]}]}


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (answer(KNOWN), advisories.FINE, "1 packages, no known vulnerability"),
        (answer(KNOWN, BAD, SKIPPED), advisories.VULNERABLE, "c 3: PYSEC-1, mended in 4"),
        (answer(KNOWN, SKIPPED), advisories.NOT_CHECKED, "NOT CHECKED, the service here knows 1 of 2 packages"),
        ("", advisories.NOT_CHECKED, "NOT CHECKED, pip-audit could not ask"),
        ("[]", advisories.NOT_CHECKED, "pip-audit -r constraints.txt"),
    ],
)
def test_an_answer_that_says_nothing_is_not_taken_for_a_good_one(text: str, code: int, says: str) -> None:
    found, lines = advisories.judged(text)
    assert found == code
    assert says in "\n".join(lines)


def test_without_pip_audit_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["advisories", "/no/such/pip-audit"])
    assert advisories.main() == advisories.NOT_CHECKED
    assert "pip-audit cannot be run (No such file or directory)" in capsys.readouterr().out
