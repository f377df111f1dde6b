"""Plans that count relevant links only: the same as plans for a history that has no other links."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recrawl as rc
from made_focus import START, made_visits, plain_probability, plain_relevant, topic_model, without
from recrawl.crawl.planned import planned as crawl_plan
from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import BadOption, NotEnoughData
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.models.link_relevance import Focus
from recrawl.models.relevance import Relevance, train
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.policies import known
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit
from recrawl.world.pages import Need

NOW = START + timedelta(days=9)
QUICK = [
    name for name, policy in known().items() if Need.FUTURE not in policy.needs and not name.startswith("predicted")
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "topic.json"
    topic_model(path)
    return path


def planned(history: History, now: datetime = NOW, *, carry: bool = False, **options: Any) -> dict[str, Any]:
    """A plan with every number in full, without the word for which links count."""
    made = Planner(history, PlanOptions(budget="100%", **options), now, carry=carry).plan().to_arrow().to_pydict()
    return made | {"reason": [reason.replace(" relevant", "") for reason in made["reason"]]}


def history_of(folder: Path, visits: list[Visit]) -> History:
    history = History.create(folder)
    history.add(visits)
    return history


def judged_by_url(visits: list[Visit]) -> list[Visit]:
    """The same visits without the texts of pages that links lead to: they are judged by their URL, or by what is recorded."""
    return [visit for visit in visits if visit.relevance is not None or ".example/" in visit.url]


@pytest.mark.parametrize("policy", QUICK)
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_plan_is_that_of_a_history_without_irrelevant_links(
    policy: str, seed: int, tmp_path: Path, model: Path
) -> None:
    visits = judged_by_url(made_visits(seed))
    relevant = plain_relevant([visit for visit in visits if visit.at <= NOW], model)
    full, only = history_of(tmp_path / "full", visits), history_of(tmp_path / "only", without(visits, relevant))
    focused = planned(full, policy=policy, relevance=str(model))
    assert focused == planned(only, policy=policy)
    if policy in ("expected-harvest", "bandit", "windowed-outdegree", "regression", "average-count"):
        assert sum(focused["expected_new_links"]) > 0
        assert focused["expected_new_links"] != planned(full, policy=policy)["expected_new_links"]


@pytest.mark.parametrize("above", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("by_model", [True, False])
def test_recorded_relevance_and_the_threshold_decide(by_model: bool, above: float, tmp_path: Path, model: Path) -> None:
    visits = judged_by_url(made_visits(5))
    relevant = plain_relevant([visit for visit in visits if visit.at <= NOW], model if by_model else None, above)
    full, only = history_of(tmp_path / "full", visits), history_of(tmp_path / "only", without(visits, relevant))
    source = str(model) if by_model else "recorded"
    focused = planned(full, policy="expected-harvest", relevance=f"{source}:{above}")
    assert focused == planned(only, policy="expected-harvest")


MORE = ("regression", "average-count", "history-aware")


@pytest.mark.parametrize(
    "policy",
    ["expected-harvest", "bandit", *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)],
)
@pytest.mark.parametrize("source", ["model", "recorded"])
def test_a_plan_is_the_same_with_and_without_what_was_kept(
    policy: str, source: str, tmp_path: Path, model: Path
) -> None:
    visits, history = made_visits(6), History.create(tmp_path / "h")
    focus: dict[str, Any] = {"policy": policy, "relevance": str(model) if source == "model" else source}
    for day in range(2, 12, 2):
        now = START + timedelta(days=day)
        history.add([visit for visit in visits if now - timedelta(days=2) < visit.at <= now])
        for moment in (now, now - timedelta(hours=30)):  # also as of an earlier moment, with a state of later ones
            carried = planned(history, moment, carry=True, **focus)
            assert carried == planned(history, moment, relearn=True, **focus)
    at_once = history_of(tmp_path / "at-once", [visit for visit in visits if visit.at <= now])
    assert carried == planned(at_once, moment, **focus)


def test_a_later_judgement_of_a_link_is_learnt_from_the_beginning_and_others_are_not(
    tmp_path: Path, model: Path
) -> None:
    hub = [
        Visit(
            url="https://e.org/",
            at=START + timedelta(days=day),
            links=[f"https://e.org/flood/{i}" for i in range(day + 1)],
        )
        for day in range(6)
    ]
    history, notes = history_of(tmp_path / "h", hub), list[str]()
    options = PlanOptions(budget="100%", policy="average-count", relevance=str(model))

    def plan(day: int) -> float:
        notes.clear()
        planner = Planner(history, options, START + timedelta(days=day), carry=True, on_note=notes.append)
        return float(planner.plan().expected.sum())

    assert plan(6) == pytest.approx(1.0)
    history.add([Visit(url="https://e.org/flood/3", at=START + timedelta(days=6), links=[], relevance=0.9)])
    plan(7)
    assert not [note for note in notes if "judged otherwise" in note]
    history.add([Visit(url="https://e.org/flood/3", at=START + timedelta(days=8), links=[], relevance=0.1)])
    assert plan(9) == pytest.approx(0.8)  # four links in five visits
    assert [note for note in notes if "judged otherwise" in note]
    assert plan(7) == pytest.approx(1.0)  # as it was known then


def test_words_of_a_page_come_before_its_url(tmp_path: Path, model: Path) -> None:
    links = ["https://e.org/flood/1", "https://e.org/goal/2", "https://e.org/zzz/3"]
    history = history_of(tmp_path / "h", [Visit(url="https://e.org/", at=START, links=links)])
    focus = Focus.of(str(model))
    assert focus is not None
    ids = [page_id(link) for link in links]

    def verdicts() -> dict[int, int]:
        judged = focus.judged(history, np.array(ids))
        return dict(zip(judged.link.tolist(), judged.verdict.tolist(), strict=True))

    assert [verdicts()[i] for i in ids] == [1, 0, -1]
    history.add([Visit(url=links[0], at=START + timedelta(days=1), text="goal league match")])
    history.add([Visit(url=links[2], at=START + timedelta(days=1), text="storm and flood")])
    assert [verdicts()[i] for i in ids] == [0, 0, 1]
    history.add([Visit(url=links[0], at=START + timedelta(days=2), text="flood", relevance=0.75)])
    assert [verdicts()[i] for i in ids] == [1, 0, 1]


def test_the_classifier_agrees_with_a_plain_one(model: Path) -> None:
    loaded = Relevance.load(model)
    shown = {link for visit in made_visits(8) for link in visit.links or ()}
    urls = [*sorted(shown), "https://e.org/2024/17", "https://flood.org/"]
    for url, probability, knows in zip(urls, loaded.predict(urls), loaded.knows(urls), strict=True):
        plain = plain_probability(model, url)
        assert knows == (plain is not None)
        assert plain is None or probability == pytest.approx(plain, abs=1e-12)


def test_a_plan_says_which_links_it_counts(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", made_visits(7))
    made = rc.plan(history, budget=3, policy="expected-harvest", relevance=str(model), now=NOW)
    assert "new relevant links expected" in repr(made)
    assert all("relevant links" in reason for reason in made.reason)
    summary = made.summary()
    assert summary["expected_relevant_links"] == summary["expected_new_links"]
    assert (summary["relevance"], summary["relevant_above"]) == (str(model), 0.5)
    assert "relevance" not in rc.plan(history, budget=3, now=NOW).summary()
    why = rc.explain(history, made.url[0].as_py(), budget=3, policy="average-count", relevance=str(model), now=NOW)
    assert "new relevant links per visit" in why.reason


@pytest.mark.parametrize("policy", ["average-count", "bandit"])
def test_scores_compare_relevant_links_with_what_was_expected(policy: str, tmp_path: Path, model: Path) -> None:
    visits = judged_by_url(made_visits(9))
    now = START + timedelta(days=5, hours=12)
    full = history_of(tmp_path / "full", visits)
    only = history_of(tmp_path / "only", without(visits, plain_relevant(visits, model)))
    rc.plan(full, budget="100%", policy=policy, relevance=str(model), now=now, keep=True)
    expected_by_now = plain_relevant([visit for visit in visits if visit.at <= now], model)
    assert stored(full.beside)["focus"][0].as_py()
    (score,) = rc.score(full)
    # What was found is judged by all that is known when it is scored; what was expected, by what was known then.
    of_then = history_of(tmp_path / "then", without(visits, expected_by_now))
    rc.plan(of_then, budget="100%", policy=policy, now=now, keep=True)
    rc.plan(only, budget="100%", policy=policy, now=now, keep=True)
    (then,), (plain,) = rc.score(of_then), rc.score(only)
    assert score.expected == then.expected
    if stored(only.beside)["page"].to_pylist() == stored(full.beside)["page"].to_pylist():
        assert (score.found, score.hits, score.round_robin_found) == (plain.found, plain.hits, plain.round_robin_found)
    assert score.found == score.found_relevant
    assert score.found_all is not None
    assert score.found_all > score.found > 0
    assert "new relevant links expected" in repr(rc.score(full))


def test_plans_that_count_all_links_can_be_scored_by_relevance(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(9)))
    rc.plan(history, budget="100%", policy="average-count", now=START + timedelta(days=5, hours=12), keep=True)
    (plain,), (judged,) = rc.score(history), rc.score(history, relevance=str(model))
    assert "found_relevant" not in plain.record()
    assert judged.found == plain.found == judged.found_all
    assert judged.found_relevant is not None
    assert 0 < judged.found_relevant < judged.found
    # By another classifier, or by another threshold, a plan's own judgement does not count.
    rc.plan(
        history,
        budget="100%",
        policy="average-count",
        now=START + timedelta(days=6, hours=12),
        keep=True,
        relevance=str(model),
    )
    own, other = rc.score(history)[1], rc.score(history, relevance="recorded:0.9")[1]
    assert other.found < own.found


def test_a_recommendation_for_relevant_links_is_for_plans_that_count_these(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(10)))
    visits = judged_by_url(made_visits(10))
    only = history_of(tmp_path / "only", without(visits, plain_relevant(visits, model)))
    asked: dict[str, Any] = {"budget": 2, "policies": "round-robin,average-count,windowed-outdegree"}
    tuned, plain = (
        rc.tune(history, relevance=str(model), keep=True, **asked),
        rc.tune(only, **asked),
    )
    assert [row["coverage"] for row in tuned.records()] == [row["coverage"] for row in plain.records()]
    assert [row["candidate"] for row in tuned.records()] == [row["candidate"] for row in plain.records()]
    notes: list[str] = []
    for source in (str(model), None, "recorded"):
        planner = Planner(history, PlanOptions(relevance=source), on_note=notes.append)
        planner.plan()
    whys = [note for note in notes if note.startswith("planning")]
    assert ["as recrawl tune recommended" in why for why in whys] == [True, False, False]


def test_bad_input_is_one_sentence_with_a_way_out(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", [visit for visit in made_visits(2) if visit.relevance is None])
    with pytest.raises(
        NotEnoughData, match=r"no visit to any of the \d+ links has one; train a classifier with recrawl relevance"
    ):
        planned(history, relevance="recorded")
    foreign = tmp_path / "foreign.json"
    train(["ein deutsches wort", "noch eines", "anderes thema", "ganz anders"], [True, True, False, False]).save(
        foreign
    )
    with pytest.raises(NotEnoughData, match="is it for another language"):
        planned(history, relevance=str(foreign))
    (tmp_path / "broken.json").write_text("{}")
    for options, sentence in (
        ({"relevance": "no.json"}, "relevance: there is no file no.json; make one with: recrawl relevance"),
        ({"relevance": str(tmp_path / "broken.json")}, "is not a relevance classifier"),
        ({"relevance": "recorded:1.5"}, "relevance: the threshold 1.5 of 'recorded:1.5' is not between 0 and 1"),
        ({"relevance": "recorded", "goal": "content"}, "goal content counts changes of pages"),
    ):
        with pytest.raises(BadOption, match=sentence):
            PlanOptions(**options)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recorded:80%", "relevance 'recorded:80%' is not understood; write recorded:0.8, or the file of a classifier"),
        ("Recorded", "relevance 'Recorded' is not understood"),
        ("0.8", "is a threshold without a classifier"),
    ],
)
def test_what_is_nearly_right_is_said_with_an_example(text: str, sentence: str) -> None:
    with pytest.raises(BadOption, match=sentence):
        PlanOptions(relevance=text)


def test_two_thresholds_must_agree() -> None:
    with pytest.raises(BadOption, match=r"has the threshold 0.8, and relevant-above says 0.2"):
        Focus.of("recorded:0.8", 0.2)


@pytest.mark.parametrize("above", [0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_a_relevance_as_high_as_the_threshold_is_not_above_it(above: float, tmp_path: Path) -> None:
    link, other = "https://e.org/link", "https://e.org/other"
    history = history_of(
        tmp_path / "h",
        [
            Visit(url="https://e.org/", at=START, links=[link, other]),
            Visit(url=link, at=START, links=[], relevance=above),
            Visit(url=other, at=START, links=[], relevance=above + 0.01),
        ],
    )
    links = np.array([page_id(link), page_id(other)])
    focus = Focus.of(f"recorded:{above}")
    assert focus is not None
    assert focus.judged(history, links).relevant.tolist() == [page_id(other)]


def test_a_plan_whose_classifier_is_gone_is_not_scored_by_something_else(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(9)))
    options: dict[str, Any] = {"budget": "100%", "policy": "average-count", "keep": True}
    rc.plan(history, now=START + timedelta(days=5, hours=12), relevance=str(model), **options)
    (own,) = rc.score(history)
    (kept,) = (tmp_path / "h").glob("relevance-*.json")
    kept.unlink()
    with pytest.raises(NotEnoughData, match=r"is gone from .* give it with --relevance FILE"):
        rc.score(history)
    (again,) = rc.score(history, relevance=str(model))
    assert (again.found, again.found_all) == (own.found, own.found_all)


def test_a_table_of_scores_has_the_columns_of_all_plans(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(9)))
    options: dict[str, Any] = {"budget": "100%", "policy": "average-count", "keep": True}
    rc.plan(history, now=START + timedelta(days=5, hours=12), **options)
    rc.plan(history, now=START + timedelta(days=6, hours=12), relevance=str(model), **options)
    table = rc.score(history).to_arrow()
    assert table["relevance"].to_pylist()[0] is None
    assert table["relevance"].to_pylist()[1] is not None
    assert table["found_all"].null_count == 1


def test_a_recommendation_for_content_leaves_that_for_links_alone(tmp_path: Path, model: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(10)))
    with pytest.raises(BadOption, match="goal content counts changes of pages"):
        rc.tune(history, budget=2, goal="content", relevance="recorded")
    rc.tune(history, budget=2, goal="content", policies="round-robin,average-count", keep=True)
    notes: list[str] = []
    Planner(history, PlanOptions(), on_note=notes.append).plan()
    assert not any("as recrawl tune recommended" in note for note in notes)


def test_links_that_could_not_be_judged_are_counted_and_do_not_count(tmp_path: Path, model: Path) -> None:
    visits = judged_by_url(made_visits(11))
    notes: list[str] = []
    Planner(history_of(tmp_path / "h", visits), PlanOptions(relevance=str(model)), NOW, on_note=notes.append).plan()
    past = [visit for visit in visits if visit.at <= NOW]
    links = {link for visit in past for link in visit.links or ()}
    recorded = {visit.url for visit in past if visit.relevance is not None}
    unjudged = [link for link in links - recorded if plain_probability(model, link) is None]
    (note,) = [note for note in notes if note.startswith("only relevant links count")]
    n_relevant = len(plain_relevant(past, model))
    assert f"{n_relevant:,} links of {len(links):,}" in note
    assert f"{len(unjudged):,} without a word that the classifier knows do not count" in note


def test_a_crawl_plans_by_relevance_night_after_night(tmp_path: Path, model: Path) -> None:
    visits = judged_by_url(made_visits(12))
    history = History.create(tmp_path / "h")
    for day in range(2, 9, 3):
        now = START + timedelta(days=day)
        history.add([visit for visit in visits if now - timedelta(days=3) < visit.at <= now])
        options = CrawlOptions.from_settings(
            {"RECRAWL_BUDGET": "6", "RECRAWL_RELEVANCE": str(model), "RECRAWL_POLICY": "expected-harvest"}
        )
        tonight = crawl_plan(history, replace(options, resume=False), now)
        past = [visit for visit in visits if visit.at <= now]
        only = history_of(tmp_path / f"only{day}", without(past, plain_relevant(past, model)))
        plain = rc.plan(only, budget=6, policy="expected-harvest", now=now)
        assert tonight.urls == plain.url.to_pylist()
        assert tonight.expected == pytest.approx(float(plain.expected.sum()), abs=1e-3)
    assert stored(history.beside).num_rows == 18


def test_a_row_that_another_one_replaced_says_nothing_of_relevance(tmp_path: Path) -> None:
    link, hub = "https://e.org/link", "https://e.org/"
    history = history_of(
        tmp_path / "h",
        [Visit(url=hub, at=START, links=[link]), Visit(url=link, at=START, relevance=0.9)],
    )
    history.add([Visit(url=link, at=START, links=[hub])])  # the same visit, with more to show and no relevance
    focus, links = Focus.of("recorded"), np.array([page_id(link)])
    assert focus is not None
    before = focus.judged(history, links).relevant.tolist()
    history.compact()
    assert before == focus.judged(History.open(tmp_path / "h"), links).relevant.tolist() == []


def test_a_recommendation_for_some_links_is_for_plans_that_count_these(tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", judged_by_url(made_visits(10)))
    rc.tune(history, budget=2, policies="round-robin,average-count", links="external", keep=True)
    notes: list[str] = []
    for links in ("all", "external"):
        Planner(history, PlanOptions(links=links), on_note=notes.append).plan()
    whys = ["as recrawl tune recommended" in note for note in notes if note.startswith("planning")]
    assert whys[0] is False
