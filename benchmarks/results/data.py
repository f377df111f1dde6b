"""Write docs/results/data.md: what ``info`` and ``stats`` say of the five real collections.

``python -m benchmarks.results.data ../shared/data``; takes some minutes. The collections themselves are not part of recrawl.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recrawl.errors import NotEnoughData
from recrawl.history import History, Summary, summary
from recrawl.report.stats.analysis import LinkStatistics, analyse
from recrawl.world.panel import build

#: Name, options of visits.py, rounds for stats, least share of rounds, what the collection is.
CORPORA = (
    (
        "news_hourly_2025-03",
        "",
        "1d",
        0.9,
        "Section front pages of German news sites, crawled about hourly in March 2025.",
    ),
    ("news_daily_2025", "", "7d", 0.9, "The same kind of pages, crawled daily through 2025."),
    (
        "openbsd_www",
        "--every 7d --from 2005-01-01 --to 2010-01-01",
        "30d",
        0.9,
        "The OpenBSD web site, every change known; a weekly crawl is laid over it.",
    ),
    (
        "ota_terms",
        "--every 7d --from 2021-01-01 --to 2026-07-01",
        "30d",
        0.5,
        "Terms of service and privacy policies on 366 hosts, a weekly crawl laid over their changes.",
    ),
    (
        "author_homepages",
        "--every 7d --from 2017-01-01 --to 2026-07-01",
        "30d",
        0.5,
        "Homepages of 20 academic persons and labs, a weekly crawl laid over their changes.",
    ),
)
#: Found by an independent simple program on the URLs as they are stored:
#: visits compared; new since the previous visit, on how many visits; never before on the page, on how many visits; anywhere.
INDEPENDENT = {
    "news_hourly_2025-03": (83_478, 194_335, 37_276, 167_677, 35_506, 83_896),
    "openbsd_www": (723_116, 32_255, 9_521, 30_057, 9_121, 6_731),
    "author_homepages": (108_096, 3_525, 1_102, 3_381, 1_035, 2_642),
}
INTRO = """# Five real collections

What `recrawl info` and `recrawl stats` say of five collections of real pages observed over time. Made by
`python -m benchmarks.results.data DIR`, where DIR holds the collections and `visits.py`, which prints them as visit records.
New links are counted after URLs were canonicalised.
"""
WHY = """
**Where the numbers differ.** On `news_hourly_2025-03` all six agree exactly. On the two others the independent program
compared URLs as they are stored; recrawl first gives every page one spelling. Counting with the plain spellings gives
exactly the independent numbers (32,255 / 9,521 / 30,057 / 6,731 on `openbsd_www`), counting with canonical ones exactly
recrawl's, so the whole difference is spelling. On `openbsd_www` most of it are links to the manual pages,
`man.cgi?query=bm&arch=macppc&sektion=4` beside `man.cgi?query=bm&sektion=4&&arch=macppc`, and `%7E` beside `~`: 120 of the
6,731 links "never before anywhere" were known under another spelling, which is 1.8%; the other counts differ by less than
0.5%. For the same reason 1,040 of the 186,447 visits of `ota_terms` are known already when they come: four of its pages
have two spellings.
"""


def imported(data: Path, name: str, options: str, folder: str) -> History:
    reader, python = data / "visits.py", sys.executable
    command = f"{python} {reader} {name} {options} | {python} -m recrawl.cli import - --history {folder}"
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    return History.open(folder)


def section(data: Path, name: str, options: str, every: str, share: float, what: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="recrawl-docs-") as folder:
        history = imported(data, name, options, folder)
        yield f"## {name}\n\n{what}\n\n```\npython visits.py {name} {options}".rstrip() + " | recrawl import -\n```\n"
        totals = summary(history)
        yield from info(totals, sum(history.store.size_in_bytes().values()))
        if name in INDEPENDENT:
            yield from comparison(totals, INDEPENDENT[name])
        timeline = history.timeline
        try:
            found = analyse(build(history, every, share), timeline.page, timeline.at.view("datetime64[us]"))
        except NotEnoughData as error:
            yield f"`recrawl stats --every {every}`: {error}\n"
            return
        yield from stats(found, every, share)


def info(totals: Summary, n_bytes: int) -> Iterator[str]:
    yield "| pages | hosts | visits | ok | unchanged | gone | failed | distinct links | first | last | MB |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    counts = (
        totals.pages,
        totals.hosts,
        totals.visits,
        totals.ok,
        totals.unchanged,
        totals.gone,
        totals.failed,
        totals.links,
    )
    cells = " | ".join(f"{count:,}" for count in counts)
    yield f"| {cells} | {totals.first_at:%Y-%m-%d} | {totals.last_at:%Y-%m-%d} | {n_bytes / 1e6:.1f} |\n"
    yield "| new links | links | on visits | share of compared visits |\n|---|---|---|---|"
    for meaning, words in (
        ("previous", "since the page's previous visit"),
        ("page", "never before on the page"),
        ("anywhere", "never before anywhere (distinct)"),
    ):
        visits = totals.visits_with_new_links[meaning]
        yield f"| {words} | {totals.new_links[meaning]:,} | {visits:,} | {visits / totals.visits_compared:.2%} |"
    yield ""


def comparison(totals: Summary, other: tuple[int, ...]) -> Iterator[str]:
    ours = (
        totals.visits_compared,
        totals.new_links["previous"],
        totals.visits_with_new_links["previous"],
        totals.new_links["page"],
        totals.visits_with_new_links["page"],
        totals.new_links["anywhere"],
    )
    names = ("visits compared", "new since previous", "… on visits", "never on page", "… on visits", "never anywhere")
    yield "| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names)
    yield "| recrawl | " + " | ".join(f"{n:,}" for n in ours) + " |"
    yield "| an independent program | " + " | ".join(f"{n:,}" for n in other) + " |"
    yield "| difference | " + " | ".join(f"{(a - b) / b:+.2%}" for a, b in zip(ours, other, strict=True)) + " |\n"


def stats(found: LinkStatistics, every: str, share: float) -> Iterator[str]:
    yield f"`recrawl stats --every {every} --min-share {share}` ({found.n_pages:,} pages in {len(found.rounds)} rounds):\n"
    for sentence in found.findings:
        yield f"- {sentence}"
    for fits in found.tails:
        for part in fits.parts:
            if part.fits:
                laws = ", ".join(f"{fit.law} {fit.distance:.3f}" for fit in part.fits if fit.distance is not None)
                yield f"- {fits.links} links, {part.name}: Kolmogorov-Smirnov distance {laws}"
    yield ""


if __name__ == "__main__":
    lines = [INTRO]
    for corpus in CORPORA:
        print(corpus[0], file=sys.stderr, flush=True)
        lines += section(Path(sys.argv[1]), *corpus)
    (Path(__file__).resolve().parents[2] / "docs/results/data.md").write_text("\n".join([*lines, WHY.strip(), ""]))
