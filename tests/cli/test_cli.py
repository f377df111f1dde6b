import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import command, output
from patience import patience
from recrawl.cli import app

runner = CliRunner()
RECRAWL = [sys.executable, "-m", "recrawl.cli"]


def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RECRAWL, *arguments], capture_output=True, text=True, timeout=patience(120), **more)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("cli") / "history")
    assert runner.invoke(app, ["synth", "--pages", "120", "--history", folder]).exit_code == 0
    return folder


def ask(*arguments: str) -> str:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_info_has_the_keys_that_others_rely_on(history: str) -> None:
    totals = json.loads(ask("info", "--json", "--history", history))
    keys = "pages visits ok unchanged gone failed hosts links first_at last_at new_links"
    assert set(keys.split()) <= set(totals)
    assert totals["visits"] == totals["ok"] + totals["unchanged"] + totals["gone"] + totals["failed"] == 1200
    assert set(totals["new_links"]) == {"previous", "page", "anywhere"}
    assert totals["first_at"].endswith("Z")


def test_the_exported_visits_agree_with_the_totals(history: str, tmp_path: Path) -> None:
    totals = json.loads(ask("info", "--json", "--history", history))
    out = tmp_path / "visits.jsonl.zst"
    ask("export", "visits", "--history", history, "--out", str(out))
    import zstandard

    rows = [json.loads(line) for line in zstandard.open(out, "rt")]
    keys = "url at status n_links n_internal n_external n_new_previous n_new_page n_new_anywhere"
    assert set(keys.split()) <= set(rows[0])
    assert len(rows) == totals["visits"]
    for meaning in ("previous", "page"):
        assert sum(row[f"n_new_{meaning}"] or 0 for row in rows) == totals["new_links"][meaning]
    assert any(row["n_new_previous"] is None for row in rows)
    assert all(row["n_links"] == row["n_internal"] + row["n_external"] for row in rows if row["n_links"] is not None)


def test_exported_links_are_those_of_the_visits(history: str, tmp_path: Path) -> None:
    ask("export", "links", "--history", history, "--out", str(tmp_path / "links.parquet"))
    ask("export", "visits", "--history", history, "--out", str(tmp_path / "visits.parquet"))
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    links, visits = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("links", "visits"))
    seen = visits.filter(pc.equal(visits["outcome"], "ok"))
    assert links.num_rows == pc.sum(seen["n_links"]).as_py()
    assert pc.sum(links["internal"]).as_py() == pc.sum(seen["n_internal"]).as_py()
    assert links["link"].null_count == 0


def test_the_panel_is_exported_as_csv(history: str) -> None:
    lines = ask(
        "export", "panel", "--format", "csv", "--min-share", "0.5", "--every", "7d", "--history", history
    ).splitlines()
    assert lines[0].startswith('"url","round"')
    assert len(lines) > 1000


def test_features_are_exported_with_the_new_links_that_followed(history: str, tmp_path: Path) -> None:
    out = tmp_path / "features.parquet"
    ask(
        "export",
        "features",
        "--features",
        "default",
        "--past",
        "1",
        "--min-share",
        "0.5",
        "--history",
        history,
        "-o",
        str(out),
    )
    panel = ask("export", "panel", "--min-share", "0.5", "--history", history).splitlines()
    import pyarrow.parquet as pq

    n_new = {(row["url"], row["round"]): row["n_new_internal"] for row in map(json.loads, panel)}
    rows = pq.read_table(out).to_pylist()
    assert {row["round"] for row in rows} == {9, 10}
    assert all(row["target_new_internal"] is None for row in rows if row["round"] == 10)
    for row in rows:
        assert row["new_internal -1"] == n_new[row["url"], row["round"] - 1]
        if row["round"] == 9:
            assert row["target_new_internal"] == n_new[row["url"], 9]


def test_exported_predictions_are_those_of_predict(history: str, tmp_path: Path) -> None:
    model = str(tmp_path / "recrawl.model")
    ask("train", "--history", history, "--out", model, "--links", "all")
    predicted = [
        json.loads(line) for line in ask("predict", "--json", "--history", history, "--model", model).splitlines()
    ]
    exported = ask("export", "predictions", "--history", history, "--model", model).splitlines()
    for row, other in zip(predicted, map(json.loads, exported), strict=True):
        assert (row["url"], row["expected_new_all"]) == (other["url"], other["expected_new_all"])
        assert row["interval_all"] == [other["low_all"], other["high_all"]]


def test_show_prints_the_visits_of_a_page(history: str) -> None:
    url = json.loads(ask("export", "visits", "--history", history).splitlines()[0])["url"]
    shown = json.loads(ask("show", url, "--json", "--links", "--history", history))
    assert len(shown["visits"]) == 10
    assert "10 visits in" in ask("show", url, "--history", history)
    assert (
        len(json.loads(ask("show", url, "--json", "--as-of", "2020-07-27T00:00:00Z", "--history", history))["visits"])
        < 4
    )


@pytest.mark.slow
def test_stats_prints_tables_and_writes_a_page(history: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert "all of it with plots" in ask("stats", "--min-share", "0.8", "--out", str(page), "--history", history)
    text = page.read_text()
    assert "plotly" in text
    assert 'src="http' not in text
    assert json.loads(ask("stats", "--min-share", "0.8", "--json", "--history", history))["round_counts"]


def test_compact_keeps_everything(history: str) -> None:
    before = json.loads(ask("info", "--json", "--history", history))
    result = json.loads(ask("compact", "--json", "--history", history))
    after = json.loads(ask("info", "--json", "--history", history))
    assert result["files_after"]["visits"] == 1
    assert before | {"bytes": None} == after | {"bytes": None}


def test_compact_lays_a_history_out_and_info_says_so(history: str) -> None:
    before = json.loads(ask("info", "--json", "--history", history))
    assert (before["buckets"], before["unlaid_files"]) == (None, 0)
    result = json.loads(ask("compact", "--buckets", "4", "--json", "--history", history))
    assert (result["buckets"], result["files_after"]["visits"] > 1) == (4, True)
    after = json.loads(ask("info", "--json", "--history", history))
    assert after["buckets"] == 4
    assert before | {"bytes": None, "buckets": 4} == after | {"bytes": None}
    n_files = result["files_after"]["visits"]
    assert f"laid out in 4 buckets, 0 of {n_files} files of visits came since" in ask("info", "--history", history)
    assert "laid out in 4 buckets" in ask("compact", "--history", history)
    assert json.loads(ask("compact", "--buckets", "0", "--json", "--history", history))["buckets"] is None


@pytest.mark.parametrize(
    ("buckets", "said"),
    [
        ("-1", "a history can have 1 to 65,536 buckets, not -1"),
        ("65537", "a history can have 1 to 65,536 buckets, not 65,537"),
        ("many", "Invalid value for '--buckets': Input should be a valid integer"),
    ],
)
def test_compact_refuses_what_is_no_number_of_buckets(history: str, buckets: str, said: str) -> None:
    refused = command("compact", "--buckets", buckets, "--history", history)
    assert refused.code == 2
    assert said in refused.message


@pytest.mark.slow
def test_the_demo_ends_in_lines_that_say_what_to_look_at(tmp_path: Path) -> None:
    result = runner.invoke(app, ["demo", "--folder", str(tmp_path / "demo"), "--pages", "150"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.strip().splitlines()
    assert len(lines) == 5
    for made in ("report.html", "replay.html", "lively/plans"):
        assert (tmp_path / "demo" / made).exists()
    again = runner.invoke(app, ["demo", "--folder", str(tmp_path / "demo"), "--pages", "150", "--json"])
    assert json.loads(again.stdout)["visits"] > 1500


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["info", "--history", "nowhere"], 1, "no history at nowhere"),
        (["show", "ftp://x", "--history", "H"], 2, "not an http or https URL"),
        (["show", "http://never.example/", "--history", "H"], 1, "was never visited"),
        (["stats", "--every", "soon", "--history", "H"], 2, "'soon' is not a period"),
        (["export", "panel", "--every", "1m", "--history", "H"], 1, "--min-share"),
        (["import"], 2, "Missing argument"),
        (["import", "missing.jsonl", "--history", "new"], 1, "missing.jsonl"),
        (["import", "x", "--format", "warcs", "--history", "new"], 2, "Did you mean 'warc'?"),
        (["info", "--as-of", "yesterday", "--history", "H"], 2, "unreadable time"),
        (["export", "visits", "--out", "v.xlsx", "--history", "H"], 2, "the name v.xlsx does not show the format"),
        (["export", "visits", "--format", "csv", "--out", "/dev/full", "--history", "H"], 1, "No space left"),
        (
            ["export", "visits", "--out", "no/such/v.csv", "--history", "H"],
            2,
            "there is no directory no/such; create it first",
        ),
        (["frobnicate"], 2, "No such command"),
        (["archive", "http://e.org/", "--contact", "nobody", "--history", "new"], 1, "contact"),
        (["synth", "--every", "1y", "--history", "new"], 2, "'1y' is not a period"),
    ],
)
def test_wrong_usage_is_a_sentence(
    arguments: list[str], code: int, message: str, history: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("{}")
    monkeypatch.chdir(tmp_path)
    done = command(*[history if word == "H" else word for word in arguments])
    assert done.code == code, done.stderr
    assert message in done.message
    assert "Traceback" not in done.stderr


def test_a_process_ends_with_the_sentence_and_its_code(tmp_path: Path) -> None:
    done = run("info", "--history", "nowhere", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no history at nowhere")


def test_a_reader_that_stops_early_is_not_an_error(history: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m recrawl.cli export visits --history {history} | head -1",
        shell=True, capture_output=True, text=True, executable="/bin/bash", timeout=patience(60),
    )  # fmt: skip
    assert done.stdout.startswith("{")
    assert "Traceback" not in done.stderr


def test_the_history_can_be_named_by_the_environment(history: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_HISTORY", history)
    assert json.loads(output("info", "--json"))["visits"] == 1200


def test_the_version_is_printed() -> None:
    assert output("--version").startswith("recrawl 0.")


def test_help_needs_no_heavy_package() -> None:
    heavy = ("numba", "pyarrow", "deltalake", "plotly", "scipy", "httpx")
    code = f"import sys; from recrawl.cli import app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=patience(60))
    assert done.stdout.strip() == "[]"
