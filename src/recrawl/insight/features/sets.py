"""The papers' feature sets, written with the two operators, and the presets for each target.

References: Dang et al. (2022), "Look back, look around", section 5.2; its preprint is Dang et al. (2021), "Prediction of new
outlinks for focused Web crawling".
"""

from __future__ import annotations

from recrawl.core.suggest import unknown
from recrawl.errors import RecrawlError
from recrawl.insight.choices import FEATURE_SETS, MAX_HISTORY
from recrawl.insight.features.operators import Feature, Features, mean_past, now, of_site, past, related
from recrawl.insight.targets import Target

VECTOR_COLUMNS = 20

SIZES = ("content_bytes", "text_bytes", "text_quality")
DEPTHS = ("path_depth", "domain_depth")
OUTLINKS = ("n_internal", "n_external")
NEW = ("new_internal", "new_external")
RATES = ("rate_internal", "rate_external")


def static_page() -> Features:
    """SP: sizes, text quality, depths and outlinks of the page now."""
    return now(*SIZES, *DEPTHS, *OUTLINKS)


def vector() -> Features:
    """The semantic vector, merged to 20 columns; SP with it is the papers' SPsem."""
    return tuple(Feature("vector", lag) for lag in range(VECTOR_COLUMNS))


def static_network(*, page_rank: bool = False) -> Features:
    """SN: inlinks, TrustRank, and the mean of SP and of these over the related pages.

    The papers write "the static features of related pages" and then name SP only; the columns of the authors' program also have
    the related pages' inlinks and TrustRank. The papers drop PageRank from the models because of its correlation with TrustRank
    (section 6.1); `page_rank` keeps it.
    """
    ranks = ("pagerank", "trustrank") if page_rank else ("trustrank",)
    place = now("n_inlinks_internal", "n_inlinks_external", *ranks)
    return place + related(static_page() + place)


def dynamic_page(history: int) -> Features:
    """DP: the parts of SP that may change and the new links in each of the past rounds, and the mean of the new links.

    Dang et al. (2022) count the outlinks among what may change, their preprint only the new ones; both are here.
    """
    lags = range(1, history + 1)
    return past(now(*SIZES, *OUTLINKS, *NEW), lags) + mean_past(now(*NEW), history)


def dynamic_network(history: int, *, papers_rate: bool = False, papers_leaks: bool = False) -> Features:
    """DN: past inlinks and TrustRank, and of the related pages the link change rates and their past new links.

    `papers_rate`: the rates include the round that is predicted, as in the papers ("a realistic assumption that we know the link
    change rate of related pages"); else they end before it, and nothing leaks. `papers_leaks`: the new links of related pages in
    the predicted round are a feature as well, as in the authors' program, though not in their text.
    """
    lags = range(1, history + 1)
    lagged = past(now("n_inlinks_internal", "n_inlinks_external", "trustrank"), lags)
    leaked = related(now(*NEW)) if papers_leaks else ()
    back = past(now(*NEW), lags) + mean_past(now(*NEW), history)
    return lagged + related_rates(papers_rate) + leaked + related(back)


def related_rates(papers_rate: bool = False) -> Features:
    """The link change rates of related pages, up to the round before the predicted one; with `papers_rate` including it."""
    return related(now(*RATES) if papers_rate else past(now(*RATES), [1]))


def look_back_look_around(
    target: Target, history: int = MAX_HISTORY, *, papers_rate: bool = False, papers_leaks: bool = False
) -> Features:
    """LBLA: only the past of the target itself, on this page and on its related pages.

    For the link change rate only the related pages' rates: the page's own past would be the answer. The paper prints no list; this
    follows its wording: own new links 1 to 8 rounds ago and their mean, those of related pages, and the rates of related pages.

    References: Dang et al. (2022), section 7.
    """
    if target.kind == "rate":
        return related_rates(papers_rate)
    own = now(f"new_{target.links}")
    back = past(own, range(1, history + 1)) + mean_past(own, history)
    leaked = related(own) if papers_leaks else ()
    return back + related(back) + related_rates(papers_rate) + leaked


def summaries(target: Target) -> Features:
    """Beyond the papers: the whole past in a few numbers, for this page, its related pages and its site.

    They need no visit in any particular round, so they also describe pages that are visited seldom or irregularly, and they use
    more than the last eight rounds where there are more.
    """
    links = target.links
    whole = past(now(f"mean_{links}", f"rate_{links}", f"recent_{links}", f"recent_rate_{links}"), [1])
    own = whole + past(now(f"quiet_{links}", f"watched_{links}", "content_change_rate"), [1])
    return own + related(whole) + of_site(whole)


def everything(history: int = MAX_HISTORY, **leaks: bool) -> Features:
    """All features of the papers with a history size; without history SP and SN, as in their Fig. 12."""
    static = static_page() + static_network()
    return static + dynamic_page(history) + dynamic_network(history, **leaks) if history else static


def all_but_own_past(history: int = MAX_HISTORY, **leaks: bool) -> Features:
    """All features but DP, for the link change rate, which the page's own past would give away (section 7)."""
    return static_page() + static_network() + dynamic_network(history, **leaks)


def preset(name: str, target: Target, history: int = MAX_HISTORY, **leaks: bool) -> Features:
    """A feature set by its name on the command line; `leaks` as in `dynamic_network`."""
    if name in ("look-back-look-around", "lbla"):
        return look_back_look_around(target, history, **leaks)
    if name == "summaries":
        return summaries(target)
    if name == "everything":
        return everything(history, **leaks)
    if name == "static":
        return everything(0)
    if name == "default":
        return default(target, history)
    raise RecrawlError(unknown("feature set", name, FEATURE_SETS))


def default(target: Target, history: int = MAX_HISTORY) -> Features:
    """The features of `recrawl train`: LBLA without leaks, the summaries, and the static page features; the anchors come first."""
    columns = anchors(target) + look_back_look_around(target, history) + summaries(target) + static_page()
    return tuple(dict.fromkeys(columns))  # the related pages' rate is in two of them


def anchors(target: Target) -> Features:
    """The page's rate and mean of new links so far, shrunk towards those of all pages: where a model of counts starts."""
    return past(now(f"shrunk_rate_{target.links}", f"shrunk_mean_{target.links}"), [1])


def n_anchors(features: Features) -> int:
    """How many columns at the front are anchors."""
    return 2 if [f.quantity.rpartition("_")[0] for f in features[:2]] == ["shrunk_rate", "shrunk_mean"] else 0
