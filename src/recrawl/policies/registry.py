"""Policies by name: recrawl's own, those of installed plug-ins, and classes in a Python file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from recrawl.core.plugins import POLICIES, from_file, installed, is_in_file
from recrawl.core.suggest import unknown
from recrawl.errors import BadPlugin, RecrawlError, UnknownPolicy
from recrawl.policies import PLACES, policy_at
from recrawl.policies.base import Policy
from recrawl.policies.choice import Choice


class KnownPolicies(Mapping[str, type[Policy]]):
    """Every policy by its name; one of recrawl's own is imported when it is looked up, so that listing names is cheap.

    >>> list(KnownPolicies({}))[:3]
    ['round-robin', 'random', 'last-observed']
    """

    def __init__(self, of_plugins: Mapping[str, type[Policy]]) -> None:
        self.of_plugins = of_plugins

    def __getitem__(self, name: str) -> type[Policy]:
        return policy_at(PLACES[name]) if name in PLACES else self.of_plugins[name]

    def __iter__(self) -> Iterator[str]:
        yield from PLACES
        yield from self.of_plugins

    def __len__(self) -> int:
        return len(PLACES) + len(self.of_plugins)

    def __repr__(self) -> str:
        return f"KnownPolicies({', '.join(self)})"


def known() -> KnownPolicies:
    """Every policy by its name: recrawl's own first, then those of plug-ins.

    >>> known()["bandit"].paper
    'BANDIT'
    """
    of_plugins: dict[str, type[Policy]] = {}
    for entry, plugin in installed(POLICIES).items():
        policy = _checked(plugin, f"the plug-in {entry!r}")
        if policy.name in PLACES or policy.name in of_plugins:
            raise BadPlugin(
                f"the plug-in {entry!r} is named {policy.name!r} as another policy is; give it another name"
            )
        of_plugins[policy.name] = policy
    return KnownPolicies(of_plugins)


def policy_class(name: str) -> type[Policy]:
    """The policy with a name; ``path/to/mine.py:Mine`` is the class of a file.

    >>> policy_class("bandit").paper
    'BANDIT'
    >>> policy_class("bandits")
    Traceback (most recent call last):
    recrawl.errors.UnknownPolicy: No policy named 'bandits'. Did you mean 'bandit'? Known: round-robin, random, ...
    """
    if is_in_file(name):
        return _checked(from_file(name), name)
    policies = known()
    if name not in policies:
        raise UnknownPolicy(unknown("policy", name, policies))
    return policies[name]


def named(name: str, **settings: Any) -> Policy:
    """A policy by its name; of the settings those that it takes are used.

    >>> named("bandit", window=28)
    Bandit(window=28)
    """
    policy = policy_class(name)
    takes = policy.default_settings()
    return policy(**{key: value for key, value in settings.items() if key in takes})


def _checked(plugin: Any, origin: str) -> type[Policy]:
    if not (isinstance(plugin, type) and issubclass(plugin, Policy)):
        raise BadPlugin(f"{origin} is {plugin!r}; it must be a class derived from recrawl.Policy")
    if not isinstance(getattr(plugin, "name", None), str):
        raise BadPlugin(f'{origin} has no name; give {plugin.__name__} a class attribute such as name = "my-policy"')
    return plugin


@contextmanager
def blaming(policy: Policy) -> Iterator[None]:
    """Turn a failure of somebody else's policy into a sentence that names it; failures of recrawl's own stay as they are."""
    try:
        yield
    except RecrawlError:
        raise
    except Exception as error:
        if type(policy).__module__.startswith("recrawl."):
            raise
        raise BadPlugin(
            f"the policy {policy.name!r} failed: {type(error).__name__}: {error}. recrawl.testing.check_policy shows what is wrong "
            "with it"
        ) from error


def check_choice(*choices: Any) -> None:
    """Refuse what is not a choice at all."""
    for choice in choices:
        if not isinstance(choice, Choice):
            raise TypeError(
                f"`choose` returned {type(choice).__name__}, not a Choice (see recrawl.policies.select.take)"
            )
