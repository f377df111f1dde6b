"""History-aware choices: a history worked out by hand, plain loops over a made-up one, real numbers, and no look ahead."""

from __future__ import annotations

import io
import math
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from rich.console import Console
from scipy.optimize import brentq

from commands import command
from patience import patience
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight.rates import NEW, SAME, UNDEFINED
from recrawl.papers.updates.captures import Captures, captures_of
from recrawl.papers.updates.evaluation import WEEK, UpdateEvaluation, UpdateSettings, evaluate_updates, rated_pages
from recrawl.papers.updates.laws import interval_rows, poisson_rows, rate_rows
from recrawl.papers.updates.page import findings, scope, sections, update_tables, write_updates_page
from recrawl.papers.updates.scores import weighted_precisions
from recrawl.web.visit import Visit
from recrawl.world.roots import parse_roots

START = datetime(2026, 1, 5, tzinfo=UTC)
NEVER_AGAIN = np.iinfo(np.int64).max


def weekly(folder: Path, gains: dict[str, str], days: float = 7) -> History:
    """Pages and what their weekly visits show: "+" a new link, "." none, "x" a failure, "b" a baseline, " " no visit."""
    history = History.create(folder)
    visits = []
    for url, story in gains.items():
        n_links = 1
        for week, event in enumerate(story):
            n_links += event == "+"
            shown: dict[str, Any] = (
                {"links": [f"{url}/{i}" for i in range(n_links)]} if event != "x" else {"status": 503}
            )
            if event != " ":
                at = START + timedelta(days=days * week)
                visits.append(Visit(url=url, at=at, baseline=event == "b", **shown))
    history.add(visits)
    return history


def score(found: UpdateEvaluation, **wanted: Any) -> dict[str, Any]:
    (row,) = (row for row in found.rows["scores"] if all(row[key] == value for key, value in wanted.items()))
    return row


def test_scores_of_three_pages_worked_out_by_hand(tmp_path: Path) -> None:
    history = weekly(tmp_path, {"https://a.org/": "..++.", "https://b.org/": ".....", "https://c.org/": ".+.++"})
    settings = UpdateSettings(windows=(2,), thetas=(0, 0.5, 0.8, 0.95), every="crawl")
    found = evaluate_updates(history, settings)
    # Reference times with two weeks before and one after: weeks 2 and 3.
    # Week 2: a updated at 1.5: one quiet week, then half a week: λ with 0.5/(e^(λ/2) - 1) = 1, i.e. 2 ln 1.5 a week,
    #   p = 1 - e^(-0.811·1.5) = 0.704. c updated at 0.5 and quiet for 1.5 weeks: λ = 2 ln(4/3), p = 1 - (3/4)^(2·2.5) = 0.763.
    # Week 3: a updated at 1.5 and 2.5: always, so Eq. 4: ln 5 · 2/1.5 a week, p = 1 - e^(-2.146·1.5) = 0.960.
    #   c: at 2.5, after a quiet week: p = 0.704.
    known = rated_pages(
        captures_of(history, "crawl"), int((START + timedelta(days=14)).timestamp() * 1e6), 2 * WEEK, settings
    )
    by_page = dict(zip(history.urls_of(history.timeline.pages).to_pylist(), known.probability, strict=True))
    assert by_page == pytest.approx(
        {"https://a.org/": 1 - 1.5**-3, "https://b.org/": 0, "https://c.org/": 1 - 0.75**5}, rel=1e-9
    )
    # Truth: a and c in week 3, c in week 4. At 0.5 chosen are a and c, a and c; at 0.8 nothing, a; at 0.95 the same.
    half = {"theta": 0.5, "average": "micro"}
    assert score(found, policy="history-aware", **half)["precision"] == pytest.approx(3 / 4)
    assert score(found, policy="history-aware", **half)["recall"] == 1
    assert score(found, policy="random", **half)["precision"] == pytest.approx((2 * 2 / 3 + 2 * 1 / 3) / 4)
    assert score(found, policy="brute-force", **half)["f1"] == pytest.approx(2 * 3 / (6 + 3))
    strict = {"theta": 0.95, "policy": "history-aware"}
    assert score(found, average="micro", **strict)["f1"] == 0
    assert score(found, average="macro", **strict)["precision"] == 0  # of week 3 alone: nothing was chosen in week 2
    macro = score(found, theta=0.5, policy="history-aware", average="macro")
    assert macro["f1"] == pytest.approx((1 + 2 / 3) / 2)
    best = [row for row in found.rows["best"] if row["policy"] == "history-aware"]
    assert [(row["average"], row["theta"]) for row in best] == [("micro", 0.5), ("macro", 0.5)]


def test_the_first_capture_of_a_window_only_begins_an_interval(tmp_path: Path) -> None:
    history = weekly(tmp_path, {"https://a.org/": "..+.."})
    settings = UpdateSettings(every="crawl")
    week_3 = int((START + timedelta(days=21)).timestamp() * 1e6)
    captures = captures_of(history, "crawl")
    assert rated_pages(captures, week_3, WEEK, settings).probability.tolist() == [0]
    assert rated_pages(captures, week_3, 2 * WEEK, settings).probability[0] > 0


def test_failures_are_no_captures_and_baselines_are_not_compared(tmp_path: Path) -> None:
    history = weekly(tmp_path, {"https://a.org/": ".x+b.+"})
    captures = captures_of(history)
    assert captures.changed.tolist() == [UNDEFINED, NEW, UNDEFINED, SAME, NEW]
    assert np.diff(captures.at).tolist() == [2 * WEEK, WEEK, WEEK, WEEK]


def test_a_round_has_one_capture_dated_at_its_end(tmp_path: Path) -> None:
    history = weekly(tmp_path, {"https://a.org/": ".+.+....."}, days=3)
    by_week = captures_of(history, "7d")
    assert by_week.changed.tolist() == [UNDEFINED, NEW, SAME, SAME]  # the visits of days 6, 12, 18 and 24
    assert np.diff(by_week.at).tolist() == [WEEK] * 3


def test_an_update_of_any_shallow_page_is_an_update_of_the_site(tmp_path: Path) -> None:
    pages = {
        "https://a.org/": "....b+",
        "https://a.org/x/y": " .+..b",
        "https://a.org/x/y/z": "++++++",  # three directories deep
        "https://b.org/": "x.b...",
    }
    captures = captures_of(weekly(tmp_path, pages), "crawl", "site")
    parts = [captures.changed[captures.start[i] : captures.start[i + 1]].tolist() for i in (0, 1)]
    # a.org: in week 4 one page has a baseline, the other is quiet; in week 5 the other way round, and it has an update.
    assert parts == [[UNDEFINED, SAME, NEW, SAME, SAME, NEW], [UNDEFINED, UNDEFINED, SAME, SAME, SAME]]


def test_a_new_page_of_a_site_says_nothing_about_the_site(tmp_path: Path) -> None:
    pages = {"https://a.org/": ". .", "https://a.org/late": " . "}
    captures = captures_of(weekly(tmp_path, pages), "visits", "site")
    assert captures.changed.tolist() == [UNDEFINED, SAME]
    assert np.diff(captures.at).tolist() == [2 * WEEK]


def made_up(folder: Path, seed: int = 0, n_pages: int = 24, n_weeks: int = 30) -> History:
    """Pages on a few sites that gain links at many rates, with failures, baselines and gaps."""
    chance = random.Random(seed)
    gains = {}
    for i in range(n_pages):
        eager = chance.random() ** 2
        events = ["+" if chance.random() < eager else chance.choice("......x b") for _ in range(n_weeks)]
        gains[f"https://site{i % 5}.org/{'x/' * (i % 4)}{i}"] = "".join(events)
    return weekly(folder, gains)


def slow_rate(days: list[float], changed: list[bool], estimator: str) -> float:
    n, n_changed, total = len(days), sum(changed), sum(days)
    if n_changed == 0:
        return 0.0
    if estimator == "simple":
        return n_changed / total
    if estimator == "regular" or n_changed == n:
        return -math.log((n - n_changed + 0.5) / (n + 0.5)) * n / total
    quiet = sum(d for d, c in zip(days, changed, strict=True) if not c)
    lengths = [d for d, c in zip(days, changed, strict=True) if c]
    most = len(lengths) / quiet  # the root is smaller
    return float(brentq(lambda rate: sum(t / math.expm1(rate * t) for t in lengths) - quiet, 1e-9, most, xtol=1e-15))


def slow_probability(visits: list[tuple[float, int]], now: float, settings: UpdateSettings) -> float | None:
    """One page, its captures in a window as (day, what it showed); None without an interval."""
    days, changed, last = [], [], None
    begin = before = visits[0][0] if visits else 0.0
    for at, state in visits[1:]:
        end = (before + at) / 2 if state == 1 and settings.updates == "interpolated" else at
        if state >= 0:
            days.append(end - begin)
            changed.append(state == 1)
            last = end if state == 1 else last
        begin, before = (end if state >= 0 else at), at
    if not days:
        return None
    if last is None:
        return 0.0
    ahead = settings.ahead / timedelta(days=1)
    return 1 - math.exp(-slow_rate(days, changed, settings.estimator) * (now + ahead - last))


def slow_counts(pages: list[list[tuple[float, int]]], weeks: float, settings: UpdateSettings) -> dict[float, list[Any]]:
    """θ → (chosen, right, updated, known) at every reference time, as one would write it down."""
    ahead = settings.ahead / timedelta(days=1)
    moments = sorted({at for page in pages for at, _ in page})
    found: dict[float, list[Any]] = {theta: [] for theta in settings.thetas}
    for now in moments:
        if now - 7 * weeks < moments[0] or now + ahead > moments[-1]:
            continue
        chosen, updated, n_known = [], [], 0
        for page in pages:
            later = [visit for visit in page if visit[0] > now]
            p = slow_probability([v for v in page if now - 7 * weeks <= v[0] <= now], now, settings)
            if p is None or not later or later[0][1] < 0:
                continue
            n_known += 1
            dates = []
            for (before, _), (at, state) in pairwise(page):
                if state == 1:
                    dates.append((before + at) / 2 if settings.updates == "interpolated" else at)
            chosen.append(p)
            updated.append(any(now < date <= now + ahead for date in dates))
        for theta in settings.thetas:
            is_chosen = [p >= theta - 1e-12 for p in chosen]
            right = sum(u for c, u in zip(is_chosen, updated, strict=True) if c)
            found[theta].append((sum(is_chosen), right, sum(updated), n_known))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        UpdateSettings(),
        UpdateSettings(updates="observed", ahead=timedelta(days=14)),
        UpdateSettings(estimator="regular"),
        UpdateSettings(estimator="simple", updates="observed"),
        UpdateSettings(level="site"),
    ],
)
def test_scores_are_those_of_plain_loops(tmp_path: Path, settings: UpdateSettings) -> None:
    settings = replace(settings, windows=(1, 3, 8), thetas=(0.05, 0.45, 0.75), every="crawl")
    history = made_up(tmp_path)
    captures = captures_of(history, "crawl", settings.level)
    found = evaluate_updates(history, settings)
    origin = captures.at.min()
    pages = [
        [
            ((at - origin) / 86_400e6, int(state))
            for at, state in zip(captures.at[a:b], captures.changed[a:b], strict=True)
        ]
        for a, b in zip(captures.start[:-1], captures.start[1:], strict=True)
    ]
    for weeks in settings.windows:
        for theta, counts in slow_counts(pages, weeks, settings).items():
            n_chosen, n_right, n_updated, n_known = map(sum, zip(*counts, strict=True))
            key = {"weeks": weeks, "theta": theta}
            micro = score(found, policy="history-aware", average="micro", **key)
            assert micro["precision"] == pytest.approx(n_right / n_chosen if n_chosen else None)
            assert micro["recall"] == pytest.approx(n_right / n_updated)
            assert micro["chosen_rate"] == pytest.approx(n_chosen / n_known)
            f1 = [2 * right / (chosen + updated) for chosen, right, updated, _ in counts if chosen + updated]
            macro = score(found, policy="history-aware", average="macro", **key)
            assert macro["f1"] == pytest.approx(sum(f1) / len(f1))
            assert macro["n_times"] == len(counts)
            assert score(found, policy="brute-force", average="micro", **key)["recall"] == 1


@pytest.mark.parametrize("level", ["page", "site"])
def test_later_visits_change_nothing_that_is_chosen_before(tmp_path: Path, level: str) -> None:
    settings = UpdateSettings(level=level)
    plain = made_up(tmp_path / "plain")
    now = START + timedelta(days=7 * 17)
    noisy = made_up(tmp_path / "noisy")
    noise = random.Random(9)
    noisy.add(
        Visit(
            url=f"https://site{i % 5}.org/{i}",
            at=now + timedelta(seconds=1 + i),
            links=[f"https://n.org/{noise.random()}"],
        )
        for i in range(60)
    )
    moment = int(now.timestamp() * 1e6)
    for every in ("visits", "7d"):
        # Rounds of 7 days end a moment before the next one begins.
        at = moment if every == "visits" else moment - 1
        known = [
            rated_pages(captures_of(h, every, level), at, 6 * WEEK, settings) for h in (plain, noisy, plain.as_of(now))
        ]
        expected = known[0].probability[np.argsort(known[0].probability)]
        assert expected.max() > 0.5
        for other in known[1:]:
            np.testing.assert_array_equal(np.sort(other.probability), expected)


def test_weighted_precision_of_a_perfect_and_of_a_reversed_ranking() -> None:
    chance = np.random.default_rng(0)
    following = np.arange(10, 50, 10)
    perfect, reverse, by_chance = weighted_precisions(np.array([0.9, 0.7, 0.4, 0.1]), -following, following, chance)
    weights = [1 / math.log2(k + 1) for k in (1, 2, 3, 4)]
    assert perfect == pytest.approx(1)
    # Reversed, the first 1, 2, 3 and 4 share 0, 0, 2 and 4 pages with the true ones.
    assert reverse == pytest.approx((weights[2] * 2 / 3 + weights[3]) / sum(weights))
    assert by_chance == pytest.approx(sum(w * k / 4 for k, w in enumerate(weights, 1)) / sum(weights))


def test_without_any_later_update_no_ranking_is_scored() -> None:
    chance = np.random.default_rng(0)
    assert np.isnan(weighted_precisions(np.ones(3), np.arange(3), np.full(3, NEVER_AGAIN), chance)).all()


def poisson_captures(n_pages: int, n_days: int, mean_days: np.ndarray, seed: int = 0) -> Captures:
    """Pages captured every day, updated at random times."""
    chance = np.random.default_rng(seed)
    changed = (chance.random((n_pages, n_days)) < -np.expm1(-1 / mean_days[:, None])).astype(np.int8)
    changed[:, 0] = UNDEFINED
    at = np.tile(np.arange(n_days) * 86_400_000_000, n_pages)
    return Captures(np.arange(n_pages + 1) * n_days, at, changed.reshape(-1))


def test_poisson_pages_follow_the_laws_that_they_were_made_with() -> None:
    chance = np.random.default_rng(1)
    mean_days = np.exp(chance.normal(math.log(60), 0.5, 2000))
    captures = poisson_captures(2000, 1500, mean_days)
    (rates,) = rate_rows(captures, "maximum-likelihood")
    assert rates["median_days"] == rates["quantiles"]["50%"] == pytest.approx(60, rel=0.05)
    # A log-normal law has the mean exp(m + s²/2); chance draws out the 1/λ of pages with few updates, so it is a little longer.
    assert rates["mean_days"] == pytest.approx(60 * math.exp(0.5**2 / 2), rel=0.08)
    assert rates["log_deviation"] == pytest.approx(0.5, rel=0.15)
    assert rates["distance"] < 0.05
    assert sum(rates["share"]) == pytest.approx(1)
    (intervals,) = interval_rows(captures, "maximum-likelihood")
    assert intervals["median_ratio"] == pytest.approx(math.log(2), abs=0.05)
    assert intervals["spearman"] > 0.8
    bins = list(poisson_rows(captures, "maximum-likelihood"))
    assert [row["mean_days"] for row in bins] == pytest.approx([35, 70], rel=0.1)
    for row in bins:
        assert row["distance"] < 0.05
        assert row["variation"] == pytest.approx(1, abs=0.1)


def test_regular_updates_differ_from_a_poisson_process() -> None:
    changed = np.tile(np.arange(400) % 35 == 34, 30).astype(np.int8)
    changed[::400] = UNDEFINED
    captures = Captures(np.arange(31) * 400, np.tile(np.arange(400) * 86_400_000_000, 30), changed)
    (row,) = poisson_rows(captures, "maximum-likelihood")
    assert row["variation"] == 0
    assert row["distance"] > 0.5


def test_mean_and_quantiles_of_the_time_between_updates_are_those_of_plain_lists() -> None:
    captures = poisson_captures(40, 300, np.linspace(5, 400, 40), seed=3)
    (rates,) = rate_rows(captures, "simple")
    days = []
    for page in captures.changed.reshape(40, 300).tolist():
        n_updates = sum(state == 1 for state in page)
        if n_updates:
            days.append(299 / n_updates)  # equation 3: λ = X/T
    days.sort()
    assert rates["n_never"] == 40 - len(days) > 0
    assert rates["mean_days"] == pytest.approx(sum(days) / len(days))
    place = 0.25 * (len(days) - 1)
    below, above = days[int(place)], days[int(place) + 1]
    assert rates["quantiles"]["25%"] == pytest.approx(below + (place - int(place)) * (above - below))


def with_papers(folder: Path) -> History:
    """A page that gains a page one week and a paper the other."""
    history = History.create(folder)
    links = ["https://e.org/start", "https://e.org/old.pdf"]
    visits = []
    for week in range(13):
        if week:
            links = [*links, f"https://e.org/{week}.PDF?v=1" if week % 3 == 0 else f"https://f.org/{week}.pdf.html"]
        visits.append(Visit(url="https://e.org/", at=START + timedelta(weeks=week), links=links))
    history.add(visits)
    return history


@pytest.mark.parametrize("every", ["visits", "7d"])
@pytest.mark.parametrize(("pdf", "weeks"), [("only", 3), ("without", None), ("with", 1)])
def test_updates_may_be_new_papers_only(pdf: str, weeks: int | None, every: str, tmp_path: Path) -> None:
    captures = captures_of(with_papers(tmp_path / "h"), every, pdf=pdf)
    expected = [week % 3 != 0 if weeks is None else week % weeks == 0 for week in range(1, 13)]
    assert captures.changed.tolist() == [UNDEFINED, *map(int, expected)]


def test_the_report_says_which_links_are_updates(tmp_path: Path) -> None:
    settings = UpdateSettings(windows=(4,), pdf="only")
    found = evaluate_updates(with_papers(tmp_path / "h"), settings)
    assert found.n_updates == 4
    assert "4 show links to PDF files never before on the page" in scope(found)


@pytest.mark.parametrize("level", ["page", "site"])
def test_page_and_tables_show_every_part(tmp_path: Path, level: str) -> None:
    found = evaluate_updates(made_up(tmp_path / "h"), UpdateSettings(windows=(1, 4), level=level, every="7d"))
    html = write_updates_page(tmp_path / "page.html", found).read_text()
    assert "http://" not in html.split("</script>")[-1]
    assert all(section.title in html for section in sections(found))
    assert all(sentence[:40] in html for sentence in findings(found))
    screen = Console(width=150, file=io.StringIO())
    for table in update_tables(found):
        screen.print(table)
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert f"{level}s" in text
    assert "nan" not in text


def test_a_history_without_any_update_is_evaluated_nevertheless(tmp_path: Path) -> None:
    found = evaluate_updates(
        weekly(tmp_path, {f"https://{i}.org/": "." * 8 for i in range(4)}), UpdateSettings(windows=(2,))
    )
    assert score(found, theta=0.5, policy="history-aware", average="micro")["recall"] is None
    assert found.rows["rates"] == found.rows["poisson"] == []
    assert "No page gained a link" in write_updates_page(tmp_path / "page.html", found).read_text()
    assert len(update_tables(found)) == 7


@pytest.mark.parametrize("story", [".", ".+", "x"])
def test_too_little_history_is_refused_with_a_sentence(tmp_path: Path, story: str) -> None:
    with pytest.raises(NotEnoughData, match=r"1 week of captures|no visit shows"):
        evaluate_updates(weekly(tmp_path, {"https://a.org/": story}), UpdateSettings())


@pytest.mark.slow
def test_the_command_prints_rows_and_takes_a_period(tmp_path: Path) -> None:
    made_up(tmp_path / "h")
    common = (
        "evaluate",
        "--method",
        "history-aware",
        "--history",
        tmp_path / "h",
        "--every",
        "7d",
        "--windows",
        "1-2,4",
    )
    found = command(*common, "--json", "--from", "2026-03-01T00:00:00Z", "--until", "2026-05-01T00:00:00Z")
    assert found.code == 0, found.stderr
    rows = [orjson.loads(line) for line in found.stdout.splitlines()]
    assert {row["part"] for row in rows} >= {"scores", "best", "rankings", "rates"}
    assert {row["weeks"] for row in rows if row["part"] == "scores"} == {1, 2, 4}
    assert {row["n_times"] for row in rows if row["part"] == "scores"} == {
        8
    }  # rounds that end 03-01 to 04-26, less one
    shown = command(*common, "--level", "site", "--out", tmp_path / "page.html")
    assert shown.code == 0, shown.stderr
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--windows", "0-3"), "--windows"),
        (("--thetas", "0.5,2"), "--thetas"),
        (("--ahead", "soon"), "not a period"),
        (("--level", "host"), "--level"),
        (("--from", "yesterday"), "--from"),
        (("--links", "internal"), "--links belongs to --method outlinks"),
    ],
)
def test_wrong_options_are_wrong_usage(tmp_path: Path, options: tuple[str, str], sentence: str) -> None:
    found = command("evaluate", "--method", "history-aware", "--history", tmp_path, *options)
    assert found.code == 2
    assert sentence in found.message


def test_options_of_the_other_method_and_unknown_methods_are_wrong_usage(tmp_path: Path) -> None:
    for options, sentence in (
        (("--windows", "3"), "belongs to --method history-aware"),
        (("--every", "visits"), "--every visits is for"),
        (("--method", "magic"), "No value named 'magic'"),
    ):
        found = command("evaluate", "--history", tmp_path, *options)
        assert found.code == 2
        assert sentence in found.message


def test_real_homepages_have_the_scores_of_an_independent_program(shared_data: Path, tmp_path: Path) -> None:
    source = "author_homepages --every 7d --from 2017-01-01 --to 2026-07-01 --no-terms"
    into = f"{sys.executable} -m recrawl.cli import - --workers 1 --history {tmp_path / 'h'}"
    command = f"{sys.executable} {shared_data / 'visits.py'} {source} | {into}"
    subprocess.run(command, shell=True, check=True, capture_output=True, timeout=patience(400))
    settings = UpdateSettings(windows=(4, 12), thetas=(0, 0.7), every="7d")
    found = evaluate_updates(History.open(tmp_path / "h"), settings)
    for weeks, expected, macro_f1 in ((4, (0.411, 0.237, 0.300), 0.287), (12, (0.308, 0.290, 0.299), 0.289)):
        ours = {"weeks": weeks, "theta": 0.7, "policy": "history-aware"}
        micro = score(found, average="micro", **ours)
        assert (micro["precision"], micro["recall"], micro["f1"]) == pytest.approx(expected, abs=0.003)
        assert score(found, average="macro", **ours)["f1"] == pytest.approx(macro_f1, abs=0.003)
        brute = score(found, average="micro", weeks=weeks, theta=0.7, policy="brute-force")
        assert brute["f1"] == pytest.approx(0.018, abs=0.001)


def test_looking_ahead_for_less_than_the_time_between_visits_is_reported() -> None:
    from recrawl.cli.evaluate_updates import too_short

    def monthly(ahead: int) -> UpdateEvaluation:
        settings = UpdateSettings(ahead=timedelta(days=ahead))
        return UpdateEvaluation(settings, 10, 130, 5, "2025-01-01T00:00:00", "2026-01-01T00:00:00")

    assert "try --ahead 31d" in (too_short(monthly(7)) or "")
    assert too_short(monthly(30)) is None


def in_order(captures: Captures) -> list[list[tuple[int, int]]]:
    """What each site showed and when, in an order that does not depend on their names."""
    columns = list(zip(captures.at.tolist(), captures.changed.tolist(), strict=True))
    return sorted(columns[low:high] for low, high in pairwise(captures.start.tolist()))


@pytest.mark.parametrize("level", ["homepage", "site"])
def test_sites_under_roots_are_evaluated_as_if_each_were_a_host(tmp_path: Path, level: str) -> None:
    chance = random.Random(3)
    stories = {
        (who, path): "".join(chance.choice("+..x b") for _ in range(12))
        for who in ("ann", "bob", "cem")
        for path in ("", "x", "x/y", "x/y/z")
    }
    under = {f"https://foo.edu/~{who}/{path}": story for (who, path), story in stories.items()}
    outside = {"https://foo.edu/news": "+" * 12}
    hosts = {f"https://{who}.foo.edu/{path}": story for (who, path), story in stories.items()}
    (tmp_path / "roots.txt").write_text("foo.edu/~ann\nfoo.edu/~bob\nfoo.edu/~cem\n")
    expected = captures_of(weekly(tmp_path / "hosts", hosts), level=level)
    history = weekly(tmp_path / "under", under | outside)
    for roots in ("/~*/", str(tmp_path / "roots.txt")):
        found = captures_of(history, level=level, roots=parse_roots(roots))
        assert in_order(found) == in_order(expected)
        assert found.n_outside == 1
    if level == "homepage":
        alone = {url: story for url, story in under.items() if url.endswith("/")}
        assert in_order(captures_of(weekly(tmp_path / "alone", alone))) == in_order(expected)


def test_roots_that_no_page_is_under_are_named(tmp_path: Path) -> None:
    history = weekly(tmp_path / "history", {"https://a.org/x": "..++."})
    with pytest.raises(NotEnoughData, match="no page is under a root by --roots /~"):
        captures_of(history, level="site", roots=parse_roots("/~*/"))
    with pytest.raises(NotEnoughData, match="no page is at most 0 directories deep"):
        captures_of(history, level="homepage")
