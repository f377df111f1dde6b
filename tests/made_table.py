"""The table of Dang et al. (2022) as a plain program writes it: from made-up sets of links, in their columns, with their dates."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

DATES = ("07-13", "07-21", "07-28", "08-07", "08-11", "08-18", "08-27", "09-01", "09-07", "09-14")
PRESENT = 8  # 09-07; new links without a lag are those of 09-14
LAGGED = ("contentLength", "textSize", "textQuality", "diffInternalOutLinks", "diffExternalOutLinks",
          "numInternalInLinks", "numExternalInLinks", "trustRank")  # fmt: skip
VECTOR = [f"SV{i}" for i in range(192)]


@dataclass(frozen=True)
class Crawled:
    """What one crawl saw of a page."""

    internal: frozenset[str]
    external: frozenset[str]
    length: int
    text: int
    quality: float
    inlinks: tuple[int, int]
    trust: float


def crawled_page(url: str, rng: random.Random) -> list[Crawled]:
    """Ten crawls of a page whose links come and go."""
    eager, eager_outside = rng.choice([0, 0, 0.5, 2, 5]), rng.choice([0, 0, 0, 0.4, 1.5])
    host = "/".join(url.split("/")[:3])
    inside = {f"{host}/old/{i}" for i in range(rng.randint(0, 20))}
    outside = {f"https://other.example/old/{i}" for i in range(rng.randint(0, 6))}
    length, found = rng.randint(500, 9000), []
    for date in DATES:
        inside = {link for link in inside if rng.random() < 0.85}
        outside = {link for link in outside if rng.random() < 0.85}
        n_inside = int(rng.expovariate(1 / eager)) if eager else 0
        n_outside = int(rng.expovariate(1 / eager_outside)) if eager_outside else 0
        inside |= {f"{host}/{date}/{i}" for i in range(n_inside)}
        outside |= {f"https://other.example/{url[-6:]}/{date}/{i}" for i in range(n_outside)}
        length += rng.choice([0, 0, 0, 7])
        sizes = (length, length // 3, round(rng.random(), 4))
        inlinks = (rng.randint(0, 90), rng.randint(0, 9))
        found.append(Crawled(frozenset(inside), frozenset(outside), *sizes, inlinks, round(rng.random() / 1000, 9)))
    return found


def row(url: str, crawls: list[Crawled], rng: random.Random, *, with_lagged_outlinks: bool = False) -> dict[str, Any]:
    """The row of a page: the crawl of 09-07, its lags, and the rates."""
    topic = hash_of(url) % 5
    values: dict[str, Any] = {"url": url, "isValid": True}
    values |= {"pathDepth": url.rstrip("/").count("/") - 2, "domainDepth": url.split("/")[2].count(".") + 1}
    new = [
        (len(now.internal - before.internal), len(now.external - before.external)) for before, now in pairwise(crawls)
    ]
    for lag in range(9):
        crawl, suffix = crawls[PRESENT - lag], f"-{lag}" if lag else ""
        cells = (crawl.length, crawl.text, crawl.quality, *new[PRESENT - lag], *crawl.inlinks, crawl.trust)
        values |= {f"{name}{suffix}": cell for name, cell in zip(LAGGED, cells, strict=True)}
        if not lag or with_lagged_outlinks:
            values[f"numInternalOutLinks{suffix}"] = len(crawl.internal)
            values[f"numExternalOutLinks{suffix}"] = len(crawl.external)
    values |= {name: round(rng.gauss(i % 5 == topic, 0.4), 5) for i, name in enumerate(VECTOR)}
    lengths = [crawl.length for crawl in crawls[: PRESENT + 1]]
    values["changeRate"] = sum(a != b for a, b in pairwise(lengths)) / 8
    values["linkInternalChangeRate"] = sum(inside > 0 for inside, _ in new) / 9
    values["linkExternalChangeRate"] = sum(outside > 0 for _, outside in new) / 9
    return values | {"related_contentLength": 1.5, "related_diffInternalOutLinks": 0.5, "avg_diffInternalOutLinks": 0.5}


def hash_of(url: str) -> int:
    """A small number for a URL, the same in every run."""
    return sum(map(ord, url))


def address(i: int) -> str:
    """The URL of a made-up page."""
    return f"http://{'www.' if i % 3 else ''}site{i % 7}.example.org/" + ("news/" if i % 2 else "") + f"page{i}"


def table(n_pages: int = 12, seed: int = 3, **more: Any) -> list[dict[str, Any]]:
    """The rows of some pages."""
    rng = random.Random(seed)
    return [row(address(i), crawled_page(address(i), rng), rng, **more) for i in range(n_pages)]


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    """The rows as CSV."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_json_lines(rows: list[dict[str, Any]]) -> bytes:
    """The rows as JSON lines, ranks as texts, as the authors' programs write them."""
    return b"".join(
        json.dumps(
            {name: str(cell) if name.startswith("trustRank") else cell for name, cell in values.items()}
        ).encode()
        + b"\n"
        for values in rows
    )


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The rows without some columns, also without their lags."""
    return [
        {name: cell for name, cell in values.items() if name.rpartition("-")[0] not in names and name not in names}
        for values in rows
    ]
