from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recrawl.history import History, LinkSets
from recrawl.insight.choices import LINKS
from recrawl.insight.targets import ALL, HasNewLinks, LinkChangeRate, NewLinkCount, new_links, rate
from recrawl.web.visit import Visit
from recrawl.world.panel import BASE, Panel, build

TARGETS = [target(links) for target in ALL for links in LINKS]
NAN = np.nan
INTERNAL = [[NAN, 2, 0, 0], [NAN, NAN, 1, NAN], [NAN, 0, 0, 5], [NAN, NAN, NAN, NAN]]
EXTERNAL = [[NAN, 0, 0, 3], [NAN, NAN, 0, NAN], [NAN, 1, NAN, 0], [NAN, NAN, NAN, NAN]]
START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def panel() -> Panel:
    """Four pages, four rounds: always seen, seen in two, seen in all but with unknown links in one, seen once."""
    rounds = np.datetime64("2026-01-05", "us") + np.arange(4) * np.timedelta64(7, "D")
    seen = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]], np.bool_)
    numbers = np.arange(16, dtype=np.float32).reshape(4, 4)
    return Panel(
        page=np.arange(10, 14),
        url=pa.array([f"https://a.org/{i}" for i in range(4)]),
        rounds=rounds,
        at=np.where(seen, rounds, np.datetime64("NaT", "us")),
        n_new_internal=np.array(INTERNAL, np.float32),
        n_new_external=np.array(EXTERNAL, np.float32),
        content_changed=np.array([[NAN, 1, 0, 1], [NAN, NAN, 1, NAN], [NAN, 0, 0, 0], [NAN] * 4], np.float32),
        base={name: np.where(seen, numbers, np.nan).astype(np.float32) for name in BASE},
        terms=np.where(seen, np.arange(16).reshape(4, 4) + 100, 0),
        links=np.where(seen, np.arange(16).reshape(4, 4), -1),
        sets=LinkSets(np.arange(16), np.zeros(17, np.int64), np.empty(0, np.int64), np.zeros(16, np.int64)),
    )


def values(target: LinkChangeRate | HasNewLinks | NewLinkCount, panel: Panel, of_round: int) -> list[float]:
    found = target.values(panel, of_round)
    assert found.dtype == np.float32
    return [*map(float, found)]


def test_the_number_of_new_links_is_that_of_the_round(panel: Panel) -> None:
    assert values(NewLinkCount("internal"), panel, 3) == pytest.approx([0, NAN, 5, NAN], nan_ok=True)
    assert values(NewLinkCount("external"), panel, 3) == pytest.approx([3, NAN, 0, NAN], nan_ok=True)
    assert values(NewLinkCount("all"), panel, 3) == pytest.approx([3, NAN, 5, NAN], nan_ok=True)
    assert values(NewLinkCount("all"), panel, 2) == pytest.approx([0, 1, NAN, NAN], nan_ok=True), "both must be known"


def test_presence_is_one_or_zero_and_unknown_where_nobody_looked(panel: Panel) -> None:
    assert values(HasNewLinks("internal"), panel, 3) == pytest.approx([0, NAN, 1, NAN], nan_ok=True)
    assert values(HasNewLinks("external"), panel, 3) == pytest.approx([1, NAN, 0, NAN], nan_ok=True)
    assert values(HasNewLinks("all"), panel, 3) == pytest.approx([1, NAN, 1, NAN], nan_ok=True)
    assert np.isnan(values(HasNewLinks("all"), panel, 0)).all(), "the first round is compared with nothing"


def test_the_link_change_rate_is_the_share_of_known_intervals_with_new_links(panel: Panel) -> None:
    assert values(LinkChangeRate("internal"), panel, 3) == pytest.approx([1 / 3, 1, 1 / 3, NAN], nan_ok=True)
    assert values(LinkChangeRate("external"), panel, 3) == pytest.approx([1 / 3, 0, 1 / 2, NAN], nan_ok=True)
    assert values(LinkChangeRate("all"), panel, 3) == pytest.approx([2 / 3, 1, 1, NAN], nan_ok=True)
    assert values(LinkChangeRate("internal"), panel, 1) == pytest.approx([1, NAN, 0, NAN], nan_ok=True)
    assert np.isnan(values(LinkChangeRate("all"), panel, 0)).all()


def test_no_later_round_counts(panel: Panel) -> None:
    later = panel.n_new_internal.copy()
    later[:, 3] = 77
    changed = replace(panel, n_new_internal=later)
    for target in TARGETS:
        np.testing.assert_array_equal(target.values(panel, 2), target.values(changed, 2))


def test_there_are_three_targets_for_three_kinds_of_links() -> None:
    assert len(TARGETS) == len(set(TARGETS)) == 9
    assert {target.paper for target in TARGETS} == {"LCR", "NL", "NNL"}
    assert {target.kind for target in TARGETS} == {"rate", "presence", "number"}
    assert str(HasNewLinks("external")) == "has-new-links (external links)"


def test_the_matrix_of_all_new_links_is_the_sum(panel: Panel) -> None:
    np.testing.assert_array_equal(new_links(panel, "all"), np.add(INTERNAL, EXTERNAL).astype(np.float32))
    assert new_links(panel, "internal") is panel.n_new_internal
    assert new_links(panel, "external") is panel.n_new_external


def test_hits_that_are_not_known_do_not_count() -> None:
    hits, known = np.array([[1, 1, 0], [1, 0, 0]], bool), np.array([[1, 0, 1], [0, 0, 0]], bool)
    assert rate(hits, known).tolist() == pytest.approx([0.5, NAN], nan_ok=True)
    assert rate(np.empty((0, 3), bool), np.empty((0, 3), bool)).shape == (0,)


# -- Panel.window -----------------------------------------------------------------------------------------------------


def test_in_the_first_round_of_a_window_nothing_is_new(panel: Panel) -> None:
    window = panel.window(1, 4)
    assert window.shape == (4, 3)
    np.testing.assert_array_equal(
        window.n_new_internal, np.array([[NAN, 0, 0], [NAN, 1, NAN], [NAN, 0, 5], [NAN, NAN, NAN]], np.float32)
    )
    np.testing.assert_array_equal(
        window.n_new_external, np.array([[NAN, 0, 3], [NAN, 0, NAN], [NAN, NAN, 0], [NAN, NAN, NAN]], np.float32)
    )
    np.testing.assert_array_equal(
        window.content_changed, np.array([[NAN, 0, 1], [NAN, 1, NAN], [NAN, 0, 0], [NAN, NAN, NAN]], np.float32)
    )


def test_what_a_page_shows_when_it_is_first_seen_in_a_window_is_not_new(panel: Panel) -> None:
    unseen = panel.at.copy()
    unseen[0, 1] = np.datetime64("NaT")
    window = replace(panel, at=unseen, n_new_internal=np.array([[NAN, NAN, 4, 6], *INTERNAL[1:]], np.float32)).window(
        1, 4
    )
    assert window.n_new_internal[0].tolist() == pytest.approx([NAN, NAN, 6], nan_ok=True), "4 were new since before it"


def test_a_window_keeps_the_rows_of_its_pages_together(panel: Panel) -> None:
    window = panel.window(0, 2)
    assert window.page.tolist() == [10, 11, 12], "the last page was not seen in it"
    assert window.url.to_pylist() == [f"https://a.org/{i}" for i in range(3)]
    assert window.rounds.tolist() == panel.rounds[:2].tolist()
    np.testing.assert_array_equal(window.at, panel.at[:3, :2])
    assert [*window.base] == [*BASE]
    np.testing.assert_array_equal(window.base["n_internal"], panel.base["n_internal"][:3, :2])
    assert window.terms is not None
    assert window.terms.tolist() == [[100, 101], [0, 105], [108, 109]]
    assert window.links is not None
    assert window.links.tolist() == [[0, 1], [-1, 5], [8, 9]]
    assert window.sets is panel.sets
    assert window.n_new_internal.flags.c_contiguous


def test_the_window_of_all_rounds_is_the_panel(panel: Panel) -> None:
    window = panel.window(0, 4)
    for name in ("page", "at", "n_new_internal", "n_new_external", "content_changed", "terms", "links"):
        np.testing.assert_array_equal(getattr(window, name), getattr(panel, name))


@pytest.mark.parametrize(
    ("start", "stop", "min_share", "pages"),
    [
        (0, 4, 0.0, [10, 11, 12, 13]),
        (0, 4, 0.25, [10, 11, 12, 13]),
        (0, 4, 0.5, [10, 11, 12]),
        (0, 4, 0.51, [10, 12]),
        (0, 4, 1.0, [10, 12]),
        (1, 3, 1.0, [10, 11, 12]),
        (2, 3, 1.0, [10, 11, 12, 13]),
        (3, 4, 0.0, [10, 12]),
        (2, 2, 0.0, []),
    ],
)
def test_a_window_keeps_pages_that_were_seen_often_enough(
    panel: Panel, start: int, stop: int, min_share: float, pages: list[int]
) -> None:
    assert panel.window(start, stop, min_share).page.tolist() == pages


def test_a_panel_without_texts_and_links_has_windows_without_them(panel: Panel) -> None:
    window = replace(panel, terms=None, links=None, sets=None).window(1, 3)
    assert window.terms is None
    assert window.links is None


def test_a_window_is_the_panel_of_a_history_of_its_rounds_only(tmp_path: Path) -> None:
    """Later windows, too: made from the visits of these rounds, the same numbers come out."""
    rng = np.random.default_rng(0)
    visits = [
        Visit(
            url=f"https://a.org/{page}",
            at=START + timedelta(days=r, hours=page + 1),
            links=[f"https://{host}.org/{i}" for host in "ab" for i in rng.choice(9, 4)],
            text_digest=str(rng.integers(2)),
            content_bytes=int(rng.integers(1000)),
        )
        for page in range(12)
        for r in range(6)
        if rng.random() < 0.7
    ]
    whole = History.create(tmp_path / "whole")
    whole.add(visits)
    ends = [START + timedelta(days=r + 1) for r in range(6)]
    window = build(whole, ends, min_share=0).window(2, 5)
    part = History.create(tmp_path / "part")
    part.add(visit for visit in visits if START + timedelta(days=2) <= visit.at < START + timedelta(days=5))
    expected = build(part, ends[2:5], min_share=0)
    for name in ("page", "rounds", "at", "n_new_internal", "n_new_external", "content_changed", "terms"):
        np.testing.assert_array_equal(getattr(window, name), getattr(expected, name), err_msg=name)
    for name in BASE:
        np.testing.assert_array_equal(window.base[name], expected.base[name])
    assert window.url.to_pylist() == expected.url.to_pylist()
