from __future__ import annotations

import pytest

from recrawl.errors import RecrawlError
from recrawl.insight.choices import LINKS
from recrawl.insight.features import (
    FEATURE_SETS,
    Feature,
    Features,
    all_but_own_past,
    default,
    dynamic_network,
    dynamic_page,
    everything,
    look_back_look_around,
    mean_past,
    now,
    of_site,
    past,
    preset,
    related,
    static_network,
    static_page,
    summaries,
    vector,
)
from recrawl.insight.features.sets import n_anchors, related_rates
from recrawl.insight.targets import ALL, HasNewLinks, LinkChangeRate, NewLinkCount, Target

SIZES = ["content_bytes", "text_bytes", "text_quality"]
SP = [*SIZES, "path_depth", "domain_depth", "n_internal", "n_external"]
PLACE = ["n_inlinks_internal", "n_inlinks_external", "trustrank"]
TARGETS = [target(links) for target in ALL for links in LINKS]


def names(features: Features) -> list[str]:
    return [str(feature) for feature in features]


def test_sp_has_seven_columns_and_27_with_the_vector() -> None:
    assert names(static_page()) == SP
    assert names(vector()) == [f"vector {i}" for i in range(20)]
    assert len(static_page() + vector()) == 27


def test_sn_has_three_columns_of_the_graph_and_these_and_sp_of_related_pages() -> None:
    around = [f"related {name}" for name in (*SP, *PLACE)]
    assert names(static_network()) == [*PLACE, *around]
    with_rank = names(static_network(page_rank=True))
    assert with_rank[2:4] == ["pagerank", "trustrank"]
    assert set(with_rank) - set(names(static_network())) == {"pagerank", "related pagerank"}
    assert len(static_network()) == 3 + 7 + 3
    assert len(static_network(page_rank=True)) == 4 + 7 + 4


def test_dp_of_history_one_is_the_crawl_before_the_present_one_and_the_last_new_links() -> None:
    lagged = ["content_bytes", "text_bytes", "text_quality", "n_internal", "n_external", "new_internal", "new_external"]
    means = ["new_internal mean of 1", "new_external mean of 1"]
    assert names(dynamic_page(1)) == [f"{name} -1" for name in lagged] + means
    assert dynamic_page(0) == ()


def test_dn_of_history_one_has_lagged_places_in_the_graph_and_the_past_of_related_pages() -> None:
    assert names(dynamic_network(1)) == [
        "n_inlinks_internal -1",
        "n_inlinks_external -1",
        "trustrank -1",
        "related rate_internal -1",
        "related rate_external -1",
        "related new_internal -1",
        "related new_external -1",
        "related new_internal mean of 1",
        "related new_external mean of 1",
    ]
    assert names(dynamic_network(0)) == ["related rate_internal -1", "related rate_external -1"], "for any history size"
    assert names(dynamic_network(1, papers_rate=True))[3:5] == ["related rate_internal", "related rate_external"]


@pytest.mark.parametrize("history", range(9))
def test_columns_grow_with_the_history_size(history: int) -> None:
    means = 2 if history else 0
    assert len(dynamic_page(history)) == 7 * history + means
    assert len(dynamic_network(history)) == (3 + 2) * history + 2 + means
    assert len(everything(history)) == (20 + 12 * history + 6 if history else 20)


def test_without_history_all_features_are_sp_and_sn() -> None:
    assert everything(0) == static_page() + static_network() == preset("static", HasNewLinks("all"))


def test_a_longer_history_only_adds_columns_but_for_the_means() -> None:
    for history in range(1, 8):
        shorter = {feature for feature in everything(history) if not feature.mean_of}
        assert shorter < set(everything(history + 1))


def test_everything_of_history_8_holds_the_86_columns_of_the_authors_runs() -> None:
    lags = range(1, 9)
    theirs = [*SP, *PLACE, *(f"related {name}" for name in (*SP, *PLACE))]
    theirs += [f"{name} -{i}" for i in lags for name in (*SIZES, "new_internal", "new_external")]
    theirs += [f"{name} -{i}" for i in lags for name in PLACE]
    theirs += ["related rate_internal", "related rate_external"]
    assert len(theirs) == 86
    assert set(theirs) <= set(names(everything(8, papers_rate=True)))


@pytest.mark.parametrize("history", range(9))
def test_all_but_the_pages_own_past_is_everything_without_dp(history: int) -> None:
    kept = set(all_but_own_past(history))
    assert kept == set(everything(history)) - set(dynamic_page(history)) | set(related_rates())
    if history:
        wanted = {f"{name} -{history}" for name in (*PLACE, "related new_internal", "related new_external")}
        assert wanted <= set(names(all_but_own_past(history)))
    assert not any(feature.quantity.startswith(("new_", "rate_")) and not feature.around for feature in kept)


@pytest.mark.parametrize("links", ["internal", "external", "all"])
def test_lbla_is_the_past_of_the_target_and_of_related_pages(links: str) -> None:
    back = [f"new_{links} -{i}" for i in range(1, 9)] + [f"new_{links} mean of 8"]
    rates = ["related rate_internal -1", "related rate_external -1"]
    for target in (HasNewLinks(links), NewLinkCount(links)):  # type: ignore[arg-type]
        found = look_back_look_around(target)
        assert names(found) == [*back, *(f"related {name}" for name in back), *rates]
        assert len(found) == 20
    assert names(look_back_look_around(LinkChangeRate(links))) == rates, "look around only"  # type: ignore[arg-type]


def test_lbla_without_history_is_left_with_the_rates_of_related_pages() -> None:
    assert look_back_look_around(NewLinkCount("all"), 0) == related_rates()


def test_summaries_tell_of_the_page_its_related_pages_and_its_site() -> None:
    whole = [f"{name}_external -1" for name in ("mean", "rate", "recent", "recent_rate")]
    own = [*whole, "quiet_external -1", "watched_external -1", "content_change_rate -1"]
    around = [f"{where} {name}" for where in ("related", "site") for name in whole]
    assert names(summaries(HasNewLinks("external"))) == own + around


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_default_is_lbla_with_summaries_and_sp_after_the_anchors(target: Target) -> None:
    rest = {*look_back_look_around(target), *summaries(target), *static_page()}
    assert names(default(target)[:2]) == [f"shrunk_rate_{target.links} -1", f"shrunk_mean_{target.links} -1"]
    assert set(default(target)[2:]) == rest
    assert n_anchors(default(target)) == 2
    assert n_anchors(everything()) == n_anchors(()) == 0
    assert preset("default", target, 3) == default(target, 3)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", FEATURE_SETS)
def test_no_preset_leaks_or_has_a_column_or_a_description_twice(name: str, target: Target) -> None:
    for history in range(9):
        features = preset(name, target, history)
        assert features
        assert not any(feature.leaks for feature in features)
        assert len(set(features)) == len(features)
        assert len(set(names(features))) == len(features)
        assert len({feature.words for feature in features}) == len(features)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_with_the_papers_rates_two_columns_leak(target: Target) -> None:
    for name in ("everything", "look-back-look-around"):
        leaking = [feature for feature in preset(name, target, papers_rate=True) if feature.leaks]
        assert names(tuple(leaking)) == ["related rate_internal", "related rate_external"]
        words = {feature.words for feature in preset(name, target, papers_rate=True)}
        assert len(words) == len(preset(name, target, papers_rate=True))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_with_the_leaks_of_the_authors_program_related_new_links_of_the_predicted_round_are_known(
    target: Target,
) -> None:
    both = {"papers_rate": True, "papers_leaks": True}
    rates, new = ["related rate_internal", "related rate_external"], ["related new_internal", "related new_external"]
    leaking = [feature for feature in preset("everything", target, **both) if feature.leaks]
    assert names(tuple(leaking)) == rates + new
    assert set(preset("everything", target, **both)) - set(leaking) == set(everything()) - set(related_rates())
    leaking = [feature for feature in preset("lbla", target, **both) if feature.leaks]
    own = [] if target.kind == "rate" else [f"related new_{target.links}"]
    assert names(tuple(leaking)) == rates + own, "of the rate LBLA knows the related pages' rates only"
    words = [feature.words for feature in preset("everything", target, **both)]
    assert len(set(words)) == len(words)


def test_what_happens_in_the_predicted_round_leaks_and_nothing_else() -> None:
    assert Feature("new_internal").leaks
    assert Feature("content_change_rate", around="site").leaks
    assert not Feature("new_internal", 1).leaks
    assert not Feature("new_internal", mean_of=3).leaks
    assert not Feature("content_bytes").leaks, "now is the round before"
    assert not Feature("trustrank").leaks
    assert not Feature("vector", 0).leaks


@pytest.mark.parametrize(
    ("feature", "name", "words"),
    [
        (Feature("text_bytes"), "text_bytes", "page text size"),
        (Feature("text_bytes", 1), "text_bytes -1", "page text size one round ago"),
        (Feature("trustrank", 8), "trustrank -8", "TrustRank 8 rounds ago"),
        (Feature("n_external", around="related"), "related n_external", "number of external outlinks, on related pages"),
        (Feature("new_all", 1), "new_all -1", "new links one round ago"),
        (Feature("new_internal", 2, "related"), "related new_internal -2", "new internal links 2 rounds ago, on related pages"),
        (Feature("new_external", mean_of=8), "new_external mean of 8", "new external links, mean of the last 8 rounds"),
        (Feature("rate_all", 1, "site"), "site rate_all -1", "share of rounds with new links, on its site"),
        (Feature("watched_all", 1), "watched_all -1", "rounds in which new links were looked for"),
        (Feature("mean_internal", 3), "mean_internal -3", "mean new internal links so far 2 rounds ago"),
        (Feature("vector", 0), "vector 0", "text dimension 0"),
        (Feature("vector", 7), "vector 7", "text dimension 7"),
    ],
)  # fmt: skip
def test_a_feature_has_a_name_and_words(feature: Feature, name: str, words: str) -> None:
    assert (str(feature), feature.words) == (name, words)


def test_the_operators_commute() -> None:
    base = now("new_internal", "text_bytes")
    assert related(past(base, [1, 2])) == past(related(base), [1, 2])
    assert related(mean_past(base, 3)) == mean_past(related(base), 3)
    assert past(past(base, [1]), [2]) == past(base, [3])
    assert names(of_site(base)) == ["site new_internal", "site text_bytes"]
    assert mean_past(base, 0) == ()


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(RecrawlError, match=r"No feature set named 'lbl'\. Known: look-back-look-around, summaries"):
        preset("lbl", HasNewLinks("all"))
    assert preset("lbla", HasNewLinks("all")) == preset("look-back-look-around", HasNewLinks("all"))
