"""Options of a plan: one record, one check, the same sentence from the command line, Scrapy's settings and Python."""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

import recrawl
import recrawl as rc
from commands import command
from recrawl.cli import app
from recrawl.core.options import options_of, record_of, spelled
from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import BadOption
from recrawl.plan.options import PlanOptions
from recrawl.report.replays.options import ReplayOptions, TuneOptions

SRC = Path(recrawl.__file__).parent
NAMES = [field.name for field in fields(PlanOptions)]
POLICIES = ", ".join(policy.name for policy in rc.policies.ALL)
FAVOUR = (
    "favour freshness is for plans by expected-harvest: leave policy, settings, model and goal out, or use policy "
    "expected-harvest with the setting expected-harvest.favour=freshness"
)
BOTH = "goal both weighs links and changes itself: leave policy and settings out, or use goal links or content"
MODEL = "model plans by its own predictions: leave policy and settings out"
NO_BUDGET = "write a number of pages or a share of them, such as 500 or 10%"
NO_PERIOD = "is not a period; write a number and s, m, h, d or w, e.g. 1h, 7d, 2w"

#: Options as they are written on a command line, and the sentence that refuses them.
RATES = "rates simple is for policies that estimate rates: leave model and goal both out"
REFUSED: list[tuple[dict[str, Any], str]] = [
    # values that an option cannot have
    ({"budget": "0"}, "budget: '0' fetches nothing: give at least 1 page or a share above 0%"),
    ({"budget": "-5%"}, "budget: '-5%' fetches nothing: give at least 1 page or a share above 0%"),
    ({"budget": "many"}, f"budget: 'many': {NO_BUDGET}"),
    ({"budget": "1.5"}, f"budget: '1.5': {NO_BUDGET}"),
    ({"budget": ""}, f"budget: '': {NO_BUDGET}"),
    ({"goal": "fame"}, "No goal named 'fame'. Known: links, content, both"),
    ({"goal": "contents"}, "No goal named 'contents'. Did you mean 'content'? Known: links, content, both"),
    ({"goal": "both", "weight": "2"}, "weight is 2.0; it must be between 0 and 1"),
    ({"goal": "both", "weight": "-0.1"}, "weight is -0.1; it must be between 0 and 1"),
    ({"goal": "both", "weight": "nan"}, "weight is nan; it must be between 0 and 1"),
    ({"goal": "both", "weight": "heavy"}, "weight is 'heavy'; it must be a number"),
    ({"change": "moods"}, "change: No notion of change named 'moods'. Known: significant, digest, shingles, or any"),
    ({"change": "shingles:2"}, "change: shingles: the similarity 2 is not between 0 and 1"),
    ({"policy": "bandits"}, f"No policy named 'bandits'. Did you mean 'bandit'? Known: {POLICIES}"),
    ({"policy": "oracle"}, "policy oracle knows the future: it can only be replayed. Try recrawl replay --policies oracle"),
    ({"policy": "/no/mine.py:Mine"}, "policy: there is no file /no/mine.py; write path/to/file.py:Name"),
    ({"favour": "speed"}, "No favour named 'speed'. Known: coverage, freshness"),
    ({"model": "no.model"}, "model no.model: there is no such file; recrawl train writes one"),
    ({"per_host": "-1"}, "per-host is -1; it must be 0 or more"),
    ({"per_host": "few"}, "per-host is 'few'; it must be a whole number"),
    ({"per_host": "1.5"}, "per-host is '1.5'; it must be a whole number"),
    ({"per_site": "-1"}, "per-site is -1; it must be 0 or more"),
    ({"per_site": "few"}, "per-site is 'few'; it must be a whole number"),
    ({"roots": "no.txt"}, "roots: there is no file 'no.txt'; use domain, host, a pattern such as '/~*/', or a file with one root "
                          "per line"),
    ({"roots": "~*"}, "roots: '~*' is no pattern of paths: it must begin and end with a slash, such as '/~*/'"),
    ({"rates": "bayes"}, "rates: No estimator named 'bayes'. Known: maximum-likelihood, simple, regular, law-of-large-numbers, "
                       "stochastic-approximation"),
    ({"relevance": "no.json"}, "relevance: there is no file no.json; make one with: recrawl relevance --labels FILE --out no.json"),
    ({"relevance": "recorded:2"}, "relevance: the threshold 2 of 'recorded:2' is not between 0 and 1"),
    ({"relevance": "recorded", "goal": "content"},
     "goal content counts changes of pages: leave relevance recorded out, or use goal links"),
    ({"min_gap": "soon"}, f"min-gap: 'soon' {NO_PERIOD}"),
    ({"min_gap": "0h"}, f"min-gap: '0h' {NO_PERIOD}"),
    ({"threshold": "1.5"}, "threshold is 1.5; it must be between 0 and 1"),
    ({"threshold": "high"}, "threshold is 'high'; it must be a number"),
    ({"settings": ["bandit"]}, "settings 'bandit': write policy.setting=value, such as bandit.window=28"),
    ({"settings": ["bandits.window=3"]}, f"No policy named 'bandits'. Did you mean 'bandit'? Known: {POLICIES}"),
    ({"settings": ["bandit.window=x"]}, "settings 'bandit.window=x': 'x' is not a whole number"),
    ({"settings": ["oracle.window=3"]}, "policy oracle knows the future: it can only be replayed. "
                                        "Try recrawl replay --policies oracle"),
    ({"policy": "round-robin", "settings": ["round-robin.window=3"]},
     "settings 'round-robin.window=3': round-robin has no settings"),
    ({"policy": "bandit", "settings": ["regression.window=3"]},
     "settings 'regression.window=3': 'regression' is not among the policies (bandit)"),
    ({"links": "inner"}, "No links named 'inner'. Did you mean 'internal'? Known: internal, external, all"),
    ({"every": "soon"}, f"every: 'soon' {NO_PERIOD}"),
    # options that contradict each other
    ({"model": "m.model", "policy": "bandit"}, MODEL),
    ({"model": "m.model", "settings": ["bandit.window=3"]}, MODEL),
    ({"model": "m.model", "goal": "content"}, "model predicts new links only: leave model out, or goal content"),
    ({"model": "m.model", "goal": "both"}, "model predicts new links only: leave model out, or goal both"),
    ({"model": "m.model", "change": "digest"}, "model predicts new links only: leave model out, or change digest"),
    ({"model": "m.model", "links": "internal"},
     "model predicts the links that it was trained for: leave model out, or links internal"),
    ({"model": "m.model", "roots": "host"}, "model plans by registered domains: leave model out, or roots host"),
    ({"goal": "both", "rates": "simple"}, RATES),
    ({"policy": "round-robin", "rates": "simple"},
     "rates simple: round-robin estimates no rates; those that do: lambda-crawl, freshness-value, history-aware, whole-sites"),
    ({"goal": "both", "policy": "round-robin"}, BOTH),
    ({"goal": "both", "settings": ["bandit.window=3"]}, BOTH),
    ({"favour": "freshness", "policy": "expected-harvest"}, FAVOUR),
    ({"favour": "freshness", "settings": ["expected-harvest.explore=0.5"]}, FAVOUR),
    ({"favour": "freshness", "model": "m.model"}, FAVOUR),
    ({"favour": "freshness", "goal": "content"}, FAVOUR),
    ({"favour": "freshness", "goal": "both"}, FAVOUR),
    ({"weight": "0.7"}, "weight 0.7 weighs links against content: it needs goal both"),
    ({"weight": "0.7", "goal": "content"}, "weight 0.7 weighs links against content: it needs goal both"),
]  # fmt: skip
refused = pytest.mark.parametrize(("options", "sentence"), REFUSED, ids=lambda value: json.dumps(value)[:60])


def flags(options: dict[str, Any]) -> list[str]:
    """Options as arguments of a command."""
    infos = {field.name: info for field, info in options_of(PlanOptions)}
    words = []
    for name, value in options.items():
        flag = (infos[name].flags or (f"--{spelled(name)}",))[0]
        words += [f"{flag}={text}" for text in (value if isinstance(value, list) else [value])]
    return words


@refused
def test_python_refuses_them(options: dict[str, Any], sentence: str) -> None:
    unread: Any = None  # what is wrong with the options is said before the history is looked at
    for attempt in (
        lambda: PlanOptions(**options),
        lambda: rc.plan(unread, **options),
        lambda: rc.explain(unread, "https://e.org/", **options),
    ):
        with pytest.raises(BadOption) as error:
            attempt()
        assert str(error.value) == sentence


@refused
def test_the_settings_of_a_crawler_refuse_them(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadOption) as error:
        CrawlOptions.from_settings({f"RECRAWL_{name.upper()}": value for name, value in options.items()})
    assert str(error.value) == sentence


@refused
@pytest.mark.parametrize(
    "arguments",
    [("plan",), ("explain", "https://e.org/"), ("crawl", "--user-agent", "Webwatch/1.0 (+https://example.org/bot)")],
    ids=lambda arguments: arguments[0],
)
def test_the_commands_refuse_them_before_they_open_the_history(
    arguments: tuple[str, ...], options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    done = command(*arguments, *flags(options), "--history", str(tmp_path / "missing"))
    assert (done.code, done.stdout, done.stderr) == (2, "", f"error: {sentence}\n")
    assert not (tmp_path / "missing").exists()


def test_every_option_is_refused_in_some_case() -> None:
    """But for those that any value fits: patterns of URLs, and flags."""
    covered = {name for options, _ in REFUSED for name in options}
    assert set(NAMES) - covered == {"exclude", "retry_gone", "unwatched", "relearn"}


def test_only_python_can_give_values_of_the_wrong_type() -> None:
    for options, sentence in (
        ({"retry_gone": "perhaps"}, "retry-gone is 'perhaps'; it must be True or False"),
        ({"exclude": 7}, "exclude is 7; it must be a list of texts"),
        ({"budget": ["10%"]}, "budget is ['10%']; it must be a text"),
        ({"per_host": 2.5}, "per-host is 2.5; it must be a whole number"),
        ({"per_host": True}, "per-host is True; it must be a whole number"),
    ):
        with pytest.raises(BadOption) as error:
            PlanOptions(**options)
        assert str(error.value) == sentence


def test_a_policy_as_an_object_has_its_settings_already_and_may_not_know_the_future() -> None:
    assert PlanOptions(policy=rc.policies.Bandit(window=3)).policy
    with pytest.raises(BadOption, match="settings belong to a policy that is named"):
        PlanOptions(policy=rc.policies.Bandit(), settings=("bandit.window=3",))
    with pytest.raises(BadOption, match="policy oracle knows the future"):
        PlanOptions(policy=rc.policies.Oracle())


def test_a_plan_leaves_the_policy_of_the_caller_alone() -> None:
    policy = rc.policies.Bandit(window=3)
    before = dict(vars(policy))
    with recrawl.testing.tiny_history() as history:
        rc.plan(history, budget=1, policy=policy)
        rc.explain(history, "https://e.org/news", budget=1, policy=policy)
    assert vars(policy) == before


def test_values_become_those_of_their_option_wherever_they_come_from() -> None:
    written = {
        "budget": "40",
        "per_host": "3",
        "threshold": "0.5",
        "min_gap": "7200s",
        "exclude": "*.pdf",
        "retry_gone": "yes",
    }
    made = {
        "budget": 40,
        "per_host": 3,
        "threshold": 0.5,
        "min_gap": timedelta(hours=2),
        "exclude": ["*.pdf"],
        "retry_gone": True,
    }
    assert record_of(PlanOptions, written) == record_of(PlanOptions, made)
    settings = {f"RECRAWL_{name.upper()}": value for name, value in written.items()}
    read = CrawlOptions.from_settings(settings)
    assert {name: getattr(read, name) for name in NAMES} == vars(record_of(PlanOptions, made))


# -- one declaration -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan", "explain", "crawl"])
def test_every_option_is_offered_by_the_commands(name: str) -> None:
    parameters = {each.name: each for each in typer.main.get_command(app).commands[name].params}  # type: ignore[attr-defined]
    shown = " ".join(command(name, "--help").stdout.split())
    for field, info in options_of(PlanOptions):
        assert parameters[field.name].help == info.help
        for flag in info.flags or (f"--{spelled(field.name)}",):
            assert flag in parameters[field.name].opts
            assert f" {flag} " in shown


def test_every_option_is_a_documented_setting_of_a_crawler() -> None:
    table = {name: help for name, _, help in CrawlOptions.table()}
    for field, info in options_of(PlanOptions):
        assert table[f"RECRAWL_{field.name.upper()}"] == info.help


@pytest.mark.parametrize(("field", "info"), list(options_of(PlanOptions)), ids=NAMES)
def test_every_option_is_an_argument_of_the_function(field: Any, info: Any) -> None:
    with recrawl.testing.tiny_history() as history:
        assert len(rc.plan(history, **{"budget": 1, field.name: field.default})) == 1


def test_every_help_text_is_written_once() -> None:
    texts = Counter(
        node.value
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    for record in (PlanOptions, ReplayOptions, TuneOptions):
        for field, info in options_of(record):
            if field.name != "seed":  # commands that make up data have one of their own
                assert texts[info.help] == 1, f"{record.__name__}.{field.name}"
