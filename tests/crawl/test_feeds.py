"""Feeds of all versions: which pages, and when."""

from __future__ import annotations

import gzip
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.feeds import ParsedFeed, feed_time, kind_of, read_feed
from recrawl.errors import BadXml
from recrawl.web.urls import canonical

AT = "https://e.org/blog/feed.xml"
NOW = datetime(2026, 3, 10, tzinfo=UTC)
ZONES = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def read(body: bytes | str) -> ParsedFeed:
    return read_feed(body if isinstance(body, bytes) else body.encode(), AT, now=NOW)


def rss(*items: str, channel: str = "") -> str:
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>T</title>{channel}{"".join(items)}</channel></rss>'


def atom(*entries: str, of: str = "") -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom"{of}>{"".join(entries)}</feed>'


def rdf(*items: str) -> str:
    spaces = (
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    channel = "<channel><link>https://e.org/</link><dc:date>2026-02-03T00:00:00Z</dc:date></channel>"
    return f"<rdf:RDF {spaces}>{channel}{''.join(items)}</rdf:RDF>"


def pages(feed: ParsedFeed) -> list[tuple[str, str | None]]:
    return [(entry.url, entry.changed_at and f"{entry.changed_at:%Y-%m-%dT%H:%M}") for entry in feed.entries]


def link(body: str) -> str | None:
    return next((entry.url for entry in read(body).entries), None)


# -- the versions -----------------------------------------------------------------------------------------------------


def test_rss_2_gives_links_dates_and_when_it_was_built() -> None:
    feed = read(
        rss(
            "<item><link>https://e.org/a</link><pubDate>Sun, 01 Mar 2026 10:00:00 +0100</pubDate></item>",
            "<item><pubDate>Mon, 02 Mar 2026 10:00:00 GMT</pubDate><guid>https://e.org/b</guid></item>",
            channel="<link>https://e.org/</link><pubDate>Sun, 01 Feb 2026 00:00:00 GMT</pubDate>"
            "<lastBuildDate>Tue, 03 Mar 2026 00:00:00 GMT</lastBuildDate>",
        )
    )
    assert pages(feed) == [("https://e.org/a", "2026-03-01T09:00"), ("https://e.org/b", "2026-03-02T10:00")]
    assert feed.updated_at == datetime(2026, 3, 3, tzinfo=UTC)


def test_rss_1_gives_links_and_dates_of_items_beside_the_channel() -> None:
    feed = read(
        rdf(
            '<item rdf:about="https://e.org/x"><link>https://e.org/a</link><dc:date>2026-03-01T10:00+01:00</dc:date></item>',
            '<item rdf:about="https://e.org/b"/>',
        )
    )
    assert pages(feed) == [("https://e.org/a", "2026-03-01T09:00"), ("https://e.org/b", None)]
    assert feed.updated_at == datetime(2026, 2, 3, tzinfo=UTC)


def test_rss_0_91_with_its_document_type_gives_links() -> None:
    dtd = '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">'
    assert (
        link(f"{dtd}<rss version='0.91'><channel><item><link>https://e.org/a</link></item></channel></rss>")
        == "https://e.org/a"
    )


def test_atom_gives_the_later_of_published_and_updated() -> None:
    feed = read(
        atom(
            "<updated>2026-03-05T00:00:00Z</updated>",
            "<entry><link href='https://e.org/a'/><published>2026-03-01T10:00:00Z</published>"
            "<updated>2026-03-02T10:00:00.5+01:00</updated><source><updated>2026-03-04T00:00:00Z</updated></source></entry>",
        )
    )
    assert pages(feed) == [("https://e.org/a", "2026-03-02T09:00")]
    assert feed.updated_at == datetime(2026, 3, 5, tzinfo=UTC)


def test_old_atom_dates_count_as_well() -> None:
    feed = read(
        "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><entry><link rel='alternate' href='https://e.org/a'/>"
        "<issued>2026-03-01T10:00:00Z</issued><modified>2026-03-02T10:00:00Z</modified></entry></feed>"
    )
    assert pages(feed) == [("https://e.org/a", "2026-03-02T10:00")]


# -- which page an entry is about -------------------------------------------------------------------------------------


def test_of_several_links_the_alternate_one_is_the_page() -> None:
    links = (
        '<link rel="self" href="/self"/><link rel="enclosure" href="/a.mp3"/><link rel="replies" href="/c"/>'
        '<link rel="alternate" href="/a"/><link href="/later"/>'
    )
    assert link(atom(f"<entry>{links}</entry>")) == "https://e.org/a"


def test_a_guid_is_the_page_only_if_there_is_no_link_and_it_can_be_visited() -> None:
    for item, page in {
        "<link>https://e.org/a</link><guid>https://e.org/b</guid>": "https://e.org/a",
        "<link/><guid>https://e.org/b</guid>": "https://e.org/b",
        "<guid isPermaLink='true'>https://e.org/b</guid>": "https://e.org/b",
        "<guid isPermaLink='false'>https://e.org/b</guid>": None,
        "<guid>12345</guid>": None,
        "<guid>tag:e.org,2026:1</guid>": None,
        "<title>neither</title>": None,
    }.items():
        feed = read(rss(f"<item>{item}</item>"))
        assert [entry.url for entry in feed.entries] == ([page] if page else [])
        assert feed.skipped == ({} if page else {"without a URL": 1})


def test_relative_links_are_resolved_against_the_feed_or_the_nearest_base() -> None:
    for body, page in {
        rss("<item><link>a</link></item>"): "https://e.org/blog/a",
        rss("<item><link>\n/a\n</link></item>"): "https://e.org/a",
        rss("<item><link>?p=1</link></item>"): "https://e.org/blog/feed.xml?p=1",
        atom("<entry><link href='a'/></entry>", of=" xml:base='https://www.e.org/x/'"): "https://www.e.org/x/a",
        atom("<entry xml:base='y/'><link href='a'/></entry>", of=" xml:base='/x/'"): "https://e.org/x/y/a",
        atom("<entry><link xml:base='z/' href='a'/></entry>", of=" xml:base='/x/'"): "https://e.org/x/z/a",
        atom("<entry xml:base='mailto:x'><link href='a'/></entry>", of=" xml:base='http://['"): "https://e.org/blog/a",
    }.items():
        assert link(body) == page


def test_entries_of_other_sites_are_counted_and_left_out() -> None:
    feed = read(rss("<item><link>https://f.org/a</link></item>", "<item><link>https://news.e.org/a</link></item>"))
    assert pages(feed) == [("https://news.e.org/a", None)]
    assert feed.skipped == {"of another site": 1}


def test_an_entry_named_twice_counts_once_with_its_later_date() -> None:
    items = [f"<item><link>/a?utm_source={n}</link><pubDate>2026-03-0{n}</pubDate></item>" for n in (1, 3, 2)]
    feed = read(rss(*items))
    assert pages(feed) == [("https://e.org/a", "2026-03-03T00:00")]
    assert feed.skipped == {"named twice": 2}


def test_links_in_cdata_and_with_bare_ampersands_are_read() -> None:
    feed = read(
        rss("<item><link><![CDATA[ https://e.org/?a=1&b=2 ]]></link></item>", "<item><link>/?c=1&d=2</link></item>")
    )
    assert [entry.url for entry in feed.entries] == ["https://e.org/?a=1&b=2", "https://e.org/?c=1&d=2"]


# -- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 01 Mar 2026 10:00:00 GMT",
        "Sun, 1 Mar 2026 10:00:00 +0000",
        "01 Mar 2026 10:00:00 UT",
        "1 Mar 26 10:00 Z",
        "Sunday, 01 March 2026 10:00:00 GMT",
        "dim., 01 Mar 2026 10:00:00 GMT",
        "Sun, 01 Mar 2026 05:00:00 EST",
        "Sun, 01 Mar 2026 11:00:00 CET",
        "Sun, 01 Mar 2026 15:30:00 IST",
        "Sun, 01 Mar 2026 12:30:00 GMT+0230",
        "Sun, 01 Mar 2026 10:00:00",
        "Sun Mar  1 10:00:00 2026",
        "Sun, 01 Mar 2026 10:00:00 SOMEWHERE",
        "2026-03-01T10:00:00Z",
        "2026-03-01T11:00:00+01:00",
        "2026-03-01 10:00:00",
        " \n2026-03-01T10:00Z ",
    ],
)
def test_a_date_is_read_in_the_spellings_that_feeds_use(text: str) -> None:
    assert feed_time(text) == datetime(2026, 3, 1, 10, tzinfo=UTC)


@given(st.datetimes(datetime(1991, 1, 1), datetime(2026, 3, 1), timezones=ZONES))
def test_a_date_in_the_format_of_email_is_read_back(time: datetime) -> None:
    assert feed_time(format_datetime(time)) == time.replace(microsecond=0)


@given(st.text(max_size=40) | st.text("0123456789 :-+,TZMarSunGMT", max_size=40))
def test_a_malformed_date_is_an_error_but_no_crash(text: str) -> None:
    with suppress(ValueError, OverflowError):
        assert feed_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["", "gestern", "Sun, 32 Mar 2026 10:00:00 GMT", "Sun, 01 Mar 2027 10:00:00 GMT", "2027", "1"]
)
def test_an_implausible_date_is_left_out(text: str) -> None:
    feed = read(rss(f"<item><link>/a</link><pubDate>{text}</pubDate></item>", "<item><link>/b</link></item>"))
    assert pages(feed) == [("https://e.org/a", None), ("https://e.org/b", None)]
    assert feed.updated_at is None
    assert feed.skipped.total() == (1 if text else 0)


def test_one_date_in_the_future_does_not_hide_the_other() -> None:
    dates = "<published>2026-03-01T10:00:00Z</published><updated>2036-03-01T10:00:00Z</updated>"
    feed = read(atom(f"<entry><link href='/a'/>{dates}</entry>"))
    assert pages(feed) == [("https://e.org/a", "2026-03-01T10:00")]
    assert feed.skipped == {"date in the future": 1}


def test_of_several_dates_the_latest_counts_whatever_their_order_and_names() -> None:
    dates = [
        "<updated>2026-03-01T10:00:00Z</updated>",
        "<updated>2026-03-02T10:00:00Z</updated>",
        "<created>2026-02-01</created>",
    ]
    for order in (dates, dates[::-1]):
        assert pages(read(atom(f"<entry><link href='/a'/>{''.join(order)}</entry>"))) == [
            ("https://e.org/a", "2026-03-02T10:00")
        ]
    assert pages(read(atom(f"<entry><link href='/a'/>{dates[2]}</entry>"))) == [("https://e.org/a", "2026-02-01T00:00")]


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is empty"),
        (b"Not found", "it is not XML"),
        (b"<!DOCTYPE html><html><p>Not found", "it begins with <html>"),
        (b"<urlset/>", "it begins with <urlset>"),
        (
            b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://xmlns.com/foaf/0.1/'/>",
            "it begins with <rdf>",
        ),
        (b"<rss><channel><item><link>https://e.org/a</link>", "it breaks off after 4 elements"),
    ],
)
def test_a_file_that_is_not_a_feed_is_refused_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadXml) as refused:
        read(body)
    assert str(refused.value) == f"No feed at https://e.org/blog/feed.xml: {reason}."


def test_a_truncated_feed_gives_its_complete_items_and_a_fault() -> None:
    body = rss("<item><link>/a</link></item>", "<item><link>/bcd</link></item>")
    feed = read(body[: body.index("cd</link>")])
    assert pages(feed) == [("https://e.org/a", None)]
    assert feed.fault == "it breaks off after 7 elements"


def test_a_feed_with_undeclared_prefixes_and_html_entities_is_read() -> None:
    feed = read(rss("<item><media:title>caf&eacute;&nbsp;&hellip;</media:title><link>/a</link></item>"))
    assert (pages(feed), feed.fault) == ([("https://e.org/a", None)], None)


def test_a_feed_without_items_is_not_a_fault() -> None:
    assert read(rss()) == ParsedFeed([], None, read(rss()).skipped)


# -- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (rss(), "feed"),
        (rdf(), "feed"),
        (atom(), "feed"),
        ("<!-- a --><?xml-stylesheet href='x'?>\n<atom:feed xmlns:atom='http://www.w3.org/2005/Atom'>", "feed"),
        ("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", "sitemap"),
        ("<!DOCTYPE s [<!ENTITY a 'b'>]><sitemapindex>", "sitemap"),
        ("https://e.org/a\nhttps://e.org/b", "sitemap"),
        ("https://e.org/a", "sitemap"),
        ("https://e.org/a is a page", None),
        ("<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>", None),
        ("<!DOCTYPE html><html><rss/>", None),
        ("<?xml version='1.0'?>", None),
        ("words", None),
        ("", None),
    ],
)
def test_the_kind_of_a_body_is_that_of_its_first_element(body: str, kind: str | None) -> None:
    for data in (body.encode(), gzip.compress(body.encode()), f"\ufeff{body}".encode(), body.encode("utf-16")):
        assert kind_of(data) == kind


_PIECES = st.sampled_from([
    "<rss>", "<channel>", "<item>", "</item>", "<link>", "</link>", "<link href='", "'/>", "/a", "https://e.org/", "<pubDate>",
    "</pubDate>", "Sun, 01 Mar 2026", "<guid>", "</guid>", "<date>", "</date>", "<feed>", "<entry xml:base='", "'>", "&", "<!--",
])  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_no_text_raises_anything_but_the_refusal(text: str) -> None:
    for body in (text, "<rss><channel>" + text, "<feed>" + text):
        data = body.encode("utf-8", "replace")
        assert kind_of(data) in ("feed", "sitemap", None)
        with suppress(BadXml):
            assert all(entry.url == canonical(entry.url) for entry in read(data).entries)
