"""Packages that can be called like a function of the API."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def load(place: str) -> Any:
    """The object that ``package.module:name`` means; without a name the module.

    >>> load("recrawl.core.version:__version__") == load("recrawl.core.version").__version__
    True
    """
    module, _, attribute = place.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def callable_room(module: str, place: str) -> None:
    """Let a package that is named like a function of the API be called like it: `recrawl.plan(history)`.

    The rooms ``plan`` and ``replay`` are packages, and Python makes a package's parts its attributes; so the package itself
    must be what a caller of the function gets.
    """

    class Room(ModuleType):
        def __call__(self, *given: Any, **named: Any) -> Any:
            return load(place)(*given, **named)

    sys.modules[module].__class__ = Room
