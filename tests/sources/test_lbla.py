"""The table of Dang et al. (2022): every number that it states is in the history, and nothing is made of what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_table import DATES, LAGGED, PRESENT, VECTOR, as_csv, as_json_lines, table, without
from making import imported, urls
from recrawl.history import History
from recrawl.insight.features import Feature, known_before
from recrawl.insight.vectors import page_vectors
from recrawl.world.panel import Panel, build

Rows = list[dict[str, Any]]
#: Columns of the table, and what recrawl calls them.
LEVELS = {"contentLength": "content_bytes", "textSize": "text_bytes", "textQuality": "text_quality",
          "numInternalInLinks": "n_inlinks_internal", "numExternalInLinks": "n_inlinks_external",
          "trustRank": "trustrank"}  # fmt: skip
NEW = {"diffInternalOutLinks": "new_internal", "diffExternalOutLinks": "new_external"}
OUTLINKS = {"numInternalOutLinks": "n_internal", "numExternalOutLinks": "n_external"}


def column(rows: Rows, panel: Panel, name: str) -> np.ndarray:
    """A column of the table in the order of the panel's pages; NaN where it is not there."""
    by_url = {row["url"]: row.get(name) for row in rows}
    return np.array([by_url[url] for url in panel.url.to_pylist()], np.float32)


def check_new_links(rows: Rows, history: History) -> Panel:
    """New links since the previous crawl are those of the table, in every cell, in visits and in the panel."""
    panel = build(history)
    assert [str(end)[5:10] for end in panel.rounds] == list(DATES)
    for crawl in range(1, 10):
        suffix = f"-{9 - crawl}" if crawl < 9 else ""
        for name, values in zip(NEW, (panel.n_new_internal, panel.n_new_external), strict=True):
            np.testing.assert_array_equal(values[:, crawl], column(rows, panel, f"{name}{suffix}"))
    assert np.isnan(panel.n_new_internal[:, 0]).all()
    visits = history.visits().to_pandas()
    for visit in visits.itertuples():
        crawl = DATES.index(f"{visit.at:%m-%d}")
        row = next(row for row in rows if row["url"] == visit.url)
        if crawl:
            suffix = f"-{9 - crawl}" if crawl < 9 else ""
            assert visit.n_new_previous_internal == row[f"diffInternalOutLinks{suffix}"]
            assert visit.n_new_previous_external == row[f"diffExternalOutLinks{suffix}"]
    return panel


@pytest.mark.parametrize("written", [as_csv, lambda rows: as_csv(rows, ";"), as_json_lines], ids=[",", ";", "json"])
def test_every_number_of_the_table_is_in_the_history(tmp_path: Path, written: Any) -> None:
    rows = table()
    report, history = imported(tmp_path, written(rows))
    assert (report.added, report.pages, dict(report.skipped)) == (120, 12, {})
    assert (report.not_numbers, report.unknown_fields) == ({}, {})
    panel = check_new_links(rows, history)
    known = known_before(history, panel, 9)
    for name, ours in (LEVELS | NEW).items():
        for lag in range(9):
            if lag or name in LEVELS:  # new links without a lag are to be predicted
                found = known.matrix((Feature(ours, lag),), of_round=9)[:, 0]
                stated = column(rows, panel, f"{name}-{lag}" if lag else name)
                np.testing.assert_array_equal(found, stated, err_msg=f"{name} {lag}")
    for name, ours in (OUTLINKS | {"pathDepth": "path_depth", "domainDepth": "domain_depth"}).items():
        np.testing.assert_array_equal(known.matrix((Feature(ours),), 9)[:, 0], column(rows, panel, name), err_msg=name)


def test_rates_are_those_of_the_table(tmp_path: Path) -> None:
    from recrawl.insight.targets import LinkChangeRate

    rows = table()
    _, history = imported(tmp_path, as_csv(rows))
    panel = build(history)
    content = known_before(history, panel, 9).matrix((Feature("content_change_rate", 1),), 9)[:, 0]
    np.testing.assert_allclose(content, column(rows, panel, "changeRate"), rtol=1e-6)
    for side in ("internal", "external"):
        rate = LinkChangeRate(side).values(panel, 9)
        np.testing.assert_allclose(rate, column(rows, panel, f"link{side.title()}ChangeRate"), rtol=1e-6)


def test_the_vectors_of_the_table_are_used_in_all_rounds(tmp_path: Path) -> None:
    rows = table()
    _, history = imported(tmp_path, as_csv(rows))
    panel = build(history)
    stated = np.column_stack([column(rows, panel, name) for name in VECTOR])
    for until in (0, PRESENT, 9):
        np.testing.assert_array_equal(page_vectors(history, panel, until).values, stated)
    known = known_before(history, panel, 9, (Feature("content_bytes", around="related"),), k=4)
    cosine = stated @ stated.T / np.outer(*[np.linalg.norm(stated, axis=1)] * 2)
    np.fill_diagonal(cosine, -1)
    expected = []
    for near, length in zip(cosine, np.sort(cosine, axis=1)[:, -4], strict=True):
        weight = np.where((near >= length) & (near > 0), near, 0)
        expected.append((weight * column(rows, panel, "contentLength")).sum() / weight.sum())
    found = known.matrix((Feature("content_bytes", around="related"),), 9)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_the_table_does_not_state_is_not_known_and_is_said_once(tmp_path: Path) -> None:
    rows = table()
    report, history = imported(tmp_path, as_csv(rows), as_csv(rows) + b"\r\n")
    said = " ".join(report.notes)
    assert said.count("Table of Dang et al.") == 1
    for words in (
        "does not name them",
        "outlinks before 2020-09-07",
        "PageRank",
        "vectors are of 2020-09-07",
        "6 columns",
    ):
        assert words in said
    panel = build(history)
    for side in ("n_internal", "n_external"):
        assert np.isnan(np.delete(panel.base[side], PRESENT, axis=1)).all()
    assert np.isnan(panel.base["content_bytes"][:, 9]).all()
    known = known_before(history, panel, 9)
    assert np.isnan(known.matrix((Feature("pagerank"),), 9)).all()
    visits = history.visits().to_pandas()
    assert visits["n_internal"].notna().groupby(visits["at"]).all().tolist() == [False] * 8 + [True, False]


def test_features_of_earlier_rounds_do_not_depend_on_later_crawls(tmp_path: Path) -> None:
    """Sizes of the stand-ins follow from later numbers; no feature may."""
    rows = table()
    other = [
        row
        | {f"{name}-{lag}" if lag else name: 5 + i for i, name in enumerate(LAGGED) for lag in range(4)}
        | {"numInternalOutLinks": 70, "numExternalOutLinks": 30}
        for row in rows
    ]
    from recrawl.insight.features import everything

    features = [feature for feature in everything() if feature.lag <= 4 and not feature.mean_of]
    found = []
    for i, written in enumerate((rows, other)):
        _, history = imported(tmp_path, as_csv(written), into=f"history-{i}")
        found.append(known_before(history, build(history), 5).matrix(features, 5))
    np.testing.assert_array_equal(*found)


def test_outlinks_with_lags_are_used_where_a_table_has_them(tmp_path: Path) -> None:
    rows = table(with_lagged_outlinks=True)
    report, history = imported(tmp_path, as_csv(rows))
    panel = check_new_links(rows, history)
    assert "outlinks before" not in " ".join(report.notes)
    for name, ours in OUTLINKS.items():
        for lag in range(9):
            stated = column(rows, panel, f"{name}-{lag}" if lag else name)
            np.testing.assert_array_equal(panel.base[ours][:, PRESENT - lag], stated)
    timeline = history.timeline  # the stand-ins themselves are as many
    shown = timeline.n_links()[0].reshape(-1, 10)[:, : PRESENT + 1]
    np.testing.assert_array_equal(shown, panel.base["n_internal"][:, : PRESENT + 1])


def test_totals_that_contradict_the_new_links_change_no_number(tmp_path: Path) -> None:
    rows = [row | {"numInternalOutLinks": 0, "diffInternalOutLinks-1": 9} for row in table(3)]
    _, history = imported(tmp_path, as_csv(rows))
    panel = check_new_links(rows, history)
    assert (panel.base["n_internal"][:, PRESENT] == 0).all()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (("trustRank",), "does not have: trustRank"),
        (("numInternalOutLinks", "numExternalOutLinks"), "does not have: numInternalOutLinks, numExternalOutLinks"),
        (tuple(VECTOR), "does not have: SV0 to SV191"),
        (("contentLength", "textSize", "textQuality"), "contentLength, textSize, textQuality"),
        (("isValid", "pathDepth", "changeRate"), "does not have: pathDepth"),
    ],
)  # fmt: skip
def test_missing_columns_are_named_and_the_rest_is_as_stated(
    tmp_path: Path, missing: tuple[str, ...], said: str
) -> None:
    rows = without(table(), *missing)
    report, history = imported(tmp_path, as_csv(rows))
    assert said in " ".join(report.notes)
    panel = check_new_links(rows, history)
    known = known_before(history, panel, 9)
    for name, ours in LEVELS.items():
        found = known.matrix((Feature(ours),), 9)[:, 0]
        np.testing.assert_array_equal(found, column(rows, panel, name))  # NaN where the column is missing


def test_without_the_columns_of_one_side_the_other_side_is_as_stated(tmp_path: Path) -> None:
    rows = without(table(), "diffExternalOutLinks")
    report, history = imported(tmp_path, as_csv(rows))
    assert "No column diffExternalOutLinks" in " ".join(report.notes)
    panel = build(history)
    np.testing.assert_array_equal(panel.n_new_internal[:, 9], column(rows, panel, "diffInternalOutLinks"))
    assert not np.nansum(panel.n_new_external)


def test_without_any_new_links_sizes_are_all_there_is(tmp_path: Path) -> None:
    rows = without(table(), "diffExternalOutLinks", "diffInternalOutLinks")
    report, history = imported(tmp_path, as_csv(rows))
    assert "nothing can be learnt about new links" in " ".join(report.notes)
    assert (report.added, history.novelty.total("previous").max()) == (9 * 12, -1)


def test_a_shorter_table_has_fewer_crawls(tmp_path: Path) -> None:
    """The authors write tables with histories of 0 to 8 crawls."""
    rows = [{name: row[name] for name in row if not name.endswith(("-4", "-5", "-6", "-7", "-8"))} for row in table()]
    report, history = imported(tmp_path, as_csv(rows))
    panel = build(history)
    assert (report.added, [str(end)[5:10] for end in panel.rounds]) == (12 * 5, list(DATES[5:]))
    for i, lag in enumerate(("-3", "-2", "-1", "")):
        stated = column(rows, panel, f"diffInternalOutLinks{lag}")
        np.testing.assert_array_equal(panel.n_new_internal[:, i + 1], stated)


@pytest.mark.parametrize(
    ("cells", "unusable"),
    [
        ({"trustRank-2": "high", "trustRank": "n/a"}, {"trustRank": 1}),
        (
            {"numInternalInLinks-3": "-2", "numExternalInLinks": "many"},
            {"numInternalInLinks": 1, "numExternalInLinks": 1},
        ),
        ({"contentLength": "12.5", "textQuality-8": "inf"}, {"contentLength": 1, "textQuality": 1}),
        ({"numInternalOutLinks": "1e12"}, {"numInternalOutLinks": 1}),
        ({"SV5": "x"}, {"SV": 1}),
        ({"SV5": "1e300", "trustRank-8": "-1e300"}, {"SV": 1, "trustRank": 1}),
    ],
)
def test_cells_that_are_no_numbers_are_counted_and_cost_nothing_else(
    tmp_path: Path, cells: dict[str, str], unusable: dict[str, int]
) -> None:
    rows = table(3)
    report, history = imported(tmp_path, as_csv([rows[0] | cells, *rows[1:]]))
    assert (dict(report.not_numbers), dict(report.skipped)) == (unusable, {})
    check_new_links(rows, history)


def test_new_links_that_are_no_number_are_not_known_in_that_crawl_only(tmp_path: Path) -> None:
    rows = table(3)
    bad = rows[0] | {"diffInternalOutLinks-3": "some", "diffExternalOutLinks-8": ""}
    report, history = imported(tmp_path, as_csv([bad, *rows[1:]]))
    assert dict(report.not_numbers) == {"diffInternalOutLinks": 1}
    panel = build(history)
    page = panel.url.to_pylist().index(rows[0]["url"])
    stated = [
        np.nan,
        *(rows[0][f"diffInternalOutLinks-{lag}"] for lag in range(8, 0, -1)),
        rows[0]["diffInternalOutLinks"],
    ]
    stated[1] = stated[6] = np.nan
    np.testing.assert_array_equal(panel.n_new_internal[page], np.array(stated, np.float32))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"url": ""}, "no url"),
        ({"url": "nonsense"}, "not a URL"),
        ({"url": 'a"b\nc"'}, "not a URL"),
        ({"isValid": "False"}, "page marked invalid"),
        ({"isValid": ""}, "page marked invalid"),
    ],
)
def test_a_row_that_cannot_be_used_is_counted_and_the_others_arrive(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    bad, good = table(2)
    report, history = imported(tmp_path, as_csv([bad | changed, good]))
    assert dict(report.skipped) == {reason: 1}
    assert urls(history) == [good["url"]]


def test_a_row_cut_in_half_and_a_cell_too_large_are_counted(tmp_path: Path) -> None:
    rows = table(1)
    broken = b"https://e.org/cut,1,2\r\n" + b"x" * (17 << 20) + b"\r\n"
    report, history = imported(tmp_path, as_csv(rows) + broken)
    assert dict(report.skipped) == {"wrong number of CSV cells": 1, "broken CSV row": 1}
    assert urls(history) == [rows[0]["url"]]


def test_json_rows_that_are_none_are_counted(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, as_json_lines(table(2)) + b"[1]\n{\n\n")
    assert dict(report.skipped) == {"not a JSON object": 1, "not JSON": 1}
    assert report.added == 20


def test_a_table_without_addresses_is_refused_with_its_columns(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, as_csv(without(table(1), "url")), format="lbla")
    assert "no column url, but: isValid, pathDepth" in report.failed_inputs[0]


def test_importing_the_table_twice_adds_nothing(tmp_path: Path) -> None:
    _, once = imported(tmp_path, as_csv(table(3)))
    again, twice = imported(tmp_path, as_csv(table(3)))
    assert (again.added, again.duplicates) == (0, 30)
    once.store.compact()
    assert twice.store.read("given").num_rows == 30
