"""A made-up history with failures, gaps, stragglers and overlap: as plain records, as the slow version has it, and as a world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from making import imported, jsonl
from recrawl.synth import Activity, SynthSettings, visits
from recrawl.world.readings import ALL_PAGES, ONLY_RECORDED
from recrawl.world.recorded import World
from recrawl.world.recording import record as record_world
from replay.slow import SlowWorld, slow_world

WEB = SynthSettings(
    pages=40,
    rounds=42,
    every=timedelta(hours=5),
    rhythm=True,
    seed=3,
    terms=False,
    failure_rate=0.04,
    death_rate=0.05,
    pages_per_site=10,
    pages_per_section=5,
    sharing=1.0,
    topic_weight=0.2,
    section_weight=0.6,
    links_per_page=12,
    internal=Activity(0.1, (20, 0.5), 60.0, 1.0),
)
ENDS = [WEB.start + (number + 0.5) * WEB.every for number in range(WEB.rounds)]


@dataclass(frozen=True)
class Made:
    """One web in four forms."""

    records: list[dict[str, Any]]
    ends: list[datetime]
    slow: SlowWorld
    world: World  # every page is known from the start, and shows something only where it was recorded: as in the paper
    recorded: World  # pages become known, and show between two records what they showed before


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The first round holds only every third page; later one visit in twenty was never made."""
    records = with_twins(plain_records(np.random.default_rng(8)))
    history = imported(tmp_path_factory.mktemp("replay"), jsonl(records))[1]
    plain = [each | {"at": datetime.fromisoformat(each["at"])} for each in records]
    world = record_world(history, ENDS, candidates=ALL_PAGES, between=ONLY_RECORDED)
    world = world.reordered(np.argsort(world.url.to_pylist()))  # ties go by name
    return Made(plain, ENDS, slow_world(plain, ENDS), world, record_world(history, ENDS))


def plain_records(chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    """The visits of the web, as far as they were made; "not modified" is never the answer where no copy is known."""
    with_copy = set()
    for i, visit in enumerate(visits(WEB)):
        made = chance.random() < (0.3 if i < WEB.pages else 0.95)
        if not made or (visit.status == 304 and visit.url not in with_copy):
            continue
        record: dict[str, Any] = {"url": visit.url, "at": visit.at.isoformat(), "status": visit.status}
        if visit.status == 200:
            record |= {"links": list(visit.links or ()), "text_digest": visit.text_digest}
            with_copy.add(visit.url)
        yield record


def with_twins(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every other page has a twin that shows most of its links, so that pages overlap."""
    both = list(records)
    for visit in both[:]:
        kind = len(visit["url"]) % 4
        if kind < 2:
            links = {"links": [link for link in visit["links"] if len(link) % 7 > kind]} if "links" in visit else {}
            both.append({**visit, "url": visit["url"].partition("?")[0] + "?twin", **links})
    return both
