"""All features once more, one page at a time with pandas, straight from the papers' definitions (LBLA section 5.2).

It shares no code with `recrawl.insight.features`: the tests compare its numbers, the benchmark its speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from recrawl.insight.features import FeatureInputs

SIZES = ("content_bytes", "text_bytes", "text_quality")
OUTLINKS = ("n_internal", "n_external")
STATIC = (*SIZES, "path_depth", "domain_depth", *OUTLINKS)
INLINKS = ("n_inlinks_internal", "n_inlinks_external")
KINDS = ("internal", "external", "all")
WHOLE_PAST = ("mean", "rate", "recent", "recent_rate")  # of new links, so far
OWN_PAST = (*WHOLE_PAST, "shrunk_mean", "shrunk_rate", "quiet", "watched")
HALF_LIFE = 3  # intervals after which a past count weighs half in what is "recent"
Named = Iterator[tuple[str, float]]


def slow_features(
    known: FeatureInputs,
    of_round: int,
    history: int = 8,
    *,
    links: Sequence[str] = KINDS,
    page_rank: bool = True,
    papers_rate: bool = False,
    papers_leaks: bool = False,
    pages: Iterable[int] | None = None,
) -> pd.DataFrame:
    """Every feature by its name, for every page (or some), as known before a round."""
    stories = all_stories(known, links)
    host = pd.Series([url.split("/")[2].split(":")[0] for url in known.panel.url.to_pylist()])
    mates = host.groupby(host).groups
    rows = []
    for page in range(len(stories)) if pages is None else pages:
        own = back(stories[page], of_round, history)
        near = back(related(known, stories, page), of_round, history)
        site = back(mean([stories[mate] for mate in mates[host[page]] if mate != page], stories[page]), of_round, 1)
        row = dict(static_page(own))
        row |= static_network(own, near, page_rank)
        row |= dynamic_page(own, history, links)
        row |= dynamic_network(own, near, history, links, papers_rate)
        row |= {f"related new_{kind}": near[0][f"new_{kind}"] for kind in links if papers_leaks}
        row |= summaries(own[1], near[1], site[1], links)
        row |= semantic(known, page)
        rows.append(row)
    return pd.DataFrame(rows)


# -- a page's rounds --------------------------------------------------------------------------------------------------


def all_stories(known: FeatureInputs, links: Sequence[str] = KINDS) -> list[pd.DataFrame]:
    of_all = of_all_pages(known, links)
    return [story(known, page, links, of_all) for page in range(known.panel.shape[0])]


def of_all_pages(known: FeatureInputs, links: Sequence[str]) -> pd.DataFrame:
    """The mean of new links and the share of intervals with some, over all pages up to and including each round."""
    new = {"internal": known.panel.n_new_internal, "external": known.panel.n_new_external}
    new["all"] = new["internal"] + new["external"]
    columns = {}
    for kind in links:
        frame = pd.DataFrame(new[kind], dtype=np.float64)
        n = frame.count().cumsum().clip(lower=1)
        columns[f"mean_{kind}"] = frame.sum().cumsum().clip(lower=0.5) / n
        columns[f"rate_{kind}"] = (frame > 0).sum().cumsum().clip(lower=0.5) / n
    return pd.DataFrame(columns)


def story(known: FeatureInputs, page: int, links: Sequence[str], of_all: pd.DataFrame) -> pd.DataFrame:
    """What is known of a page in each round, one row for a round; what adds up over rounds as it is after the round."""
    panel, graph = known.panel, known.graph
    columns = {name: panel.base[name][page] for name in STATIC}
    for name in (*INLINKS, "pagerank", "trustrank"):
        columns[name] = np.full(panel.shape[1], np.nan) if graph is None else getattr(graph, name)[page]
    frame = pd.DataFrame(columns, dtype=np.float64).ffill()  # what a page shows is what it showed when last seen
    frame["new_internal"], frame["new_external"] = panel.n_new_internal[page], panel.n_new_external[page]
    frame["content_change_rate"] = pd.Series(panel.content_changed[page], dtype=np.float64).expanding().mean()
    if "all" in links:
        frame["new_all"] = frame["new_internal"] + frame["new_external"]
    return pd.concat([frame, *(so_far(frame[f"new_{kind}"], kind, of_all) for kind in links)], axis=1)


def so_far(new: pd.Series, kind: str, of_all: pd.DataFrame) -> pd.DataFrame:
    """The new links up to and including each round."""
    hits = (new > 0).astype(float).where(new.notna())
    n_looked = new.notna().cumsum()
    n_until_last_hit = n_looked.where(new > 0).ffill().fillna(0)
    return pd.DataFrame(
        {
            f"mean_{kind}": new.expanding().mean(),
            f"rate_{kind}": hits.expanding().mean(),
            f"shrunk_mean_{kind}": drawn(new, of_all[f"mean_{kind}"]),
            f"shrunk_rate_{kind}": drawn(hits, of_all[f"rate_{kind}"]),
            f"recent_{kind}": new.ewm(halflife=HALF_LIFE).mean(),
            f"recent_rate_{kind}": hits.ewm(halflife=HALF_LIFE).mean(),
            f"quiet_{kind}": (n_looked - n_until_last_hit).where(n_looked > 0),
            f"watched_{kind}": n_looked.where(n_looked > 0),
        }
    )


def drawn(values: pd.Series, of_all: pd.Series) -> pd.Series:
    """The mean so far, as if there had been one more interval, like those of all pages; none before the second round."""
    mean = (values.fillna(0).cumsum() + of_all) / (values.notna().cumsum() + 1)
    return mean.where(mean.index > 0)


def related(known: FeatureInputs, stories: list[pd.DataFrame], page: int) -> pd.DataFrame:
    """The average of related pages' stories, weighted by similarity; pages of which a value is not known do not count."""
    if known.related is None:
        return mean([], stories[page])
    is_page = known.related.neighbour[page] >= 0
    if not is_page.any():
        return mean([], stories[page])
    near = pd.concat([stories[other] for other in known.related.neighbour[page][is_page]])
    weight = np.repeat(known.related.weight[page][is_page].astype(np.float64), len(stories[page]))
    total = near.mul(weight, axis=0).groupby(level=0).sum()
    weights = near.notna().mul(weight, axis=0).groupby(level=0).sum()
    return total / weights.where(weights > 0)


def mean(stories: list[pd.DataFrame], like: pd.DataFrame) -> pd.DataFrame:
    """The plain average of stories; without any, nothing is known."""
    return pd.concat(stories).groupby(level=0).mean() if stories else like * np.nan


# -- its features before a round --------------------------------------------------------------------------------------


def back(frame: pd.DataFrame, of_round: int, history: int) -> list[pd.Series]:
    """The rounds r, r - 1, r - 2, …, as many as features of round r ask for; rounds that there were not are all NaN.

    A value of lag i is that of crawl r - 1 - i, since now is r - 1. What was new in the interval of lag i is what crawl r - i
    showed over crawl r - 1 - i, so it stands in the row of r - i.
    """
    until = frame.reindex(range(of_round + 1))
    return [until.shift(i).iloc[-1] for i in range(history + 2)]


def static_page(own: list[pd.Series]) -> Named:
    """SP."""
    yield from ((name, own[1][name]) for name in STATIC)


def static_network(own: list[pd.Series], near: list[pd.Series], page_rank: bool) -> Named:
    """SN."""
    place = (*INLINKS, "trustrank", *(["pagerank"] if page_rank else []))
    yield from ((name, own[1][name]) for name in place)
    yield from ((f"related {name}", near[1][name]) for name in (*STATIC, *place))


def dynamic_page(own: list[pd.Series], history: int, links: Sequence[str]) -> Named:
    """DP."""
    for i in range(1, history + 1):
        yield from ((f"{name} -{i}", own[i + 1][name]) for name in (*SIZES, *OUTLINKS))
    yield from past_new_links("", own, history, links)


def dynamic_network(
    own: list[pd.Series], near: list[pd.Series], history: int, links: Sequence[str], papers_rate: bool
) -> Named:
    """DN: the related pages' link change rate is the papers' if it counts the predicted interval as well."""
    for i in range(1, history + 1):
        yield from ((f"{name} -{i}", own[i + 1][name]) for name in (*INLINKS, "trustrank"))
    yield from past_new_links("related ", near, history, links)
    if papers_rate:
        all_that_happened = near[0].fillna(near[1])  # nothing yet in a round to come
        yield from ((f"related {name}", all_that_happened[name]) for name in ("rate_internal", "rate_external"))


def past_new_links(prefix: str, rounds: list[pd.Series], history: int, links: Sequence[str]) -> Named:
    """The new links of each past interval, and their average."""
    for name in (f"new_{kind}" for kind in links):
        new = [rounds[i][name] for i in range(1, history + 1)]
        yield from ((f"{prefix}{name} -{i}", value) for i, value in enumerate(new, 1))
        if history:
            yield f"{prefix}{name} mean of {history}", pd.Series(new).mean()


def summaries(own: pd.Series, near: pd.Series, site: pd.Series, links: Sequence[str]) -> Named:
    """The whole past in a few numbers, of the page, its related pages and the other pages of its host."""
    yield "content_change_rate -1", own["content_change_rate"]
    for kind in links:
        yield from ((f"{word}_{kind} -1", own[f"{word}_{kind}"]) for word in OWN_PAST)
        for name in (f"{word}_{kind}" for word in WHOLE_PAST):
            yield f"related {name} -1", near[name]
            yield f"site {name} -1", site[name]


def semantic(known: FeatureInputs, page: int) -> Named:
    """The columns of the merged semantic vector."""
    if known.vectors is not None:
        yield from ((f"vector {i}", float(value)) for i, value in enumerate(known.vectors[page]))
