"""``recrawl archive`` against a real pywb: its own sample archive, and an archive made by our own crawl."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warcio.checker import Checker

import pywb_server
from commands import command
from crawl.crawling import Sites, crawled, page
from recrawl.history import History
from recrawl.sources.base import Context
from recrawl.sources.cdx import Cdx
from recrawl.sources.response import response_visit
from recrawl.sources.wayback import Archive, Client, Clock, Filters
from recrawl.synth.living.http import HttpRequest, HttpResponse
from recrawl.web.visit import Outcome, Visit

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "fixtures" / "pywb"
#: pywb may have to be installed first, by another process that runs tests, and that may take minutes.
pytestmark = pytest.mark.timeout(1_800)
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no sample archive in ../shared/data")


class Hurried(Clock):
    """Waits for nothing: the server is ours."""

    def sleep(self, seconds: float) -> None:
        pass


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = request.config.cache
    return pywb_server.environment(Path(cache.mkdir("pywb")) if cache else tmp_path_factory.mktemp("pywb"))


@pytest.fixture(scope="module")
def samples(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a pywb with its own sample archive in `web`, and a compressed index without copies in `zipped`."""
    folder = tmp_path_factory.mktemp("pywb")
    warcs = [SAMPLES / f"{name}.warc.gz" for name in ("example", "dupes", "iana", "example-url-agnostic-revisit")]
    pywb_server.collection(programs, folder, warcs)
    zipped = folder / "collections" / "zipped" / "indexes"
    zipped.mkdir(parents=True)
    shutil.copy(SAMPLES / "zipnum-sample.idx", zipped / "zipnum.idx")
    shutil.copy(SAMPLES / "zipnum-sample.cdx.gz", zipped / "zipnum.cdx.gz")
    (zipped / "zipnum.loc").write_text(f"zipnum\t{zipped / 'zipnum.cdx.gz'}\n")
    with pywb_server.serving(programs, folder) as address:
        yield address


def test_pywb_runs_on_pinned_packages_and_not_on_this_one() -> None:
    names = [line.partition("==")[0] for line in pywb_server.REQUIREMENTS.read_text().splitlines() if line[0] != "#"]
    assert "pywb" in names
    assert "recrawl" not in names  # which is installed from here, and may be another package elsewhere


def asked(server: str, state: Path, *urls: str, **options: Any) -> tuple[list[Visit], Any]:
    """The visits, and the report."""
    with Archive(Client("t me@e.org", base_url=server, clock=Hurried()), state, response_visit, **options) as archive:
        deliveries = list(archive.visits(urls))
        archive.acknowledge(*deliveries)
        return [delivery.visit for delivery in deliveries], archive.report


def cdx_lines(*names: str) -> list[list[str]]:
    """The captures of the sample archive, from the CDX files that came with it."""
    text = "".join((SAMPLES / f"{name}.cdx").read_text() for name in names)
    return [line.split(" ") for line in text.splitlines() if not line.startswith(" CDX")]


@needs_samples
def test_what_pywb_speaks_is_found_out_and_remembered(samples: str, tmp_path: Path) -> None:
    visits, report = asked(f"{samples}/web", tmp_path, "http://www.iana.org/")
    assert not report.failed
    known = json.loads((tmp_path / "servers.json").read_text())[f"{samples}/web"]
    assert known == {"interface": "pywb", "index": f"{samples}/web/cdx", "copies": f"{samples}/web"}
    listed = {(line[1], line[2]) for line in cdx_lines("iana", "dupes", "example") if line[0] == "org,iana)/"}
    assert {(visit.at.strftime("%Y%m%d%H%M%S"), visit.url) for visit in visits} == listed
    assert any(visit.links for visit in visits)


@needs_samples
def test_copies_of_pywb_have_links_text_and_the_headers_of_their_server(samples: str, tmp_path: Path) -> None:
    visits, report = asked(f"{samples}/web", tmp_path, "http://www.iana.org/", interface="pywb")
    first = min(visits, key=lambda visit: visit.at)
    assert (first.at, first.status) == (datetime(2014, 1, 26, 20, 6, 24, tzinfo=UTC), 200)
    assert first.last_modified == "Wed, 15 Jan 2014 02:12:29 GMT"
    assert first.links is not None
    assert "/domains/root" in first.links
    assert "Internet Assigned Numbers Authority" in (first.title or "")
    assert report.mementos >= 1


@needs_samples
def test_a_prefix_lists_every_page_below_it_up_to_a_depth(samples: str, tmp_path: Path) -> None:
    pattern = "iana.org/domains/*"
    visits, report = asked(f"{samples}/web", tmp_path, pattern, filters=Filters(depth=1))
    expected = set()
    for line in cdx_lines("iana", "dupes", "example"):
        path = line[2].partition("iana.org")[2].rstrip("/").split("/")
        if path[1:2] == ["domains"] and len(path) <= 3:
            expected.add((line[1], line[2]))
    assert {(visit.at.strftime("%Y%m%d%H%M%S"), visit.url) for visit in visits} == expected
    assert any(url.rstrip("/").endswith("/domains") for _, url in expected)  # the prefix itself, at depth 0
    assert not report.failed


@needs_samples
@pytest.mark.parametrize("page_size", [7, 20, 10_000])
def test_a_domain_is_read_to_the_end_however_small_the_answers_are(
    page_size: int, samples: str, tmp_path: Path
) -> None:
    """A plain index has no pages of its own: full answers are asked for again in halves of their span."""
    visits, report = asked(f"{samples}/web", tmp_path, "*.iana.org", page_size=page_size, mementos=False)
    listed = {
        (line[1], line[2])
        for line in cdx_lines("iana", "dupes", "example")
        if line[0].startswith(("org,iana)", "org,iana,"))
    }
    assert {(visit.at.strftime("%Y%m%d%H%M%S"), visit.url) for visit in visits} == listed
    assert not report.failed


@needs_samples
def test_the_numbered_pages_of_a_compressed_index_are_read_to_the_end(samples: str, tmp_path: Path) -> None:
    """It has 38 blocks, of which an answer holds one or three."""
    with gzip.open(SAMPLES / "zipnum-sample.cdx.gz") as stream:
        head = stream.readline()
        stream.seek(0)
        found = [visit for visit in Cdx().read(stream, Context(first_line=head)) if isinstance(visit, Visit)]
    listed = {(visit.at, visit.url) for visit in found if "iana.org" in visit.url}
    for page_size in (1, 10_000):
        state = tmp_path / str(page_size)
        visits, report = asked(f"{samples}/zipped", state, "*.iana.org", page_size=page_size, mementos=False)
        assert not report.failed
        assert {(visit.at, visit.url) for visit in visits} == listed


@needs_samples
def test_a_collection_that_does_not_exist_is_not_an_empty_one(samples: str, tmp_path: Path) -> None:
    visits, report = asked(f"{samples}/nonsense", tmp_path, "http://www.iana.org/")
    assert visits == []
    assert "no such collection" in report.failed["http://www.iana.org/"]


@needs_samples
def test_the_root_of_pywb_is_no_archive_and_the_way_out_is_said(samples: str, tmp_path: Path) -> None:
    _, report = asked(samples, tmp_path, "http://www.iana.org/")
    assert f"such as {samples}/COLLECTION" in report.failed["http://www.iana.org/"]


@needs_samples
def test_the_timemaps_of_pywb_show_the_same_history_as_its_index(samples: str, tmp_path: Path) -> None:
    by_index, _ = asked(f"{samples}/web", tmp_path / "a", "http://www.iana.org/domains/reserved", interface="pywb")
    by_map, report = asked(
        f"{samples}/web", tmp_path / "b", "http://www.iana.org/domains/reserved", interface="timemap"
    )
    assert report.failed == {}
    assert [(visit.url, visit.at) for visit in by_map] == [(visit.url, visit.at) for visit in by_index]
    assert by_map[0].links == by_index[0].links
    assert by_map[0].links


# Our own crawl → WARC → pywb → recrawl archive → the same history


PATHS = ("/", "/same", "/fading", "/deep/er/page")


def living() -> dict[str, Any]:
    """A site whose pages change, stay or vanish from one request to the next."""
    requests: Counter[str] = Counter()

    def news(asked: HttpRequest) -> HttpResponse:
        requests["/"] += 1
        return page(f"news of day {requests['/']}", "/same", *(f"/story/{n}" for n in range(requests["/"])))

    def fading(asked: HttpRequest) -> HttpResponse:
        requests["/fading"] += 1
        return page("still here", "/") if requests["/fading"] == 1 else HttpResponse(404)

    return {
        "/": news,
        "/fading": fading,
        "/same": page("always the same", "/", "/other"),
        "/deep/er/page": page("deep"),
    }


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of three crawls, with `history` and `warc`, and the crawled pages."""
    folder = tmp_path_factory.mktemp("own")
    with Sites(living()) as sites:
        plan = [sites.url(path) for path in PATHS]
        crawled(folder / "history", plan=plan, cycles=3, hours=[-72, -48, -24], RECRAWL_WARC=str(folder / "warc"))
        return folder, plan


def shown(history: History) -> list[tuple[Any, ...]]:
    """What each visit showed: URL, time to the second, outcome, links, text and words.

    An archive lists a copy that is the same again as unchanged, the crawler may have fetched it again: both show the same.
    """
    timeline, found = history.timeline, []
    copies = timeline.rows.select(["text", "terms", "title"]).to_pylist()
    for i, url in enumerate(history.urls_of(timeline.page).to_pylist()):
        links = (
            timeline.sets.links[slice(*timeline.sets.start[timeline.links[i] :][:2])] if timeline.links[i] >= 0 else ()
        )
        copy = copies[timeline.latest[i]] if timeline.latest[i] >= 0 else None
        outcome = max(int(timeline.outcome[i]), Outcome.UNCHANGED)
        found.append((url, int(timeline.at[i]) // 1_000_000, outcome, tuple(links), copy))
    return found


def test_the_files_of_a_crawl_pass_the_check_of_warcio(
    crawl: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(str(path) for path in (crawl[0] / "warc").iterdir())
    assert Checker(SimpleNamespace(inputs=files, verbose=True)).process_all() == 0
    said = Counter(line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("    "))
    n_requests = 3 * (len(PATHS) + 1)  # of three crawls, which begin with robots.txt
    assert said == {"digest pass": len(files) + 2 * n_requests}


def test_a_crawl_read_back_through_pywb_is_the_same_history(
    crawl: tuple[Path, list[str]], programs: Path, tmp_path: Path
) -> None:
    folder, pages = crawl
    own = shown(History.open(folder / "history"))
    assert len(own) == 3 * len(PATHS)
    pywb_server.collection(programs, tmp_path / "pywb", sorted((folder / "warc").iterdir()))
    with pywb_server.serving(programs, tmp_path / "pywb") as address:
        pattern = pages[0].removeprefix("http://") + "*"
        shared = ("--server", f"{address}/web", "--contact", "me@e.org", "--history", str(tmp_path / "h"), "--json")
        done = command("archive", pattern, *shared)
        assert done.code == 0, done
        by_page, report = asked(f"{address}/web", tmp_path / "state", *pages)
    by_pattern = shown(History.open(tmp_path / "h"))
    assert [visit for visit in by_pattern if not visit[0].endswith("/robots.txt")] == own  # that is archived, too
    assert report.failed == {}
    again = History.create(tmp_path / "again")
    again.add(by_page)
    assert shown(History.open(tmp_path / "again")) == own
