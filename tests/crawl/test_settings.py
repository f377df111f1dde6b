from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import BadOption


def read(**given: Any) -> CrawlOptions:
    return CrawlOptions.from_settings(Settings({f"RECRAWL_{name.upper()}": value for name, value in given.items()}))


def test_without_settings_all_is_as_documented() -> None:
    assert read() == CrawlOptions()


def test_every_setting_is_documented_with_its_default() -> None:
    table = CrawlOptions.table()
    assert [name for name, _, _ in table] == [f"RECRAWL_{field.name.upper()}" for field in fields(CrawlOptions)]
    assert all(meaning.endswith(".") for _, _, meaning in table)
    assert ("RECRAWL_BUDGET", "'10%'") in [row[:2] for row in table]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("budget", 40, "40"), ("per_host", "3", 3), ("full_fetches", "0.5", 0.5), ("resume", "False", False),
        ("resume", "0", False), ("resume", "yes", True), ("conditional", 1, True), ("flush_visits", "7", 7),
        ("exclude", "https://e.org/a,*.pdf", ("https://e.org/a", "*.pdf")), ("exclude", ["a", "b"], ("a", "b")),
        ("history", Path("/tmp/h"), "/tmp/h"), ("policy", None, None), ("min_gap", "6h", "6h"),
    ],
)  # fmt: skip
def test_texts_are_read_as_values_of_their_setting(name: str, text: Any, value: Any) -> None:
    assert getattr(read(**{name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("goal", "fame"), ("full_fetches", 1.5), ("full_fetches", "nan"), ("flush_seconds", 0), ("flush_seconds", "nan"),
        ("flush_seconds", "inf"), ("flush_visits", 0), ("per_host", "few"), ("resume", "perhaps"), ("budget", "all"),
        ("exclude", 7), ("retry_wait", -1), ("retry_wait", "nan"),
        ("min_gap", "6x"),
        ("hints_every", "abc"),
        ("every", "crwl"),
        ("per_host", -3),
        ("per_site", "many"),
        ("change", "foo"),
        ("policy", "nosuch"),
        ("model", "no/such/file"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: Any) -> None:
    """The option is named as everywhere; an unknown value of a name also has the known ones."""
    with pytest.raises(BadOption, match=rf"^(No )?{name.replace('_', '-')}\b.*{re.escape(str(value))}"):
        read(**{name: value})


def test_a_setting_that_is_not_known_is_refused_with_those_that_are() -> None:
    nearest = (
        r"No setting named 'RECRAWL_HISTROY'\. Did you mean 'RECRAWL_HISTORY'\? Known: RECRAWL_BUDGET, .*RECRAWL_WARC"
    )
    with pytest.raises(BadOption, match=nearest):
        read(histroy="/tmp/h")


def test_the_history_is_that_of_the_environment_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_HISTORY", "/data/h")
    assert (read().history, read(history="/other").history) == ("/data/h", "/other")
    monkeypatch.delenv("RECRAWL_HISTORY")
    assert read().history == "./history"
