"""The measured tables of docs/results/new-links.md: ``python -m benchmarks.results.results ../shared/data [CORPUS …]`` prints them.

Each corpus is imported into a history of its own, and the rankings of `recrawl evaluate` are measured on the split by time: on
panels of ten rounds, as the papers have, and on longer ones, as a crawler has.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.insight.features import known_before
from recrawl.papers.outlinks.rankings import RANKINGS, features_of, rank
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.world import panel

#: name → options of visits.py, rounds, and the panels: (rounds of each, how many)
CORPORA = {
    "news daily": (("news_daily_2025",), "1d", ((10, 6), (70, 4))),
    "ota_terms 30-day": (
        ("ota_terms", "--every", "30d", "--from", "2021-01-01", "--to", "2026-07-01"),
        "30d",
        ((10, 6), (60, 4)),
    ),
    "openbsd_www 30-day": (
        ("openbsd_www", "--every", "30d", "--from", "2005-01-01", "--to", "2010-01-01"),
        "30d",
        ((10, 3), (50, 2)),
    ),
    "openbsd_www weekly": (
        ("openbsd_www", "--every", "7d", "--from", "2008-01-01", "--to", "2010-01-01"),
        "7d",
        ((10, 2), (60, 2)),
    ),
}
CHOSEN_NAMES = ("new-link-count trees, LBLA", "forecast", "forecast, quiet tied", "average-count", "previous-count")
CHOSEN = tuple(r for r in RANKINGS if r.name in CHOSEN_NAMES)
SETTINGS = OutlinkSettings(links=("all",), split="time", seeds=(0,), quick=True, trees=200)


def imported(data: Path, options: tuple[str, ...], folder: str) -> History:
    """The history of a corpus."""
    history = History.create(Path(folder) / "history")
    visits = Path(folder) / "visits.jsonl"
    with visits.open("wb") as out:
        subprocess.run([sys.executable, str(data / "visits.py"), *options], stdout=out, check=True)
    import_files(history, [str(visits)], workers=1)
    return history


def table(history: History, every: str, n_rounds: int, n_panels: int) -> Iterator[str]:
    """One row a ranking: the mean over the panels."""
    whole = panel.build(history, every, 0.0)
    ends = np.unique(np.linspace(min(n_rounds, whole.shape[1]), whole.shape[1], n_panels).astype(int))
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    n_pages, share = [], []
    for end in ends:
        # Ten rounds as in the papers: only pages seen in all of them. Longer ones as a crawler has them: all pages.
        window = whole.window(max(0, end - n_rounds), end, 1.0 if n_rounds == 10 else 0.0)
        last = window.shape[1] - 1
        features = tuple({f for ranking in CHOSEN for f in features_of(ranking, "all", SETTINGS)})
        known = known_before(history, window, last, features)
        for row in rank(known, SETTINGS, CHOSEN):
            if row["truth"] == "new-link-count":
                found[row["ranking"]].append((row["spearman"], row["spearman_whole"], row["area"]))
        truth = window.n_new_internal[:, last] + window.n_new_external[:, last]
        n_pages.append(window.shape[0])
        share.append(float((truth[~np.isnan(truth)] > 0).mean()))
    size = f"{len(ends)} panels of {n_rounds} rounds, {np.mean(n_pages):,.0f} pages"
    yield f"{size}, {np.mean(share):.1%} with new links in the predicted round:"
    yield ""
    yield "| ranking | Spearman | Spearman, whole links | area |"
    yield "|---|---|---|---|"
    for name, scores in found.items():
        mean = np.nanmean(scores, axis=0)
        yield f"| {name} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.3f} |"
    yield ""


def main(data: Path, names: list[str]) -> None:
    """Print the tables of some corpora, or of all."""
    for name, (options, every, panels) in CORPORA.items():
        if names and name not in names:
            continue
        print(f"### {name}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            history = imported(data, options, folder)
            for n_rounds, n_panels in panels:
                for line in table(history, every, n_rounds, n_panels):
                    print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
