"""What is part of the public web, however it is spelled."""

from __future__ import annotations

import pickle
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.crawl.addresses import Networks, check_url, is_public
from recrawl.errors import RecrawlError, UnsafeUrl

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.215.14", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "168.63.129.15", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
    "198.17.255.255", "198.20.0.0", "223.255.255.255",
    "2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2620:fe::fe", "2001:200::1", "3ffe::1",
]  # fmt: skip

NOT_PUBLIC = {
    "this network": ["0.0.0.0", "0.1.2.3", "0.255.255.255", "::"],
    "private": ["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1", "fd00:ec2::254"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1"],
    "link-local": ["169.254.169.254", "169.254.0.0", "fe80::1", "febf::1", "fe80::1%eth0", "2606:4700::1%eth0"],
    "site-local": ["fec0::1", "feff::1"],
    "carrier": ["100.64.0.0", "100.127.255.255", "100.100.100.200"],
    "protocols": ["192.0.0.1", "192.0.0.170", "192.88.99.1", "2001:1::1", "2001:4:112::1", "2001:1ff::1"],
    "the host of a cloud machine": ["168.63.129.16"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff::1", "3fff:fff::1"],
    "benchmarks": ["198.18.0.0", "198.19.255.255", "2001:2::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.254", "255.255.255.255", "4000::1", "8000::1", "1::1", "5f00::1"],
    "discard only": ["100::1", "100:0:0:1::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:0:808:808::f7f7:f7f7"],
    "ORCHID": ["2001:10::1", "2001:20::1", "2001:2f::1"],
    "IPv4-compatible": ["::127.0.0.1", "::8.8.8.8", "::10.0.0.1"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:a00:1", "::ffff:169.254.169.254", "::ffff:0:8.8.8.8"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::1"],
    "6to4": ["2002:7f00:1::1", "2002:a00:1::", "2002:c0a8:101:1::1"],
    "ISATAP": ["2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.1.1"],
    "no address": ["", "example.org", "127.1", "0x7f000001", "[::1]", "1.2.3.4/32", "1.2.3.4.5", " 8.8.8.8", "8.8.8.8\n"],
}  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, many in NOT_PUBLIC.items() for one in many])
def test_no_other_address_is_public(kind: str, address: str) -> None:
    assert not is_public(address), kind


NAT64 = IPv6Network("64:ff9b::/96")
IPV4 = st.integers(0, 2**32 - 1) | st.sampled_from([int(IPv4Address(one)) for one in PUBLIC if ":" not in one])
PRIVATE_IPV4 = st.sampled_from([int(IPv4Address("10.0.0.0")), int(IPv4Address("127.0.0.0"))]).flatmap(
    lambda start: st.integers(start, start + 2**24 - 1)
)


@given(IPV4 | PRIVATE_IPV4, st.integers(0, 2**80 - 1))
@example(int(IPv4Address("8.8.8.8")), 0)
def test_an_address_with_an_embedded_ipv4_address_is_as_public_as_that_one(inner: int, rest: int) -> None:
    public = is_public(str(IPv4Address(inner)))
    mapped, nat64 = int(IPv6Address("::ffff:0:0")) | inner, int(IPv6Address("64:ff9b::")) | inner
    assert is_public(str(IPv6Address(mapped))) == public
    assert is_public(str(IPv6Address(nat64))) == public
    assert not (is_public(str(IPv6Address(0x2002 << 112 | inner << 80 | rest))) and not public)
    assert is_public(str(IPv6Address(0x2002 << 112 | inner << 80 | 1))) == public
    for before in (0x5EFE, 0x02005EFE):
        isatap = int(IPv6Address("2606:4700::")) | before << 32 | inner
        assert is_public(str(IPv6Address(isatap))) == public


@given(st.integers(0, 2**96 - 1))
def test_teredo_and_local_nat64_are_never_public(rest: int) -> None:
    assert not is_public(str(IPv6Address(0x20010000 << 96 | rest)))
    assert not is_public(str(IPv6Address(0x64FF9B0001 << 80 | rest >> 16)))


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_no_address_is_public_that_python_calls_special(address: IPv4Address | IPv6Address) -> None:
    special = address.is_private or address.is_link_local or address.is_multicast or address.is_reserved
    carries_another = isinstance(address, IPv6Address) and (address.ipv4_mapped or address in NAT64)
    if special and not carries_another:
        assert not is_public(str(address))


# -- URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/", "http://example.org:8080/a?b#c", "http://8.8.8.8/", "http://[2606:4700:4700::1111]:81/",
        "http://134744072/", "http://bücher.example/", "http://a_b.example.org/", "http://example.org./", "http://@example.org/",
        "http://example.org/@127.0.0.1/", "http://example.org/http://127.0.0.1/", "http://localhost.example.org/",
        "http://1.example.org/", "http://xn--bcher-kva.example:65535/",
    ],
)  # fmt: skip
def test_a_url_of_the_public_web_is_safe(url: str) -> None:
    check_url(url)


LOOPBACK = [
    "http://127.0.0.1/", "http://127.0.0.1:8000/", "http://127.1/", "http://0x7f.1/", "http://0x7F000001/", "http://2130706433/",
    "http://0177.0.0.1/", "http://017700000001/", "http://127.0.0.1./", "http://１２７.0.0.1/", "http://127。0。0。1/",
    "http://①②⑦.0.0.1/", "http://%31%32%37.0.0.1/", "http:\\\\127.0.0.1\\", "http:/\\127.0.0.1", "http:127.0.0.1", "http:///127.0.0.1/",
    "HTTP://127.0.0.1", "  http://127.0.0.1/", "ht\ntp://127.0.0.1/", "http://12\t7.0.0.1/", "http://[::1]/", "http://[0:0::0:1]:80/",
]  # fmt: skip
INSIDE = [
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://0/", "http://0.0.0.0/", "http://[::]/",
    "http://169.254.169.254/latest/meta-data/", "http://0xa9fea9fe/", "http://2852039166/", "http://10.0.0.1/", "http://192.168.1.1/",
    "http://[fd00::1]/", "http://[fe80::1]/", "http://[64:ff9b::10.0.0.1]/", "http://[2002:a00:1::1]/", "http://224.0.0.1/",
    "http://100.64.0.1/", "http://256/",
]  # fmt: skip


@pytest.mark.parametrize("url", LOOPBACK + INSIDE)
def test_an_address_that_is_not_public_is_refused_in_every_spelling(url: str) -> None:
    with pytest.raises(UnsafeUrl, match="address not public"):
        check_url(url)


@given(st.integers(127 << 24, (128 << 24) - 1), st.data())
def test_loopback_is_refused_however_its_numbers_are_written(address: int, data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, 4))
    last_bits = 8 * (5 - parts)
    numbers = [address >> shift & 255 for shift in range(24, last_bits - 1, -8)] + [address & ((1 << last_bits) - 1)]
    written = [data.draw(st.sampled_from([str(n), hex(n), hex(n).upper(), f"0{n:o}"])) for n in numbers]
    with pytest.raises(UnsafeUrl, match=f"address not public: {IPv4Address(address)}"):
        check_url(f"http://{'.'.join(written)}/")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://localhost/", "name of this machine"),
        ("http://LOCALHOST./", "name of this machine"),
        ("http://a.b.localhost:80/", "name of this machine"),
        ("http://ｌocalhost/", "name of this machine"),
        ("http://intranet/", "name without a dot"),
        ("http://intranet./", "name without a dot"),
        ("http://./", "name without a dot"),
        ("http://user@example.org/", "user name or password in the URL"),
        ("http://:secret@example.org/", "user name or password in the URL"),
        ("http://example.org@127.0.0.1/", "user name or password in the URL"),
        ("ftp://example.org/", "not http or https"),
        ("file:///etc/passwd", "not http or https"),
        ("data:text/html,x", "not http or https"),
        ("gopher://127.0.0.1/", "not http or https"),
        ("javascript:alert(1)", "not http or https"),
        ("", "not a URL"),
        ("//example.org/", "not a URL"),
        ("http://", "not a URL"),
        ("http://[fe80::1%25eth0]/", "not a URL"),
        ("http://999.1.1.1/", "not a URL"),
        ("http://example.org:99999/", "not a URL"),
        ("http://a b.org/", "not a URL"),
        ("http://\ud800.org/", "not a URL"),
    ],
)
def test_other_urls_are_refused_for_a_reason(url: str, reason: str) -> None:
    with pytest.raises(UnsafeUrl) as caught:
        check_url(url)
    assert caught.value.reason == reason
    assert str(caught.value).startswith(f"{reason}: ")
    assert isinstance(caught.value, RecrawlError)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(UnsafeUrl) as caught:
        check_url("http://me:secret@example.org/")
    assert "secret" not in str(caught.value)
    assert "example.org" in str(caught.value)


def test_the_error_can_be_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(UnsafeUrl("proxy", "detail")))
    assert (error.reason, error.detail, str(error)) == ("proxy", "detail", "proxy: detail")


@pytest.mark.parametrize("url", [*LOOPBACK, "http://localhost:8000/", "http://a.localhost/"])
def test_loopback_can_be_allowed(url: str) -> None:
    check_url(url, Networks(loopback=True))


@pytest.mark.parametrize("url", [*INSIDE, "http://intranet/", "http://user@localhost/", "ftp://127.0.0.1/"])
def test_with_loopback_nothing_else_is_allowed(url: str) -> None:
    with pytest.raises(UnsafeUrl):
        check_url(url, Networks(loopback=True))


@given(st.text(max_size=40) | st.from_regex(r"https?:[/\\\\]{0,3}[^/]{0,20}/", fullmatch=True))
def test_any_text_has_a_host_of_the_web_or_is_refused(url: str) -> None:
    with suppress(UnsafeUrl):
        check_url(url)
        host = URL(url).hostname
        assert is_public(host.strip("[]")) or "." in host.strip(".")
