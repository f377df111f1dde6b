"""Options declared once, as fields of a dataclass: the command line, Scrapy's settings and the API follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any

from recrawl.core.suggest import unknown
from recrawl.errors import BadOption


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


def check_values(record: Any) -> None:
    """Refuse values that an option cannot have, each by itself."""
    for each, info in options_of(record):
        value, name = getattr(record, each.name), spelled(each.name)
        if value is None or value == each.default:
            continue
        if info.known() and value not in info.known():
            raise BadOption(unknown(name, str(value), info.known()))
        if (info.minimum is not None and value < info.minimum) or (info.maximum is not None and value > info.maximum):
            raise BadOption(f"{name} is {value}; it must be {_range(info)}")
        if info.check is not None:
            try:
                info.check(value)
            except (BadOption, ValueError) as error:
                raise BadOption(f"{name}: {error}") from None


def _range(info: OptionInfo) -> str:
    if info.minimum is None:
        return f"{info.maximum:g} or less"
    return f"{info.minimum:g} or more" if info.maximum is None else f"between {info.minimum:g} and {info.maximum:g}"
