"""The papers' prediction of new links at their size: related pages, features, trees, rankings and metrics, in one run."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measure import Row, peak_gigabytes
from benchmarks.novelty import PAPERS_PAGES
from recrawl.history import History
from recrawl.insight.features import known_before, look_back_look_around
from recrawl.insight.targets import HasNewLinks, NewLinkCount, Target
from recrawl.models import metrics
from recrawl.models.learners import named
from recrawl.papers.outlinks.protocol import by_pages, fit_predict
from recrawl.synth import SynthSettings, batches
from recrawl.world import panel

TARGETS: tuple[Target, ...] = tuple(
    kind(links) for kind in (HasNewLinks, NewLinkCount) for links in ("internal", "external")
)


def run(n_pages: int = PAPERS_PAGES, n_trees: int = 400) -> Iterator[Row]:
    sizes = (n_pages // 10, n_pages // 3, n_pages)
    for size in sizes:
        yield from whole_job(size, n_trees, is_papers_size=size == PAPERS_PAGES)


def whole_job(n_pages: int, n_trees: int, is_papers_size: bool) -> Iterator[Row]:
    """From a history on disk with vectors to rankings and their scores."""
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    try:
        history = History.create(folder)
        for batch in batches(SynthSettings(pages=n_pages, terms=False, vectors=True, failure_rate=0, death_rate=0)):
            history.append(batch)
        started = time.perf_counter()
        history = History.open(folder)
        aligned = panel.build(history)
        seen = time.perf_counter()
        last = aligned.shape[1] - 1
        features = tuple({f for target in TARGETS for f in look_back_look_around(target)})
        known = known_before(history, aligned, last, features)
        related = time.perf_counter()
        scores = []
        for target in TARGETS:
            task = by_pages(known, target, look_back_look_around(target), seed=0)
            model = named("extra-trees").make(target.kind, target.links, n_estimators=n_trees)
            found = fit_predict(model, task)
            value = found.probability if found.probability is not None else found.value
            rho, curve = metrics.spearman(task.y_test, value), metrics.precision_at(task.y_test, value)
            scores.append(f"{target.paper} {target.links} ρ {rho:.2f} area {curve.area:.2f}")
            del model, found, task
        done = time.perf_counter()
        assert known.related is not None
        minutes = (done - started) / 60
        note = f"history {seen - started:.0f} s, vectors and related pages {related - seen:.0f} s "
        note += f"(recall {known.related.recall:.3f}), "
        note += f"features, {len(TARGETS)} × {n_trees} trees, rankings {done - related:.0f} s; {'; '.join(scores)}"
        what = f"predict new links, LBLA, {aligned.shape[0]:,} pages × {aligned.shape[1]} rounds"
        yield Row(
            what, minutes, "min", "< 15" if is_papers_size else "", minutes < 15 if is_papers_size else None, note
        )
        peak = peak_gigabytes()
        yield Row(
            "  peak memory so far", peak, "GB", "< 12" if is_papers_size else "", peak < 12 if is_papers_size else None
        )
    finally:
        shutil.rmtree(folder)
