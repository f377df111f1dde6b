"""All forms of the made-up web show the same visits."""

import io
from datetime import UTC, datetime, timedelta

import numpy as np
import orjson
import pyarrow as pa
import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.errors import RecrawlError
from recrawl.history.batch import BatchBuilder
from recrawl.history.digests import link_set_digest
from recrawl.history.schema import TABLES
from recrawl.synth import SynthSettings, batches, html_pages, visits, write_jsonl, write_warc
from recrawl.synth.tables import link_set_digests
from recrawl.web import html as parse
from recrawl.web.urls import canonical, origin
from recrawl.web.visit import from_record
from slow_terms import term_counts

SMALL = SynthSettings(pages=300, rounds=4, seed=7, vectors=True, failure_rate=0.05, death_rate=0.02)


def _joined(made) -> dict[str, pa.Table]:
    made = list(made)
    return {name: pa.concat_tables([batch[name] for batch in made if name in batch]) for name in made[0]}


@pytest.mark.parametrize("kinds", [{}, {"vectors": False}, {"terms": False}, {"vectors": False, "terms": False}])
def test_batches_are_what_importing_the_visits_gives(kinds) -> None:
    settings = SynthSettings(**(vars(SMALL) | kinds))
    builder = BatchBuilder()
    for visit in visits(settings):
        builder.add(visit)
    imported, made = builder.take(), _joined(batches(settings))
    for name, expected in imported.items():
        got = made.get(name, TABLES[name].empty_table())
        key = (
            [("page", "ascending"), ("at", "ascending")]
            if name == "visits"
            else [(expected.column_names[0], "ascending")]
        )
        assert got.schema == TABLES[name]
        assert got.sort_by(key).equals(expected.sort_by(key)), name


def test_a_web_written_in_several_batches_is_the_same(monkeypatch) -> None:
    whole = _joined(batches(SMALL))
    monkeypatch.setattr("recrawl.synth.tables.VISITS_AT_ONCE", 100)
    parts = list(batches(SMALL))
    assert len(parts) > 5
    for name, table in _joined(parts).items():
        key = "page" if name == "visits" else table.column_names[0]
        if name == "visits":
            assert table.equals(whole[name].combine_chunks())
        else:
            assert set(table[key].to_pylist()) == set(whole[name][key].to_pylist())


def test_every_batch_brings_the_urls_it_needs_before_or_with_it() -> None:
    known: set[int] = set()
    for batch in batches(SMALL):
        known |= set(batch["urls"]["id"].to_pylist())
        assert set(batch["visits"]["page"].to_pylist()) <= known
        assert set(batch["link_sets"]["links"].combine_chunks().flatten().to_pylist()) <= known


def test_progress_ends_at_the_total() -> None:
    calls: list[tuple[int, int]] = []
    list(batches(SMALL, lambda done, total: calls.append((done, total))))
    assert calls[-1] == (1_200, 1_200)


def test_visits_come_in_the_order_of_time_and_every_page_once_a_round() -> None:
    made = list(visits(SMALL))
    assert [visit.at for visit in made] == sorted(visit.at for visit in made)
    assert len(made) == len({(visit.url, visit.at) for visit in made}) == 1_200
    assert len({visit.url for visit in made}) == 300


def test_all_urls_are_canonical_and_internal_where_they_are_said_to_be() -> None:
    for batch in batches(SynthSettings(pages=1_000, rounds=3, seed=11, terms=False)):
        urls = dict(zip(batch["urls"]["id"].to_pylist(), batch["urls"]["url"].to_pylist(), strict=True))
        assert all(canonical(url) == url for url in urls.values())
        sets = {row["digest"]: row for row in batch["link_sets"].to_pylist()}
        for visit in batch["visits"].slice(0, 500).to_pylist():
            row = sets.get(visit["links"])
            for place, link in enumerate(row["links"] if row else []):
                assert (origin(urls[visit["page"]]) == origin(urls[link])) == (place < row["n_internal"])


def test_many_link_sets_have_the_digests_of_each() -> None:
    ids = np.array([1, 5, 9, 2, 3, -4, 7], np.int64)
    starts, n_internal = np.array([0, 3, 3, 7]), np.array([2, 0, 4])
    expected = [link_set_digest(ids[a : a + n], ids[a + n : b]) for a, b, n in ((0, 3, 2), (3, 3, 0), (3, 7, 4))]
    assert link_set_digests(ids, starts, n_internal).tolist() == expected


def test_equal_settings_make_equal_webs_and_other_seeds_other_ones() -> None:
    first, again = (_joined(batches(SMALL)) for _ in range(2))
    assert all(first[name].equals(again[name]) for name in first)
    other = _joined(batches(SynthSettings(**(vars(SMALL) | {"seed": 8}))))
    assert not set(first["urls"]["id"].to_pylist()) & set(other["urls"]["id"].to_pylist())


def test_json_lines_read_back_as_the_visits() -> None:
    settings = SynthSettings(**(vars(SMALL) | {"vectors": False}))
    stream = io.BytesIO()
    assert write_jsonl(settings, stream) == 1_200
    read = [from_record(orjson.loads(line)) for line in stream.getvalue().splitlines()]
    assert read == list(visits(settings))


def test_html_bodies_hold_the_links_words_and_title_of_the_visit() -> None:
    n_read = 0
    for visit, body in html_pages(SMALL):
        if visit.status != 200:
            assert body == b""
            continue
        page = parse.page(body, visit.content_type, visit.url)
        assert page.hrefs == visit.links
        assert term_counts(page.text or "") == visit.terms
        assert page.title == visit.title
        n_read += 1
    assert n_read > 1_000


@pytest.mark.parametrize("name", ["web.warc.gz", "web.warc"])
def test_a_warc_holds_every_answered_visit(tmp_path, name) -> None:
    settings = SynthSettings(pages=60, rounds=4, seed=3, failure_rate=0.1, not_modified_rate=0.9)
    path = tmp_path / name
    n_records = write_warc(settings, path)
    expected = [(visit.url, visit.at, visit.status) for visit in visits(settings) if visit.status]
    read, kinds = [], set()
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            if record.rec_type == "warcinfo":
                continue
            headers = record.rec_headers
            at = datetime.strptime(headers["WARC-Date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            status = int(record.http_headers.get_statuscode())
            record.content_stream().read()
            read.append((headers["WARC-Target-URI"], at, status))
            kinds.add((record.rec_type, status, (headers["WARC-Profile"] or "").rpartition("/")[2]))
    assert read == expected
    assert n_records == len(read)
    assert ("revisit", 304, "server-not-modified") in kinds
    assert ("response", 200, "") in kinds
    assert ("response", 503, "") in kinds


@pytest.mark.parametrize(
    "wrong",
    [{"pages": 0}, {"rounds": 0}, {"seed": -1}, {"every": timedelta(seconds=1)}, {"death_rate": 1.5}, {"sharing": 2.0}],
)
def test_impossible_settings_are_refused_by_name(wrong) -> None:
    with pytest.raises(RecrawlError, match=next(iter(wrong))):
        SynthSettings(**wrong)


@pytest.mark.parametrize("shape", [(1, 1), (1, 10), (2, 2), (50, 1)])
def test_tiny_webs_work(shape) -> None:
    pages, rounds = shape
    made = _joined(batches(SynthSettings(pages=pages, rounds=rounds, vectors=True)))
    assert made["visits"].num_rows == pages * rounds
