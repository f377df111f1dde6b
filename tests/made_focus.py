"""Made-up histories in which some links are relevant, and a plain program that takes the others out."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from recrawl.models.relevance import Relevance, train
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
ON, OFF = ("flood", "storm", "quake"), ("goal", "match", "league")


def topic_model(path: Path) -> Relevance:
    """A classifier of URLs, saved as JSON."""
    urls = [
        f"https://e.org/{word}/{other}-{i}"
        for words in (ON, OFF)
        for word in words
        for other in words
        for i in range(4)
    ]
    model = train(urls, [any(word in url for word in ON) for url in urls])
    model.save(path)
    return model


def made_visits(seed: int, n_days: int = 9, n_hubs: int = 8) -> list[Visit]:
    """Hubs that gain relevant, irrelevant and unknown links at different rates; some of these pages are read and judged, a few
    against their URL, some twice and differently. Every text is new, so that any visit shows a change.
    """
    chance = np.random.default_rng(seed)
    on, off = chance.poisson(1.5, n_hubs), chance.poisson(1.5, n_hubs)
    shown: list[list[str]] = [[] for _ in range(n_hubs)]
    visits = []
    for day in range(n_days):
        for hub in range(n_hubs):
            if chance.random() < 0.2:
                continue
            at = START + timedelta(days=day, minutes=float(chance.random() * 20))
            words = [*chance.choice(ON, chance.poisson(on[hub])), *chance.choice(OFF, chance.poisson(off[hub])), "zzz"]
            new = [f"https://e.org/{word}/{hub // 2}-{day}-{i}" for i, word in enumerate(words)]
            shown[hub] = [*shown[hub], *new][-14:]
            text = f"hub {hub} says {chance.integers(1 << 40)} today"
            visits.append(Visit(url=f"https://h{hub % 3}.example/{hub}", at=at, links=list(shown[hub]), text=text))
            for url in new:
                if chance.random() < 0.25:
                    later = at + timedelta(days=float(chance.integers(0, 4)), minutes=1)
                    value = float(np.float32(chance.random()))
                    visits.append(Visit(url=url, at=later, links=[], text=f"page {later} {url}", relevance=value))
    return sorted(visits, key=lambda visit: (visit.at, visit.url))


def plain_probability(model_file: Path, url: str) -> float | None:
    """What a classifier says of a URL, worked out from its file by the book; None: it knows no word that says anything."""
    model = json.loads(model_file.read_text())
    place = {word: i for i, word in enumerate(model["words"])}
    host, _, path = url.split("://")[1].partition("/")
    names = [name for name in host.split(".") if name != "www"]
    telling = re.findall(r"[^\W_]{2,}", " ".join(names[:-1]) + " " + path)
    if not any(word in place and not word.isdigit() for word in telling):
        return None
    counts = Counter(re.findall(r"[^\W_]{2,}", " ".join(names) + " " + path))
    parts = {word: (1 + math.log(n)) * model["idf"][place[word]] for word, n in counts.items() if word in place}
    norm = math.sqrt(sum(value * value for value in parts.values())) or 1.0
    total = model["intercept"] + sum(value / norm * model["weight"][place[word]] for word, value in parts.items())
    return 1 / (1 + math.exp(-total))


def plain_relevant(visits: Sequence[Visit], model_file: Path | None, above: float = 0.5) -> set[str]:
    """The links that count, by a plain program: the last relevance recorded, else the classifier's word on the URL."""
    recorded: dict[str, float] = {}
    for visit in sorted(visits, key=lambda visit: visit.at):
        if visit.relevance is not None:
            recorded[visit.url] = visit.relevance
    relevant = set()
    for link in {link for visit in visits for link in visit.links or ()}:
        value = recorded.get(link)
        if value is None and model_file is not None:
            value = plain_probability(model_file, link)
        if value is not None and value > above:
            relevant.add(link)
    return relevant


def without(visits: Sequence[Visit], relevant: set[str]) -> list[Visit]:
    """The visits with only these links."""
    return [
        visit if visit.links is None else replace(visit, links=[link for link in visit.links if link in relevant])
        for visit in visits
    ]
