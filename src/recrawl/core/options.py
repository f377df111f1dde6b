"""Options declared once, as fields of a dataclass: the command line, Scrapy's settings and the API follow from them."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, TypeVar

from recrawl.core.suggest import unknown
from recrawl.errors import BadOption

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class OptionInfo:
    """What is known of an option beside its type and default."""

    help: str
    flags: tuple[str, ...] = ()  # on the command line; default: the name with two dashes
    metavar: str | None = None
    choices: Callable[[], tuple[str, ...]] | tuple[str, ...] = ()  # the only values there are
    minimum: float | None = None
    maximum: float | None = None
    check: Callable[[Any], object] | None = None  # raises ValueError for a value that cannot be

    def known(self) -> tuple[str, ...]:
        """The choices; empty: any value."""
        return self.choices() if callable(self.choices) else self.choices


def option(default: Any, help: str, **more: Any) -> Any:
    """A field of a record of options; `more` as in `OptionInfo`.

    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     pages: int = option(10, "Number of pages.", minimum=1)
    >>> check_values(Limits(pages=0))
    Traceback (most recent call last):
    recrawl.errors.BadOption: pages is 0; it must be 1 or more
    """
    return field(default=default, metadata={"option": OptionInfo(help=help, **more)})


def same_option(record: Any, name: str, **changes: Any) -> Any:
    """An option that another record declares; `changes` as in `OptionInfo`, and `default`."""
    (declared,) = (each for each in fields(record) if each.name == name)
    default = changes.pop("default", declared.default)
    return field(default=default, metadata={"option": replace(declared.metadata["option"], **changes)})


def record_of(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """A record with the options given by name; one that it does not have is refused with the nearest name."""
    known = [each.name for each, _ in options_of(kind)]
    for name in given:
        if name not in known:
            raise BadOption(unknown("option", name, known))
    return kind(**given)


def options_of(record: Any) -> Iterator[tuple[Field[Any], OptionInfo]]:
    """The options of a dataclass, or of a record of it."""
    for each in fields(record):
        if "option" in each.metadata:
            yield each, each.metadata["option"]


def spelled(name: str) -> str:
    """The name of an option as people write it.

    >>> spelled("per_host")
    'per-host'
    """
    return name.replace("_", "-")


def read_values(record: Any) -> None:
    """Convert every value of a new record to its option's type: texts of a command line or of settings, values of a program.

    >>> @dataclass(frozen=True)
    ... class Limits:
    ...     pages: int = option(10, "Number of pages.")
    >>> read_values(Limits(pages="few"))
    Traceback (most recent call last):
    recrawl.errors.BadOption: pages is 'few'; it must be a whole number
    """
    for each, _ in options_of(record):
        value = getattr(record, each.name)
        if value is None and isinstance(each.default, tuple):
            object.__setattr__(record, each.name, ())  # no texts
        elif value == "" and str(each.type).endswith("| None"):
            object.__setattr__(record, each.name, None)  # an empty setting is none
        elif value is not None and value is not each.default:
            object.__setattr__(record, each.name, read(spelled(each.name), value, str(each.type)))


def read(name: str, value: Any, kind: str) -> Any:
    """A value of the type that an option is annotated with."""
    plain = kind.removesuffix(" | None").partition("[")[0]
    if plain not in _READERS:
        return value if kind == "Any" or not _is_text(value) else str(value)
    reader, expected = _READERS[plain]
    try:
        return reader(value)
    except (TypeError, ValueError, OverflowError):
        raise BadOption(f"{name} is {value!r}; it must be {expected}") from None


def _is_text(value: Any) -> bool:
    return isinstance(value, str | numbers.Real | os.PathLike)


def _text(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.0f}s"
    if not _is_text(value):
        raise TypeError(value)
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(_text(each) for each in value)


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) else operator.index(value)


def _truth(value: Any) -> bool:
    values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in values:
        raise ValueError(value)
    return values[str(value).lower()]


#: The type of an option → what reads a value of it, and what to ask for.
_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "bool": (_truth, "True or False"),
    "int": (_whole, "a whole number"),
    "float": (float, "a number"),
    "tuple": (_texts, "a list of texts"),
    "str": (_text, "a text"),
}


def check_values(record: Any) -> None:
    """Refuse values that an option cannot have, each by itself."""
    for each, info in options_of(record):
        value, name = getattr(record, each.name), spelled(each.name)
        if value is None or value == each.default:
            continue
        if info.known() and value not in info.known():
            raise BadOption(unknown(name, str(value), info.known()))
        if not _is_within(value, info):
            raise BadOption(f"{name} is {value}; it must be {_range(info)}")
        if info.check is not None:
            try:
                info.check(value)
            except (BadOption, ValueError) as error:
                raise BadOption(f"{name}: {error}") from None


def _is_within(value: Any, info: OptionInfo) -> bool:
    """Whether a number is in the range of an option; NaN is in none."""
    is_above = info.minimum is None or value >= info.minimum
    return is_above and (info.maximum is None or value <= info.maximum)


def _range(info: OptionInfo) -> str:
    if info.minimum is None:
        return f"{info.maximum:g} or less"
    return f"{info.minimum:g} or more" if info.maximum is None else f"between {info.minimum:g} and {info.maximum:g}"
