"""A DNS resolver for Scrapy that returns only addresses of the public web.

Twisted connects to exactly the addresses that the resolver returns, without a second lookup. So what is checked here is what is
connected to, and a name that changes its address after the check (DNS rebinding) gains nothing. Hosts that are given as addresses
are resolved here, too.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ada_url import idna_to_ascii
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer  # type: ignore[import-untyped]

from recrawl.crawl.addresses import Networks

CACHE_SECONDS = 120.0  #: that checked addresses are used again
CACHE_HOSTS = 10_000  #: whose addresses are cached

# mypy cannot use Twisted's interfaces as types: IReactorPluggableNameResolver with threads and time, IResolutionReceiver.
Reactor = Any
Receiver = Any
Lookup = Callable[..., Sequence[tuple[Any, ...]]]  # like socket.getaddrinfo


def allowed_networks(crawler: Crawler) -> Networks:
    """The public web, and this machine if RECRAWL_ALLOW_LOOPBACK is set."""
    return Networks(loopback=crawler.settings.getbool("RECRAWL_ALLOW_LOOPBACK"))


@dataclass(frozen=True, slots=True)
class _CachedAddresses:
    addresses: tuple[str, ...]  # all of them checked
    until: float  # seconds, by the reactor's clock


@implementer(IHostResolution)
class _Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        raise NotImplementedError  # like Twisted's own resolvers: a lookup in a thread cannot be cancelled


@implementer(IHostnameResolver)
class PublicOnlyResolver:
    """Resolves a host only if all of its addresses are allowed, and otherwise to nothing.

    One private address among public ones is enough to refuse a host, because Twisted tries every address it gets. `refused` keeps
    the address for which a host was last refused: Twisted can only report that the host was not found.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Reactor,
        allow: Networks,
        timeout: float,
        lookup: Lookup = socket.getaddrinfo,
        cache_seconds: float = CACHE_SECONDS,
    ) -> None:
        self.reactor, self.allow, self.lookup = reactor, allow, lookup
        self.timeout, self.cache_seconds = timeout, cache_seconds
        self.refused: LocalCache[str, str] = LocalCache(CACHE_HOSTS)
        self._cache: LocalCache[str, _CachedAddresses] = LocalCache(CACHE_HOSTS)

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Reactor) -> Self:
        """Scrapy's constructor for the resolver in its setting TWISTED_DNS_RESOLVER."""
        return cls(reactor, allowed_networks(crawler), crawler.settings.getfloat("DNS_TIMEOUT"))

    @classmethod
    def installed(cls) -> Self | None:
        """The resolver that the reactor uses, if it is of this class."""
        from twisted.internet import reactor

        resolver = reactor.nameResolver
        return resolver if isinstance(resolver, cls) else None

    def install_on_reactor(self) -> None:
        """Make the reactor use it for all lookups."""
        self.reactor.installNameResolver(self)

    def resolveHostName(  # noqa: N802  Twisted's name
        self,
        resolutionReceiver: Receiver,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        """Look up a host and pass its addresses of the requested types to the receiver (see `IHostnameResolver`)."""
        host = _ascii(hostName)
        resolution = _Resolution(host)
        resolutionReceiver.resolutionBegan(resolution)

        def deliver(addresses: Sequence[str]) -> None:
            for address in addresses:
                kind = IPv6Address if ":" in address else IPv4Address
                if addressTypes is None or kind in addressTypes:
                    resolutionReceiver.addressResolved(kind("TCP", address, portNumber))
            resolutionReceiver.resolutionComplete()

        cached = self._cache.get(host)
        if cached is not None and self.reactor.seconds() < cached.until:
            deliver(cached.addresses)
        else:
            self._look_up(host, deliver)
        return resolution

    def _look_up(self, host: str, deliver: Callable[[Sequence[str]], None]) -> None:
        # All address families, whatever the receiver wants: one private address is enough to refuse.
        lookup: Deferred[Any] = deferToThreadPool(
            self.reactor, self.reactor.getThreadPool(), self.lookup, host, 0, socket.AF_UNSPEC, socket.SOCK_STREAM
        )
        lookup.addTimeout(self.timeout, self.reactor)
        lookup.addCallback(self._checked, host)
        lookup.addErrback(self._failed, host)
        lookup.addCallback(deliver)
        lookup.addErrback(
            lambda failure: self._log.failure("while passing on the addresses of {host}", failure, host=host)
        )

    def _checked(self, infos: Sequence[tuple[Any, ...]], host: str) -> tuple[str, ...]:
        addresses = tuple(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in infos))
        self._cache.pop(host, None)
        for address in addresses:
            if not self.allow.allows(address):
                self.refused[host] = address
                return ()
        self.refused.pop(host, None)
        if addresses:
            self._cache[host] = _CachedAddresses(addresses, self.reactor.seconds() + self.cache_seconds)
        return addresses

    def _failed(self, failure: Failure, host: str) -> tuple[str, ...]:
        self._log.debug("no address for {host}: {error}", host=host, error=failure.value)
        self.refused.pop(host, None)
        return ()


def _ascii(host: str) -> str:
    """A host name as it is in the URL: Twisted decodes xn--…, and Python would encode ß as ss, which is another host."""
    return host.lower() if host.isascii() else idna_to_ascii(host).decode() or host
