"""The public API: what is there, how it is documented, and that it leaves a caller's history alone."""

from __future__ import annotations

import doctest
import importlib
import inspect
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recrawl as rc
from recrawl.errors import BadOption
from recrawl.testing import tiny_history

EXPECTED = [
    "Budget", "History", "Plan", "Policy", "Visit", "__version__", "explain", "import_files", "plan", "policies", "replay", "score",
    "testing", "train", "tune",
]  # fmt: skip


def test_the_public_names_are_a_sorted_list_and_all_of_them_are_there() -> None:
    assert rc.__all__ == sorted(EXPECTED)
    assert set(EXPECTED) <= set(dir(rc))
    for name in EXPECTED:
        assert getattr(rc, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        _ = rc.plans  # type: ignore[attr-defined]


def public_things() -> list[tuple[str, Any]]:
    things = [(name, _resolved(name)) for name in EXPECTED if name not in ("__version__", "policies", "testing")]
    things += [(f"policies.{policy.__name__}", policy) for policy in rc.policies.ALL]
    return things


def _resolved(name: str) -> Any:
    """The function behind a room that can be called."""
    place = rc._PLACES[name]
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(f"recrawl.{module}"), attribute)


@pytest.mark.parametrize(("name", "thing"), public_things(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_public_thing_has_a_docstring_with_an_example_that_runs(name: str, thing: Any) -> None:
    text = inspect.getdoc(thing) or ""
    assert text.split("\n")[0].rstrip().endswith("."), f"{name}: the first line is not one sentence"
    assert doctest.DocTestParser().get_examples(text), f"{name} has no example"


@pytest.mark.parametrize("policy", rc.policies.ALL, ids=lambda policy: policy.name)
def test_a_policy_from_a_paper_cites_it(policy: type[rc.Policy]) -> None:
    assert policy.paper is None or "References:" in (policy.__doc__ or "")


def test_a_plan_in_three_lines(tmp_path: Path) -> None:
    with tiny_history() as history:
        plan = rc.plan(history, budget=2, policy="average-count")
        assert repr(plan) == "Plan(2 pages by average-count, 5.0 new links expected)"
        assert plan.to_pandas()["url"].tolist() == ["https://e.org/news", "https://e.org/blog"]
        assert plan.to_arrow().column_names[:3] == ["rank", "url", "host"]
        plan.write(tmp_path / "tonight.txt", format="urls")
        assert (tmp_path / "tonight.txt").read_text() == "https://e.org/news\nhttps://e.org/blog\n"


def test_objects_and_names_of_policies_are_the_same_to_a_plan() -> None:
    with tiny_history() as history:
        by_name = rc.plan(
            history, budget="70%", policy="bandit", settings=["bandit.window=2"], now=datetime(2026, 3, 8, tzinfo=UTC)
        )
        by_object = rc.plan(
            history, budget=2, policy=rc.policies.Bandit(window=2), now=datetime(2026, 3, 8, tzinfo=UTC)
        )
        assert by_name.id == by_object.id


def test_an_option_that_does_not_exist_is_named_with_the_nearest() -> None:
    with (
        tiny_history() as history,
        pytest.raises(BadOption, match=r"No option named 'per_hosts'\. Did you mean 'per_host'"),
    ):
        rc.plan(history, per_hosts=3)


def test_planning_changes_nothing_in_the_callers_history() -> None:
    with tiny_history() as history:
        timeline, novelty = history.timeline, history.novelty
        files = sorted(str(path) for path in Path(history.store.folder).rglob("*"))
        rc.plan(history, budget=1)
        rc.explain(history, "https://e.org/news", budget=1)
        assert history.timeline is timeline
        assert history.novelty is novelty
        assert sorted(str(path) for path in Path(history.store.folder).rglob("*")) == files


def test_a_plan_is_scored_once_its_pages_were_visited() -> None:
    with tiny_history() as history:
        now = datetime(2026, 3, 6, 12, tzinfo=UTC)
        plan = rc.plan(history, budget=2, policy="average-count", now=now, keep=True)
        scores = rc.score(history, horizon="3d")
        assert [score.plan for score in scores] == [plan.id]
        assert (scores[0].expected, scores[0].found) == (5.0, 5)
        assert scores.to_pandas().loc[0, "policy"] == "average-count"


def test_rooms_with_the_name_of_a_function_can_be_called_and_imported() -> None:
    import recrawl.plan.planner as planner

    with tiny_history() as history:
        assert len(rc.plan(history, budget=1)) == 1
    assert planner.Planner is importlib.import_module("recrawl.plan.planner").Planner


def test_a_callers_policy_learns_nothing_from_a_plan() -> None:
    policy = rc.policies.Bandit(window=2)
    with tiny_history() as history:
        rc.plan(history, budget=1, policy=policy)
    assert not any(name.endswith("_") for name in vars(policy))


def test_a_folder_and_a_time_as_text_will_do() -> None:
    with tiny_history() as history:
        folder = str(history.store.folder)
        assert len(rc.plan(folder, budget=1, now="2026-03-06T12:00:00Z")) == 1
        assert len(rc.replay(folder, "round-robin", budget=1).records()) == 1
