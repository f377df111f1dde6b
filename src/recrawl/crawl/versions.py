"""Differences between versions of Scrapy. The add-on supports 2.12 and later, recrawl crawl 2.13 and later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils import defer
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_asyncio_reactor_installed
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread

try:
    from scrapy.utils import asyncio as _asyncio
except ImportError:  # before 2.14
    _asyncio = None  # type: ignore[assignment]


def has_asyncio() -> bool:
    """Whether Scrapy's components may await asyncio's objects."""
    return is_asyncio_reactor_installed() if _asyncio is None else _asyncio.is_asyncio_available()


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run a slow function without holding up the crawl."""
    if hasattr(_asyncio, "run_in_thread"):  # 2.15 and later, where there may be no reactor
        return await _asyncio.run_in_thread(function, *args)
    return await defer.maybe_deferred_to_future(deferToThread(function, *args))


def repeated(function: Callable[[], object]) -> Any:
    """A timer for a function, with `start`, `stop` and `running`."""
    return LoopingCall(function) if _asyncio is None else _asyncio.create_looping_call(function)


def add_component(settings: BaseSettings, name: str, component: type, order: int) -> None:
    """Add a component to one of a project's settings, unless the project has set its order itself."""
    if hasattr(settings, "setdefault_in_component_priority_dict"):
        settings.setdefault_in_component_priority_dict(name, component, order)
        return
    components = settings.getdict(name)  # before 2.13
    if component not in map(load_object, components):
        settings.set(name, {**components, component: order}, settings.getpriority(name) or 0)
