"""Options of ``recrawl crawl``: what is fetched, how a first crawl goes, and how polite crawls are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import optional_period

if TYPE_CHECKING:
    from recrawl.crawl.frontier import Frontier
    from recrawl.crawl.run import FetchSettings

CONTACT = re.compile(r"(https?://\S+\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+)")
PRODUCT = re.compile(r"[A-Za-z][\w.-]*(/|\s|$)")  # what robots.txt names


def checked_agent(text: str) -> str:
    """A User-Agent that says who fetches and how to reach them; anything else is wrong usage."""
    like = "write it like 'Webwatch/1.0 (+https://example.org/bot; bot@example.org)'"
    if not text.isprintable() or not text.isascii():
        raise typer.BadParameter(f"{text!r} must be plain ASCII")
    if not CONTACT.search(text):
        raise typer.BadParameter(f"{text!r} does not say how site owners can reach you: {like}")
    if not PRODUCT.match(text):
        raise typer.BadParameter(f"{text!r} does not begin with a name that robots.txt can address: {like}")
    return text


@dataclass(frozen=True)
class PoliteOptions:
    """Who fetches, how fast and how much."""

    user_agent: Annotated[
        str,
        typer.Option(
            "--user-agent",
            envvar="RECRAWL_USER_AGENT",
            metavar="TEXT",
            help="User-Agent with a URL or e-mail address, so that site owners can reach you.",
            callback=checked_agent,
        ),
    ] = ...  # type: ignore[assignment]
    delay: Annotated[float, typer.Option("--delay", min=0.0, help="Seconds between two requests to the same host.")] = (
        1.0
    )
    at_once: Annotated[int, typer.Option("--concurrency", min=1, help="Maximum number of concurrent requests.")] = 16
    host_at_once: Annotated[
        int, typer.Option("--host-concurrency", min=1, help="Maximum number of concurrent requests per host.")
    ] = 1
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Timeout per page, in seconds.")] = 30.0
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, help="Maximum size of a page in bytes, also after decompression.")
    ] = 10 << 20
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time",
            metavar="PERIOD",
            help="Maximum duration of a cycle.",
            callback=optional_period,
        ),
    ] = None

    def fetch_settings(self) -> FetchSettings:
        """As the crawler takes them."""
        from recrawl.core.times import parse_period
        from recrawl.crawl.run import FetchSettings

        seconds = parse_period(self.max_time).total_seconds() if self.max_time else 0.0
        return FetchSettings(
            user_agent=self.user_agent,
            delay=self.delay,
            host_concurrency=self.host_at_once,
            concurrency=self.at_once,
            timeout=self.timeout,
            max_bytes=self.max_bytes,
            max_seconds=seconds,
        )


@dataclass(frozen=True)
class FetchOptions:
    """What is fetched, how it is asked for, and what is kept of it."""

    warc: Annotated[
        str | None,
        typer.Option("--warc", metavar="DIR", help="Also write all responses to WARC files in this directory."),
    ] = None
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Fetch this plan, or this list of URLs, instead of making a plan."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="First continue a crawl that was interrupted.")
    ] = True
    conditional: Annotated[
        bool,
        typer.Option(
            "--conditional/--no-conditional", help="Send conditional requests (If-None-Match, If-Modified-Since)."
        ),
    ] = True
    hints: Annotated[bool, typer.Option("--hints/--no-hints", help="Read sitemaps and feeds.")] = True
    allow_loopback: Annotated[
        bool, typer.Option("--allow-loopback", help="Allow fetching from this machine; for tests.")
    ] = False


@dataclass(frozen=True)
class FirstCrawlOptions:
    """Where a first crawl begins, how far it goes and in which order."""

    seeds: Annotated[
        list[str] | None,
        typer.Option(
            "--seeds",
            metavar="URL|FILE",
            help="Start a first crawl of a new collection from this URL or file of URLs. Repeatable.",
        ),
    ] = None
    home_pages: Annotated[
        bool,
        typer.Option(
            "--home-pages",
            help="First crawl: begin with the home pages of the sites in --seeds, which may then also be host names.",
        ),
    ] = False
    pages: Annotated[int, typer.Option("--pages", min=1, help="First crawl: maximum number of pages.")] = 1_000
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="First crawl: maximum number of links away from the seeds.")
    ] = None
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="rank|breadth|FILE",
            help="First crawl: by PageRank × TrustRank (rank), distance (breadth), or a classifier from recrawl relevance.",
        ),
    ] = "rank"
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted", metavar="URL", help="First crawl: pages that TrustRank starts from. Default: the seeds."
        ),
    ] = None
    anywhere: Annotated[bool, typer.Option("--anywhere", help="First crawl: follow links to other sites.")] = False

    def frontier(self, per_host: int | None, at_once: int) -> Frontier | None:
        """The seeds in a frontier; None without any."""
        if not self.seeds:
            if self.home_pages:
                raise typer.BadParameter(
                    "--home-pages needs --seeds: the sites whose home pages a first crawl begins with"
                )
            return None
        from recrawl.crawl.frontier import BreadthFirst, ByRank, ByRelevance, Frontier, Limits
        from recrawl.web.urls import host, site

        starts = home_pages(self.seeds) if self.home_pages else _listed(self.seeds)
        sites = None if self.anywhere else frozenset(site(host(url)) for url in starts)
        limits = Limits(self.pages, self.depth, per_host)
        frontier = Frontier(
            BreadthFirst(),
            limits,
            lambda url: sites is None or site(host(url)) in sites,
            host_concurrency=max(2, 2 * at_once),
        )
        if self.order == "rank":
            trusted = _listed(self.trusted) if self.trusted else starts
            frontier.order = ByRank(frontier.number(url) for url in trusted)
        elif self.order != "breadth":
            from recrawl.models.relevance import Relevance

            model = Relevance.load(self.order)
            frontier.order = ByRelevance(lambda text: float(model.predict([text])[0]))
        frontier.add(starts, 0)
        return frontier


def home_pages(seeds: list[str]) -> list[str]:
    """The home pages of the given URLs and hosts, and of those in files, each once.

    The seeds of Dang et al. (2022), section 3, are URLs "truncated to the home page". A host without a scheme is asked by https.

    >>> home_pages(["https://example.org/news/1", "https://example.org/about", "example.com"])
    ['https://example.org/', 'https://example.com/']
    """
    from pathlib import Path

    from recrawl.web.urls import origin

    given = [text if _is_url(text) or Path(text).is_file() else f"https://{text}" for text in seeds]
    return list(dict.fromkeys(f"{origin(url)}/" for url in _listed(given, hosts=True)))


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _listed(seeds: list[str], *, hosts: bool = False) -> list[str]:
    """URLs, and those in files, one per line; with `hosts` a line may also be a host name."""
    from pathlib import Path

    from recrawl.errors import BadUrl
    from recrawl.web.urls import canonical

    found = []
    for text in seeds:
        try:
            lines = [text] if _is_url(text) else Path(text).read_text("utf-8").split()
            found += [canonical(f"https://{line}" if hosts and not _is_url(line) else line) for line in lines]
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{text!r} is neither a URL (http://…) nor a file of URLs: {error}") from None
        except BadUrl as error:
            raise typer.BadParameter(f"{text!r}: {error}") from None
    if not found:
        raise typer.BadParameter(f"{', '.join(seeds)} names no URL")
    return list(dict.fromkeys(found))
