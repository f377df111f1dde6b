"""Settings of policies as people write them: ``bandit.window=28``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from recrawl.core.plugins import is_in_file
from recrawl.core.suggest import unknown
from recrawl.errors import BadOption
from recrawl.policies.base import Policy
from recrawl.policies.registry import named, policy_class


def made(name: str, texts: Sequence[str] = (), **common: Any) -> Policy:
    """A policy by its name, with settings as texts; of the `common` ones those that it takes and that are not None.

    >>> made("bandit", ["bandit.window=28"], exploration=2.0)
    Bandit(exploration=2.0, window=28)
    """
    own = parse(texts, [name]).get(name, {})
    useful = {key: value for key, value in common.items() if value is not None}
    try:
        return named(name, **useful | own)
    except ValueError as error:
        raise BadOption(f"{name}: {error}") from None


def parse(texts: Sequence[str], policies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Texts such as ``bandit.window=28`` as values by policy; a setting that no policy has is refused."""
    settings: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = re.fullmatch(r"\s*([^=\s]+)\.(\w+)\s*=\s*(.*?)\s*", text)
        if not match:
            raise BadOption(f"settings {text!r}: write policy.setting=value, such as bandit.window=28")
        name, setting, value = match.groups()
        name = next((each for each in policies if is_in_file(each) and policy_class(each).name == name), name)
        if name not in policies:
            raise BadOption(f"settings {text!r}: {name!r} is not among the policies ({', '.join(policies)})")
        defaults = policy_class(name).default_settings()
        if setting not in defaults:
            way_out = unknown("setting", setting, defaults) if defaults else f"{name} has no settings"
            raise BadOption(f"settings {text!r}: {way_out}")
        try:
            settings.setdefault(name, {})[setting] = typed(value, defaults[setting])
        except ValueError as error:
            raise BadOption(f"settings {text!r}: {error}") from None
    return settings


def typed(text: str, default: Any) -> Any:
    """A value of the type of a setting's default.

    >>> typed("28", 168), typed("0.5", 1.0), typed("no", True), typed("0.6,0.8", (0.5,)), typed("none", None), typed("24", None)
    (28, 0.5, False, (0.6, 0.8), None, 24)
    """
    if isinstance(default, bool):
        return truth(text)
    if isinstance(default, int):
        return _whole(text)
    if isinstance(default, float):
        return _finite(text)
    if isinstance(default, str):
        return text
    if isinstance(default, tuple) and default:
        return tuple(typed(part.strip(), default[0]) for part in text.split(",") if part.strip())
    if default is None or isinstance(default, type):
        return _guessed(text)
    raise ValueError("this setting can only be given from Python")


def truth(text: str) -> bool:
    """Yes or no."""
    values = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if text.lower() not in values:
        raise ValueError(f"{text!r} is neither yes nor no")
    return values[text.lower()]


def _whole(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a number")
    return number


def _guessed(text: str) -> Any:
    """For settings that are off by default: nothing, a number, or a word."""
    if text.lower() == "none":
        return None
    for read in (_whole, _finite):
        try:
            return read(text)
        except ValueError:
            continue
    return text
