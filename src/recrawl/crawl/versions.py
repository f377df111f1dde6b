"""What differs between the versions of Scrapy; the add-on runs with all from 2.12 on, recrawl crawl from 2.13 on."""

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
    """Whether Scrapy's parts may wait for what asyncio does."""
    return is_asyncio_reactor_installed() if _asyncio is None else _asyncio.is_asyncio_available()


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Do what takes a while without holding up the crawl."""
    if hasattr(_asyncio, "run_in_thread"):  # from 2.15 on, where there may be no reactor
        return await _asyncio.run_in_thread(function, *args)
    return await defer.maybe_deferred_to_future(deferToThread(function, *args))


def repeated(function: Callable[[], object]) -> Any:
    """A call that can be repeated: it has `start`, `stop` and `running`."""
    return LoopingCall(function) if _asyncio is None else _asyncio.create_looping_call(function)


def add_part(settings: BaseSettings, name: str, part: type, order: int) -> None:
    """Add one of Scrapy's parts to those of a project, unless the project has set its order itself."""
    if hasattr(settings, "setdefault_in_component_priority_dict"):
        settings.setdefault_in_component_priority_dict(name, part, order)
        return
    parts = settings.getdict(name)  # before 2.13
    if part not in map(load_object, parts):
        settings.set(name, {**parts, part: order}, settings.getpriority(name) or 0)
