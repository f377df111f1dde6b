"""Options of ``recrawl crawl``: what is fetched, how a first crawl goes, and how polite crawls are."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import optional_period

if TYPE_CHECKING:
    from recrawl.crawl.frontier import Frontier
    from recrawl.crawl.run import Manners

CONTACT = re.compile(r"(https?://\S+\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+)")
PRODUCT = re.compile(r"[A-Za-z][\w.-]*(/|\s|$)")  # what robots.txt names


def checked_agent(text: str) -> str:
    """A User-Agent that says who fetches and how to reach them; anything else is wrong usage."""
    like = "write it like 'Webwatch/1.0 (+https://example.org/bot; bot@example.org)'"
    if not text.isprintable() or not text.isascii():
        raise typer.BadParameter(f"{text!r} must be plain ASCII")
    if not CONTACT.search(text):
        raise typer.BadParameter(f"{text!r} does not tell site owners how to reach you: {like}")
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
            help="Who fetches, with a URL or mail address: site owners must be able to reach you.",
            callback=checked_agent,
        ),
    ] = ...  # type: ignore[assignment]
    delay: Annotated[float, typer.Option("--delay", min=0.0, help="Seconds between two requests to a host.")] = 1.0
    at_once: Annotated[int, typer.Option("--concurrency", min=1, help="Requests under way at once.")] = 16
    host_at_once: Annotated[
        int, typer.Option("--host-concurrency", min=1, help="Requests under way at once to one host.")
    ] = 1
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for a page.")] = 30.0
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, help="Bytes of a page, also unpacked.")] = 10 << 20
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time",
            metavar="PERIOD",
            help="End a cycle after that time.",
            callback=optional_period,
        ),
    ] = None

    def manners(self) -> Manners:
        """As the crawler takes them."""
        from recrawl.crawl.run import Manners
        from recrawl.panel import parse_period

        seconds = parse_period(self.max_time).total_seconds() if self.max_time else 0.0
        return Manners(
            self.user_agent, self.delay, self.host_at_once, self.at_once, self.timeout, self.max_bytes, seconds
        )


@dataclass(frozen=True)
class FetchOptions:
    """What is fetched, how it is asked for, and what is kept of it."""

    warc: Annotated[
        str | None, typer.Option("--warc", metavar="DIR", help="Also write all responses to WARC files there.")
    ] = None
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Fetch this plan, or these URLs, instead of making one."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="First go on with a crawl that was cut short.")
    ] = True
    conditional: Annotated[
        bool, typer.Option("--conditional/--no-conditional", help="Ask for pages only if they changed.")
    ] = True
    hints: Annotated[bool, typer.Option("--hints/--no-hints", help="Read sitemaps and feeds.")] = True
    allow_loopback: Annotated[
        bool, typer.Option("--allow-loopback", help="Also fetch from this machine; for tests.")
    ] = False

    def settings(self) -> dict[str, Any]:
        """As the add-on takes them."""
        return {f"RECRAWL_{name.upper()}": value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class FirstCrawlOptions:
    """Where a first crawl begins, how far it goes and in which order."""

    seeds: Annotated[
        list[str] | None,
        typer.Option("--seeds", metavar="URL|FILE", help="First crawl of a collection: outwards from here; repeat it."),
    ] = None
    pages: Annotated[int, typer.Option("--pages", min=1, help="First crawl: at most so many pages.")] = 1_000
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="First crawl: at most so many links away from the seeds.")
    ] = None
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="rank|breadth|FILE",
            help="First crawl: by PageRank × TrustRank, by distance, or by a classifier of recrawl relevance.",
        ),
    ] = "rank"
    trusted: Annotated[
        list[str] | None, typer.Option("--trusted", metavar="URL", help="Where TrustRank starts; default: the seeds.")
    ] = None
    anywhere: Annotated[bool, typer.Option("--anywhere", help="First crawl: also leave the seeds' sites.")] = False

    def frontier(self, per_host: int | None, at_once: int) -> Frontier | None:
        """The seeds in a frontier; None without any."""
        if not self.seeds:
            return None
        from recrawl.crawl.frontier import BreadthFirst, ByRank, ByRelevance, Frontier, Limits
        from recrawl.urls import host, site

        starts = _listed(self.seeds)
        sites = None if self.anywhere else frozenset(site(host(url)) for url in starts)
        limits = Limits(self.pages, self.depth, per_host)
        frontier = Frontier(
            BreadthFirst(), limits, lambda url: sites is None or site(host(url)) in sites, at_once=max(2, 2 * at_once)
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


def _listed(seeds: list[str]) -> list[str]:
    """URLs, and those in files, one a line."""
    from pathlib import Path

    from recrawl.errors import BadUrl
    from recrawl.urls import canonical

    found = []
    for text in seeds:
        is_url = text.startswith(("http://", "https://"))
        try:
            lines = [text] if is_url else Path(text).read_text("utf-8").split()
            found += [canonical(line) for line in lines]
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{text!r} is neither a URL (http://…) nor a file of URLs: {error}") from None
        except BadUrl as error:
            raise typer.BadParameter(f"{text!r}: {error}") from None
    if not found:
        raise typer.BadParameter(f"{', '.join(seeds)} names no URL")
    return list(dict.fromkeys(found))
