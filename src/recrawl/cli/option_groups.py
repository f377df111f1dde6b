"""Options that several commands share, declared once as a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from recrawl.core.options import OptionInfo, spelled
from recrawl.core.suggest import unknown

#: What the value of an option of a type is called in the help.
_METAVARS = {"int": "N", "float": "X"}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes a dataclass, as one that takes the dataclass's fields as options in its place.

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
            groups[parameter.name] = kind, tuple(field.name for field in fields(kind))
            shown += [_parameter(kind, field) for field in fields(kind)]
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))

    @wraps(command)
    def called(**given: Any) -> None:
        records = {
            name: kind(**{field: _value(given.pop(field)) for field in names}) for name, (kind, names) in groups.items()
        }
        command(**given, **records)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return called


def _parameter(kind: type, field: Field[Any]) -> inspect.Parameter:
    """A field as an option: by its `OptionInfo`, or as it is annotated."""
    info = field.metadata.get("option")
    annotation = _annotation(field, info) if info else get_type_hints(kind, include_extras=True)[field.name]
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    if info and isinstance(default, tuple):
        default = list(default)
    elif info and isinstance(default, int | float) and not isinstance(default, bool):
        default = str(default)
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _annotation(field: Field[Any], info: OptionInfo) -> Any:
    """The option on the command line. All but flags are texts: the record itself reads and checks them, with the same words
    everywhere.
    """
    plain = str(field.type).removesuffix(" | None")
    kind: Any = bool if plain == "bool" else list[str] if plain.startswith("tuple") else str | None
    metavar = info.metavar or "|".join(info.known()) or _METAVARS.get(plain)
    flags = info.flags or (f"--{spelled(field.name)}",)
    return Annotated[kind, typer.Option(*flags, help=info.help, metavar=metavar)]


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def choice(what: str, known: Collection[str]) -> Callable[[Any], Any]:
    """A check that a value is one of a few; any other is wrong usage, with the nearest name."""

    def check(value: Any) -> Any:
        if value is not None and value not in known:
            raise typer.BadParameter(unknown(what, str(value), known))
        return value

    return check
