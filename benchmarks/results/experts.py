"""The tables on content change of docs/results/content-change.md, printed by

    python -m benchmarks.results.experts ../shared/data [PART …]


Parts are the names of `CORPORA` (Tables 1 to 3, Figs. 6 and 7 of Radinsky and Bennett), ``scan`` (where related pages pay: other
settings, side by side), ``votes`` (by similarity and by accuracy) and ``freshness`` (Fig. 8).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.results.results import imported
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.papers.experts.evaluation import evaluate_contents, evaluate_experts
from recrawl.papers.experts.settings import COIN, MAJORITY, THRESHOLD, ExpertEvaluation, ExpertSettings
from recrawl.policies import Budget, named
from recrawl.replay import replay_many, summarise
from recrawl.replay.past import past
from recrawl.world import change, notions
from recrawl.world.contents import contents_of

NEWS = ("news_daily_2025",)
OTA_WEEKLY = ("ota_terms", "--every", "7d", "--from", "2024-01-01", "--to", "2026-07-01")
#: name → options of visits.py, and settings
CORPORA: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "news daily": (NEWS, {"every": "crawl"}),
    "ota_terms weekly": (OTA_WEEKLY, {"every": "7d", "alpha": 0.1}),
}
#: Settings that might make related pages pay, each beside the paper's.
SCAN: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "words × 5": {"word_scale": 5.0},
    "words × 20": {"word_scale": 20.0},
    "C of 0.01, 0.1, 1, 10, calibrated": {"cs": (0.01, 0.1, 1.0, 10.0)},
    "words × 5, C calibrated": {"word_scale": 5.0, "cs": (0.01, 0.1, 1.0, 10.0)},
    "window l = 3": {"l": 3},
    "words × 5, l = 3": {"word_scale": 5.0, "l": 3},
    "n = 100": {"n_train": 100, "n_trains": (100,)},
    "experts anew every 50 rounds": {"reselect": 50},
    "words × 5, anew every 50": {"word_scale": 5.0, "reselect": 50},
    "k = 5, words × 5": {"word_scale": 5.0, "k": 5, "ks": (5,)},
}
#: corpus, rounds, notion, α of the scan
SCANNED = (
    ("news daily", "crawl", "significant", 0.3),
    ("news daily", "crawl", "significant", 0.15),
    ("news daily", "crawl", "shingles:0.5", 0.3),
    ("ota_terms weekly", "7d", "significant", 0.1),
    ("ota_terms weekly", "7d", "digest", 0.1),
)
#: Votes by similarity and by accuracy, on news daily.
VOTES: dict[str, dict[str, Any]] = {
    "the paper's settings": {"ks": (1, 5, 20)},
    "words × 5": {"ks": (1, 5, 20), "word_scale": 5.0},
    "new links instead of changes": {"ks": (1, 20), "target": "new-links", "most_pages": 20},
}
FRESHNESS = (
    "round-robin", "change-frequency", "single-expert", "related-experts", "lambda-crawl", "freshness-value", "freshness-oracle",
)  # fmt: skip


def scores(found: ExpertEvaluation) -> Iterator[str]:
    """All parts of an evaluation."""
    settings = found.settings
    what = f"{settings.notion} changes" if settings.target == "change" else f"steps with {settings.target}"
    yield (
        f"{found.n_pages} pages × {found.n_rounds} rounds; {found.change_rate:.1%} of all steps are {what}; "
        f"{found.n_predicted} pages pass α = {settings.alpha}, of whose steps {found.predicted_change_rate:.1%} are.\n"
    )
    for note in found.notes:
        yield f"({note})\n"
    for part, rows in found.rows.items():
        yield f"**{part}**\n"
        yield "| method | experts | k | n | accuracy | balanced | p |"
        yield "|---|---|---|---|---|---|---|"
        for row in rows:
            if row["method"] in (MAJORITY, COIN, THRESHOLD) and part not in ("settings", "history"):
                continue  # the same as in the first part
            p = "" if row["p_value"] is None else f"{row['p_value']:.3f}"
            balanced = "" if row["balanced_accuracy"] is None else f"{row['balanced_accuracy']:.3f}"
            yield (
                f"| {row['method']} | {row['experts']} | {row['k'] or ''} | {row['n_train']} | {row['accuracy']:.3f} | "
                f"{balanced} | {p} |"
            )
        yield ""


def scan(histories: dict[str, History]) -> Iterator[str]:
    """3D with related, similar and random pages under other settings."""
    for corpus, every, notion_text, alpha in SCANNED:
        history = histories[corpus]
        contents = contents_of(history, every, 0.5)
        notion = notions.notion_from(notion_text)
        changed = change.changes(contents, notion)
        yield f"**{corpus}, {notion_text}, α = {alpha}**\n"
        heads = (
            "setting",
            "pages",
            "majority",
            "threshold",
            "2D",
            "3D correlated",
            "3D similar",
            "3D random",
            "p of the last",
        )
        yield f"| {' | '.join(heads)} |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for name, values in SCAN.items():
            base: dict[str, Any] = {"parts": ("settings", "selection"), "methods": ("content", "random"), "ks": (20,)}
            settings = ExpertSettings(**({"every": every, "alpha": alpha, "most_pages": 60} | base | values))
            try:
                found = evaluate_contents(contents, changed, settings)
            except RecrawlError as error:
                yield f"| {name} | {error} |"
                continue
            told = {(r["method"], r["experts"]): r for rows in found.rows.values() for r in rows}
            cells = [told[key]["accuracy"] for key in (
                ("majority class", ""), ("change-frequency, threshold", ""), ("single-expert", ""),
                ("related-experts", "cross-correlation"), ("related-experts", "content"), ("related-experts", "random"),
            )]  # fmt: skip
            p = told["related-experts", "random"]["p_value"]  # against correlated pages
            texts = [f"{cell:.3f}" for cell in cells]
            yield f"| {name} | {found.n_predicted} | {' | '.join(texts)} | {'' if p is None else f'{p:.3f}'} |"
        yield ""


def votes(histories: dict[str, History]) -> Iterator[str]:
    """Votes that count by similarity, as in the paper, and by how often an expert was right."""
    for name, values in VOTES.items():
        settings = ExpertSettings(every="crawl", parts=("settings", "number"), methods=(), **values)
        yield f"**news daily, {name}**\n"
        yield from scores(evaluate_experts(histories["news daily"], settings))


def freshness(histories: dict[str, History]) -> Iterator[str]:
    """Mean freshness by the days that were observed before (Fig. 8): a tenth of the pages a day."""
    history = histories["news daily"]
    observed = (0, 20, 50, 80, 100)
    yield f"| policy | {' | '.join(f'{n} days observed' for n in observed)} |"
    yield "|---" * (1 + len(observed)) + "|"
    world = past(history, "crawl", notion=notions.notion_from("significant"), with_words=True)
    policies = [named(name) for name in FRESHNESS]
    policies += [named(name, pick="gain") for name in ("change-frequency", "single-expert", "related-experts")]
    labels = [*FRESHNESS, *(f"{name}, by expected gain" for name in FRESHNESS[1:4])]
    table: list[list[str]] = [[label] for label in labels]
    for n in observed:
        budget = Budget(max(1, round(world.n_pages / 10)))
        runs = replay_many(world, policies, [budget], workers=2, observed=n)
        for row, run in zip(table, runs, strict=True):
            row.append(f"{summarise(run).freshness or 0:.3f}")
    for row in table:
        yield f"| {' | '.join(row)} |"
    yield ""


def main(data: Path, names: list[str]) -> None:
    """Print some parts, or all."""
    with tempfile.TemporaryDirectory() as folder:
        histories = {}
        for i, (name, (options, _)) in enumerate(CORPORA.items()):
            (Path(folder) / str(i)).mkdir()
            histories[name] = imported(data, options, f"{folder}/{i}")
        others = {"scan": scan, "votes": votes, "freshness": freshness}
        for name in names or [*CORPORA, *others]:
            print(f"### {name}\n", flush=True)
            if name in CORPORA:
                lines = scores(evaluate_experts(histories[name], ExpertSettings(**CORPORA[name][1])))
            else:
                lines = others[name](histories)
            for line in lines:
                print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
