"""Options that several commands share, declared once as a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_type_hints


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes a dataclass, as one that takes the dataclass's fields as options, in its place.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Limits:
    ...     pages: int = 10
    ...     depth: int = 3
    >>> @with_options
    ... def crawl(seed: str, limits: Limits, quiet: bool = False) -> None:
    ...     print(seed, limits, quiet)
    >>> crawl(seed="e.org", pages=5, depth=2, quiet=True)
    e.org Limits(pages=5, depth=2) True
    """
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, tuple[str, ...]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if hasattr(kind, "__dataclass_fields__"):
            types = get_type_hints(kind, include_extras=True)
            groups[parameter.name] = kind, tuple(field.name for field in fields(kind))
            shown += [
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.default is MISSING else field.default,
                    annotation=types[field.name],
                )
                for field in fields(kind)
            ]
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))

    @wraps(command)
    def called(**given: Any) -> None:
        gathered = {
            name: kind(**{field: given.pop(field) for field in names}) for name, (kind, names) in groups.items()
        }
        command(**given, **gathered)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return called
