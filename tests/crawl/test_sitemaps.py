"""Sitemaps, and the XML reader under them: what is read, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patience import growth
from recrawl.crawl.sitemaps import MAX_ENTRIES, Sitemap, read_sitemap, w3c_time
from recrawl.crawl.xml import Document, texts
from recrawl.errors import BadXml
from recrawl.web.urls import canonical

AT = "https://e.org/sitemap.xml"
NOW = datetime(2026, 3, 10, tzinfo=UTC)
ZONES = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def read(body: bytes | str, **options: object) -> Sitemap:
    return read_sitemap(body if isinstance(body, bytes) else body.encode(), AT, **{"now": NOW, **options})


def urlset(*urls: str) -> str:
    return '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">' + "".join(urls) + "</urlset>"


def url(loc: str, lastmod: str = "") -> str:
    return f"<url><loc>{loc}</loc>" + (f"<lastmod>{lastmod}</lastmod>" if lastmod else "") + "</url>"


def found(sitemap: Sitemap) -> list[str]:
    return [entry.url for entry in sitemap.entries]


def changed(lastmod: str) -> datetime | None:
    return read(urlset(url("https://e.org/", lastmod))).entries[0].changed_at


# -- what sitemaps say ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2025", datetime(2025, 1, 1)),
        ("2025-07", datetime(2025, 7, 1)),
        ("2025-07-09", datetime(2025, 7, 9)),
        ("2025-07-09T23:30Z", datetime(2025, 7, 9, 23, 30)),
        ("2025-07-09T23:30:15Z", datetime(2025, 7, 9, 23, 30, 15)),
        ("2025-07-09T23:30:15.5-02:30", datetime(2025, 7, 10, 2, 0, 15, 500_000)),
        ("2025-07-09T23:30:15.1234567+02:00", datetime(2025, 7, 9, 21, 30, 15, 123_456)),
        ("2025-07-09T23:30:15", datetime(2025, 7, 9, 23, 30, 15)),
        ("2025-07-09 23:30:15 +0100", datetime(2025, 7, 9, 22, 30, 15)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59)),
        ("\n 2025-07-09 ", datetime(2025, 7, 9)),
    ],
)
def test_a_date_is_read_in_every_precision_of_the_standard(text: str, time: datetime) -> None:
    assert changed(text) == time.replace(tzinfo=UTC)


@given(st.datetimes(datetime(1991, 1, 1), datetime(2026, 3, 1), timezones=ZONES))
def test_a_date_that_python_writes_is_read_back(time: datetime) -> None:
    assert w3c_time(time.isoformat()) == time


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "date that cannot be read"),
        ("2025-13-01", "date that cannot be read"),
        ("2025-02-30", "date that cannot be read"),
        ("2025-07-09T25:00Z", "date that cannot be read"),
        ("٢٠٢٥-٠٧-٠٩", "date that cannot be read"),
        ("2025-07-09T10:00+99:99", "date that cannot be read"),
        ("0001-01-01T00:00:00+05:00", "date that cannot be read"),
        ("2026-03-11T00:00:01Z", "date in the future"),
        ("9999-12-31", "date in the future"),
        ("1970-01-01", "date before the web"),
    ],
)
def test_an_implausible_date_is_counted_and_the_page_kept(text: str, reason: str) -> None:
    sitemap = read(urlset(url("https://e.org/", text)))
    assert sitemap.entries[0].changed_at is None
    assert sitemap.skipped == {reason: 1}


def test_a_date_less_than_a_day_ahead_is_kept() -> None:
    assert changed("2026-03-10T23:00:00Z") == datetime(2026, 3, 10, 23, tzinfo=UTC)


def test_pages_are_named_by_their_canonical_urls_in_the_order_of_the_file() -> None:
    sitemap = read(urlset(url("HTTPS://E.org:443/b?y=2&amp;utm_source=x"), url(" https://e.org/a#top \n")))
    assert found(sitemap) == ["https://e.org/b?y=2", "https://e.org/a"]


def test_other_hosts_of_the_site_count_and_other_sites_do_not() -> None:
    sitemap = read(
        urlset(url("https://www.e.org/"), url("http://e.org/"), url("https://e.com/"), url("https://f.org/"))
    )
    assert found(sitemap) == ["https://www.e.org/", "http://e.org/"]
    assert sitemap.skipped == {"of another site": 2}


def test_neighbours_on_a_shared_domain_are_other_sites() -> None:
    body = urlset(url("https://a.github.io/x"), url("https://b.github.io/x")).encode()
    assert found(read_sitemap(body, "https://a.github.io/sitemap.xml")) == ["https://a.github.io/x"]


def test_a_sitemap_that_robots_txt_names_counts_for_the_site_of_the_robots_txt() -> None:
    body = urlset(url("https://f.org/"), url("https://e.org/"))
    assert found(read(body, named_by="https://www.f.org/robots.txt")) == ["https://f.org/"]


def test_of_two_entries_for_one_page_the_later_change_counts() -> None:
    old, new, none = (url("https://e.org/", date) for date in ("2025-01-01", "2025-02-02", ""))
    for order in ((old, new, none), (none, new, old), (new, none, old)):
        sitemap = read(urlset(*order))
        assert [entry.changed_at for entry in sitemap.entries] == [datetime(2025, 2, 2, tzinfo=UTC)]
        assert sitemap.skipped == {"named twice": 2}


def test_an_index_names_sitemaps_with_their_changes() -> None:
    child = "<sitemap><loc>https://e.org/1.xml.gz</loc><lastmod>2025-05</lastmod></sitemap>"
    sitemap = read(f"<sitemapindex>{child}<sitemap><loc>https://f.org/2.xml</loc></sitemap></sitemapindex>")
    assert sitemap.entries == []
    assert [(entry.url, entry.changed_at) for entry in sitemap.children] == [
        ("https://e.org/1.xml.gz", datetime(2025, 5, 1, tzinfo=UTC))
    ]
    assert sitemap.skipped == {"of another site": 1}


def test_the_date_of_news_counts_where_there_is_no_lastmod() -> None:
    news = (
        "<n:news xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'><n:publication>…</n:publication>"
        "<n:publication_date>2025-05-05</n:publication_date></n:news>"
    )
    pages = read(
        urlset(f"<url><loc>https://e.org/a</loc>{news}</url>", f"{url('https://e.org/b', '2025-06')[:-6]}{news}</url>")
    )
    assert [entry.changed_at.month for entry in pages.entries if entry.changed_at] == [5, 6]


def test_images_and_translations_of_a_page_are_not_pages() -> None:
    extras = (
        "<i:image xmlns:i='i'><i:loc>https://e.org/p.png</i:loc></i:image>"
        "<x:link xmlns:x='x' rel='alternate' href='https://e.org/de'/><loc>https://e.org/a</loc>"
    )
    assert found(read(urlset(f"<url>{extras}</url>"))) == ["https://e.org/a"]


def test_a_namespace_that_is_missing_wrong_or_undeclared_does_not_matter() -> None:
    for body in (
        "<urlset><url><loc>https://e.org/</loc></url></urlset>",
        "<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'><url><loc>https://e.org/</loc></url></urlset>",
        "<s:urlset><s:url><s:loc>https://e.org/</s:loc></s:url></s:urlset>",
    ):
        assert found(read(body)) == ["https://e.org/"]


def test_entries_without_a_usable_url_are_counted() -> None:
    bodies = (
        "<url/>",
        url("  "),
        url("/relative"),
        url("ftp://e.org/"),
        url("https://e.org/" + "x" * 3000),
        url("https://["),
    )
    assert read(urlset(*bodies)).skipped == {"without a URL": 2, "not a URL": 3, "URL over 2,083 characters": 1}


def test_a_list_with_one_url_per_line_is_a_sitemap() -> None:
    sitemap = read("\ufeffhttps://e.org/a\r\n\r\nhttps://e.org/b\rhttps://f.org/\nnonsense\n")
    assert found(sitemap) == ["https://e.org/a", "https://e.org/b"]
    assert sitemap.skipped == {"of another site": 1, "not a URL": 1}


@given(st.lists(st.sampled_from("abc<>&\"'é 中%?=/"), max_size=12).map("".join))
def test_an_escaped_url_is_read_as_it_was_meant(path: str) -> None:
    address = f"https://e.org/x{path}x"
    assert found(read(urlset(url(escape(address))))) == [canonical(address)]


def test_an_index_whose_urls_are_not_in_loc_is_read() -> None:
    index = read("<sitemapindex><sitemap>\n https://e.org/a.xml\n</sitemap><sitemap>\n</sitemap></sitemapindex>")
    assert [child.url for child in index.children] == ["https://e.org/a.xml"]
    assert index.skipped == {"without a URL": 1}


@pytest.mark.parametrize("charset", ["utf-32", "utf-32-le", "utf-32-be"])
def test_a_sitemap_in_utf_32_is_read(charset: str) -> None:
    assert found(read(urlset(url("https://e.org/ж😀")).encode(charset))) == [canonical("https://e.org/ж😀")]


def test_a_wrong_byte_after_a_byte_order_mark_loses_nothing_but_itself() -> None:
    body = b"\xef\xbb\xbf" + urlset("<a>Espa\xf1a</a>", url("https://e.org/")).encode("latin-1")
    assert (found(read(body)), read(body).fault) == (["https://e.org/"], None)


def test_a_comment_before_the_xml_declaration_is_no_fault() -> None:
    sitemap = read("<!-- ours --><?xml version='1.0'?>" + urlset())
    assert (sitemap.entries, sitemap.fault) == ([], None)


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_entries_beyond_the_limit_of_the_protocol_are_cut_and_counted() -> None:
    addresses = [f"https://e.org/{n}" for n in range(MAX_ENTRIES + 7)]
    for body in (urlset(*map(url, addresses)), "\n".join(addresses), "\n".join(addresses) + "\n"):
        sitemap = read(body)
        assert found(sitemap) == addresses[:MAX_ENTRIES]
        assert sitemap.skipped == {"over 50,000 entries": 7}


def test_a_file_that_is_too_long_is_read_up_to_there() -> None:
    document = Document.of(urlset(*(url(f"https://e.org/{n}") for n in range(100))).encode(), max_bytes=1000)
    records = document.records("url")
    assert all(texts(next(records))["loc"] == f"https://e.org/{n}" for n in range(20))
    with pytest.raises(BadXml, match="it is longer than 1,000 bytes"):
        list(records)


def test_a_list_that_is_cut_does_not_end_with_half_a_url() -> None:
    packed = gzip.compress(b"https://e.org/a\nhttps://e.org/bcdefgh\nhttps://e.org/x", compresslevel=0)
    sitemap = read(packed[: packed.index(b"defgh")])
    assert found(sitemap) == ["https://e.org/a"]
    assert sitemap.fault == "its gzip compression is damaged or incomplete"


def bomb(size: int, head: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (
        packer.compress(head) + b"".join(packer.compress(b" " * (1 << 20)) for _ in range(size >> 20)) + packer.flush()
    )


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    packed = bomb(200 << 20)
    assert len(packed) < 1 << 18
    tracemalloc.start()
    document = Document.of(packed, max_bytes=1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert document.fault == "it is longer than 1,048,576 bytes"


def test_entries_before_the_limit_of_a_gzip_bomb_are_returned() -> None:
    sitemap = read(bomb(60 << 20, urlset(url("https://e.org/a"))[:-9].encode()))
    assert found(sitemap) == ["https://e.org/a"]
    assert sitemap.fault == "it is longer than 52,428,800 bytes"


def test_gzip_with_several_members_and_trailing_data_is_decompressed() -> None:
    body = urlset(url("https://e.org/a")).encode()
    assert found(read(gzip.compress(body[:20]) + gzip.compress(body[20:]) + b"behind")) == ["https://e.org/a"]


@pytest.mark.parametrize("length", [1, 5, 30, 60, 100])
def test_a_truncated_gzip_file_is_a_fault_but_no_crash(length: int) -> None:
    packed = gzip.compress(urlset(*(url(f"https://e.org/{n * 7919}") for n in range(99))).encode())
    with pytest.raises(BadXml, match=r"compression|neither"):
        read(packed[:length])


def test_too_many_elements_are_refused_after_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.crawl.xml.MAX_ELEMENTS", 1000)
    sitemap = read(urlset(url("https://e.org/a"), "<x/>" * 1000, url("https://e.org/b")))
    assert (found(sitemap), sitemap.fault) == (["https://e.org/a"], "it has more than 1,000 elements")


@pytest.mark.parametrize("depth", [63, 200, 5000, 200_000])
def test_elements_nested_too_deep_are_refused_after_what_was_read(depth: int) -> None:
    sitemap = read(urlset(url("https://e.org/a"), "<x>" * depth, "</x>" * depth, url("https://e.org/b")))
    assert found(sitemap) == (["https://e.org/a", "https://e.org/b"] if depth < 64 else ["https://e.org/a"])
    assert sitemap.fault == (None if depth < 64 else "it nests elements more than 64 deep")


def test_a_full_sitemap_takes_little_memory() -> None:
    body = urlset(*(url(f"https://e.org/{n}", "2025-05-05") for n in range(40_000))).encode()
    children = sum(1 for _ in Document.of(body).records("url"))
    assert children == 40_000
    largest = max(len(element.getparent()) for element in Document.of(body).records("url"))
    assert largest < 2000  # as many as one piece of the file holds, not all


# -- attacks ----------------------------------------------------------------------------------------------------------


def test_a_billion_laughs_are_not_expanded() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{laughs}]>' + urlset(url("https://e.org/&l9;"), url("https://e.org/b"))
    assert found(read(body)) == ["https://e.org/&l9;", "https://e.org/b"]


def test_entities_in_attributes_and_their_defaults_are_not_expanded() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f'<!DOCTYPE urlset [<!ENTITY l0 "lol">{laughs}<!ATTLIST url x CDATA "&l9;">]>' + urlset(
        '<url x="&l9;"><loc>https://e.org/a</loc></url>'
    )
    assert len(next(Document.of(body.encode()).records("url")).get("x")) < 10


def test_one_long_entity_named_many_times_does_not_blow_up() -> None:
    body = f'<!DOCTYPE urlset [<!ENTITY a "{"a" * 50_000}">]>' + urlset(
        url("https://e.org/" + "&a;" * 50_000), url("https://e.org/b")
    )
    sitemap = read(body)
    assert found(sitemap) == ["https://e.org/b"]
    assert sitemap.skipped == {"URL over 2,083 characters": 1}


def test_parameter_entities_are_not_expanded() -> None:
    laughs = "".join(f"<!ENTITY % l{n} '{f'&#37;l{n - 1};' * 10}'>" for n in range(1, 10))
    body = f"<!DOCTYPE urlset [<!ENTITY % l0 '<!ENTITY x \"\">'>{laughs}%l9;]>" + urlset(url("https://e.org/a"))
    with pytest.raises(BadXml, match=r"No sitemap at https://e.org/sitemap.xml: "):
        read(body)


@pytest.mark.timeout(600)  # opening the pipe would wait for ever for a writer
@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE urlset SYSTEM "{file}">',
        '<!DOCTYPE urlset [<!ENTITY a SYSTEM "{file}">]>',
        '<!DOCTYPE urlset [<!ENTITY % b SYSTEM "{file}">%b;]>',
        '<?xml-stylesheet href="{file}"?>',
    ],
)
def test_no_other_file_is_opened(tmp_path: Path, head: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    include = '<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{file}"/>'
    body = head + urlset("&a;", include, url("https://e.org/&a;"))
    assert found(read(body.replace("{file}", pipe.as_uri()))) == ["https://e.org/&a;"]


@pytest.mark.parametrize("opening", ["<![CDATA[", "<!--", "&", "&#", "<x ", "<x b<x ", "<x a='", "<x:", "<?x ", "<!"])
def test_many_tags_that_are_never_closed_cost_time_proportional_to_their_bytes(opening: str) -> None:
    def read_openings(n: int) -> None:
        assert found(read(urlset(url("https://e.org/a"), opening * n))) == ["https://e.org/a"]

    assert growth(read_openings, 10_000, 200_000) < 5  # 20 if it grew with the square


def test_too_many_ampersands_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.crawl.xml.MAX_REFERENCES", 1000)
    sitemap = read(urlset(url("https://e.org/a?b&c"), "&" * 1000, url("https://e.org/b")))
    assert (found(sitemap), sitemap.fault) == (["https://e.org/a?b&c"], "it has more than 1,000 ampersands")


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_file_truncated_anywhere_gives_its_complete_entries_and_a_fault() -> None:
    body = urlset(url("https://e.org/a"), url("https://e.org/bcd", "2025-05-05")).encode()
    first = body.index(b"</url>") + len(b"</url>")
    for length in range(first, len(body)):
        sitemap = read(body[:length])
        is_whole = length >= len(body) - len(b"</urlset>")
        assert found(sitemap) == ["https://e.org/a", "https://e.org/bcd"][: 1 + is_whole]
        assert sitemap.fault == f"it breaks off after {sitemap_elements(body[:length])} elements"


def sitemap_elements(body: bytes) -> int:
    return len(re.findall(rb"<[a-z][^>]*>", body))


def test_a_fault_in_the_middle_keeps_what_is_before_it_and_is_reported_with_its_line() -> None:
    sitemap = read(urlset(url("https://e.org/a"), "\n\n<url lang=de></url>", url("https://e.org/b")))
    assert found(sitemap) == ["https://e.org/a"]
    assert sitemap.fault
    assert sitemap.fault.startswith("XML fault in line 3: ")


def test_an_extra_end_tag_is_reported_as_a_fault() -> None:
    sitemap = read(urlset(url("https://e.org/a"), "</x>", url("https://e.org/b")))
    assert sitemap.fault
    assert "XML fault in line 1: Opening and ending tag mismatch" in sitemap.fault


def test_data_after_the_end_is_not_a_fault() -> None:
    sitemap = read(urlset(url("https://e.org/a")) + "\n<script>1</script> & more")
    assert (found(sitemap), sitemap.fault) == (["https://e.org/a"], None)


def test_bare_ampersands_brackets_and_control_characters_are_repaired() -> None:
    sitemap = read(
        urlset(url("https://e.org/?a=1&b=2&copy=3&amp;d=4"), url("https://e.org/\x0bx\x00&#11;&#65;&eacute;&LT;<"))
    )
    assert found(sitemap) == ["https://e.org/?a=1&b=2&copy=3&d=4", "https://e.org/xA%C3%A9%3C%3C"]


def test_cdata_and_comments_are_read_literally() -> None:
    sitemap = read(urlset(url("<![CDATA[https://e.org/?a=1&b=2&amp;c]]>"), url("https://e.org/<!-- & <url> -->x")))
    assert found(sitemap) == ["https://e.org/?a=1&amp;c&b=2", "https://e.org/x"]


@pytest.mark.parametrize("mark", ["\ufeff", "\n \t", "\ufeff\n", ""])
def test_data_before_the_declaration_does_not_matter(mark: str) -> None:
    assert found(read(mark + "<?xml version='1.0' encoding='utf-8'?>" + urlset(url("https://e.org/")))) == [
        "https://e.org/"
    ]


@pytest.mark.parametrize(
    ("declared", "used", "charset"),
    [
        (None, "utf-8", None),
        ("utf-8", "utf-8", "koi8-r"),
        ("UTF-8", "utf-8-sig", None),
        ("utf-16", "utf-16", None),
        ("utf-16", "utf-16-le", None),
        ("utf-16", "utf-16-be", None),
        ("iso-8859-1", "latin-1", "utf-8"),
        ("windows-1252", "cp1252", None),
        ("iso-8859-1", "utf-8", None),
        ("us-ascii", "utf-8", None),
        ("utf-16", "utf-8", None),
        ("no-such", "utf-8", None),
        ("punycode", "utf-8", None),
        ("utf-8", "cp1252", None),
        ("utf-8", "latin-1", "iso-8859-1"),
        (None, "cp1252", None),
        ("no-such", "cp1252", "no-such-either"),
        ("gbk", "utf-8", None),
    ],
)
def test_the_charset_is_detected_whatever_the_labels_say(declared: str | None, used: str, charset: str | None) -> None:
    head = f"<?xml version='1.0' encoding='{declared}'?>" if declared else ""
    body = (head + urlset(url("https://e.org/été"))).encode(used)
    assert found(read(body, charset=charset)) == ["https://e.org/%C3%A9t%C3%A9"]


def test_the_http_header_counts_if_the_declaration_is_wrong() -> None:
    body = ("<?xml version='1.0' encoding='utf-8'?>" + urlset(url("https://e.org/мир"))).encode("cp1251")
    assert found(read(body, charset="windows-1251")) == [canonical("https://e.org/мир")]


def test_a_character_cut_off_at_the_end_does_not_change_the_charset() -> None:
    assert found(read(urlset(url("https://e.org/é"))[:-9].encode() + "é".encode()[:1])) == ["https://e.org/%C3%A9"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is empty"),
        (b" \r\n", "it is empty"),
        (gzip.compress(b"", mtime=0), "it is empty"),
        (b"<!DOCTYPE html><html><body><p>Not found<br>", "it begins with <html>"),
        (b"<html><url><loc>https://e.org/</loc></url></html>", "it begins with <html>"),
        (b"<rss/>", "it begins with <rss>"),
        (b"404 page not found", "it is neither XML nor a list of URLs"),
        (b"%PDF-1.7\n%\xe2\xe3", "it is neither XML nor a list of URLs"),
        (b"<?xml version='1.0'?>", "it has no elements"),
        (b"<!-- nothing", "it has no elements"),
    ],
)
def test_a_file_that_is_not_a_sitemap_is_refused_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadXml) as refused:
        read(body)
    assert str(refused.value) == f"No sitemap at https://e.org/sitemap.xml: {reason}."


def test_a_sitemap_without_entries_is_not_a_fault() -> None:
    assert read("<urlset/>") == Sitemap([], [], read("<urlset/>").skipped)


_PIECES = st.sampled_from([
    b"<urlset>", b"</urlset>", b"<url>", b"</url>", b"<loc>", b"</loc>", b"https://e.org/", b"<lastmod>", b"</lastmod>",
    b"2025-01-01", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&", b"&amp;", b"&#0;", b"\xff", b"\0", b"\xef\xbb\xbf", b"<?xml ",
    b"encoding='utf-16'", b"?>", b"<!DOCTYPE x [", b"]>", b"<!ENTITY a 'b'>", b"\x1f\x8b", b"\n", b"<x:y z='", b"'/>",
])  # fmt: skip


@given(st.lists(_PIECES | st.binary(max_size=9), max_size=30).map(b"".join))
def test_no_bytes_raise_anything_but_the_refusal(body: bytes) -> None:
    for data in (body, b"<urlset>" + body, gzip.compress(body)):
        with suppress(BadXml):
            assert all(entry.url == canonical(entry.url) for entry in read(data).entries)
