"""Policies by name: recrawl's own, those of installed plug-ins, and classes in a Python file."""

from __future__ import annotations

from typing import Any

from recrawl.core.plugins import POLICIES, from_file, installed, is_in_file
from recrawl.core.suggest import unknown
from recrawl.errors import BadPlugin, UnknownPolicy
from recrawl.policies.base import Policy


def known() -> dict[str, type[Policy]]:
    """Every policy by its name: recrawl's own first, then those of plug-ins."""
    from recrawl.policies import ALL

    by_name = {policy.name: policy for policy in ALL}
    for entry, plugin in installed(POLICIES).items():
        policy = _checked(plugin, f"the plug-in {entry!r}")
        if policy.name in by_name:
            raise BadPlugin(
                f"the plug-in {entry!r} is named {policy.name!r} as another policy is; give it another name"
            )
        by_name[policy.name] = policy
    return by_name


def policy_class(name: str) -> type[Policy]:
    """The policy that a name means; ``path/to/mine.py:Mine`` is the class of a file.

    >>> policy_class("bandit").paper
    'BANDIT'
    """
    if is_in_file(name):
        return _checked(from_file(name), name)
    by_name = known()
    if name not in by_name:
        raise UnknownPolicy(unknown("policy", name, by_name))
    return by_name[name]


def named(name: str, **settings: Any) -> Policy:
    """A policy by its name; of the settings those that it takes are used.

    >>> named("bandit", window=28)
    Bandit(window=28)
    """
    policy = policy_class(name)
    takes = policy.default_settings()
    return policy(**{key: value for key, value in settings.items() if key in takes})


def _checked(plugin: Any, called: str) -> type[Policy]:
    if not (isinstance(plugin, type) and issubclass(plugin, Policy)):
        raise BadPlugin(f"{called} is {plugin!r}; it must be a class derived from recrawl.Policy")
    if not isinstance(getattr(plugin, "name", None), str):
        raise BadPlugin(f'{called} has no name; give {plugin.__name__} a class attribute such as name = "my-policy"')
    return plugin
