"""Every URL case of the web platform tests, against recrawl's canonical URLs.

Where the canonical form differs from the standard's on purpose, the difference is one of `ON_PURPOSE`, with its reason and the
number of cases that it touches. What differs for any other reason fails.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recrawl.errors import BadUrl
from recrawl.history.batch import _absolute
from recrawl.web import html as parse
from recrawl.web.urls import canonical
from shared_data import DATA, MISSING

pytestmark = pytest.mark.skipif(not (DATA / "conformance").exists(), reason=MISSING)

PAGE = "https://e.org/"

#: Kind of difference → (why the canonical form differs from the standard's, number of cases in wpt_urltestdata).
ON_PURPOSE = {
    "scheme": ("only http and https pages are crawled; all other URLs are refused", 377),
    "user info": ("a user name or password is never stored or sent", 31),
    "fragment": ("a fragment is a place on the same page", 28),
    "empty query": ("'/?' and '/' are one page", 4),
    "escape of an unreserved character": ("RFC 3986, 6.2.2.2: '%7E' and '~' are one page", 5),
    "lower-case escape": ("RFC 3986, 6.2.2.1: '%c3' and '%C3' are one page", 3),
    "character left bare": ("written in two ways on the web, and servers read both alike: '|' and '%7C'", 3),
}

Change = Callable[[str], str]


def cases(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / "conformance" / f"wpt_{name}.json.gz") as file:
        return [case for case in json.load(file) if isinstance(case, dict)]


def canonical_or_none(url: str, base: str | None = None) -> str | None:
    try:
        return canonical(url, base)
    except BadUrl:
        return None


# -- the canonical form of a URL of the standard, worked out slowly -----------------------------------------------------


def changes() -> Iterator[tuple[str, Change]]:
    """What the canonical form does to a URL that the standard has parsed, one small change after the other."""
    yield "user info", lambda url: re.sub(r"^(https?://)[^/?#@]*@", r"\1", url)
    yield "fragment", lambda url: url.split("#")[0]
    yield "empty query", lambda url: url.removesuffix("?")
    yield "escape of an unreserved character", lambda url: re.sub("%([0-9A-Fa-f]{2})", bare_if_unreserved, url)
    yield "lower-case escape", lambda url: re.sub("%[0-9A-Fa-f]{2}", lambda escape: escape[0].upper(), url)
    yield "character left bare", escaped_after_host


def bare_if_unreserved(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if re.match(r"[A-Za-z0-9._~-]", character) else escape[0]


def escaped_after_host(url: str) -> str:
    host, rest = re.fullmatch(r"(https?://[^/]*)(.*)", url, re.DOTALL).groups()
    return host + "".join(f"%{ord(c):02X}" if c in "\"'<>[]\\^`{|}" else c for c in rest)


def expected(href: str | None) -> tuple[str | None, list[str]]:
    """The canonical form of a URL that the standard gives (None: it refuses), and the kinds of differences between them."""
    if href is None:
        return None, []
    if not href.startswith(("http://", "https://")):
        return None, ["scheme"]
    kinds = []
    for kind, change in changes():
        before, href = href, change(href)
        kinds += [kind] * (before != href)
    return href, kinds


# -- the cases ----------------------------------------------------------------------------------------------------------


def test_urls_are_those_of_the_standard_in_canonical_form() -> None:
    differences: Counter[str] = Counter()
    n = n_equal = 0
    wrong = []
    for case in cases("urltestdata"):
        # A base that is not on the web cannot be a page of recrawl's: the input is taken as it is.
        base = canonical_or_none(case["base"] or "")
        url, kinds = expected(case.get("href"))
        ways = [canonical_or_none(case["input"], base)]
        if base:
            ways.append(canonical_or_none(_absolute([case["input"]], base)[0]))  # as the import resolves links
        wrong += [(case["input"], case["base"], case.get("href"), way) for way in ways if way != url]
        n, n_equal = n + 1, n_equal + (not kinds)
        differences.update(kinds)
    print(f"{n} URLs: {n_equal} equal to the standard, {n - n_equal} differ on purpose: {dict(differences)}")
    assert wrong == []
    assert n == 891
    assert differences == {kind: number for kind, (_, number) in ON_PURPOSE.items()}


@pytest.mark.parametrize(("name", "number"), [("toascii", 87), ("IdnaTestV2", 2671)])
def test_host_names_are_those_of_the_standard(name: str, number: int) -> None:
    hosts = cases(name)
    wrong = []
    for case in hosts:
        if not case["input"]:
            continue  # "https:///x" is a URL of the host "x": a name that is empty cannot be tried
        url = canonical_or_none(f"https://{case['input']}/x")
        if url != (f"https://{case['output']}/x" if case["output"] is not None else None):
            wrong.append((case["input"], case["output"], url))
    assert wrong == []
    assert len(hosts) == number


#: (text, charset) → why its escapes differ from the standard's.
OTHER_ESCAPES = {
    ("\x0eA", "iso-2022-jp"): "Python's codec writes a control character where the standard writes its number",
    ("\ue5e5", "gb18030"): "Python's codec knows the older table, in which this private character is A3 A0",
}


def test_queries_are_escaped_in_the_charset_of_their_page() -> None:
    n, differ = 0, []
    for case in cases("percent-encoding"):
        for charset, output in case["output"].items():
            text = "".join(f"&#{ord(letter)};" for letter in case["input"])
            page = parse.page(f'<a href="/?{text}#{text}">x</a>'.encode(), f"text/html; charset={charset}", PAGE)
            (href,) = page.hrefs or ()
            n += 1
            if canonical(href, page.base) != expected(f"{PAGE}?{output}")[0]:
                differ.append((case["input"], charset))
    assert n == 16
    assert differ == list(OTHER_ESCAPES)
