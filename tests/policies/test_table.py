"""The one table of policies: names, places, what a lookup loads, and what a name that is not there is answered with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl import policies
from recrawl.core import plugins
from recrawl.errors import BadOption, BadPlugin, UnknownPolicy
from recrawl.policies import ALL, PLACES, Policy, RoundRobin, known, named, registry
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.policies.harvest.parts import Parts
from recrawl.policies.registry import policy_class
from recrawl.policies.settings import made, parse, typed

HEAVY = ("numba", "scipy", "pyarrow", "sklearn", "recrawl.models", "recrawl.insight")


def test_the_names_of_the_table_are_those_of_the_classes() -> None:
    assert [policy.name for policy in ALL] == list(PLACES)
    assert [f"{policy.__module__}:{policy.__name__}" for policy in ALL] == [
        f"recrawl.policies.{place}" for place in PLACES.values()
    ]
    assert policies.DEFAULT in PLACES


def test_public_names_are_sorted_complete_and_there() -> None:
    constants, others = (
        [name for name in policies.__all__ if name.isupper() == is_constant] for is_constant in (True, False)
    )
    assert policies.__all__ == [*sorted(constants), *sorted(others)]
    assert {policy.__name__ for policy in ALL} < set(policies.__all__)
    assert set(policies.__all__) <= set(dir(policies))
    for name in policies.__all__:
        assert getattr(policies, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Bandits'"):
        policies.Bandits  # noqa: B018


def test_every_policy_class_has_a_sentence_a_runnable_example_and_its_settings_explained() -> None:
    for policy in ALL:
        text = policy.__doc__ or ""
        assert text.splitlines()[0].endswith("."), policy
        assert ">>> " in text, f"{policy.__name__} has no example"
        if policy.paper is not None:
            assert "References:" in text, f"{policy.__name__} has no reference"


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a program has loaded when it ends."""
    program = f"{code}\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_a_policy_class_loads_nothing_heavy() -> None:
    modules = sorted({place.partition(":")[0] for place in PLACES.values()})
    extra = ["by_model", "hinted", "links_and_content", "registry", "select", "settings"]
    imports = "\n".join(f"import recrawl.policies.{module}" for module in (*modules, *extra))
    assert loaded_by(imports) == set()
    assert loaded_by("from recrawl.policies import ALL, Bandit\nassert Bandit in ALL") == set()


def test_making_a_policy_loads_nothing_heavy_but_for_related_experts_which_check_a_method() -> None:
    code = "from recrawl.policies import ALL\n[policy() for policy in ALL if policy.name != 'related-experts']"
    assert loaded_by(code) == set()


def test_names_and_settings_are_checked_without_loading_a_policy() -> None:
    refused = """
from recrawl.errors import BadOption
from recrawl.policies.settings import parse
from recrawl.policies.registry import policy_class
for wrong in (lambda: policy_class("bandits"), lambda: parse(["bandit.windw=3"], ["bandit"])):
    try:
        wrong()
    except BadOption:
        continue
    raise SystemExit("not refused")
"""
    assert loaded_by(refused) == set()
    listed = "import sys\nfrom recrawl.policies.registry import known\nassert len(known()) >= 29\n"
    assert loaded_by(listed + "assert 'recrawl.policies.bandit' not in sys.modules") == set()


# -- policies by name ---------------------------------------------------------------------------------------------------------


def test_every_policy_is_known_by_its_name() -> None:
    assert list(known()) == [policy.name for policy in ALL]
    assert len(known()) == len(ALL)
    assert {name: known()[name] for name in known()} == {policy.name: policy for policy in ALL}
    assert "bandit" in repr(known())
    assert all(isinstance(named(policy.name), policy) for policy in ALL)


@pytest.mark.parametrize(
    ("name", "hint"), [("bandits", "bandit"), ("roundrobin", "round-robin"), ("expected_harvest", "expected-harvest")]
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all_others(name: str, hint: str) -> None:
    with pytest.raises(UnknownPolicy, match=f"No policy named '{name}'. Did you mean '{hint}'.*Known: round-robin"):
        policy_class(name)
    with pytest.raises(KeyError):
        known()[name]


FILE = '''
from recrawl import Policy
from recrawl.policies.select import take

class Mine(Policy):
    """Visit the pages that waited longest, from the last to the first."""
    name = "mine"
    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
    def choose(self, pages, budget, now):
        return take(self.factor * pages.age_hours(now), pages, budget, reason="mine")

class Nameless(Policy):
    pass

def function():
    pass
'''


def test_a_policy_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    place = f"{path}:Mine"
    assert policy_class(place).name == "mine"
    assert policy_class(place) is policy_class(place)
    assert repr(named(place, factor=2.0, window=3)) == "Mine(factor=2.0)"
    assert repr(made(place, [f"{place}.factor=2"])) == "Mine(factor=2.0)"


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("Yours", "has no 'Yours'; write path/to/file.py:Name"),
        ("function", "it must be a class derived from recrawl.Policy"),
        ("Nameless", "has no name; give Nameless a class attribute such as name ="),
        ("take", "it must be a class derived from recrawl.Policy"),
    ],
)
def test_what_is_not_a_policy_in_a_file_is_refused_in_a_sentence(tmp_path: Path, attribute: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    with pytest.raises(BadPlugin, match=message):
        policy_class(f"{path}:{attribute}")


def test_a_file_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlugin, match=r"there is no file .*missing.py"):
        policy_class(f"{tmp_path / 'missing.py'}:Mine")
    (tmp_path / "broken.py").write_text("import no_such_package")
    with pytest.raises(BadPlugin, match=r"cannot load .*broken.py: ModuleNotFoundError: No module named"):
        policy_class(f"{tmp_path / 'broken.py'}:Mine")


# -- policies of plug-ins -----------------------------------------------------------------------------------------------------


class OfPlugin(RoundRobin):
    """A policy of another package."""

    name = "of-plugin"


def offer(monkeypatch: pytest.MonkeyPatch, **offered: Any) -> None:
    monkeypatch.setattr(registry, "installed", lambda group: offered if group == plugins.POLICIES else {})


def test_the_policies_of_plug_ins_come_after_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, entry=OfPlugin)
    assert list(known())[-1] == "of-plugin"
    assert known()["of-plugin"] is policy_class("of-plugin") is OfPlugin
    with pytest.raises(UnknownPolicy, match="Did you mean 'of-plugin'"):
        policy_class("of-plug-in")


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ({"entry": RoundRobin}, "the plug-in 'entry' is named 'round-robin' as another policy is"),
        ({"a": OfPlugin, "b": OfPlugin}, "the plug-in 'b' is named 'of-plugin' as another policy is"),
        ({"entry": 3}, "the plug-in 'entry' is 3; it must be a class derived from recrawl.Policy"),
        ({"entry": RoundRobin()}, "it must be a class derived from recrawl.Policy"),
        ({"entry": type("Bare", (Policy,), {})}, "the plug-in 'entry' has no name; give Bare a class attribute"),
    ],
)
def test_a_bad_plug_in_is_named(monkeypatch: pytest.MonkeyPatch, offered: dict[str, Any], message: str) -> None:
    offer(monkeypatch, **offered)
    with pytest.raises(BadPlugin, match=message):
        known()


# -- settings -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_settings_can_be_read_back_and_make_the_same_policy(policy: type[Policy]) -> None:
    plain = policy()
    assert repr(plain) == f"{policy.__name__}()"
    assert plain.settings().keys() == policy.default_settings().keys()
    usable = {name: value for name, value in plain.settings().items() if not isinstance(value, type)}
    again = policy(**usable)
    assert again.settings() == plain.settings()
    assert repr(again) == repr(plain)


@pytest.mark.parametrize("policy", [p for p in ALL if p.default_settings()], ids=lambda policy: policy.name)
def test_a_setting_that_was_changed_is_in_the_settings_and_in_the_name(policy: type[Policy]) -> None:
    numbers = {name: value for name, value in policy().settings().items() if type(value) in (int, float)}
    words = {"begin": "outdegree", "updates": "content"}
    name, value = next(
        iter(numbers.items()), next((item for item in policy().settings().items() if item[0] in words), ("", 0))
    )
    other = words[name] if name in words else value + 1 if isinstance(value, int) else (value or 1.0) / 2
    changed = policy(**{name: other})
    assert changed.settings()[name] != value
    assert f"{name}={changed.settings()[name]!r}" in repr(changed)
    assert policy(**changed.settings()).settings() == changed.settings()


def test_a_representation_names_what_differs_from_the_default() -> None:
    assert repr(named("bandit", window=28, exploration=2.0)) == "Bandit(exploration=2.0, window=28)"
    assert repr(ExpectedHarvest(parts=Parts(rhythm=False))) == repr(ExpectedHarvest(rhythm=False))
    scored = named("nutch-adaptive", score=np.array([1.0, 2.0]))
    assert repr(scored) == "NutchAdaptive(score=array([1., 2.]))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bandit.windw=3", "No setting named 'windw'. Did you mean 'window'"),
        ("bandit.window=much", "'much' is not a whole number"),
        ("bandit.exploration=inf", "'inf' is not a number"),
        ("bandit.fill=perhaps", "'perhaps' is neither yes nor no"),
        ("bandit window=3", "write policy.setting=value, such as bandit.window=28"),
        ("regression.window=3", "'regression' is not among the policies .bandit, round-robin."),
        ("round-robin.window=3", "round-robin has no settings"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(BadOption, match=message):
        parse([text], ["bandit", "round-robin"])


def test_a_value_that_the_policy_refuses_is_a_sentence_with_its_name() -> None:
    with pytest.raises(BadOption, match=r"expected-harvest: explore is 2.0; it must be a share"):
        made("expected-harvest", ["expected-harvest.explore=2"])


def test_settings_of_parts_are_reached_by_their_plain_names() -> None:
    assert parse(["bandit.window=28", " bandit.shares = 0.5, 1 "], ["bandit"]) == {
        "bandit": {"window": 28, "shares": (0.5, 1.0)}
    }
    assert repr(made("expected-harvest", ["expected-harvest.rhythm=no"])) == "ExpectedHarvest(rhythm=False)"
    with pytest.raises(ValueError, match="can only be given from Python"):
        typed("3", object())
