"""Which addresses and URLs are part of the public web, so that no link leads the crawler into a private network.

A page may link or redirect to ``http://169.254.169.254/`` or to a printer on the local network. Python's ``ipaddress`` alone is
not enough: it calls multicast addresses global, and for addresses that embed another one its answer differs between versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from ada_url import URL

from recrawl.errors import UnsafeUrl

#: IPv4 networks that no public web server is in (IANA's special-purpose registry, and multicast).
_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  # private
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # looks public, but is the host of the virtual machine inside Azure
            "169.254.0.0/16",  # link-local, with the metadata services of cloud providers
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "198.18.0.0/15",  # benchmarks
            "224.0.0.0/4", "240.0.0.0/4",  # multicast; reserved and broadcast
        ),
    )
)  # fmt: skip

#: Global unicast; loopback, private, link-local, site-local and multicast addresses are outside.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
#: Networks inside it that no public web server is in: Teredo, ORCHID and other protocols; documentation.
_NOT_PUBLIC_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_MAPPED, _NAT64, _6TO4 = map(IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96", "2002::/16"))
_ISATAP = (0x00005EFE, 0x02005EFE)  # the 32 bits before an embedded IPv4 address

_LOOPBACK_4, _LOOPBACK_6 = IPv4Network("127.0.0.0/8"), IPv6Address("::1")


def is_public(address: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address that a public web server can have.

    >>> is_public("93.184.215.14"), is_public("10.1.2.3"), is_public("::ffff:10.1.2.3"), is_public("fe80::1%eth0")
    (True, False, False, False)
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return _is_public_4(parsed) if isinstance(parsed, IPv4Address) else _is_public_6(parsed)


def _is_public_4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_4)


def _is_public_6(address: IPv6Address) -> bool:
    if address.scope_id is not None:  # only addresses of this machine's own networks have a zone
        return False
    bits = int(address)
    if address in _MAPPED or address in _NAT64:
        return _is_public_4(_last_32(bits))
    if address not in _GLOBAL_UNICAST or any(address in network for network in _NOT_PUBLIC_6):
        return False
    if address in _6TO4 and not _is_public_4(_last_32(bits >> 80)):
        return False
    return (bits >> 32) & 0xFFFFFFFF not in _ISATAP or _is_public_4(_last_32(bits))


def _last_32(bits: int) -> IPv4Address:
    return IPv4Address(bits & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Networks:
    """Where the crawler may connect to: the public web, and what is allowed in addition.

    >>> Networks().allows("127.0.0.1"), Networks(loopback=True).allows("127.0.0.1")
    (False, True)
    """

    loopback: bool = False  # also 127.0.0.0/8, ::1 and the name localhost, for tests and experiments

    def allows(self, address: str) -> bool:
        """Whether the crawler may connect to an address."""
        return is_public(address) or (self.loopback and _is_loopback(address))


def _is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return parsed in _LOOPBACK_4 if isinstance(parsed, IPv4Address) else parsed == _LOOPBACK_6


def check_url(url: str, allow: Networks = Networks()) -> None:  # noqa: B008  frozen
    """Raise `UnsafeUrl` for a URL that must not be fetched, judged by the URL alone. Every port is allowed.

    The URL is parsed as browsers do it, so that no odd spelling of an address passes. Host names are not looked up here: the
    resolver checks their addresses.

    >>> check_url("https://example.org/")
    >>> check_url("http://0x7f.1/")
    Traceback (most recent call last):
    recrawl.errors.UnsafeUrl: address not public: 127.0.0.1, the host of 'http://0x7f.1/'
    """
    try:
        parsed = URL(url)
        scheme, host = parsed.protocol, parsed.hostname
        has_user = bool(parsed.username or parsed.password)
    except ValueError as error:
        raise UnsafeUrl("not a URL", f"{url[:200]!r}") from error
    if scheme not in ("http:", "https:"):
        raise UnsafeUrl("not http or https", f"{url[:200]!r}")
    if has_user:
        # The URL is not shown: it may hold a password.
        raise UnsafeUrl("user name or password in the URL", f"a URL of {host}; give it without them")
    _check_host(host, url, allow)


def _check_host(host: str, url: str, allow: Networks) -> None:
    if _is_address(host):
        if not allow.allows(host.strip("[]")):
            raise UnsafeUrl("address not public", f"{host}, the host of {url[:200]!r}")
        return
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        if not allow.loopback:
            raise UnsafeUrl("name of this machine", f"{host}, the host of {url[:200]!r}")
    elif "." not in name:
        raise UnsafeUrl("name without a dot", f"{host!r}, the host of {url[:200]!r}, can only be in a private network")


def _is_address(host: str) -> bool:
    """Whether the host of a parsed URL is an address: browsers read every host whose last label is a number as one."""
    return host.startswith("[") or host.replace(".", "").isdigit()
