"""The page docs/results/focused.md and its figure, docs/assets/focused.svg, made by

python -m benchmarks.results.focused ../shared/data
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.results.results import imported
from benchmarks.results.topics import Judged, classifier
from recrawl.core.words import percent
from recrawl.history import History
from recrawl.models.link_relevance import Focus
from recrawl.policies import Budget, named
from recrawl.replay import replay_many, summarise
from recrawl.replay.focus import focused
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import all_links, coverage_over_time
from recrawl.world.recorded import AllLinks, World
from recrawl.world.recording import record

#: name → options of visits.py, window in cycles
CORPORA = {
    "news hourly": (("news_hourly_2025-03", "--no-terms"), 168),
    "news daily": (("news_daily_2025", "--no-terms"), 28),
}
TOPICS = ("politics", "sport")
SHARES = (0.05, 0.1, 0.2)
#: Pham, Santos and Freire (2018), Table 2: Human Trafficking, Politics, Humanitarian Crisis.
TABLE_2 = {
    "round-robin": (0.179, 0.368, 0.391),
    "windowed-outdegree": (0.890, 0.546, 0.473),
    "set-cover": (0.829, 0.393, 0.465),
    "windowed-clique": (0.859, 0.538, 0.465),
    "regression": (0.929, 0.805, 0.714),
    "regression-round-robin": (0.922, 0.807, 0.723),
    "bandit": (0.921, 0.808, 0.735),
    "learning-to-rank": (0.924, 0.804, 0.724),
}
OWN, BOUND = "expected-harvest", "oracle"
DRAWN = ("round-robin", "bandit", OWN)
COLOURS = ("#888888", "#d95f02", "#1b6ca8")
DOCS = Path(__file__).parents[2] / "docs"
HEAD = """# Focused on a topic

The focused setting of Pham, Santos and Freire (2018): a new link counts only if it is relevant, and policies learn from relevant
links alone. Relevance is what a classifier says, as in the paper. Their Table 2 is beside ours; pages, times and topics are others,
so compare the order of the policies, not the numbers.

`python -m benchmarks.results.focused ../shared/data` makes this page. [Focus on a topic](../guides/focus.md) says how to do the
same with your own history.

## The topics and their classifiers

Links of German news front pages. The section that a URL names (`/politik/`, `/sport/`) is the label. Half of the labelled links,
by a hash of the URL, train the classifier (`recrawl relevance`: words, TF-IDF, logistic regression), at most 20,000 of them; it
does not see the names of sections, only the host and the words of the headline. The other half measures it. Then it judges all
links, also those whose URL names no section.

| collection | topic | trained on | tested on | on topic | precision | recall | balanced accuracy | no section | judged relevant |
|---|---|---|---|---|---|---|---|---|---|"""
HOW = """
## Coverage of relevant links

Share of the relevant links found at the end, as in their Table 2, with 5, 10 and 20% of the pages per cycle. *All links counted*:
expected-harvest that knows nothing of relevance and plans by all new links, measured by the relevant ones that it finds.
The oracle knows what every page will show."""


def coverage(run: Replayed) -> float:
    return summarise(run).coverage or 0.0


class Setting:
    """One topic of one collection, replayed."""

    def __init__(self, history: History, world: World, name: str, topic: str, window: int) -> None:
        self.name, self.topic = name, topic
        self.judged: Judged = classifier(history, world.link, topic)
        self.world = focused(history, world, Focus(model=self.judged.model))
        self.budgets = [Budget(max(1, round(share * world.n_pages))) for share in SHARES]
        policies = [named(policy, window=window) for policy in (*TABLE_2, OWN, BOUND)]
        runs = replay_many(self.world, policies, self.budgets, workers=1)
        self.runs = {(run.policy, run.budget): run for run in runs}
        # The other way round: all links count, and relevant ones are counted beside them.
        unfocused = replace(world, everything=AllLinks(self.world.sets, self.world.first_shown))
        self.plain = {
            run.budget: run for run in replay_many(unfocused, [named(OWN, window=window)], self.budgets, workers=1)
        }

    def relevant(self, policy: str) -> list[float]:
        return [coverage(self.runs[policy, budget.pages]) for budget in self.budgets]

    def relevant_of_plain(self) -> list[float]:
        pairs = (all_links(self.plain[budget.pages]) for budget in self.budgets)
        return [found / published for found, published in pairs]

    def both(self, policy: str) -> tuple[int, float, int, float]:
        """With the middle budget: relevant links found and their share, and the same of all links."""
        run = self.runs[policy, self.budgets[1].pages]
        found, published = all_links(run)
        return summarise(run).discovered, coverage(run), found, found / published


def about(setting: Setting) -> str:
    judged, world = setting.judged, setting.world
    assert world.everything is not None
    n_all = int((world.everything.first_shown > 0).sum())
    return (
        f"| {setting.name} | {setting.topic} | {judged.n_trained:,} | {judged.n_tested:,} | {percent(judged.share)} | "
        f"{judged.precision:.2f} | {judged.recall:.2f} | {judged.balanced:.2f} | {judged.n_unlabelled:,} | "
        f"{world.discoverable:,} of {n_all:,} |"
    )


def coverage_table(settings: list[Setting]) -> Iterator[str]:
    names = [f"{each.name}, {each.topic} {share:.0%}" for each in settings for share in SHARES]
    paper = ("Table 2: trafficking", "politics", "crisis")
    yield f"\n| policy | {' | '.join((*paper, *names))} |"
    yield "|---" * (1 + len(paper) + len(names)) + "|"
    rows = {policy: [each.relevant(policy) for each in settings] for policy in (*TABLE_2, OWN)}
    best = [max(row[i][j] for row in rows.values()) for i in range(len(settings)) for j in range(len(SHARES))]
    rows |= {
        f"{OWN}, all links counted": [each.relevant_of_plain() for each in settings],
        BOUND: [each.relevant(BOUND) for each in settings],
    }
    for policy, values in rows.items():
        cells = [
            f"**{value:.3f}**" if value == top and policy in (*TABLE_2, OWN) else f"{value:.3f}"
            for value, top in zip(np.ravel(values), best, strict=True)
        ]
        stated = [f"{value:.3f}" for value in TABLE_2.get(policy, ())] or ["–"] * 3
        yield f"| {policy} | {' | '.join([*stated, *cells])} |"


def both_table(settings: list[Setting]) -> Iterator[str]:
    yield "\n## Relevant and all new links\n"
    yield "What the same fetches found of the relevant links and of all, with 10% of the pages per cycle:\n"
    yield "| collection | topic | policy | relevant found | of the relevant | all found | of all |\n" + "|---" * 7 + "|"
    for each in settings:
        for policy in (*TABLE_2, OWN):
            relevant, share, found, of_all = each.both(policy)
            yield f"| {each.name} | {each.topic} | {policy} | {relevant:,} | {share:.3f} | {found:,} | {of_all:.3f} |"
    first = settings[0]
    yield "\n![Relevant and all new links found over time](../assets/focused.svg)\n"
    yield (
        f"Share of the links so far that was found, {first.name}, {first.topic}, 10% of the pages per cycle. Solid: relevant "
        "links; dotted: all links that the same fetches found. `recrawl replay --relevance FILE --out replay.html` draws the same "
        "for your history."
    )


def findings(settings: list[Setting]) -> Iterator[str]:
    yield "\n## What it shows\n"
    gains, against, ratios = [], [], []
    for each in settings:
        for i in range(len(SHARES)):
            own = each.relevant(OWN)[i]
            gains.append(own - each.relevant_of_plain()[i])
            against.append(own - max(each.relevant(policy)[i] for policy in TABLE_2))
            ratios.append(own / each.relevant("round-robin")[i])
    yield (
        f"- **What counting relevant links only brings:** coverage by {OWN} is {min(gains):+.3f} to {max(gains):+.3f} "
        "beside that of the same policy that counts all links."
    )
    yield (
        f"- **{OWN} against the best of the paper's policies:** {min(against):+.3f} to {max(against):+.3f} in the "
        f"{len(against)} columns; against round-robin {min(ratios):.1f} to {max(ratios):.1f} times as many."
    )
    learning = ("regression", "regression-round-robin", "bandit", "learning-to-rank")
    above = sum(
        max(each.relevant(p)[i] for p in learning) > max(each.relevant(p)[i] for p in TABLE_2 if p not in learning)
        for each in settings
        for i in range(len(SHARES))
    )
    yield (
        "- **Policies that learn against the baselines:** the best of REG, REG-RR, BANDIT and LTR is above the best of RR, OD-WIN, "
        f"COV* and CLIQ-WIN* in all columns of Table 2, and here in {above} of {len(against)}."
    )
    yield (
        "- **The classifier errs**, and its errors count as truth here, as in the paper: coverage is of what it calls relevant. "
        "A topic that headlines do not name needs texts (`text` in the labels). "
        "Theirs were trained before the crawl on pages labelled by experts, and read the pages behind the links. Ours reads "
        "URLs, and links of the whole time trained it, some of those that it judges among them. A policy sees its verdict on a "
        "link only when it finds the link."
    )
    yield (
        "- **One run each.** The order of the pages alone moves coverage by about 0.01 (bandit) to 0.06 (set-cover), see "
        "[Policies replayed](replays.md); smaller differences say nothing."
    )
    yield (f"- {OWN} was developed on these collections, though not for these topics: expect somewhat less elsewhere.")


def figure(setting: Setting) -> str:
    """Coverage over time of relevant and of all links, as SVG."""
    width, height, left, top = 720, 360, 50, 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    ]
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    wide, tall = width - left - 20, height - top - 90
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = top + tall * (1 - share)
        parts.append(f'<line x1="{left}" x2="{left + wide}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    for i, (policy, colour) in enumerate(zip(DRAWN, COLOURS, strict=True)):
        run = setting.runs[policy, setting.budgets[1].pages]
        everything = [{"found": row["found_all"], "published": row["published_all"]} for row in run.rows]
        for j, (what, rows, dash) in enumerate(
            (("relevant", run.rows, ""), ("all", everything, ' stroke-dasharray="2 4"'))
        ):
            values = coverage_over_time(rows)
            kept = np.unique(np.linspace(0, len(values) - 1, 240).astype(int))
            points = " ".join(
                f"{left + wide * k / (len(values) - 1):.1f},{top + tall * (1 - values[k]):.1f}"
                for k in kept
                if values[k] == values[k]
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
            x, y = left + 230 * i, top + tall + 40 + 20 * j
            parts.append(
                f'<line x1="{x}" x2="{x + 30}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2"{dash}/>'
            )
            parts.append(f'<text x="{x + 36}" y="{y}">{policy}, {what}: {values[-1]:.3f}</text>')
    first, last = (run.rows[i]["at"][:10] for i in (0, -1))
    parts.append(f'<text x="{left}" y="{top + tall + 18}">{first}</text>')
    parts.append(f'<text x="{left + wide}" y="{top + tall + 18}" text-anchor="end">{last}</text></svg>')
    return "\n".join(parts) + "\n"


def main(data: Path) -> None:
    """Write the page and its figure."""
    settings = []
    for name, (options, window) in CORPORA.items():
        with tempfile.TemporaryDirectory() as folder:
            history = imported(data, options, folder)
            world = record(history, "crawl")
            for topic in TOPICS:
                print(f"{name}, {topic}", file=sys.stderr, flush=True)
                settings.append(Setting(history, world, name, topic, window))
    parts = (coverage_table(settings), both_table(settings), findings(settings))
    lines = [HEAD, *map(about, settings), HOW, *(line for part in parts for line in part)]
    (DOCS / "results" / "focused.md").write_text("\n".join(lines) + "\n", "utf-8")
    (DOCS / "assets" / "focused.svg").write_text(figure(settings[0]), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
