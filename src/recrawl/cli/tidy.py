"""Help that reads well: paragraphs flow to the terminal's width, flags have no type, numbers are called N."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo as TyperOption

from recrawl.cli import stopped
from recrawl.core.visible import visible

_METAVARS = {int: "N", float: "X"}


def _formats() -> str:
    from recrawl.sources import known

    return ", ".join(known())


#: Placeholders in the help of options, filled in when a command runs or shows its help: plug-ins add to such lists.
_LISTS: dict[str, Callable[[], str]] = {"{formats}": _formats}


class TidyCommand(TyperCommand):
    """A command whose flags show no type, and whose lists of names are complete."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, ``--help`` included."""
        return with_lists(without_types(super().get_params(ctx)))


#: What is wrong with the arguments, by the click that typer brings along.
_UsageError: Any = typer.BadParameter.__bases__[0]


class TidyGroup(TyperGroup):
    """A group of commands whose flags show no type, which quotes wrong arguments safely and ends quietly after Ctrl-C."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """The arguments of the group itself."""
        with _safe_ends():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _safe_ends():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        """The parameters, ``--help`` included."""
        return without_types(super().get_params(ctx))


@contextmanager
def _safe_ends() -> Iterator[None]:
    """Ctrl-C ends with one line. Control characters in wrong arguments are visible: typer prints these past our output."""
    try:
        yield
    except _UsageError as error:
        error.message = visible(error.message)
        raise
    except KeyboardInterrupt:
        stopped()


def without_types(params: Any) -> Any:
    """Flags with a blank for the name of their value: typer shows <bool> otherwise."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = " "
    return params


def with_lists(params: Any) -> Any:
    """Parameters with the placeholders in their help filled in."""
    for param in params:
        for placeholder, names in _LISTS.items():
            if placeholder in (getattr(param, "help", None) or ""):
                param.help = param.help.replace(placeholder, names())
    return params


def tidy(app: typer.Typer) -> None:
    """Set the help and the names of values of every command."""
    for command in app.registered_commands:
        if command.callback is None:
            continue
        command.cls = TidyCommand
        command.help = flowing(command.help or inspect.getdoc(command.callback) or "")
        for annotation in get_type_hints(command.callback, include_extras=True).values():
            for option in get_args(annotation)[1:]:
                if isinstance(option, TyperOption) and option.metavar is None:
                    option.metavar = _METAVARS.get(_plain(get_args(annotation)[0]))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            tidy(group.typer_instance)


def flowing(text: str) -> str:
    """Every paragraph in one line: the terminal wraps it.

    >>> flowing("One\\ntwo.\\n\\nThree.")
    'One two.\\n\\nThree.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _plain(kind: Any) -> Any:
    """The type without ``| None``."""
    kinds = [each for each in get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and kind is not None and not hasattr(kind, "__origin__") else kind
