from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadUrl
from recrawl.web.urls import (
    _PLAIN,
    _parsed,
    _respell,
    canonical,
    domain_depth,
    host,
    origin,
    page_id,
    path_depth,
    resolve,
    site,
    trap,
)

pieces = st.sampled_from(
    [*"abzA9-._~%/?#&=+;:@!$'()*,[]{}|\\^`<>\" é中\t", "%2", "%41", "%2e", "..", "utm_source=", "//", "%25"]
)
tails = st.lists(pieces, max_size=25).map("".join)


@given(
    st.sampled_from(["http://", "HTTPS://", "http:", "https:/\\", ""]),
    st.sampled_from(["e.org", "É.org:80", "1.2.3", "[::1]", ""]),
    tails,
)
def test_canonical_is_idempotent_whatever_the_input(scheme: str, name: str, tail: str) -> None:
    try:
        once = canonical(scheme + name + tail)
    except BadUrl:
        return
    assert canonical(once) == once
    assert canonical(once, keep_tracking=True) == once


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_a_bad_url(text: str) -> None:
    try:
        once = canonical(text)
    except BadUrl:
        return
    assert canonical(once) == once


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("HTTP://Example.COM:80/", "http://example.com/"),
        ("https://example.com:443", "https://example.com/"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com/a/./b/../c/%2E%2E/d#frag", "http://example.com/a/d"),
        ("http://example.com/%7euser/%c3%a9 é", "http://example.com/~user/%C3%A9%20%C3%A9"),
        ("http://example.com/?b=2&a=1&b=1", "http://example.com/?a=1&b=2&b=1"),
        ("http://example.com/?utm_source=x&UTM_Medium=y&gclid=1&fbclid=2&id=3", "http://example.com/?id=3"),
        ("http://example.com/?utm_source=x", "http://example.com/"),
        ("http://example.com?", "http://example.com/"),
        ("http://user:secret@example.com/", "http://example.com/"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http:\\\\example.com\\a", "http://example.com/a"),
    ],
)
def test_one_page_has_one_spelling(spelling: str, expected: str) -> None:
    assert canonical(spelling) == expected


def test_tracking_parameters_stay_when_asked_for() -> None:
    assert canonical("http://e.org/?utm_source=x&a=1", keep_tracking=True) == "http://e.org/?a=1&utm_source=x"


@pytest.mark.parametrize(
    "text",
    ["", "ftp://e.org/", "javascript:void(0)", "data:text/html,x", "mailto:a@e.org", "/path", "http://", "http://[1"],
)
def test_what_is_not_http_is_refused(text: str) -> None:
    with pytest.raises(BadUrl):
        canonical(text)


@pytest.mark.parametrize(
    "href", ["b", "./b", "../b", "/b", "//f.org/b", "?q=1", "", "#x", "b?c=/d/../e", "b/", "http://f.org", "a:b/../c"]
)
@pytest.mark.parametrize("base", ["https://e.org/", "https://e.org/x/y/z", "https://e.org/x/y/?q=/r"])
def test_links_resolve_as_the_standard_library_resolves_them(href: str, base: str) -> None:
    if href == "a:b/../c":
        with pytest.raises(BadUrl):
            canonical(href, base)
    else:
        assert canonical(href, base) == canonical(urljoin(base, href))


def test_links_resolve_as_browsers_do_where_the_standard_library_does_not() -> None:
    assert canonical(" \n/a\tb ", "https://e.org/x") == "https://e.org/ab"
    assert canonical("\\a\\b", "https://e.org/x/y") == "https://e.org/a/b"
    assert resolve("?x", "https://e.org/list?page=1") == "https://e.org/list?x"


def test_a_scheme_without_slashes_is_a_relative_link_on_a_page_of_that_scheme() -> None:
    assert canonical("http:b", "http://e.org/x/y") == "http://e.org/x/b"
    assert canonical("HTTP:/b", "http://e.org/x/y") == "http://e.org/b"
    assert canonical("http:", "http://e.org/x/y") == "http://e.org/x/y"
    assert canonical("http:/\\f.org", "http://e.org/x/y") == "http://f.org/"
    assert canonical("http:f.org", "https://e.org/x/y") == "http://f.org/"


def test_links_resolve_against_a_base_that_is_not_canonical() -> None:
    assert canonical("b", "https://e.org") == "https://e.org/b"
    assert canonical("b", "HTTPS://E.org?x=/y") == "https://e.org/b"
    assert canonical("b", "https://e.org/a#/c/") == "https://e.org/b"
    with pytest.raises(BadUrl):
        canonical("b", "about:blank")


def test_hosts_are_written_as_the_current_standard_writes_them() -> None:
    assert canonical("http://STRAẞE.de/") == "http://xn--strae-oqa.de/"  # not strasse.de, which is another host
    assert canonical("http://xn--a.example/") == "http://xn--a.example/"  # invalid Punycode, but it can be looked up


def test_half_a_surrogate_pair_is_a_replacement_character() -> None:
    assert canonical("http://e.org/\ud800x") == "http://e.org/%EF%BF%BDx"
    with pytest.raises(BadUrl):
        canonical("http://e\ud800.org/")


def test_depths_are_those_of_the_papers() -> None:
    assert path_depth(canonical("http://domain.com/en/news/article123456/")) == 3
    assert path_depth("http://domain.com/") == 0
    assert path_depth("http://domain.com/a/b?c=/d/e") == 2
    assert domain_depth("http://sub.domain.com/") == 3
    assert domain_depth("https://www.drive.google.com/") == 3
    assert domain_depth("http://127.0.0.1:8000/") == 1


def test_internal_means_same_scheme_and_host() -> None:
    page = "https://www.gender-nrw.de/haeusliche-gewalt/"
    assert origin(page) == origin("https://www.gender-nrw.de/contact/")
    assert origin(page) != origin("https://www.mkffi.nrw/")
    assert origin(page) != origin("http://gender-nrw.de/newsletter")
    assert origin("http://e.org/") != origin("http://e.org:81/")


def test_sites_follow_the_public_suffix_list() -> None:
    assert site(host("https://a.b.example.co.uk/x")) == "example.co.uk"
    assert site("10.0.0.1") == "10.0.0.1"
    assert site("[::1]") == "[::1]"
    assert site("localhost") == "localhost"


def test_traps_are_recognised() -> None:
    assert trap("http://e.org/" + "/".join(str(i) for i in range(21))) == "more than 20 path segments"
    assert trap("http://e.org/" + "/".join(str(i) for i in range(20))) is None
    assert trap("http://e.org/a/b/a/c/a") == "segment 'a' repeated 3 times"
    assert trap("http://e.org/a/b/a") is None
    assert trap("http://e.org/?" + "x" * 2083) == "longer than 2,083 characters"
    assert trap("http://e.org/a/a/a") == "segment 'a' repeated 3 times"


def test_ids_are_signed_64_bit_numbers() -> None:
    ids = [page_id(f"http://e.org/{i}") for i in range(1000)]
    assert len(set(ids)) == 1000
    assert all(-(2**63) <= i < 2**63 for i in ids)
    assert min(ids) < 0 < max(ids)


@given(
    st.sampled_from(["http://", "https://"]),
    st.from_regex(r"[a-z0-9.-]{1,12}", fullmatch=True),
    st.from_regex(r"(/[a-zA-Z0-9._~-]{0,5}){0,4}", fullmatch=True),
)
def test_the_short_cut_for_plain_urls_changes_nothing(scheme: str, name: str, path: str) -> None:
    url = scheme + name + path
    try:
        parsed = _respell(_parsed(url), False)
    except BadUrl:
        parsed = None
    assert not _PLAIN.fullmatch(url) or parsed == url
