import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import NotEnoughData
from recrawl.history import History, LinkSets
from recrawl.insight import graph
from recrawl.insight.graph import Graph
from recrawl.web.urls import origin, page_id
from recrawl.web.visit import Visit
from recrawl.world import panel
from recrawl.world.panel import Panel

START = datetime(2026, 1, 1, tzinfo=UTC)
HOME, NEWS, BLOG = "https://a.org/", "https://a.org/news", "https://b.org/blog"
Shown = Mapping[str, Sequence[str] | None]  # URL → its links; None: seen, but links not known; absent: not seen


@pytest.fixture(autouse=True)
def every_warning_is_an_error() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def web(urls: Sequence[str], *rounds: Shown) -> Panel:
    """A panel of pages that show these links in these rounds, one link set for each page and round."""
    ids = np.array([page_id(url) for url in urls], np.int64)
    order = np.argsort(ids)
    row = {urls[at]: i for i, at in enumerate(order)}
    shape = (len(urls), len(rounds))
    at, links = np.full(shape, np.datetime64("NaT", "us")), np.full(shape, -1, np.int64)
    sets: list[list[int]] = [[page_id("https://never.shown/")]]
    n_internal = [1]
    for r, shown in enumerate(rounds):
        for url, hrefs in shown.items():
            at[row[url], r] = np.datetime64("2026-01-01", "us") + np.timedelta64(r, "D")
            if hrefs is not None:
                links[row[url], r] = len(sets)
                inside = [page_id(href) for href in hrefs if origin(url) == origin(href)]
                sets.append(sorted(inside) + sorted(page_id(h) for h in hrefs if origin(url) != origin(h)))
                n_internal.append(len(inside))
    return Panel(
        page=ids[order],
        url=pa.array([urls[i] for i in order], pa.string()),
        rounds=np.datetime64("2026-01-02", "us") + np.arange(len(rounds)) * np.timedelta64(1, "D"),
        at=at,
        n_new_internal=np.empty(0, np.float32),
        n_new_external=np.empty(0, np.float32),
        content_changed=np.empty(0, np.float32),
        links=links,
        sets=LinkSets(
            np.arange(len(sets)),
            np.cumsum([0, *map(len, sets)]),
            np.array([link for ids_of_set in sets for link in ids_of_set], np.int64),
            np.array(n_internal),
        ),
    )


def named(of: Panel, values: np.ndarray) -> dict[str, Any]:
    return dict(zip(of.url.to_pylist(), values.tolist(), strict=True))


def adjacency(urls: Sequence[str], rounds: Sequence[Shown]) -> np.ndarray:
    """[from, to] in the last round, 1 where internal and 2 where external, by a loop over all pages and links."""
    matrix = np.zeros((len(urls), len(urls)))
    for i, url in enumerate(urls):
        known = [shown[url] for shown in rounds if shown.get(url) is not None]
        for href in known[-1] or () if known else ():
            if href in urls and href != url:
                matrix[i, urls.index(href)] = 1 if origin(url) == origin(href) else 2
    return matrix


def dense_ranks(matrix: np.ndarray, restart: np.ndarray, damping: float) -> np.ndarray:
    """The eigenvector of the whole Google matrix for the eigenvalue 1, with mean 1."""
    n = len(matrix)
    steps = np.array([row / row.sum() if row.any() else restart for row in (matrix > 0).astype(float)])
    google = damping * steps + (1 - damping) * np.outer(np.ones(n), restart)
    equations = np.vstack([google.T - np.eye(n), np.ones(n)])
    return np.asarray(np.linalg.lstsq(equations, np.append(np.zeros(n), 1), rcond=None)[0]) * n


def test_the_ranks_of_three_pages_are_those_worked_out_by_hand() -> None:
    # Home links to news and blog, both link back: h = 0.05 + 0.85 (n + b), n = b = 0.05 + 0.425 h, so h = 0.135 / 0.2775.
    pages = web([HOME, NEWS, BLOG], {HOME: [NEWS, BLOG], NEWS: [HOME], BLOG: [HOME]})
    found = graph.build(pages, tolerance=1e-12)
    h = 0.135 / 0.2775
    expected = {HOME: 3 * h, NEWS: 3 * (0.05 + 0.425 * h), BLOG: 3 * (0.05 + 0.425 * h)}
    assert named(pages, found.pagerank[:, 0]) == pytest.approx(expected)
    # Restarting at home only: h = 0.15 + 0.85 (n + b), n = b = 0.425 h, so h = 0.15 / 0.2775.
    t = 0.15 / 0.2775
    expected = {HOME: 3 * t, NEWS: 3 * 0.425 * t, BLOG: 3 * 0.425 * t}
    assert named(pages, found.trustrank[:, 0]) == pytest.approx(expected)
    assert named(pages, found.n_inlinks_internal[:, 0]) == {HOME: 1, NEWS: 1, BLOG: 0}
    assert named(pages, found.n_inlinks_external[:, 0]) == {HOME: 1, NEWS: 0, BLOG: 1}
    assert pages.url.take(pa.array(found.trusted)).to_pylist() == [HOME]
    assert found.n_inlinks_internal.dtype == found.trustrank.dtype == np.float32


URLS = [f"{scheme}://{name}.org/{path}" for scheme in ("http", "https") for name in "ab" for path in ("", "1", "2")]
ELSEWHERE = ["https://c.org/", "https://a.org/9"]
link_lists = st.none() | st.lists(st.sampled_from(URLS + ELSEWHERE), unique=True)
webs = st.lists(st.dictionaries(st.sampled_from(URLS), link_lists), min_size=1, max_size=4)


@given(webs, st.sampled_from([0.0, 0.5, 0.85]))
def test_inlinks_and_ranks_are_those_of_a_loop_and_of_a_dense_eigenvector(rounds: list[Shown], damping: float) -> None:
    pages = web(URLS, *rounds)
    found = graph.build(pages, damping=damping, tolerance=1e-12)
    urls = pages.url.to_pylist()
    trusted = np.array([url.count("/") == 3 and url.endswith("/") for url in urls])
    assert found.trusted.tolist() == np.flatnonzero(trusted).tolist()
    for r in range(len(rounds)):
        matrix, seen = adjacency(urls, rounds[: r + 1]), [url in rounds[r] for url in urls]
        known = any(links is not None for shown in rounds[: r + 1] for links in shown.values())
        for kind, inlinks in enumerate((found.n_inlinks_internal, found.n_inlinks_external), 1):
            expected = (matrix == kind).sum(axis=0) if known else np.nan
            assert inlinks[:, r] == pytest.approx(np.where(seen, expected, np.nan), nan_ok=True)
        for restart, ranks in ((np.ones(12), found.pagerank), (trusted, found.trustrank)):
            expected = dense_ranks(matrix, restart / restart.sum(), damping)
            assert ranks[:, r] == pytest.approx(np.where(seen, expected, np.nan), abs=1e-5, nan_ok=True)
    assert found.residual < 1e-12


def test_links_are_carried_forward_from_the_round_in_which_a_page_was_last_seen() -> None:
    pages = web([HOME, NEWS, BLOG], {HOME: [NEWS], NEWS: [HOME], BLOG: []}, {NEWS: None, BLOG: [NEWS]})
    found = graph.build(pages)
    assert named(pages, found.n_inlinks_internal[:, 1])[NEWS] == 1, "of home, which was not visited"
    assert named(pages, found.n_inlinks_external[:, 1])[NEWS] == 1
    for matrix in (found.n_inlinks_internal, found.n_inlinks_external, found.pagerank, found.trustrank):
        assert np.isnan(named(pages, matrix[:, 1])[HOME])
        assert not np.isnan(matrix[:, 0]).any()


def test_a_round_knows_nothing_of_later_ones() -> None:
    first: Shown = {HOME: [NEWS], NEWS: [], BLOG: None}
    alone = graph.build(web([HOME, NEWS, BLOG], first))
    followed = graph.build(web([HOME, NEWS, BLOG], first, {HOME: [BLOG], BLOG: [NEWS]}))
    for name in ("n_inlinks_internal", "n_inlinks_external", "pagerank", "trustrank"):
        assert getattr(alone, name)[:, 0].tolist() == getattr(followed, name)[:, 0].tolist()


def test_without_links_ranks_are_even_and_inlinks_unknown() -> None:
    pages = web([HOME, NEWS, BLOG], {HOME: None, NEWS: None})
    for of in (pages, replace(pages, links=None, sets=None)):
        found = graph.build(of)
        assert np.isnan(found.n_inlinks_internal).all()
        assert np.isnan(found.n_inlinks_external).all()
        assert named(of, found.pagerank[:, 0]) == pytest.approx({HOME: 1, NEWS: 1, BLOG: np.nan}, nan_ok=True)
        assert named(of, found.trustrank[:, 0]) == pytest.approx({HOME: 3, NEWS: 0, BLOG: np.nan}, nan_ok=True)


def test_pages_that_link_nowhere_have_no_inlinks_rather_than_unknown_ones() -> None:
    found = graph.build(web([HOME, NEWS], {HOME: [], NEWS: [NEWS, *ELSEWHERE]}))
    assert found.n_inlinks_internal.tolist() == [[0], [0]]
    assert found.pagerank == pytest.approx(np.ones((2, 1)))


def test_a_panel_without_pages_or_rounds_has_an_empty_graph() -> None:
    assert graph.build(web([], {})).pagerank.shape == (0, 1)
    assert graph.build(web([NEWS])).pagerank.shape == (1, 0)


def trusted_urls(pages: Panel, found: Graph) -> set[str]:
    return {*pages.url.take(pa.array(found.trusted)).to_pylist()}


def test_without_home_pages_the_pages_of_the_highest_pagerank_are_trusted() -> None:
    urls = [f"https://a.org/{i}" for i in range(200)] + ["https://a.org/?id=1"]
    shown: Shown = {url: ["https://a.org/7", "https://a.org/8"] for url in urls}
    pages = web(urls, shown)
    assert trusted_urls(pages, graph.build(pages)) == {"https://a.org/7", "https://a.org/8"}
    few = web(urls[:3], {urls[0]: [urls[2]]})
    assert trusted_urls(few, graph.build(few)) == {urls[2]}


def test_urls_and_hosts_can_be_trusted_and_what_is_missing_is_named() -> None:
    pages = web([HOME, NEWS, BLOG], {HOME: [NEWS], NEWS: [BLOG], BLOG: []})
    found = graph.build(
        pages,
        [
            "HTTPS://B.org:443/blog#top",
            "https://c.org/",
            "c.org",
            "mailto:x@a.org",
            "a.org/news",
            "a.org:80",
            "a..",
            "",
        ],
    )
    assert trusted_urls(pages, found) == {BLOG}
    assert found.unknown_trusted == ("https://c.org/", "c.org", "mailto:x@a.org", "a.org/news", "a.org:80", "a..", "")
    assert trusted_urls(pages, graph.build(pages, ["A.org"])) == {HOME, NEWS}
    assert trusted_urls(pages, graph.build(pages, ["a.org", BLOG, NEWS])) == {HOME, NEWS, BLOG}
    assert trusted_urls(pages, graph.build(pages, [])) == {HOME}


def test_nobody_to_trust_is_an_error_that_names_the_way_out() -> None:
    with pytest.raises(NotEnoughData, match=r"'c\.org'.*name URLs or hosts"):
        graph.build(web([HOME], {HOME: []}), ["c.org"])


def test_a_walk_cut_short_says_so_and_damping_must_be_below_one() -> None:
    pages = web([HOME, NEWS, BLOG], {HOME: [NEWS], NEWS: [BLOG], BLOG: [NEWS]})
    assert graph.build(pages, max_iterations=3).residual > 1e-3
    assert graph.build(pages).residual < 1e-7
    with pytest.raises(ValueError, match="damping 1"):
        graph.build(pages, damping=1)


def test_link_sets_looked_up_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rounds = [{url: [*rng.choice(URLS, 4, replace=False)] for url in URLS} for _ in range(3)]
    whole = graph.build(web(URLS, *rounds))
    monkeypatch.setattr(graph, "_SETS_AT_ONCE", 5)
    parts = graph.build(web(URLS, *rounds))
    assert (whole.n_inlinks_external == parts.n_inlinks_external).all()
    assert (whole.pagerank == parts.pagerank).all()


def test_the_graph_of_a_history_is_that_of_its_panel(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    day = timedelta(days=1)
    history.add(
        [
            Visit(url=HOME, at=START, links=[NEWS, BLOG, "https://c.org/"]),
            Visit(url=NEWS, at=START, links=[HOME, NEWS]),
            Visit(url=BLOG, at=START, links=[HOME, NEWS]),
            Visit(url=HOME, at=START + day, links=[NEWS]),
            Visit(url=NEWS, at=START + day, status=304),
            Visit(url=BLOG, at=START + day, links=[]),
        ]
    )
    pages = panel.build(history)
    found = graph.build(pages)
    assert named(pages, found.n_inlinks_internal) == {HOME: [1, 1], NEWS: [1, 1], BLOG: [0, 0]}
    assert named(pages, found.n_inlinks_external) == {HOME: [1, 0], NEWS: [1, 0], BLOG: [1, 0]}
    assert found.pagerank.mean(axis=0) == pytest.approx([1, 1])
