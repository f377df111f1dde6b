"""How new links arrive on the pages of a history: what `recrawl stats` shows.

`analyse` turns a panel and the visit times into plain rows; tables, figures and the page are made from these rows.
References: LBLA (2022) section 4 and its preprint (Appendix A1); HACS (2020) section IV.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from recrawl.core.arrays import Ints, Times
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight.choices import INLINKS, OUTLINKS
from recrawl.insight.inlinks import with_new_inlinks
from recrawl.report.stats import newlinks
from recrawl.report.stats.findings import findings
from recrawl.report.stats.gaps import CapturedPage, Gaps, capture_gaps, captured_pages
from recrawl.report.stats.newlinks import (
    SIDES,
    Ccdf,
    ChangeRate,
    Concentration,
    ExtremePage,
    GroupFlow,
    GroupStay,
    RoundCount,
    new_links,
)
from recrawl.report.stats.outlinks import OutlinkShare, outlink_shares
from recrawl.report.stats.websites import Websites, websites
from recrawl.web.urls import top_level_domain
from recrawl.world.panel import Panel
from recrawl.world.roots import Roots
from recrawl.world.rounds import last_in_round, rounds_of
from recrawl.world.sizes import has_content

if TYPE_CHECKING:
    from recrawl.report.stats.tails import TailFits

HALF = 0.5
#: Parts that are there only where they are asked for, and their value where they are not.
OPTIONAL = {"websites": None, "target": OUTLINKS}


@dataclass(frozen=True, slots=True)
class Domain:
    """How many pages a top-level domain has."""

    domain: str  # ".org"; "(address)" for pages without a name
    n_pages: int
    share: float


@dataclass(frozen=True)
class LinkStatistics:
    """All rows of the analysis; `notes` says for every empty part why it is empty."""

    n_pages: int
    rounds: tuple[str, ...]  # the end of each round, UTC
    outlink_shares: tuple[OutlinkShare, ...]
    round_counts: tuple[RoundCount, ...]
    change_rates: tuple[ChangeRate, ...]
    group_flows: tuple[GroupFlow, ...]
    group_stays: tuple[GroupStay, ...]
    ccdfs: tuple[Ccdf, ...]
    concentrations: tuple[Concentration, ...]
    tails: tuple[TailFits, ...]
    domains: tuple[Domain, ...]
    extreme_pages: tuple[ExtremePage, ...]
    gaps: Gaps | None
    captured_pages: tuple[CapturedPage, ...]
    notes: dict[str, str]  # name of the empty part → reason
    findings: tuple[str, ...] = ()
    target: str = OUTLINKS  # whose new links: those on a page, or those that lead to it on other pages
    websites: Websites | None = None  # None: no roots of websites were given

    def round_end(self, number: int) -> str:
        """When a round ended, as people read it."""
        return self.rounds[number].replace("T", " ")

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, texts and numbers for JSON."""
        plain: dict[str, Any] = _plain(asdict(self))
        return {part: value for part, value in plain.items() if value != OPTIONAL.get(part, ())}


def analyse(
    panel: Panel,
    page: Ints,
    at: Times,
    *,
    seed: int = 0,
    roots: Roots | None = None,
    target: str = OUTLINKS,
    fit_round: int | None = None,
    internal_groups: tuple[int, ...] = newlinks.INTERNAL_GROUPS,
    external_groups: tuple[int, ...] = newlinks.EXTERNAL_GROUPS,
) -> LinkStatistics:
    """All parts of the analysis; `page` and `at` are all visits, sorted by (page, at).

    `roots`: also look at websites as a whole, by where they begin. `target`: "inlinks" counts the links that other pages newly
    show to a page, instead of those that it shows itself. The laws are fitted to `fit_round`, a column of the panel, by default the
    last one with known new links. The seed picks the pages of the capture sample; nothing else is left to chance.
    """
    panel = with_new_inlinks(panel) if target == INLINKS else panel
    flows = newlinks.group_flows(panel, internal_groups, external_groups)
    statistics = LinkStatistics(
        n_pages=panel.page.size,
        rounds=_round_names(panel.rounds),
        outlink_shares=tuple(outlink_shares(panel)),
        round_counts=tuple(newlinks.round_counts(panel)),
        change_rates=tuple(newlinks.change_rates(panel)),
        group_flows=tuple(flows),
        group_stays=tuple(newlinks.group_stays(flows)),
        ccdfs=tuple(newlinks.ccdfs(panel)),
        concentrations=tuple(newlinks.concentrations(panel)),
        tails=_tails(panel, fit_round),
        domains=tuple(domains(panel)),
        extreme_pages=tuple(newlinks.extreme_pages(panel)),
        gaps=capture_gaps(page, at),
        captured_pages=tuple(captured_pages(page, at, seed=seed)),
        notes={},
        target=target,
        websites=None if roots is None else websites(panel, roots),
    )
    return replace(statistics, notes=_notes(statistics), findings=findings(statistics))


def default_share(history: History, every: str = "crawl", with_content: bool = False) -> float:
    """The default of --min-share: half of the rounds, or less where that would leave out more than half of the pages.

    Real crawls miss pages now and then, and archives most of the time: asking for every round would leave nothing to analyse.
    """
    timeline = history.timeline
    rounds = rounds_of(timeline, every)
    seen = timeline.page[last_in_round(timeline, rounds, has_content(timeline) if with_content else None)]
    if not len(seen):
        return HALF
    n_seen = np.sort(np.unique(seen, return_counts=True)[1])[::-1]
    share = float(n_seen[(len(n_seen) - 1) // 2]) / len(rounds.ends)
    return min(HALF, math.floor(1000 * share) / 1000)


def domains(panel: Panel, n_domains: int = 20) -> list[Domain]:
    """The top-level domains with most pages (LBLA Fig. 2)."""
    # Many pages share few hosts: take the hosts out in one go and look only at these one by one.
    origins = pc.struct_field(pc.extract_regex(panel.url, r"^(?P<origin>https?://[^/?#]+)"), "origin")
    n_pages: Counter[str] = Counter()
    for origin in pc.value_counts(pc.drop_null(origins)).to_pylist():
        n_pages[top_level_domain(origin["values"])] += origin["counts"]
    ranked = sorted(n_pages.items(), key=lambda item: (-item[1], item[0]))
    names = ((name if name.startswith("(") else f".{name}", n) for name, n in ranked[:n_domains])
    return [Domain(name, n, n / len(panel.url)) for name, n in names]


def _tails(panel: Panel, fit_round: int | None) -> tuple[TailFits, ...]:
    known = newlinks.known_rounds(new_links(panel, "all"))
    if fit_round is not None and fit_round not in known:
        names = ", ".join(map(str, known)) or "none"
        raise NotEnoughData(f"round {fit_round} has no page whose new links are known; rounds that have: {names}")
    if not known:
        return ()
    from recrawl.report.stats.tails import fit_tails  # powerlaw takes a second to import

    column = known[-1] if fit_round is None else fit_round
    per_page = ((links, new_links(panel, links)[:, column]) for links in SIDES)
    return tuple(fit_tails(x[~np.isnan(x)].astype(np.float64), links, column) for links, x in per_page)


def _round_names(rounds: Times) -> tuple[str, ...]:
    days = np.datetime_as_string(rounds, unit="D")
    by_day = np.unique(days).size == days.size
    return tuple((days if by_day else np.datetime_as_string(rounds, unit="m")).tolist())


def _notes(statistics: LinkStatistics) -> dict[str, str]:
    nothing_compared, nothing_new = _why_nothing_compared(statistics), "No page gained a link in any round."
    unvisited = "No page was visited twice, so there is no gap between visits."
    reasons = {
        "outlink_shares": "No page was seen with its links.",
        "round_counts": nothing_compared,
        "change_rates": nothing_compared,
        "group_flows": nothing_compared or "Groups are compared between two rounds; new links are known in one only.",
        "ccdfs": nothing_compared or nothing_new,
        "concentrations": nothing_compared or nothing_new,
        "tails": nothing_compared or nothing_new,
        "domains": "The history holds no pages.",
        "extreme_pages": nothing_compared or nothing_new,
        "gaps": unvisited,
        "captured_pages": "The history holds no visits.",
    }
    notes = {part: reason for part, reason in reasons.items() if not getattr(statistics, part)}
    if statistics.websites is not None and not statistics.websites.sites:
        notes["websites"] = f"No page is under a root by --roots {statistics.websites.roots}."
    return notes


def _why_nothing_compared(statistics: LinkStatistics) -> str:
    if statistics.round_counts:
        return ""
    if not statistics.n_pages:
        return "The history holds no pages."
    if len(statistics.rounds) < 2:
        return (
            "New links show only when a page is seen again: the history has fewer than two rounds; for a crawl without pauses "
            "name them, as in --every 1d."
        )
    return "No page was seen with its links in two rounds, so nothing can be compared."


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # JSON knows no NaN and no infinity.
    return None if isinstance(value, float) and not math.isfinite(value) else value
