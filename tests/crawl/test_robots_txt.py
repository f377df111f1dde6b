"""The robots.txt format: Google's matcher, which is the reference for RFC 9309, other projects' files, and bounded work."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from conformance_files import files, rows
from recrawl.crawl import robots_txt
from recrawl.crawl.robots import MAX_BYTES, rules_from
from recrawl.crawl.robots_txt import RobotsTxt, UrlPath
from recrawl.web.html import as_utf8

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def test_all_expectations_of_googles_matcher_are_met(shared_data: Path) -> None:
    cases = list(rows(shared_data, "robots_vectors"))
    different = [
        case
        for case in cases
        if rules_from(200, case["robots"].encode(), NOW).allows(case["url"], case["agent"]) is not case["allowed"]
    ]
    assert len(cases) == 142
    assert different == []


@pytest.mark.parametrize(
    ("name", "n_files", "n_sitemaps"), [("robots_rfc9309", 24, 19), ("robots_real", 4_231, 10_288)]
)
def test_all_files_are_read_without_a_warning_and_their_sitemaps_found(
    shared_data: Path, name: str, n_files: int, n_sitemaps: int
) -> None:
    read, found = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for host, body in files(shared_data, name):
            rules = rules_from(200, body, NOW)
            assert rules.allows("https://e.org/robots.txt", "Webwatch")
            assert rules.allows("https://e.org/some/page?x=1", "Webwatch") in (True, False)
            assert rules.delay("Webwatch") >= 0
            text = as_utf8(body[:MAX_BYTES], None).decode("utf-8", "replace")
            assert rules.sitemaps == list(Protego.parse(text).sitemaps), host
            read, found = read + 1, found + len(rules.sitemaps)
    assert (read, found) == (n_files, n_sitemaps)


#: Real files that Protego reads in another way.
NO_END = "a Crawl-delay or an unknown line between two User-agent lines does not end a group (RFC 9309, 2.2.4)"
DIFFERENT = {
    "www.khaleejtimes.com": NO_END,
    "hootsuite.com": NO_END,
    "www.congress.gov": NO_END,
    "bitbucket.org": NO_END,
    "www.monstersandcritics.com": NO_END,
    "www.santabanta.com": "a group for Google does not apply to Googlebot",
    "www.cancerresearchuk.org": "/index.htm that is allowed allows its directory, as /index.html does",
}


@pytest.mark.slow
def test_in_real_files_another_parser_differs_only_where_it_leaves_the_standard(shared_data: Path) -> None:
    n_asked, different = 0, set()
    for host, body in files(shared_data, "robots_real"):
        ours = rules_from(200, body, NOW)
        text = as_utf8(body[:MAX_BYTES], None).decode("utf-8", "replace")
        theirs = Protego.parse(text)
        for pattern in re.findall(r"(?im)^[ \t]*(?:dis)?allow[ \t]*:[ \t]*(/[^\s#]*)", text)[:100]:
            url = "https://e.org" + pattern.replace("*", "xy").rstrip("$")
            for agent in ("Webwatch", "Googlebot"):
                n_asked += 1
                if ours.allows(url, agent) != theirs.can_fetch(url, agent):
                    different.add(host)
    assert different == set(DIFFERENT)
    assert n_asked > 150_000


# -- where the RFC and Google's matcher differ, and what neither says ------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "path", "allowed"),
    [
        ("Disallow: /%7Ejoe", "/~joe/", False),  # the RFC decodes what needs no encoding
        ("Disallow: /~joe", "/%7ejoe/", False),
        ("Disallow: /a%2Fb", "/a/b", True),  # but not what has a meaning of its own
        ("Disallow: /a%2Ab", "/a*b", False),  # a star itself
        ("Disallow: /a%2Ab", "/axb", True),
        ("Disallow: /a$b", "/a$b", False),
        ("Disallow: /a%24", "/a$b", False),
        ("Disallow: /\nAllow: /%7Ejoe", "/~joe/", False),  # permission is as written
        ("Disallow: /\nAllow: /%7ejoe", "/%7Ejoe/", True),
        ("Disallow: /a b", "/a%20b", False),
        ("Disallow: /*\nAllow: /*a*$", "/ba", True),
        ("Disallow: /a**b", "/ab", False),
        ("Disallow: *", "/", False),
        ("Disallow: $", "/", True),
        ("Disallow: /$", "/?", True),
    ],
)
def test_spellings_and_wildcards_are_compared_by_the_stricter_of_two_readings(
    line: str, path: str, allowed: bool
) -> None:
    assert RobotsTxt(f"User-agent: *\n{line}").allows(f"https://e.org{path}", "Webwatch") is allowed


def test_a_delay_applies_to_the_agents_named_just_before_it() -> None:
    robots = RobotsTxt(
        "Crawl-delay: 9\nUser-agent: a\nCrawl-delay: 5\nUser-agent: *\nCrawl-delay: 2s\nDisallow: /x\nSitemap:"
    )
    assert [robots.delay(agent) for agent in ("a", "b")] == [5.0, 2.0]
    assert [robots.allows("https://e.org/x", agent) for agent in ("a", "b")] == [False, False]  # one group for both
    assert robots.sitemaps == []


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xef\xbb\xbf\xef\xbb\xbf"])
def test_what_an_editor_left_of_a_byte_order_mark_hides_no_rule(mark: bytes) -> None:
    rules = rules_from(200, mark + b"User-agent: *\nDisallow: /a", NOW)
    assert not rules.allows("https://e.org/a", "Webwatch")


def test_other_separators_than_those_of_lines_end_no_line() -> None:
    robots = RobotsTxt("User-agent: *\nDisallow: /a\u2028User-agent: b\x0bAllow: /\x85x")
    assert robots.allows("https://e.org/a", "b")
    assert not RobotsTxt("User-agent: *\rDisallow: /a\r\rUser-agent: b").allows("https://e.org/a", "c")


def _by_regular_expression(pattern: str, path: str) -> bool:
    """The slow way, for short texts."""
    expression = "".join(".*" if sign == "*" else re.escape(sign) for sign in pattern.removesuffix("$"))
    return re.match(expression + ("\\Z" if pattern.endswith("$") else ""), path) is not None


@given(st.text("ab*$", max_size=7), st.text("ab$", max_size=9))
def test_wildcards_match_what_a_regular_expression_matches(pattern: str, path: str) -> None:
    allowed = RobotsTxt(f"User-agent: *\nDisallow: /{pattern}").allows(f"https://e.org/{path}", "Webwatch")
    assert allowed is not _by_regular_expression(f"/{pattern}", f"/{path}")


# -- bounded work -----------------------------------------------------------------------------------------------------


class Counted(str):
    """A path that counts the characters which are searched."""

    n_searched = 0

    def find(self, part: str, at: int = 0) -> int:  # type: ignore[override]
        place = super().find(part, at)
        self.n_searched += (place + len(part) if place >= 0 else len(self)) - at
        return place


@pytest.mark.parametrize("n_stars", [10, 1_000, 100_000])
@pytest.mark.parametrize("pattern", ["*a", "*a*b", "*aaaaaaaab", "*", "*%61"])
def test_a_path_is_searched_once_however_many_wildcards_a_rule_has(pattern: str, n_stars: int) -> None:
    for ending in ("", "$", "*b$"):
        robots = RobotsTxt("User-agent: *\nDisallow: /" + pattern * n_stars + ending)
        (rule,) = robots._rules("Webwatch")
        path = UrlPath(Counted("/" + "a" * 2_000), Counted("/" + "a" * 2_000))
        rule.matches(path)
        for text in (path.written, path.decoded):
            assert isinstance(text, Counted)
            assert text.n_searched <= len(text)


def test_many_agents_with_many_rules_keep_each_rule_once() -> None:
    """A file of 500 KiB with 10,000 agents and 10,000 rules must not become 100 million rules."""
    n = 10_000
    robots = RobotsTxt(
        "".join(f"User-agent: a{'b' * (i % 99)}\n" for i in range(n)) + "Disallow: /x\nCrawl-delay: 1\n" * n
    )
    assert sum(len(group.rules) for group in robots._groups) == n
    assert len(robots._rules("a")) == n


def test_of_a_file_of_any_length_only_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    monkeypatch.setattr("recrawl.crawl.robots.RobotsTxt", lambda text: lengths.append(len(text)) or RobotsTxt(""))
    for body in (b"User-agent: *\n" * 200_000, b"x" * (3 * MAX_BYTES), b"\xff" * (3 * MAX_BYTES)):
        rules_from(200, body, NOW)
    assert max(lengths) <= MAX_BYTES


def test_the_kinds_of_lines_are_those_that_are_read() -> None:
    kinds = [
        kind
        for kind, _ in robots_txt._lines(
            "User agent: a\nDisallaw: /\nallow /\nSite-map: /s\ncrawl delay: 1\nNoindex: /"
        )
    ]
    assert kinds == ["agent", "disallow", "allow", "sitemap", "delay"]
