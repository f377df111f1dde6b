"""Every tree-construction case of the web platform tests, against the links and the text that recrawl reads.

Few of the cases have links, so every `<a>`, `<area>` and `<base>` is also given one. A case that differs from the expected tree is
of one of the kinds `LISTED`, with its reason and the number of such cases, or it fails.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from recrawl.web.html import html_page
from shared_data import DATA, MISSING

FILE = DATA / "conformance" / "html_tree_dat.jsonl.gz"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason=MISSING)

PAGE, LINK = "https://e.org/a/b", "/given"
SECTIONS = {"data", "errors", "new-errors", "document-fragment", "script-on", "script-off", "document"}
HIDDEN = {"script", "style", "template", "noscript"}

#: Kind of difference → (why it differs, number of cases).
LISTED = {
    "fragment": ("pieces that a script puts into a page; read as whole pages, some of them mean something else", 11),
    "script": ("the tree after a script has run, or where <noscript> is text; recrawl runs no scripts", 10),
    "parser": ("lexbor keeps the body that a frameset should replace, if there is a NUL in a drawing before it", 2),
}


@dataclass
class Case:
    data: str
    expected: list[Node]
    kind: str | None  # of LISTED, if it may differ


@dataclass
class Node:
    """An element of an expected tree, or a text: then its name is empty."""

    name: str
    inside: list[str]  # names of its ancestors
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


# -- reading the cases --------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    with gzip.open(FILE, "rt", encoding="ascii") as lines:
        for line in lines:
            for sections in split(b64decode(json.loads(line)["base64"]).decode()):
                data = "\n".join(sections["data"])
                yield Case(data, list(nodes(sections["document"])), kind_of(data, sections))


def split(text: str) -> list[dict[str, list[str]]]:
    found: list[dict[str, list[str]]] = []
    for line in text.split("\n"):
        if line == "#data":
            found.append({})
        if line.startswith("#") and line[1:] in SECTIONS:
            section = found[-1].setdefault(line[1:], [])
        else:
            section.append(line)
    return found


def kind_of(data: str, sections: dict[str, list[str]]) -> str | None:
    if "document-fragment" in sections:
        return "fragment"
    if "script-on" in sections:
        return "script"
    return "parser" if re.fullmatch(r"<svg>\0 ?</svg><frameset>", data) else None


def nodes(lines: list[str]) -> Iterator[Node]:
    """The nodes of an expected tree in document order; comments, doctypes and processing instructions are left out."""
    open_nodes: list[Node] = []
    # A line that does not begin with a bar goes on with a text or an attribute.
    for entry in re.findall(r"^\| (.*(?:\n(?!\| ).*)*)", "\n".join(lines), re.MULTILINE):
        content = entry.lstrip(" ")
        depth = (len(entry) - len(content)) // 2
        inside = [node.name for node in open_nodes[:depth]]
        if content.startswith('"'):
            yield Node("", inside, text=content.strip("\n")[1:-1])
        elif element := re.fullmatch(r"<(?![!?])(.+)>\n*|(content)\n*", content):
            node = Node(element[1] or "content", inside)
            open_nodes[depth:] = [node]
            yield node
        elif attribute := re.fullmatch(r'([^<"=][^=]*)="(.*)"\n*', content, re.DOTALL):
            open_nodes[depth - 1].attributes[attribute[1]] = attribute[2]


# -- what the expected tree shows ---------------------------------------------------------------------------------------


def elements(case: Case, *names: str) -> Iterator[Node]:
    """Elements of a page, of drawings in it, too; what is in a template is not part of the page."""
    return (
        node
        for node in case.expected
        if node.name.split(" ")[-1] in names and node.name and "content" not in node.inside
    )


def links(case: Case) -> list[str]:
    hrefs = [node.attributes.get("href", "") for node in elements(case, "a", "area")]
    return [href for href in hrefs if href and not href.startswith(("#", "javascript:"))]


def visible(case: Case) -> str:
    is_piece = case.kind == "fragment"
    texts = (node for node in case.expected if not node.name and (is_piece or "body" in node.inside[:2]))
    return "".join("".join(node.text for node in texts if not HIDDEN & set(node.inside)).split())


def given_links(data: str) -> str:
    return re.sub(r"<(a|area|base)(?=[\s/>])", rf"<\1 href={LINK}", data, flags=re.IGNORECASE)


def differences(case: Case) -> set[str]:
    as_it_is, linked = html_page(case.data, PAGE), html_page(given_links(case.data), PAGE)
    has_base = any(elements(case, "base"))
    compared = {
        "links": (as_it_is.hrefs, links(case)),
        "given links": (linked.hrefs, [LINK] * len(list(elements(case, "a", "area")))),
        "base": (linked.base, f"https://e.org{LINK}" if has_base else PAGE),
        "text": ("".join((as_it_is.text or "").split()), visible(case)),
    }
    return {name for name, (read, expected) in compared.items() if read != expected}


def test_links_and_text_are_those_of_the_expected_trees() -> None:
    differ: Counter[str | None] = Counter()
    n, wrong = 0, []
    tried: Counter[str] = Counter()
    for case in cases():
        n += 1
        tried.update(name for name in ("a", "area", "base") if any(elements(case, name)))
        tried["text"] += bool(visible(case))
        if what := differences(case):
            differ[case.kind] += 1
            wrong += [(case.data, what)] if case.kind is None else []
    print(
        f"{n} pages: {n - differ.total()} equal, {differ.total()} differ as listed: {dict(differ)}; with {dict(tried)}"
    )
    assert wrong == []
    assert n == 1936
    assert differ == {kind: number for kind, (_, number) in LISTED.items()}
