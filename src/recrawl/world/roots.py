"""What a website is: everything under a root such as ``foo.edu/~bar/``, with depth counted from it.

Roots are the registered domains (the default), the hosts, what a pattern matches, or what a list names.

References: Jayawardana et al. (2020), HACS, section II-A.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Flags, Ints
from recrawl.core.words import count
from recrawl.errors import BadUrl
from recrawl.web.hosts import hosts_and_sites, letters
from recrawl.web.urls import canonical, site
from recrawl.web.urls import host as host_of
from recrawl.world.kernels import path_depths
from recrawl.world.page_names import indices

NAMED = ("domain", "host")
FORMS = "domain, host, a pattern such as '/~*/', or a file with one root per line"
_INDEX = re.compile(r"/(?:index|default)\.[^/]*$")


@dataclass(frozen=True)
class Roots:
    """Where websites begin; `parse_roots` makes it from what people write."""

    spec: str = "domain"
    #: Roots of a list, without scheme, ``www.`` and slash at the end.
    listed: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = field(default=None, compare=False)
    n_bad: int = 0  # lines that are no URL

    def root_of(self, url: str) -> str | None:
        """The root that a canonical URL is under, the longest where several fit; None: it is under none.

        >>> Roots("list", frozenset({"foo.edu/~bar", "foo.edu/~bar/lab"})).root_of("http://www.foo.edu/~bar/lab/people.html")
        'foo.edu/~bar/lab'
        >>> parse_roots("/~*/").root_of("https://foo.edu/cs/~bar/papers/2020?sort=year")
        'foo.edu/cs/~bar'
        """
        place = place_of(url)
        if self.pattern is not None:
            match = self.pattern.match(place)
            return match[0] if match else None
        while place not in self.listed:
            place, slash, _ = place.rpartition("/")
            if not slash:
                return None
        return place

    @cached_property
    def n_inside(self) -> int:
        """How many roots of a list are under another one."""
        return sum(
            any(root[:end] in self.listed for end in range(len(root)) if root[end] == "/") for root in self.listed
        )

    def notes(self) -> list[str]:
        """What the user should know of a list."""
        notes = []
        if self.n_bad:
            notes.append(f"{self.spec}: {count(self.n_bad, 'line')} skipped, since no URL is there")
        if self.n_inside:
            inside = "1 root is" if self.n_inside == 1 else f"{self.n_inside:,} roots are"
            notes.append(f"{self.spec}: {inside} inside others; a page belongs to the longest root that fits")
        return notes


DOMAINS = Roots()


def parse_roots(text: str) -> Roots:
    """Roots as people write them: ``domain``, ``host``, a pattern with ``*`` for part of a name, or a file.

    A pattern matches whole names anywhere in the path, the first time that it fits: everything under ``/~name/`` is a site.

    >>> parse_roots("domain")
    Roots(spec='domain', listed=frozenset(), pattern=None, n_bad=0)
    >>> parse_roots("~*")
    Traceback (most recent call last):
    ValueError: '~*' is no pattern of paths: it must begin and end with a slash, such as '/~*/'
    """
    if text in NAMED:
        return Roots(text)
    if "*" in text:
        return Roots(text, pattern=_compiled(text))
    path = Path(text)
    if not _is_file(path):
        raise ValueError(f"there is no file {text!r}; use {FORMS}")
    return _read(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # longer than a name can be, or with a zero byte
        return False


def same_anywhere(text: str) -> str:
    """Roots as written, with the whole path of a file, so that they mean the same from every folder.

    >>> same_anywhere("/~*/"), same_anywhere("/lists/../lists/people.txt")
    ('/~*/', '/lists/people.txt')
    """
    return text if text in NAMED or "*" in text else str(Path(text).resolve())


def _compiled(pattern: str) -> re.Pattern[str]:
    names = pattern.strip("/").split("/")
    if not (pattern.startswith("/") and pattern.endswith("/") and all(names)):
        raise ValueError(f"{pattern!r} is no pattern of paths: it must begin and end with a slash, such as '/~*/'")
    wanted = "/".join(re.escape(name).replace(r"\*", "[^/]+") for name in names)
    return re.compile(rf"[^/]+(?:/[^/]+)*?/{wanted}(?=/|$)")


def _read(path: Path) -> Roots:
    """A list: one root per line, with or without a scheme; lines that begin with # are comments."""
    roots, n_bad = set(), 0
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as text: {error}") from None
    for line in filter(None, map(str.strip, lines)):
        if line.startswith("#"):
            continue
        try:
            roots.add(place_of(canonical(line if "://" in line else f"http://{line}")))
        except BadUrl:
            n_bad += 1
    if not roots:
        raise ValueError(f"{path} names no root; write one URL per line, such as foo.edu/~bar/")
    return Roots(str(path), frozenset(roots), n_bad=n_bad)


def place_of(url: str) -> str:
    """A canonical URL without what copies of one page differ in: scheme, ``www.``, query, index file, slash at the end.

    >>> place_of("https://www.foo.edu/~bar/index.html?x=1")
    'foo.edu/~bar'
    """
    place = url.partition("://")[2].partition("?")[0].removeprefix("www.")
    return re.sub("/{2,}", "/", _INDEX.sub("", place)).rstrip("/")


def site_names(url: pa.Array, roots: Roots) -> list[str | None]:
    """What the site of each canonical URL is called: its root, host or registered domain; None: it is under no root.

    >>> site_names(pa.array(["https://www.foo.edu/~bar/baz", "http://foo.edu/news"]), parse_roots("/~*/"))
    ['foo.edu/~bar', None]
    """
    if roots.spec not in NAMED:
        return [roots.root_of(each) for each in url.to_pylist()]
    hosts = [host_of(each) for each in url.to_pylist()]
    return [site(host) if roots.spec == "domain" else host for host in hosts]


@dataclass(frozen=True)
class Sites:
    """Where each of some pages belongs."""

    host: Ints  # small numbers
    site: Ints  # small numbers: pages under one root share one; pages under none have that of their registered domain
    depth: Ints  # names in the path below the root; 0: the homepage. An index file counts as its folder.
    is_inside: Flags  # under a root


def sites_of(url: pa.Array, roots: Roots = DOMAINS) -> Sites:
    """The host, the site and the depth of each canonical URL.

    >>> urls = ["http://foo.edu/~bar/", "https://www.foo.edu/~bar/baz", "http://foo.edu/~bar/baz/qux/quux", "http://foo.edu/news"]
    >>> sites = sites_of(pa.array(urls), parse_roots("/~*/"))
    >>> sites.site.tolist(), sites.depth.tolist(), sites.is_inside.tolist()
    ([0, 0, 0, 1], [0, 1, 3, 1], [True, True, True, False])
    """
    host, domain = hosts_and_sites(url)
    depth: Ints = path_depths(*letters(url)) if len(url) else np.zeros(0, np.int64)
    inside = np.ones(len(url), np.bool_)
    if roots.spec in NAMED:
        return Sites(host, domain if roots.spec == "domain" else host, depth, inside)
    found = site_names(url, roots)
    inside = np.array([root is not None for root in found], np.bool_)
    above = np.array([root.count("/") if root else 0 for root in found], np.int64)
    # No root begins with a space, so none can be mistaken for a domain.
    names = pa.array([root or f" {number}" for root, number in zip(found, domain.tolist(), strict=True)], pa.string())
    return Sites(host, indices(names.dictionary_encode()), depth - above, inside)
