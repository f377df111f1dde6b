"""What is read from a fetched body."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from making import AT
from patience import growth
from recrawl.errors import BadRecord
from recrawl.history import BatchBuilder
from recrawl.web import html as parse
from recrawl.web.visit import Visit
from slow_terms import term_counts

URL = "https://e.org/a/b"


def decoded(body: bytes, content_type: str) -> str:
    return parse.as_utf8(body, content_type).decode("utf-8", "replace")


def read(html: str | bytes, content_type: str | None = "text/html; charset=utf-8", **more: str) -> parse.ParsedPage:
    return parse.page(html.encode() if isinstance(html, str) else html, content_type, URL, **more)


def resolved(page: parse.ParsedPage) -> list[str]:
    """The links as the history will know them, apart from the page itself."""
    builder = BatchBuilder()
    builder.add(Visit(url=URL, at=AT, links=page.hrefs, base=page.base))
    return sorted(url for url in builder.take()["urls"]["url"].to_pylist() if url != URL)


# -- links ------------------------------------------------------------------------------------------------------------


def test_outlinks_are_those_of_a_and_area_in_document_order() -> None:
    page = read(
        "<map><area href='/map'></map><a href='x'>1</a><link href='/no'><img src='/no'><a name='no'><a href='//f.org/y'>"
    )
    assert page.hrefs == ["/map", "x", "//f.org/y"]
    assert resolved(page) == ["https://e.org/a/x", "https://e.org/map", "https://f.org/y"]


def test_links_that_lead_to_no_page_are_left_out() -> None:
    hrefs = [
        "#top",
        " javascript:void(0)",
        "JavaScript:x",
        "data:text/html,<p>",
        "mailto:a@b",
        "tel:1",
        "",
        "ftp://e.org/x",
        "http://[",
    ]
    page = read("".join(f"<a href='{href}'>x</a>" for href in [*hrefs, "/kept"]))
    assert resolved(page) == ["https://e.org/kept"]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/x/y", ["https://e.org/r", "https://e.org/x/b.html"]),
        ("https://f.org", ["https://f.org/b.html", "https://f.org/r"]),
        ("//f.org/d/", ["https://f.org/d/b.html", "https://f.org/r"]),
        ("../up/", ["https://e.org/r", "https://e.org/up/b.html"]),
        *((bad, ["https://e.org/a/b.html", "https://e.org/r"]) for bad in ("javascript:void(0)", "about:blank", "data:x", "http://[")),
        ("", ["https://e.org/a/b.html", "https://e.org/r"]),
    ],
)  # fmt: skip
def test_links_are_resolved_against_the_base_if_it_is_one(base: str, expected: list[str]) -> None:
    assert resolved(read(f"<base href='{base}'><a href='b.html'>x</a><a href='/r'>y</a>")) == expected


def test_a_base_counts_wherever_it_is_and_the_first_one_counts() -> None:
    assert resolved(read("<div><base href='/x/'></div><a href='b'>1</a>")) == ["https://e.org/x/b"]
    assert resolved(read("<base href='/x/'><p><base href='/y/'><a href='b'>1</a>")) == ["https://e.org/x/b"]
    assert resolved(read("<base href><base href='/y/'><a href='b.html'>1</a>")) == ["https://e.org/a/b.html"]
    assert resolved(read("<template><base href='/x/'></template><a href='c'>1</a>")) == ["https://e.org/a/c"]


def test_a_link_that_names_another_host_across_a_tab_leads_there() -> None:
    assert resolved(read("<a href='/&#9;/f.org/x'>1</a>")) == ["https://f.org/x"]


def test_links_of_a_visit_resolve_against_a_base_without_a_path() -> None:
    builder = BatchBuilder()
    builder.add(Visit(url="https://e.org/", at=AT, links=["b", "/c"], base="https://e.org"))
    assert {"https://e.org/b", "https://e.org/c"} < set(builder.take()["urls"]["url"].to_pylist())


def test_the_query_of_a_link_is_in_the_charset_of_its_page() -> None:
    body = "<a href='/é?q=é€œ&r=1 2#é'>x</a>".encode("iso-8859-15")
    assert resolved(read(body, "text/html; charset=iso-8859-15")) == ["https://e.org/%C3%A9?q=%E9%A4%BD&r=1%202"]
    assert resolved(read("<a href='/?q=中'>x</a>".encode(), "text/html; charset=utf-8")) == [
        "https://e.org/?q=%E4%B8%AD"
    ]
    assert resolved(read(b"<a href='/?q=&#20013;'>x</a>", "text/html; charset=iso-8859-1")) == [
        "https://e.org/?q=%26%2320013%3B"
    ]


def test_html_of_a_page_without_a_path_resolves_below_its_host() -> None:
    page = parse.html_page("<a href='b.html'>x</a>", "https://e.org")
    assert page.base == "https://e.org/"


def test_the_location_of_a_redirect_is_an_outlink() -> None:
    assert resolved(read("", location="/new")) == ["https://e.org/new"]
    assert resolved(read(b"\x89PNG", "image/png", location="../new")) == ["https://e.org/new"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=/new", ["/new"]),
        ("5;URL='https://f.org/a'", ["https://f.org/a"]),
        ('5, url = "x"', ["x"]),
        ("3 /new", ["/new"]),
        ("0;url=/it's", ["/it's"]),
        ("0;url='/new'; more", ["/new"]),
        ("3x", []),
        ("30", []),  # reloads itself
        ("300;", []),
        ("1.5 ; ", []),
        ("", []),
    ],
)
def test_a_refresh_is_an_outlink_if_it_names_a_place(content: str, expected: list[str]) -> None:
    assert read(f"<meta http-equiv='Refresh' content='{content.replace(chr(39), '&#39;')}'>").hrefs == expected


def test_a_refresh_in_the_body_is_an_outlink() -> None:
    assert read("<p>Moved<meta http-equiv=refresh content='0;url=/new'>").hrefs == ["/new"]


# -- text -------------------------------------------------------------------------------------------------------------


def test_visible_text_has_no_script_style_template_or_noscript() -> None:
    hidden = "".join(f"<{tag}>no</{tag}>" for tag in ("script", "style", "template", "noscript"))
    page = read(
        f"<head><title> The\n title </title></head><body>One{hidden}<p>two \n <b>three</b><!-- no --></p></body>"
    )
    assert page.title == "The title"
    assert (page.text or "").split() == ["One", "two", "three"]
    assert page.text_bytes == len("One two three")


def test_sizes_are_bytes_of_the_body_and_of_the_text() -> None:
    body = "<p>naïve €</p>".encode("cp1252")
    page = parse.page(body, "text/html; charset=windows-1252", URL)
    assert (page.content_bytes, page.text, page.text_bytes) == (len(body), "naïve €", len("naïve €".encode()))


def digest(html: str) -> str | None:
    return read(html).text_digest


def test_the_text_digest_changes_with_the_text_but_not_with_links() -> None:
    before = digest("<p>Some words</p><a href='/a'>first</a> <a href='/b'>second</a>")
    assert digest("<p>Some  words</p>\n<a href='/c'>other</a>") == before
    assert digest("<p>Some words</p>") == before
    assert digest("<p>Some other words</p><a href='/a'>first</a> <a href='/b'>second</a>") != before
    assert digest("<script>x = 1</script><p>Some words</p>") == digest("<script>x = 2</script><p>Some words</p>")


@pytest.mark.parametrize(
    "content_type", ["image/png", "application/pdf", "text/plain", "application/json; charset=utf-8"]
)
def test_what_is_not_html_has_a_digest_and_no_links(content_type: str) -> None:
    body = b"<html><a href='/x'>not a link here</a>"
    page = read(body, content_type)
    assert (page.hrefs, page.text, page.title, page.content_bytes) == (None, None, None, len(body))
    assert page.text_digest == read(body, "font/woff").text_digest != read(body + b" ", "font/woff").text_digest


@pytest.mark.parametrize("content_type", [None, "", "unk", "application/unknown"])
def test_an_unnamed_type_is_detected_from_the_beginning(content_type: str | None) -> None:
    assert read(b"\n<!DOCTYPE html><a href='/x'>x</a>", content_type).hrefs == ["/x"]
    assert read(b"%PDF-1.7 <a href='/x'>", content_type).hrefs is None


# -- charsets ---------------------------------------------------------------------------------------------------------

WORD = "žluťoučký kůň"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (WORD.encode("iso-8859-2"), "text/html; charset=ISO-8859-2"),
        (WORD.encode("cp1250"), 'text/html;charset="windows-1250"'),
        (b"<meta charset=cp1250>" + WORD.encode("cp1250"), "text/html"),
        (b"<META http-equiv=content-type content='text/html; charset=windows-1250'>" + WORD.encode("cp1250"), None),
        (b"\xef\xbb\xbf" + WORD.encode(), "text/html; charset=iso-8859-1"),  # a mark beats the header
        (b"\xff\xfe" + WORD.encode("utf-16-le"), "text/html"),
        (b"\xfe\xff" + WORD.encode("utf-16-be"), "text/html; charset=utf-8"),
        (WORD.encode("utf-16-le"), "text/html; charset=utf-16"),
        (WORD.encode(), "text/html"),
        (WORD.encode(), "text/html; charset=no-such-charset"),
        (b"<meta charset=utf-16>" + WORD.encode(), "text/html"),  # could not have been read if it were true
        (b"<meta charset='nonsense'>" + WORD.encode(), "text/html"),
    ],
)
def test_the_charset_comes_from_mark_header_or_meta(body: bytes, content_type: str | None) -> None:
    assert decoded(body, content_type).endswith(WORD)


def test_bytes_that_are_not_utf8_are_windows_1252_where_nothing_is_declared() -> None:
    assert decoded("“naïve”".encode("cp1252"), "text/html") == "“naïve”"
    assert decoded("“naïve”".encode("cp1252"), "text/html; charset=ISO-8859-1") == "“naïve”"  # as browsers read it


@pytest.mark.parametrize(
    "label", ["undefined", "rot13", "hex", "utf-7", "unicode_escape", "zlib", "idna", "punycode", "mbcs", "cp037"]
)
def test_labels_of_codecs_that_are_no_charsets_are_ignored(label: str) -> None:
    assert decoded(b"a+AGE-\\u0041", f"text/html; charset={label}") == "a+AGE-\\u0041"


@pytest.mark.parametrize(
    "label", ["x-sjis", "windows-31j", "x-gbk", "x-x-big5", "x-cp1251", "windows-874", "x-mac-cyrillic"]
)
def test_labels_that_only_browsers_know_are_known(label: str) -> None:
    assert parse._codec(label) is not None


def test_a_wrong_charset_loses_letters_and_nothing_else() -> None:
    page = read("<p>déjà</p><a href='/x'>vu</a>".encode("latin-1"), "text/html; charset=utf-8")
    assert page.hrefs == ["/x"]
    assert "\N{REPLACEMENT CHARACTER}" in (page.text or "")


def test_a_label_behind_a_million_blanks_is_found_at_once() -> None:
    assert growth(lambda n: decoded(b"x", "text/html; charset=" + " " * n), 100_000, 1_000_000) < 4


# -- pages made to stall ----------------------------------------------------------------------------------------------

TAGS = """
a b p div span font ul li dd table td th tbody caption select option optgroup button form h1 pre svg math foreignObject
ruby rt nobr template noscript object section details frameset iframe textarea title script x-y br body
"""


def is_read_or_refused(html: str) -> bool:
    try:
        read(html)
    except BadRecord as error:
        return error.reason == "too costly to parse"
    return True


@pytest.mark.parametrize("tag", TAGS.split())
def test_a_hundred_thousand_nested_tags_are_read_or_refused_in_time_proportional_to_them(tag: str) -> None:
    def read_both(n: int) -> None:
        assert is_read_or_refused(f"<{tag}>" * n)
        assert is_read_or_refused(f"<{tag}>" * n + f"</{tag}>" * n)

    assert growth(read_both, 5_000, 100_000) < 5  # 20 if it grew with the square


@pytest.mark.parametrize(
    "pattern",
    [
        "<dd><li>",
        "<ol><li>",
        "<dt><h1>",
        "<ul><form><dt>",
        "<p><font size={}>",
        "<b id={}>",
        "<a href={}><table>",
        "<div id={}><p>",
    ],
)
def test_tags_nested_by_turns_are_read_or_refused_in_time_proportional_to_them(pattern: str) -> None:
    def read_nested(n: int) -> None:
        assert is_read_or_refused("".join(pattern.format(i) for i in range(n)))

    assert growth(read_nested, 2_500, 50_000) < 5  # 20 if it grew with the square


def test_a_tag_with_a_million_attributes_is_refused() -> None:
    with pytest.raises(BadRecord, match="too costly"):
        read("<div " + " ".join(f"a{i}=1" for i in range(1_000_000)) + ">")


def test_large_ordinary_pages_are_read() -> None:
    drawing = "<svg>" + "<path d='M0 0'/>" * 60_000 + "</svg>"
    items = "<ul>" + "<li>one <b>two</b>" * 30_000 + "</ul>"
    code = "<script>" + "x = '<div>';" * 60_000 + "</script><!-- " + "<div>" * 60_000 + " -->"
    cells = "<table>" + "<tr><td>1<td>2" * 30_000 + "</table>"
    rows = "<div><p>words</p><img src=data:x></div>" * 30_000
    picture = "<img src='data:image/png;base64," + "A" * 3_000_000 + "'>"
    for html in (drawing, items, code, cells, rows, picture):
        assert read(html + "<a href='/last'>x</a>").hrefs == ["/last"]


@given(
    st.binary(max_size=400),
    st.sampled_from([None, "text/html", "text/html; charset=utf-16", "text/html; charset=big5"]),
)
def test_any_bytes_can_be_read(body: bytes, content_type: str | None) -> None:
    page = read(body, content_type)
    assert page.content_bytes == len(body)
    resolved(page)


PIECES = st.sampled_from(
    ["<a href='", "/x'>", "</a>", "<base href=", "<p>", "\0", "é", "&#xD800;", "<!--", "-->", "<script>", "</script>", "<svg>",
     "<title>", "<meta http-equiv=refresh content='", "<template>", "]]>", "<table><a href=y>", "javascript:", "\U0001f600", ">",
     "'", "<body>"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=30))
def test_any_soup_of_tags_can_be_read(pieces: list[str]) -> None:
    page = read("".join(pieces))
    assert page.text is not None
    resolved(page)


# -- text quality -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_text_quality_lies_between_0_and_1(vocabulary: int, more: int) -> None:
    assert 0 <= parse.text_quality(vocabulary, vocabulary + more) <= 1


def test_text_quality_is_highest_where_heaps_law_expects_the_vocabulary() -> None:
    expected = parse.HEAPS_K * 1000**parse.HEAPS_BETA
    values = [parse.text_quality(v, 1000) for v in range(1, 1001)]
    assert abs(values.index(max(values)) + 1 - expected) <= 1
    assert math.isclose(parse.text_quality(0, 0), 0)


@given(st.text(st.characters(max_codepoint=0x0DFF), max_size=200))
def test_words_are_counted_as_by_hand(text: str) -> None:
    words: Counter[str] = Counter()
    word = ""
    for character in text.lower() + " ":
        if character.isalnum() or character == "_":
            word += character
        else:
            if len(word) >= 3 and not word.isdigit():
                words[word] += 1
            word = ""
    assert term_counts(text) == words
