"""From the table of Dang et al. (2022) to statistics, evaluation, model and prediction: the numbers are those of plain pandas."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import Done, command
from made_table import as_csv, table

SIDES = ("Internal", "External")
N_PAGES, INVALID, EMPTY = 60, 3, (7, 8)


@pytest.fixture(scope="module")
def csv_bytes() -> bytes:
    rows = table(N_PAGES, seed=11)
    rows[INVALID]["isValid"] = False
    rows[EMPTY[0]]["contentLength"] = 0  # once
    rows[EMPTY[1]] |= {name: 0 for name in rows[0] if name.startswith("contentLength")}  # in all crawls with a size
    return as_csv(rows)


@pytest.fixture(scope="module")
def frame(csv_bytes: bytes) -> pd.DataFrame:
    """The table as its authors read it."""
    table_ = pd.read_csv(io.BytesIO(csv_bytes))
    return table_[table_["isValid"]].set_index("url")


@pytest.fixture(scope="module")
def imported(csv_bytes: bytes, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Done]:
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.csv").write_bytes(csv_bytes)
    done = command("import", str(folder / "table.csv"), "--history", str(folder / "history"))
    assert done.code == 0, done.stderr
    return str(folder / "history"), done


def rows_of(*arguments: str) -> list[dict[str, Any]]:
    done = command(*arguments, "--json")
    assert done.code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_import_says_what_it_read_and_what_the_table_cannot_give(imported: tuple[str, Done]) -> None:
    said = " ".join(imported[1].stdout.split())
    assert f"{10 * (N_PAGES - 1)} visits added" in said
    assert "page marked invalid" in said
    assert said.count("Stand-ins replace them") == 1
    assert "the numbers of outlinks before 2020-09-07" in said


def test_stats_are_those_of_the_table(imported: tuple[str, Done], frame: pd.DataFrame) -> None:
    (found,) = rows_of("stats", "--history", imported[0], "--min-share", "1")
    assert found["n_pages"] == N_PAGES - 1
    counts = {(row["links"], row["round"]): row for row in found["round_counts"]}
    for side in SIDES:
        for crawl in range(1, 10):
            new = frame[f"diff{side}OutLinks" + (f"-{9 - crawl}" if crawl < 9 else "")]
            row = counts[side.lower(), crawl]
            assert row["n_pages"] == len(new)
            assert row["mean"] == pytest.approx(new.mean())
            assert row["none_rate"] == pytest.approx((new == 0).mean())
        rates = {round(row["rate"], 4): row["n_pages"] for row in found["change_rates"] if row["links"] == side.lower()}
        stated = frame[f"link{side}ChangeRate"].round(4).value_counts().to_dict()
        assert {rate: n for rate, n in rates.items() if n} == stated


def test_evaluate_ranks_by_the_numbers_of_the_table(imported: tuple[str, Done], frame: pd.DataFrame) -> None:
    options = ("--split", "time", "--parts", "rankings", "--quick", "--trees", "3", "--repeat", "1")
    about, *rows = rows_of("evaluate", "--history", imported[0], *options)
    assert (about["pages"], about["rounds"]) == (len(frame), 10)
    assert f"{len(frame)} pages have some" in about["related"]  # by the vectors of the table
    for side in SIDES:
        past = [f"diff{side}OutLinks-{lag}" for lag in range(1, 9)]
        lengths = frame[[f"contentLength-{lag}" for lag in range(8, 0, -1)] + ["contentLength"]]
        ranked_by = {
            "average-count": frame[past].mean(axis=1),
            "previous-count": frame[past[0]],
            "content-change-rate": lengths.diff(axis=1).iloc[:, 1:].ne(0).mean(axis=1),
        }
        target = frame[f"diff{side}OutLinks"]
        truths = {"link-change-rate": frame[f"link{side}ChangeRate"], "has-new-links": target.gt(0).astype(int)}
        for ranking, value in ranked_by.items():
            for truth, true in (truths | {"new-link-count": target}).items():
                (row,) = [
                    row
                    for row in rows
                    if (row["ranking"], row["truth"], row["links"]) == (ranking, truth, side.lower())
                ]
                assert row["n_test"] == len(frame)
                assert row["spearman"] == pytest.approx(value.corr(true, method="spearman"), abs=1e-6), (ranking, truth)


def test_static_features_of_the_table_are_evaluated(imported: tuple[str, Done]) -> None:
    options = ("--parts", "features,correlation,maps", "--quick", "--trees", "2", "--repeat", "1")
    rows = rows_of("evaluate", "--history", imported[0], *options, "--links", "internal")
    parts = {row["part"] for row in rows}
    assert {"features", "correlation", "maps"} <= parts


def test_train_and_predict_know_the_numbers_of_the_table(
    imported: tuple[str, Done], frame: pd.DataFrame, tmp_path: Path
) -> None:
    model = str(tmp_path / "model.recrawl")
    options = ("--features", "everything", "--learner", "poisson", "--trusted", frame.index[0])
    done = command("train", "--history", imported[0], "--out", model, "--json", *options)
    assert "no effect where TrustRank came with the data" in done.message
    card = json.loads(done.stdout)
    assert (card["n_pages"], card["n_rounds"]) == (len(frame), 10)
    for side in SIDES:
        target, past = frame[f"diff{side}OutLinks"], [f"diff{side}OutLinks-{lag}" for lag in range(1, 9)]
        scores = card["scores"][side.lower()]
        assert scores["found"] == target.sum()
        average = frame[past].mean(axis=1).corr(target, method="spearman")
        assert scores["spearman_average"] == pytest.approx(average, abs=1e-6)
    predicted = rows_of("predict", "--history", imported[0], "--model", model)
    assert {row["url"] for row in predicted} == set(frame.index)


def test_pages_without_content_are_left_out_on_request(
    imported: tuple[str, Done], frame: pd.DataFrame, tmp_path: Path
) -> None:
    """As in section 5.2: of ten crawls, each must have found a page that is not empty."""
    n_full = int((frame.filter(regex="^contentLength") > 0).all(axis=1).sum())
    assert n_full == len(frame) - 2
    (stats,) = rows_of("stats", "--history", imported[0], "--min-share", "1", "--with-content")
    options = ("--with-content", "--parts", "correlation", "--quick")
    about = rows_of("evaluate", "--history", imported[0], *options)[0]
    assert (stats["n_pages"], about["pages"]) == (n_full, n_full)
    model = str(tmp_path / "model.recrawl")
    (card,) = rows_of("train", "--history", imported[0], "--out", model, "--with-content", "--links", "internal")
    assert card["recipe"]["with_content"] is True
    done = command("evaluate", "--history", imported[0], "--method", "history-aware", "--with-content")
    assert (done.code, "belongs to --method outlinks" in done.message) == (2, True)
