"""The demo: a made-up web is crawled ten times, imported and analysed, its next round is predicted, and a plan is made."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.core.files import writing
from recrawl.errors import RecrawlError
from recrawl.history import History, summary
from recrawl.history.folder_check import MARKER
from recrawl.history.ingest import import_files
from recrawl.models.predictor import Recipe, predict, train
from recrawl.models.reasons import reasons
from recrawl.models.saved import save
from recrawl.report.demo.plan import planned
from recrawl.report.stats.analysis import analyse
from recrawl.report.stats.page import write_stats_page
from recrawl.synth import SynthSettings, write_jsonl, write_warc
from recrawl.world.panel import build

MIN_SHARE = 0.9  # of the rounds: some pages die or fail on the way
WARC_PAGES = 200  # of a second crawl file, to show that WARC is read as well


@dataclass(frozen=True)
class DemoResult:
    """What the demo made, and where it is."""

    history: str
    report: str
    visits: int
    pages: int
    busiest: str  # the page that gained most links in one round
    what_to_look_at: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(self.__dict__)


def run(
    folder: str, n_pages: int, seed: int, step: Callable[[str], None], *, self_contained: bool = False
) -> DemoResult:
    """Run the demo in a folder of its own."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecrawlError(
            f"the demo cannot write to {folder}: {error.strerror}; give another folder with --folder"
        ) from error
    settings = SynthSettings(pages=n_pages, seed=seed)
    crawl, warc = place / "crawl.jsonl", place / "crawl.warc.gz"
    step(f"1/6 making up a web of {n_pages:,} pages, crawled {settings.rounds} times (recrawl synth)")
    with writing(crawl) as stream:
        write_jsonl(settings, stream)
    write_warc(SynthSettings(pages=min(WARC_PAGES, n_pages), seed=seed + 1), warc)
    step("2/6 importing the crawl files, JSON lines and WARC (recrawl import)")
    if (place / "history" / MARKER).exists():
        shutil.rmtree(place / "history")  # of an earlier demo
    history = History.create(place / "history")
    imported = import_files(history, [str(crawl), str(warc)], workers=1)
    step(
        f"    {imported.added:,} visits added, {imported.duplicates:,} known already, {sum(imported.skipped.values()):,} skipped"
    )
    step("3/6 working out what was new at every visit (recrawl info, recrawl stats)")
    totals = summary(history)
    timeline = history.timeline
    panel = build(history, min_share=MIN_SHARE)
    statistics = analyse(panel, timeline.page, timeline.at.view("datetime64[us]"), seed=seed)
    for sentence in statistics.findings:
        step(f"    {sentence}")
    step("4/6 writing the report (recrawl stats --out)")
    title = "recrawl demo: a made-up web, crawled ten times"
    report = write_stats_page(place / "report.html", statistics, title, self_contained=self_contained)
    step("5/6 learning which pages gain links, and predicting the next round (recrawl train, recrawl predict)")
    model = place / "model.recrawl"
    for sentence in _predicted(history, model, seed):
        step(f"    {sentence}")
    step(
        "6/6 a web crawled every three hours: policies replayed on its past, and a plan (recrawl replay, recrawl plan)"
    )
    for sentence in planned(place, seed, self_contained=self_contained):
        step(f"    {sentence}")
    command = "recrawl" if shutil.which("recrawl") else sys.argv[0]
    busiest = (
        statistics.extreme_pages[0].url if statistics.extreme_pages else history.urls_of(timeline.pages[:1])[0].as_py()
    )
    return DemoResult(
        history=str(place / "history"),
        report=str(report),
        visits=totals.visits,
        pages=totals.pages,
        busiest=busiest,
        what_to_look_at=(
            f"Open {report} in a browser: how new links arrive.",
            f"Pages likely to gain links:      {command} predict --history {place / 'history'} --model {model}",
            f"Open {place / 'replay.html'} in a browser: what each policy would have found, and how soon.",
            f"The plan, with reasons:          {command} plan --budget 10% --history {place / 'lively'}",
            f"The busiest page over time:      {command} show {busiest} --history {place / 'history'}",
        ),
    )


def _predicted(history: History, model: Path, seed: int) -> Iterator[str]:
    """Train and save a model; yields how accurate it was one round earlier, and which pages it expects most of next."""
    predictor = train(history, Recipe(links=("all",), rounds=10, seed=seed))
    save(predictor, model)
    scores = predictor.scores["all"]
    yield (
        f"one round earlier the same model expected {scores['expected']:,.0f} new links, and {scores['found']:,.0f} appeared; "
        f"its ranking of pages has area {scores['area']:.2f} (0.5 is chance, 1 perfect), Spearman {scores['spearman']:.2f} "
        f"(average-count {scores['spearman_average']:.2f}, previous-count {scores['spearman_previous']:.2f})"
    )
    prediction = predict(predictor, history)["all"]
    top = np.argsort(-prediction.expected, kind="stable")[:5]
    for page, why in zip(top, reasons(predictor, prediction, top, 1), strict=True):
        number = (
            f"{prediction.expected[page]:5.1f} new links expected ({prediction.low[page]} to {prediction.high[page]})"
        )
        yield f"{number} on {prediction.panel.url[int(page)]}: {why[0].words}"
