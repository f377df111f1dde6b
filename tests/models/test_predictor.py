"""Training, predicting, saving: for every page, with reasons, and never from a file that was changed."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.models import saved
from recrawl.models.around import BASES
from recrawl.models.estimates import Estimates, reconciled
from recrawl.models.predictor import Predictor, Recipe, predict, train
from recrawl.models.reasons import reasons
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
SMALL = Recipe(links=("internal", "all"))


def busy_web(folder: Path, n_pages: int = 24, n_rounds: int = 6) -> History:
    """Even pages gain i links per round, odd ones none; one page was never reached, one was seen once."""
    history = History.create(folder)
    visits = []
    for r in range(n_rounds):
        for i in range(n_pages):
            url = f"https://{'ab'[i % 2]}.org/{i}"
            n = i * r if i % 2 == 0 else 3
            links = [f"https://{'ab'[i % 2]}.org/{i}/{j}" for j in range(n)]
            text = ("news today " if i % 2 == 0 else "archive of old things ") * 3 + f"page{i}"
            visits.append(
                Visit(url=url, at=START + timedelta(days=7 * r), links=links, text=text, content_bytes=900 + n)
            )
        visits.append(Visit(url="https://a.org/never", at=START + timedelta(days=7 * r), status=503))
    visits.append(
        Visit(url="https://a.org/once", at=START + timedelta(days=7 * (n_rounds - 1)), links=[], text="news today news")
    )
    history.add(visits)
    return history


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> History:
    return busy_web(tmp_path_factory.mktemp("web") / "history")


@pytest.fixture(scope="module")
def predictor(web: History) -> Predictor:
    return train(web, SMALL)


def row(found, url: str) -> int:
    return found.panel.url.to_pylist().index(url)


def test_every_known_page_has_a_prediction_with_an_interval(web: History, predictor: Predictor) -> None:
    found = predict(predictor, web)["all"]
    assert sorted(found.panel.url.to_pylist()) == sorted(web.urls_of(web.timeline.pages).to_pylist())
    assert np.isfinite(found.expected).all()
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
    assert (found.low <= found.high).all()


def test_a_busy_page_is_expected_to_gain_more_than_a_quiet_one(web: History, predictor: Predictor) -> None:
    found = predict(predictor, web)["all"]
    assert found.expected[row(found, "https://a.org/20")] > found.expected[row(found, "https://b.org/21")]


def test_pages_seen_once_or_never_are_judged_by_what_is_around_them(web: History, predictor: Predictor) -> None:
    found = predict(predictor, web, ["https://a.org/unknown", "https://elsewhere.org/"])["all"]
    basis = {url: BASES[found.basis[row(found, url)]] for url in found.panel.url.to_pylist()}
    assert basis["https://a.org/20"] == "its own past"
    assert basis["https://a.org/once"] == "related pages"
    assert basis["https://a.org/never"] == "its site"
    assert basis["https://a.org/unknown"] == "its site"
    assert basis["https://elsewhere.org/"] == "all pages"


def test_the_reasons_speak_of_the_page(web: History, predictor: Predictor) -> None:
    found = predict(predictor, web)["all"]
    why = reasons(predictor, found, np.array([row(found, "https://a.org/20")]))[0]
    assert len(why) == 3
    assert any("20, 20, 20 new links" in reason.words or "20 new links per round" in reason.words for reason in why), (
        why
    )


def test_what_was_expected_one_round_earlier_stands_beside_what_came(predictor: Predictor) -> None:
    scores = predictor.scores["all"]
    assert scores["found"] == sum(range(0, 24, 2))
    assert {"spearman", "spearman_average", "spearman_previous", "area", "expected"} <= set(scores)


def test_a_saved_model_says_the_same(web: History, predictor: Predictor, tmp_path: Path) -> None:
    card = saved.save(predictor, tmp_path / "m")
    assert card["n_pages"] == predictor.n_pages
    assert card["scores_one_round_earlier"]["all"] == predictor.scores["all"]
    again = predict(saved.load(tmp_path / "m"), web)["all"]
    np.testing.assert_array_equal(again.expected, predict(predictor, web)["all"].expected)


def test_a_changed_model_is_refused(predictor: Predictor, tmp_path: Path) -> None:
    saved.save(predictor, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as file:
        parts, comment = {name: file.read(name) for name in file.namelist()}, file.comment
    for name in parts:
        changed = parts | {name: parts[name].replace(b"1", b"2", 1) if name == "card.json" else parts[name][:-1] + b"x"}
        with zipfile.ZipFile(tmp_path / "bad", "w") as file:
            for part, data in changed.items():
                file.writestr(part, data)
            file.comment = comment
        with pytest.raises(saved.BadModel, match="was changed"):
            saved.load(tmp_path / "bad")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x80\x04\x95 a pickle", b"{}"])
def test_a_file_that_is_not_a_model_is_refused_with_a_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(saved.BadModel, match="not a recrawl model"):
        saved.load(tmp_path / "m")


def test_the_error_for_a_missing_model_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(saved.BadModel, match="recrawl train --out"):
        saved.load(tmp_path / "none")


@pytest.mark.parametrize("other", [1, 99])
def test_a_model_of_another_format_is_refused(predictor: Predictor, tmp_path: Path, monkeypatch, other: int) -> None:
    monkeypatch.setattr(saved, "FORMAT", other)
    saved.save(predictor, tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(saved.BadModel, match="made by another recrawl"):
        saved.load(tmp_path / "m")


def test_a_model_of_other_pages_is_refused(predictor: Predictor, tmp_path: Path) -> None:
    other = History.create(tmp_path / "other")
    other.add([Visit(url="https://x.org/", at=START, links=[])])
    with pytest.raises(saved.BadModel, match="none of which is in this history"):
        saved.check_fits(predictor, other.timeline.pages, "m")


def card_of(path: Path) -> dict[str, object]:
    """As a program without recrawl would read it."""

    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("card.json"), parse_constant=refused)


def test_the_card_can_be_read_without_the_model(predictor: Predictor, tmp_path: Path) -> None:
    card = saved.save(predictor, tmp_path / "m")
    assert card_of(tmp_path / "m") == json.loads(json.dumps(card))


def histories() -> dict[str, list[Visit]]:
    def at(r: int) -> datetime:
        return START + timedelta(days=7 * r)

    return {
        "a single page": [Visit(url="https://e.org/", at=at(r), links=[]) for r in range(4)],
        "no text": [
            Visit(url=f"https://e.org/{i}", at=at(r), links=[f"https://e.org/{r}"]) for i in range(9) for r in range(4)
        ],
        "never a change": [
            Visit(url=f"https://e.org/{i}", at=at(r), links=[], text="same") for i in range(9) for r in range(4)
        ],
        "always a change": [
            Visit(url=f"https://e.org/{i}", at=at(r), links=[f"https://e.org/{r}"]) for i in range(9) for r in range(5)
        ],
        "two rounds": [
            Visit(url=f"https://e.org/{i}", at=at(r), links=[f"https://e.org/{r}"]) for i in range(9) for r in range(2)
        ],
        "links known once": [
            Visit(url=f"https://e.org/{i}", at=at(r), links=[] if r else None) for i in range(9) for r in range(3)
        ],
    }


@pytest.mark.parametrize("name", histories())
def test_a_poor_history_gives_a_prediction_nevertheless(name: str, tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add(histories()[name])
    found = predict(train(history, SMALL), history)["all"]
    assert np.isfinite(found.expected).all()


def test_a_model_taught_with_a_single_interval_lets_pages_go_on_as_they_did(tmp_path: Path) -> None:
    history = busy_web(tmp_path / "history", n_rounds=2)
    found = predict(train(history, SMALL), history)["internal"]
    expected = [found.expected[row(found, f"https://a.org/{i}")] for i in range(0, 24, 2)]
    assert expected == sorted(expected)  # page i gained i links in the only interval there is
    assert expected[-1] == pytest.approx(22, rel=0.4)
    assert found.expected[row(found, "https://b.org/1")] < 1


def test_one_round_is_too_few_and_says_so(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add([Visit(url="https://e.org/", at=START, links=[])])
    with pytest.raises(NotEnoughData, match="two are needed"):
        train(history, SMALL)


def test_unknown_links_everywhere_are_too_little_and_say_so(tmp_path: Path) -> None:
    history = History.create(tmp_path / "history")
    history.add(
        [Visit(url=f"https://e.org/{i}", at=START + timedelta(days=r), text="x") for i in range(9) for r in range(3)]
    )
    with pytest.raises(NotEnoughData, match="nothing can be learnt"):
        train(history, SMALL)


def daily_web(folder: Path, n_days: int) -> History:
    """Twelve pages visited at noon of every day that show ten new links each time."""
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://a.org/{i}",
            at=START + timedelta(days=day, hours=12),
            links=[f"https://a.org/{i}/{day}/{j}" for j in range(10)],
        )
        for i in range(12)
        for day in range(n_days)
    )
    return history


def test_an_unfinished_period_is_not_learnt_from_and_is_said_so(tmp_path: Path) -> None:
    history = daily_web(tmp_path / "history", 7 * 6 + 2)
    notes: list[str] = []
    weekly = Recipe(every="7d", links=("all",))
    predictor = train(history, weekly, on_note=notes.append)
    assert predictor.n_rounds == 6
    assert predictor.window == ("2026-01-11T12:00:00", "2026-02-15T12:00:00"), "visits, not ends of periods"
    assert len(notes) == 1
    assert "the period up to 2026-02-22 23:59 UTC has not ended, its newest visit is of 2026-02-17 12:00" in notes[0]
    found = predict(predictor, history, on_note=notes.append)["all"]
    assert found.panel.shape[1] == 6
    assert len(notes) == 2
    whole = daily_web(tmp_path / "whole", 7 * 6)
    said: list[str] = []
    same = predict(train(whole, weekly, on_note=said.append), whole, on_note=said.append)["all"]
    np.testing.assert_array_equal(found.expected, same.expected)
    assert not said


def test_a_page_first_seen_in_an_unfinished_period_is_predicted_too(tmp_path: Path) -> None:
    history = daily_web(tmp_path / "history", 7 * 6 + 2)
    history.add([Visit(url="https://a.org/late", at=START + timedelta(days=43), links=[])])
    found = predict(train(history, Recipe(every="7d", links=("all",))), history)["all"]
    assert BASES[found.basis[row(found, "https://a.org/late")]] == "its site"
    assert found.expected[row(found, "https://a.org/late")] == pytest.approx(10, rel=0.1)


def test_a_page_missed_in_the_last_round_keeps_what_was_known_and_says_when(tmp_path: Path) -> None:
    history = busy_web(tmp_path / "history", n_rounds=9)
    late = START + timedelta(days=63)
    history.add(
        Visit(url=f"https://{'ab'[i % 2]}.org/{i}", at=late, links=[f"https://x.org/{i}/{j}" for j in range(9 * i)])
        for i in range(24)
        if i != 20
    )
    predictor = train(history, SMALL)
    found = predict(predictor, history)["all"]
    page = row(found, "https://a.org/20")
    names = [str(feature) for feature in found.columns]
    x = dict(zip(names, found.x[page].tolist(), strict=True))
    assert (x["path_depth"], x["domain_depth"]) == (1, 2)
    assert x["n_internal"] == 20 * 8
    assert x["content_bytes"] == 900 + 160
    assert np.isnan(x["new_all -1"]), "it was not visited"
    assert found.unseen_for[page] == 1
    assert found.unseen_for[row(found, "https://a.org/18")] == 0
    words = [reason.words for reason in reasons(predictor, found, np.array([page]), 9)[0]]
    assert "20, 20 new links when last seen, 1 round ago, newest first" in words
    assert "had new links when last seen, 1 round ago" in words
    assert not any("last round" in reason for reason in words)


def test_new_links_of_all_kinds_are_never_fewer_than_those_of_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    history = History.create(tmp_path / "history")
    history.add(
        Visit(
            url=f"https://a.org/{i}",
            at=START + timedelta(days=r),
            links=[f"https://{host}.org/{i}/{r}/{j}" for host in ("a", "b") for j in range(rng.poisson(i % 5 / 4))],
            text=f"page {i % 3} word{i}",
        )
        for i in range(120)
        for r in range(8)
    )
    found = predict(train(history, Recipe()), history)
    whole = found["all"]
    for part in (found["internal"], found["external"]):
        assert (whole.probability >= part.probability).all()
        assert (whole.expected >= part.expected).all()
        assert (whole.low >= part.low).all()
        assert (whole.high >= part.high).all()


def test_answers_are_raised_page_by_page() -> None:
    def estimates(*numbers: float) -> Estimates:
        values = np.array(numbers, np.float32)
        return Estimates(values, values / 10, values.astype(np.int64), values.astype(np.int64) + 2)

    by_kind = {"internal": estimates(1, 5), "external": estimates(2, 0), "all": estimates(4, 3)}
    whole = reconciled(by_kind)["all"]
    assert whole.expected.tolist() == [4, 5]
    assert whole.probability == pytest.approx([0.4, 0.5])
    assert (whole.low.tolist(), whole.high.tolist()) == ([4, 5], [6, 7])
    assert reconciled({"all": by_kind["all"]})["all"] is by_kind["all"]
    assert reconciled({"internal": by_kind["internal"]})["internal"] is by_kind["internal"]


def test_a_baseline_predicts_its_own_column(web: History) -> None:
    for learner, expected in (("average-count", 20), ("previous-count", 20)):
        found = predict(train(web, Recipe(links=("all",), learner=learner)), web)["all"]
        assert found.expected[row(found, "https://a.org/20")] == pytest.approx(expected)
        assert found.expected[row(found, "https://b.org/21")] == pytest.approx(0, abs=1e-5)
        assert found.probability[row(found, "https://a.org/20")] > 0.9


def test_a_baseline_that_tells_no_number_is_refused_with_a_sentence(web: History) -> None:
    with pytest.raises(RecrawlError, match="content-change-rate ranks pages, but does not predict how many"):
        train(web, Recipe(learner="content-change-rate"))


def test_the_recall_of_approximate_neighbours_and_unknown_trusted_pages_are_noted(web: History) -> None:
    notes: list[str] = []
    recipe = Recipe(
        links=("all",), features="static", learner="poisson", k=3, neighbours="approximate", trusted=("a.org", "no.org")
    )
    predictor = train(web, recipe, on_note=notes.append)
    assert predictor.neighbours[0] == "approximate"
    assert [note.split(":")[0] for note in notes] == [
        "related pages were found approximately",
        "not in the history, so not trusted",
    ]
    assert notes[1].endswith("no.org")
    assert f"{predictor.neighbours[1]:.1%} of the true 3 nearest" in notes[0]
    train(web, Recipe(links=("all",), trusted=("a.org",)), on_note=notes.append)
    assert "--trusted has no effect" in notes[-1]
