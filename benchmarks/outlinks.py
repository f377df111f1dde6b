"""The papers' prediction of new links: trees side by side with scikit-learn's, and everything at the papers' size."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.metrics import roc_auc_score

from benchmarks.measure import Row, peak_gigabytes
from benchmarks.novelty import PAPERS_PAGES
from recrawl.history import History
from recrawl.insight.features import FeatureInputs, known_before, look_back_look_around
from recrawl.insight.targets import HasNewLinks, NewLinkCount, Target
from recrawl.models import metrics
from recrawl.models.learners import named
from recrawl.models.probability import ConstantIfOneClass
from recrawl.papers.outlinks.ladders import scores
from recrawl.papers.outlinks.protocol import PredictionTask, by_pages, fit_predict
from recrawl.synth import SynthSettings, batches
from recrawl.world import panel

TARGETS: tuple[Target, ...] = tuple(
    kind(links) for kind in (HasNewLinks, NewLinkCount) for links in ("internal", "external")
)
COMPARED = {"presence": ("auc", "log_loss", "f1", "balanced_accuracy"), "number": ("r2", "spearman")}
SIDE_BY_SIDE_PAGES = 133_334  # three quarters of them are trained on: 100,000 rows


def run(n_pages: int = PAPERS_PAGES, n_trees: int = 400) -> Iterator[Row]:
    yield from side_by_side(min(n_pages, SIDE_BY_SIDE_PAGES), n_trees)
    for size in (n_pages // 10, n_pages // 3, n_pages):
        yield from whole_job(size, n_trees, is_papers_size=size == PAPERS_PAGES)


def side_by_side(n_pages: int, n_trees: int, seeds: tuple[int, ...] = (0, 1, 2)) -> Iterator[Row]:
    """Growing and asking forests, in turns with those of scikit-learn: processor time of all threads, and differences of scores.

    A second forest of ours with another seed shows by how much scores differ by chance.
    """
    known = with_history(n_pages, lambda folder: look(folder)[1])
    all_ours = all_theirs = 0.0
    for target in TARGETS:
        ours_seconds = theirs_seconds = 0.0
        by_seed: list[list[dict[str, float]]] = []
        for seed in seeds:
            task = by_pages(known, target, look_back_look_around(target), seed)
            ours = named("extra-trees").make(target.kind, target.links, seed=seed, n_estimators=n_trees)
            theirs = plain(named("scikit-extra-trees").make(target.kind, target.links, seed=seed, n_estimators=n_trees))
            again = named("extra-trees").make(target.kind, target.links, seed=seed + 100, n_estimators=n_trees)
            warm_up(ours, task)
            (seconds, mine), (other_seconds, others), (_, chance) = (timed(m, task) for m in (ours, theirs, again))
            ours_seconds, theirs_seconds = ours_seconds + seconds, theirs_seconds + other_seconds
            by_seed.append([mine, others, chance])
            print(f"{target} seed {seed}: {seconds:.1f} s, scikit-learn {other_seconds:.1f} s", flush=True)
            del ours, theirs, again
        all_ours, all_theirs = all_ours + ours_seconds, all_theirs + theirs_seconds
        what = f"extra-trees against scikit-learn's, {target}, {len(task.y_train):,} rows × {len(seeds)} seeds"
        yield Row(what, theirs_seconds / ours_seconds, "×")
        yield difference_row(by_seed)
    ratio = all_theirs / all_ours
    yield Row("… all targets together", ratio, "×", "≥ 3", ratio >= 3, f"{all_theirs:.0f} s, {all_ours:.0f} s")


def difference_row(by_seed: list[list[dict[str, float]]]) -> Row:
    """How far the mean scores are apart, and every single one; by_seed[seed]: ours, scikit-learn's, ours with another seed."""
    notes, largest = [], 0.0
    for name in by_seed[0][0]:
        mine, others, chance = (np.array([each[i][name] for each in by_seed]) for i in range(3))
        largest = max(largest, abs(float(np.mean(mine - others))))
        each = ", ".join(f"{value:+.4f}" for value in mine - others)
        notes.append(f"{name} {mine.mean():.4f} ({each}; by chance {np.abs(mine - chance).max():.4f})")
    return Row("  largest difference of a mean score", largest, "", "≤ 0.002", largest <= 0.002, "; ".join(notes))


def plain(model: Any) -> Any:
    """The same forest as scikit-learn has it, without our order of the rows."""
    if isinstance(model, ConstantIfOneClass):
        return ConstantIfOneClass(ExtraTreesClassifier(**model.estimator.get_params()))
    return ExtraTreesRegressor(**model.get_params())


def warm_up(model: Any, task: PredictionTask) -> None:
    """Compile what is to be timed."""
    size = next(name for name in model.get_params() if name.endswith("n_estimators"))
    clone(model).set_params(**{size: 1}).fit(task.x_train[:2_000], task.y_train[:2_000]).predict(task.x_test[:10])


def timed(model: Any, task: PredictionTask) -> tuple[float, dict[str, float]]:
    started = time.process_time()
    found = fit_predict(model, task)
    seconds = time.process_time() - started
    known = scores(task.target.kind, task.y_test, found)
    if found.probability is not None:
        known["auc"] = float(roc_auc_score(task.y_test, found.probability))
    return seconds, {name: known[name] for name in COMPARED[task.target.kind]}


def with_history(n_pages: int, work: Callable[[str], Any]) -> Any:
    """What `work` makes of the folder of a synthetic history with vectors."""
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    try:
        history = History.create(folder)
        for batch in batches(SynthSettings(pages=n_pages, terms=False, vectors=True, failure_rate=0, death_rate=0)):
            history.append(batch)
        return work(folder)
    finally:
        shutil.rmtree(folder)


def look(folder: str) -> tuple[float, FeatureInputs]:
    """What is known before the last round, and when all visits were read."""
    history = History.open(folder)
    aligned = panel.build(history)
    seen = time.perf_counter()
    features = tuple({f for target in TARGETS for f in look_back_look_around(target)})
    return seen, known_before(history, aligned, aligned.shape[1] - 1, features)


def whole_job(n_pages: int, n_trees: int, is_papers_size: bool) -> Iterator[Row]:
    yield from with_history(n_pages, lambda folder: whole_rows(folder, n_trees, is_papers_size))


def whole_rows(folder: str, n_trees: int, is_papers_size: bool) -> list[Row]:
    """From a history on disk with vectors to rankings and their scores."""
    started = time.perf_counter()
    seen, known = look(folder)
    related = time.perf_counter()
    notes = []
    for target in TARGETS:
        task = by_pages(known, target, look_back_look_around(target), seed=0)
        model = named("extra-trees").make(target.kind, target.links, n_estimators=n_trees)
        found = fit_predict(model, task)
        value = found.probability if found.probability is not None else found.value
        rho, curve = metrics.spearman(task.y_test, value), metrics.precision_at(task.y_test, value)
        notes.append(f"{target.paper} {target.links} ρ {rho:.2f} area {curve.area:.2f}")
        del model, found, task
    done = time.perf_counter()
    assert known.related is not None
    n_pages, n_rounds = known.panel.shape
    minutes, peak = (done - started) / 60, peak_gigabytes()
    note = f"history {seen - started:.0f} s, vectors and related pages {related - seen:.0f} s "
    note += f"(recall {known.related.recall:.3f}), "
    note += f"features, {len(TARGETS)} × {n_trees} trees, rankings {done - related:.0f} s; {'; '.join(notes)}"
    what = f"predict new links, LBLA, {n_pages:,} pages × {n_rounds} rounds"
    time_wanted, memory_wanted = ("< 4", "< 8") if is_papers_size else ("", "")
    return [
        Row(what, minutes, "min", time_wanted, minutes < 4 if is_papers_size else None, note),
        Row("  peak memory so far", peak, "GB", memory_wanted, peak < 8 if is_papers_size else None),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["trees", "whole"], help="side by side with scikit-learn, or the whole job")
    parser.add_argument("--pages", type=int, help="default: 133,334 (100,000 rows), or the papers' size")
    parser.add_argument("--trees", type=int, default=400)
    options = parser.parse_args()
    if options.part == "trees":
        found = side_by_side(options.pages or SIDE_BY_SIDE_PAGES, options.trees)
    else:
        pages = options.pages or PAPERS_PAGES
        found = whole_job(pages, options.trees, is_papers_size=pages == PAPERS_PAGES)
    for row in found:
        print(f"{row.what}: {row.value:.4g} {row.unit} {row.target} {row.note}", flush=True)
