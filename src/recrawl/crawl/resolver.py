"""Names → addresses for Scrapy, and only addresses of the public web.

Twisted connects to the very addresses that the resolver hands it and asks no second time, so what is checked here is what is
connected to: a name that changes its address between the check and the connection (DNS rebinding) gains nothing. Hosts that are
addresses come this way, too.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import can_ada
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

REMEMBERED = 120.0  #: seconds that a checked answer is used again
HOSTS = 10_000  #: whose answers are remembered

# Twisted's interfaces are no types to mypy: IReactorPluggableNameResolver with threads and time, IResolutionReceiver.
Reactor = Any
Receiver = Any
Lookup = Callable[..., Sequence[tuple[Any, ...]]]  # as socket.getaddrinfo


def allowed_networks(crawler: Crawler) -> Networks:
    """What the setting RECRAWL_ALLOW_LOOPBACK allows besides the public web."""
    return Networks(loopback=crawler.settings.getbool("RECRAWL_ALLOW_LOOPBACK"))


@dataclass(frozen=True, slots=True)
class _Answer:
    addresses: tuple[str, ...]  # all of them checked
    until: float  # seconds of the reactor's clock


@implementer(IHostResolution)
class _Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        raise NotImplementedError  # as all of Twisted's own: a lookup in a thread cannot be called off


@implementer(IHostnameResolver)
class PublicOnlyResolver:
    """Resolves a host if every one of its addresses may be connected to, and else to nothing.

    One private address among public ones is enough to refuse a host: Twisted tries all that it is given. The address that a
    host was last refused for is kept in `refused`, as Twisted itself can only say that nothing was found.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Reactor,
        allow: Networks,
        timeout: float,
        lookup: Lookup = socket.getaddrinfo,
        remembered: float = REMEMBERED,
    ) -> None:
        self.reactor, self.allow, self.lookup = reactor, allow, lookup
        self.timeout, self.remembered = timeout, remembered  # seconds
        self.refused: LocalCache[str, str] = LocalCache(HOSTS)
        self._answers: LocalCache[str, _Answer] = LocalCache(HOSTS)

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Reactor) -> Self:
        """As Scrapy makes the resolver named by its setting TWISTED_DNS_RESOLVER."""
        return cls(reactor, allowed_networks(crawler), crawler.settings.getfloat("DNS_TIMEOUT"))

    @classmethod
    def installed(cls) -> Self | None:
        """The resolver that the reactor uses, if it is one of these."""
        from twisted.internet import reactor

        resolver = reactor.nameResolver
        return resolver if isinstance(resolver, cls) else None

    def install_on_reactor(self) -> None:
        """Make the reactor use it, for connections by name and for all older ways to ask."""
        self.reactor.installNameResolver(self)

    def resolveHostName(  # noqa: N802  Twisted's name
        self,
        resolutionReceiver: Receiver,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        """Look a host up and tell the receiver its addresses, of the types asked for (see `IHostnameResolver`)."""
        host = _ascii(hostName)
        resolution = _Resolution(host)
        resolutionReceiver.resolutionBegan(resolution)

        def tell(addresses: Sequence[str]) -> None:
            for address in addresses:
                kind = IPv6Address if ":" in address else IPv4Address
                if addressTypes is None or kind in addressTypes:
                    resolutionReceiver.addressResolved(kind("TCP", address, portNumber))
            resolutionReceiver.resolutionComplete()

        answer = self._answers.get(host)
        if answer is not None and self.reactor.seconds() < answer.until:
            tell(answer.addresses)
        else:
            self._look_up(host, tell)
        return resolution

    def _look_up(self, host: str, tell: Callable[[Sequence[str]], None]) -> None:
        # All families, whatever the receiver asks for: one private address is enough to refuse.
        found: Deferred[Any] = deferToThreadPool(
            self.reactor, self.reactor.getThreadPool(), self.lookup, host, 0, socket.AF_UNSPEC, socket.SOCK_STREAM
        )
        found.addTimeout(self.timeout, self.reactor)
        found.addCallback(self._checked, host)
        found.addErrback(self._failed, host)
        found.addCallback(tell)
        found.addErrback(lambda failure: self._log.failure("while telling the addresses of {host}", failure, host=host))

    def _checked(self, found: Sequence[tuple[Any, ...]], host: str) -> tuple[str, ...]:
        addresses = tuple(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))
        self._answers.pop(host, None)
        for address in addresses:
            if not self.allow.allows(address):
                self.refused[host] = address
                return ()
        self.refused.pop(host, None)
        if addresses:
            self._answers[host] = _Answer(addresses, self.reactor.seconds() + self.remembered)
        return addresses

    def _failed(self, failure: Failure, host: str) -> tuple[str, ...]:
        self._log.debug("no address for {host}: {error}", host=host, error=failure.value)
        self.refused.pop(host, None)
        return ()


def _ascii(host: str) -> str:
    """A name as it stands in the URL: Twisted writes xn--… out, and Python would take ß back for ss, another host."""
    return host.lower() if host.isascii() else can_ada.idna_encode(host).decode() or host
