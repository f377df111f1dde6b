"""The table of the LBLA authors: its numbers are reproduced."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import numpy as np
import pytest

from making import imported, urls
from recrawl.sources.lbla import CRAWLS, DIMENSIONS

PER_CRAWL = ["contentLength", "textSize", "textQuality", "pathDepth", "numInternalOutLinks", "numExternalOutLinks",
             "diffInternalOutLinks", "diffExternalOutLinks", *(f"SV{i}" for i in range(DIMENSIONS))]  # fmt: skip
HEADER = ["url", "isValid", *PER_CRAWL, *(f"{name}-{lag}" for lag in range(1, 9) for name in PER_CRAWL)]


def made_up_row(url: str, rng: random.Random) -> dict[str, object]:
    """A page whose links come and go at random; what is counted is true of some sets of links."""
    row: dict[str, object] = {"url": url, "isValid": 1}
    made = 0
    shown: dict[str, list[int]] = {"Internal": [], "External": []}
    for lag in range(9, -1, -1):
        suffix = f"-{lag}" if lag else ""
        for kind, numbers in shown.items():
            n_new = rng.randint(0, 4)
            kept = [number for number in numbers if rng.random() < 0.8]
            shown[kind] = kept + list(range(made, made + n_new))
            made += n_new
            if lag < 9:
                row[f"num{kind}OutLinks{suffix}"] = len(shown[kind])
                row[f"diff{kind}OutLinks{suffix}"] = float(n_new)
        if lag < 9:
            row |= {
                f"contentLength{suffix}": 1000 + lag,
                f"textSize{suffix}": 500,
                f"textQuality{suffix}": 0.5,
                f"pathDepth{suffix}": 1,
            }
            row |= {f"SV{i}{suffix}": round(rng.gauss(0, 1), 4) for i in range(DIMENSIONS)}
    return row


def as_csv(rows: list[dict[str, object]], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, HEADER, delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_new_links_since_the_previous_crawl_are_the_authors_numbers(tmp_path: Path, delimiter: str) -> None:
    rng = random.Random(3)
    rows = {f"https://e.org/{i}": made_up_row(f"https://e.org/{i}", rng) for i in range(6)}
    report, history = imported(tmp_path, as_csv(list(rows.values()), delimiter))
    assert (report.added, report.pages, report.skipped) == (60, 6, {})
    timeline, new = history.timeline, history.novelty
    internal, external = timeline.n_links()
    pages = history.urls_of(timeline.page).to_pylist()
    moments = [int(crawl.timestamp() * 1e6) for crawl in CRAWLS]
    for v, (url, at) in enumerate(zip(pages, timeline.at.tolist(), strict=True)):
        lag = 9 - moments.index(at)
        if lag == 9:
            assert (new.previous_internal[v], new.previous_external[v]) == (-1, -1)
            continue
        suffix = f"-{lag}" if lag else ""
        row = rows[url]
        assert new.previous_internal[v] == row[f"diffInternalOutLinks{suffix}"]
        assert new.previous_external[v] == row[f"diffExternalOutLinks{suffix}"]
        assert (internal[v], external[v]) == (row[f"numInternalOutLinks{suffix}"], row[f"numExternalOutLinks{suffix}"])
        assert timeline.rows["content_bytes"][v].as_py() == row[f"contentLength{suffix}"]


def test_vectors_arrive_in_their_table(tmp_path: Path) -> None:
    row = made_up_row("https://e.org/", random.Random(4))
    _, history = imported(tmp_path, as_csv([row]))
    vectors = history.store.read("vectors")
    assert vectors.num_rows == 9
    by_digest = dict(zip(vectors["digest"].to_pylist(), vectors["vector"].to_pylist(), strict=True))
    last = by_digest[history.timeline.rows["terms"].to_pylist()[-1]]
    np.testing.assert_allclose(last, [row[f"SV{i}"] for i in range(DIMENSIONS)], rtol=1e-6)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"url": ""}, "no url"),
        ({"url": "nonsense"}, "not a URL"),
        ({"isValid": "False"}, "page marked invalid"),
        ({"numInternalOutLinks-3": "many"}, "not a number"),
        ({"numInternalOutLinks-3": "1e12"}, "number of links out of range"),
        ({"numInternalOutLinks-3": "inf"}, "not a number"),
        ({"diffExternalOutLinks": "-7"}, "number of links out of range"),
        ({"SV5-2": ""}, "not a number"),
        ({"url": 'a"b\nc"'}, "not a URL"),
    ],
)
def test_a_row_that_cannot_be_used_is_counted_and_the_others_arrive(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    rng = random.Random(5)
    good, bad = made_up_row("https://e.org/good", rng), made_up_row("https://e.org/bad", rng) | changed
    report, history = imported(tmp_path, as_csv([bad, good]))
    assert dict(report.skipped) == {reason: 1}
    assert urls(history) == ["https://e.org/good"]


def test_a_row_cut_in_half_and_a_cell_too_large_are_counted(tmp_path: Path) -> None:
    good = as_csv([made_up_row("https://e.org/good", random.Random(6))])
    report, history = imported(tmp_path, good + b"https://e.org/cut,1,2\r\n" + b"x" * (17 << 20) + b"\r\n")
    assert dict(report.skipped) == {"wrong number of CSV cells": 1, "broken CSV row": 1}
    assert urls(history) == ["https://e.org/good"]
