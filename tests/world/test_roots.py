"""Where websites begin: patterns, lists and domains, compared with a plain version; roots that overlap."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.urls import canonical, site
from recrawl.world.roots import Roots, parse_roots, site_names, sites_of

NAMES = st.sampled_from(["~bar", "~baz", "a", "b", "index.html", "x.html"])
URLS = st.builds(
    lambda scheme, host, names, end, query: canonical(f"{scheme}://{host}/{'/'.join(names)}{end}{query}"),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["foo.edu", "www.foo.edu", "cs.foo.edu", "foo.edu:8080"]),
    st.lists(NAMES, max_size=4),
    st.sampled_from(["", "/"]),
    st.sampled_from(["", "?q=/~bar/"]),
)


def plain_names(url: str) -> list[str]:
    """The server and the names of the path; an index file is its folder."""
    parts = urlsplit(url)
    names = [name for name in parts.path.split("/") if name]
    if names and names[-1].startswith("index.") and not parts.path.endswith("/"):
        names.pop()
    return [parts.netloc.removeprefix("www."), *names]


def plain_root(url: str, roots: list[str]) -> str | None:
    """The longest root whose names are the first names of the URL."""
    fits = [
        root
        for root in roots
        if plain_names(url)[: len(plain_names(f"http://{root}"))] == plain_names(f"http://{root}")
    ]
    return max(fits, key=lambda root: len(plain_names(f"http://{root}")), default=None)


@given(st.lists(URLS, min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_sites_and_depths_of_a_list_are_those_of_a_plain_version(urls: list[str]) -> None:
    listed = ["foo.edu/~bar", "foo.edu/~bar/a", "foo.edu/a/~baz", "cs.foo.edu"]
    found = sites_of(pa.array(urls), Roots("list", frozenset(listed)))
    expected = [plain_root(url, listed) for url in urls]
    assert found.is_inside.tolist() == [root is not None for root in expected]
    names = [root or f"outside {site(str(urlsplit(url).hostname))}" for root, url in zip(expected, urls, strict=True)]
    assert [set(np.flatnonzero(found.site == number).tolist()) for number in dict.fromkeys(found.site.tolist())] == [
        {i for i, other in enumerate(names) if other == name} for name in dict.fromkeys(names)
    ]
    depths = [len(plain_names(url)) - len(plain_names(f"http://{root}")) if root else len(plain_names(url)) - 1
              for root, url in zip(expected, urls, strict=True)]  # fmt: skip
    assert found.depth.tolist() == depths


@given(st.lists(URLS, min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_pattern_finds_the_first_folder_that_fits(urls: list[str]) -> None:
    found = sites_of(pa.array(urls), parse_roots("/~*/"))
    for url, is_inside, depth in zip(urls, found.is_inside.tolist(), found.depth.tolist(), strict=True):
        names = plain_names(url)
        tildes = [i for i, name in enumerate(names[1:]) if name.startswith("~")]
        assert is_inside == bool(tildes)
        assert depth == len(names) - 1 - (tildes[0] + 1 if tildes else 0)


def test_depth_is_counted_as_in_the_paper() -> None:
    urls = ["http://foo.edu/~bar", "http://foo.edu/~bar/baz", "http://foo.edu/~bar/baz/qux/quux"]
    assert sites_of(pa.array(urls), parse_roots("/~*/")).depth.tolist() == [0, 1, 3]


def test_copies_of_a_page_under_other_schemes_and_names_belong_to_one_site() -> None:
    urls = [
        "http://foo.edu/~bar/",
        "https://www.foo.edu/~bar",
        "http://foo.edu/~bar/index.html",
        "http://foo.edu/~bar/?a=1",
    ]
    found = sites_of(pa.array(urls), parse_roots("/~*/"))
    assert (found.site.tolist(), found.depth.tolist()) == ([0] * 4, [0] * 4)


def test_domains_and_hosts_have_every_page_inside() -> None:
    urls = pa.array(["http://a.foo.edu/x", "http://b.foo.edu/"])
    domain, host = sites_of(urls), sites_of(urls, parse_roots("host"))
    assert (domain.site.tolist(), host.site.tolist(), domain.depth.tolist()) == ([0, 0], [0, 1], [1, 0])
    assert host.is_inside.all()


def test_numbers_of_sites_do_not_change_when_pages_are_added() -> None:
    urls = ["http://foo.edu/~b/", "http://foo.edu/", "http://foo.edu/~a/", "http://bar.org/", "http://foo.edu/~b/x"]
    whole = sites_of(pa.array(urls), parse_roots("/~*/")).site
    for n in range(len(urls)):
        assert sites_of(pa.array(urls[:n], pa.string()), parse_roots("/~*/")).site.tolist() == whole[:n].tolist()


def test_a_list_is_read_with_comments_bad_lines_and_any_spelling(tmp_path: Path) -> None:
    path = tmp_path / "roots.txt"
    path.write_text("# people\nHTTPS://www.Foo.edu/%7ebar/index.html\n\nfoo.edu/~baz\nhttp://[bad\nfoo.edu/~baz/\n")
    roots = parse_roots(str(path))
    assert roots.listed == {"foo.edu/~bar", "foo.edu/~baz"}
    assert roots.notes() == [f"{path}: 1 line skipped, since no URL is there"]


def test_the_longest_of_overlapping_roots_wins_and_that_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "roots.txt"
    path.write_text("foo.edu\nfoo.edu/~bar/\nfoo.edu/~bar/lab/\nbar.org\n")
    roots = parse_roots(str(path))
    assert roots.root_of("http://foo.edu/~bar/lab/x") == "foo.edu/~bar/lab"
    assert roots.root_of("http://foo.edu/~bar/labs") == "foo.edu/~bar"
    assert roots.root_of("http://foo.edu/~ba") == "foo.edu"
    assert roots.root_of("http://foo.org/") is None
    assert roots.notes() == [f"{path}: 2 roots are inside others; a page belongs to the longest root that fits"]


@pytest.mark.parametrize(("text", "sentence"), [
    ("/~name/", "there is no file '/~name/'; use domain, host, a pattern such as"),
    ("/a//*/", "is no pattern of paths"),
])  # fmt: skip
def test_what_names_no_roots_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_roots(text)


def test_a_list_without_roots_is_refused(tmp_path: Path) -> None:
    (tmp_path / "roots.txt").write_text("# nothing\n")
    with pytest.raises(ValueError, match="names no root"):
        parse_roots(str(tmp_path / "roots.txt"))
    (tmp_path / "roots.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read as text"):
        parse_roots(str(tmp_path / "roots.txt"))


@given(st.lists(URLS, min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_pages_with_the_same_name_of_a_site_are_those_with_the_same_number(urls: list[str]) -> None:
    for roots in (parse_roots("domain"), parse_roots("host"), Roots("list", frozenset({"foo.edu/~bar", "cs.foo.edu"}))):
        sites, names = sites_of(pa.array(urls), roots), site_names(pa.array(urls), roots)
        assert [name is not None for name in names] == sites.is_inside.tolist()
        for i, name in enumerate(names):
            if name is not None:
                assert [other == name for other in names] == (sites.site == sites.site[i]).tolist()
