"""A page that is read in pieces shows what it shows as a whole, and no page is cut where that would change its meaning."""

from __future__ import annotations

import random

import pytest

from recrawl.web import pieces as module
from recrawl.web.html import page

PARTS = [
    "<p>some words</p>", "<a href=/%d>link %d</a>", "<li><a href='/q?a<b=%d' title='a > b < c'>x</a>", "<div class=x>text %d</div>",
    "<script>if (a < b) document.write('<a href=/no%d>')</script>", "<!-- <a href=/no%d> > < -->", "<STYLE>a<b{}</STYLE>",
    "<textarea><a href=/no%d></textarea>", "1 < 2 %d", "<br/>", "<img src=x alt='<a href=/no%d>'>",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_page_in_pieces_is_the_page(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    chosen = (rng.choice(PARTS) for _ in range(3_000))
    html = "<title>T</title><base href=/b/>" + "\n".join(each.replace("%d", str(i)) for i, each in enumerate(chosen))
    whole = page(html.encode(), "text/html", "https://e.org/")
    monkeypatch.setattr(module, "MAX_NODES", 100)
    monkeypatch.setattr(module, "PIECE", 700)
    cut = module.pieces(html.encode())
    assert len(cut) > 50
    assert b"".join(cut) == html.encode()
    seen = page(html.encode(), "text/html", "https://e.org/")
    assert (seen.hrefs, seen.title, seen.base) == (whole.hrefs, whole.title, whole.base)
    assert (seen.text or "").split() == (whole.text or "").split()
    assert (seen.text_digest, seen.text_bytes) == (whole.text_digest, whole.text_bytes)


@pytest.mark.parametrize(
    "unit", [b"<", b"<!--", b"<script>", b"<a title='", b"<!-- -->", b"</", b"<p a b c>", b"<x<y>"]
)
def test_a_page_that_is_made_to_have_no_place_to_cut_is_cut_or_refused(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 1_000)
    monkeypatch.setattr(module, "PIECE", 2_000)
    html = b"<p>" + unit * 20_000
    assert b"".join(module.pieces(html)) in (html, b"")
