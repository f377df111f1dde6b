"""What other packages and single files add to recrawl: entry points, and classes in a Python file."""

from __future__ import annotations

import copyreg
import importlib.util
import sys
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from recrawl.core.hashing import hash64
from recrawl.errors import BadPlugin

POLICIES, SOURCES, LEARNERS = "recrawl.policies", "recrawl.sources", "recrawl.learners"  #: groups of entry points


@cache
def installed(group: str) -> dict[str, Any]:
    """What installed packages offer in a group: name of the entry point → object, in the order of the names.

    A plug-in that cannot be loaded is an error that names it: without it the same command would do something else.
    """
    objects = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            objects[point.name] = point.load()
        except Exception as error:
            package = point.dist.name if point.dist else "unknown package"
            raise BadPlugin(
                f"the plug-in {point.name!r} ({point.value}, group {group}) of {package} cannot be loaded: {error}. "
                "Repair or uninstall that package"
            ) from error
    return objects


def is_in_file(name: str) -> bool:
    """Whether a name means a class in a Python file.

    >>> is_in_file("plugins/mine.py:Mine"), is_in_file("round-robin")
    (True, False)
    """
    path, _, attribute = name.rpartition(":")
    return path.endswith(".py") and attribute.isidentifier()


def absolute(name: str) -> str:
    """The same ``path/to/file.py:Name`` from anywhere.

    >>> absolute("/plugins/mine.py:Mine")
    '/plugins/mine.py:Mine'
    """
    path, _, attribute = name.rpartition(":")
    return f"{Path(path).resolve()}:{attribute}"


def from_file(name: str) -> Any:
    """The object that ``path/to/file.py:Name`` means."""
    path, _, attribute = name.rpartition(":")
    module = _module(Path(path).resolve())
    if not hasattr(module, attribute):
        raise BadPlugin(f"{path} has no {attribute!r}; write path/to/file.py:Name with a name that the file defines")
    return getattr(module, attribute)


@cache
def _module(path: Path) -> Any:
    if not path.is_file():
        raise BadPlugin(f"there is no file {path}; write path/to/file.py:Name")
    name = f"recrawl_plugin_{path.stem}_{hash64(str(path).encode()) & 0xFFFFFFFF:08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadPlugin(f"cannot load {path}: {type(error).__name__}: {error}") from error
    for attribute, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == name:
            copyreg.pickle(value, partial(_reduced, f"{path}:{attribute}"))
    return module


def _reduced(place: str, instance: Any) -> tuple[Any, ...]:
    """How an object of a file's class reaches another process, which has not loaded the file."""
    return _rebuilt, (place, instance.__dict__)


def _rebuilt(place: str, state: dict[str, Any]) -> Any:
    kind = from_file(place)
    instance = kind.__new__(kind)
    instance.__dict__.update(state)
    return instance
