"""``recrawl crawl``: fetch the plan, record the visits."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import ANY, JsonOption, checked_period, console, note, print_json
from recrawl.cli.grouped import with_options
from recrawl.cli.planning import Asked, BudgetOption
from recrawl.errors import RecrawlError

if TYPE_CHECKING:
    from recrawl.crawl.frontier import Frontier

CONTACT = re.compile(r"(https?://\S+\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+)")
NO_SCRAPY = "recrawl crawl needs Scrapy: pip install 'recrawl[crawl]'"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("crawl")(with_options(crawl))


def checked_agent(text: str) -> str:
    """A User-Agent that says how to reach who sent it; anything else is wrong usage."""
    if not CONTACT.search(text):
        raise typer.BadParameter(
            f"{text!r} does not tell site owners how to reach you: write it like "
            "'Webwatch/1.0 (+https://example.org/bot; bot@example.org)'"
        )
    if not text.isprintable() or not text.isascii():
        raise typer.BadParameter(f"{text!r} must be plain ASCII")
    return text


def crawl(
    asked: Asked,
    budget: BudgetOption = "10%",
    user_agent: Annotated[
        str,
        typer.Option(
            "--user-agent",
            envvar="RECRAWL_USER_AGENT",
            metavar="TEXT",
            help="Who fetches, with a URL or mail address: site owners must be able to reach you.",
            callback=checked_agent,
        ),
    ] = ...,  # type: ignore[assignment]
    seeds: Annotated[
        list[str] | None,
        typer.Option("--seeds", metavar="URL|FILE", help="First crawl of a collection: outwards from here; repeat it."),
    ] = None,
    pages: Annotated[int, typer.Option("--pages", min=1, help="First crawl: at most so many pages.")] = 1_000,
    depth: Annotated[
        int | None, typer.Option("--depth", min=0, help="First crawl: at most so many links away from the seeds.")
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="rank|breadth|FILE",
            help="First crawl: by PageRank × TrustRank, by distance, or by a classifier of recrawl relevance.",
        ),
    ] = "rank",
    trusted: Annotated[
        list[str] | None, typer.Option("--trusted", metavar="URL", help="Where TrustRank starts; default: the seeds.")
    ] = None,
    anywhere: Annotated[bool, typer.Option("--anywhere", help="First crawl: also leave the seeds' sites.")] = False,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="How many cycles, one after the other.")] = 1,
    delay: Annotated[float, typer.Option("--delay", min=0.0, help="Seconds between two requests to a host.")] = 1.0,
    at_once: Annotated[int, typer.Option("--concurrency", min=1, help="Requests under way at once.")] = 16,
    host_at_once: Annotated[
        int, typer.Option("--host-concurrency", min=1, help="Requests under way at once to one host.")
    ] = 1,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for a page.")] = 30.0,
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, help="Bytes of a page, also unpacked.")] = 10 << 20,
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time",
            metavar="PERIOD",
            help="End a cycle after that time.",
            callback=lambda p: p and checked_period(p),
        ),
    ] = None,
    warc: Annotated[
        str | None, typer.Option("--warc", metavar="DIR", help="Also write all responses to WARC files there.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Fetch this plan, or these URLs, instead of making one."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="First go on with a plan that was cut short.")
    ] = True,
    conditional: Annotated[
        bool, typer.Option("--conditional/--no-conditional", help="Ask for pages only if they changed.")
    ] = True,
    hints: Annotated[bool, typer.Option("--hints/--no-hints", help="Read sitemaps and feeds.")] = True,
    allow_loopback: Annotated[
        bool, typer.Option("--allow-loopback", help="Also fetch from this machine; for tests.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fetch the next pages politely and record what they show: one cycle, or one after the other.

    With --every 1h --cycles 24 a cycle begins every hour, for a day. The plan is made as recrawl plan makes it. robots.txt is
    obeyed, no host gets more than its share, nothing is fetched from addresses that are not public. Ctrl-C ends the crawl and keeps
    all visits; a second one ends it at once.
    """
    try:
        from recrawl.crawl.run import Manners
        from recrawl.crawl.run import crawl as run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("scrapy", "twisted", "protego", "lxml"):
            raise typer.BadParameter(NO_SCRAPY) from None
        raise
    from recrawl.crawl.view import View, told
    from recrawl.panel import parse_period

    _check_every(asked.every)
    if asked.as_of or asked.weight is not None or asked.threshold is not None or asked.settings:
        raise typer.BadParameter("--as-of, --weight, --threshold and --set are for recrawl plan; see --plan")
    asked.check()
    _check_files(asked.policy, asked.model, plan)
    manners = Manners(
        user_agent,
        delay,
        host_at_once,
        at_once,
        timeout,
        max_bytes,
        parse_period(max_time).total_seconds() if max_time else 0.0,
    )
    settings = {
        "RECRAWL_HISTORY": asked.history,
        "RECRAWL_BUDGET": budget,
        "RECRAWL_GOAL": asked.goal.value,
        "RECRAWL_CHANGE": asked.change or ANY,
        "RECRAWL_POLICY": asked.policy,
        "RECRAWL_MODEL": asked.model,
        "RECRAWL_PER_HOST": asked.per_host,
        "RECRAWL_PER_SITE": asked.per_site,
        "RECRAWL_MIN_GAP": asked.min_gap,
        "RECRAWL_EXCLUDE": tuple(asked.exclude or ()),
        "RECRAWL_EVERY": "crawl",  # whatever the time between cycles, they are told by when they were crawled
        "RECRAWL_PLAN": plan,
        "RECRAWL_RETRY_GONE": asked.retry_gone,
        "RECRAWL_RESUME": resume,
        "RECRAWL_CONDITIONAL": conditional,
        "RECRAWL_HINTS": hints,
        "RECRAWL_WARC": warc,
        "RECRAWL_ALLOW_LOOPBACK": allow_loopback,
    }
    frontier = _frontier(seeds, pages, depth, order, trusted, anywhere, asked.per_host, host_at_once) if seeds else None
    with View(console(), quiet=json) as view:
        outcome = run(
            settings,
            manners,
            frontier=frontier,
            cycles=cycles,
            every=timedelta(0) if asked.every == "crawl" else parse_period(asked.every),
            watch=view.watch,
            between=view.begin,
        )
    if outcome.error is not None:
        raise outcome.error
    for number, stats in enumerate(outcome.cycles, 1):
        if json:
            print_json({"cycle": number} | told(stats))
        else:
            _summary(number, stats, len(outcome.cycles))
    if not outcome.cycles:
        note("nothing was fetched")
    failed = [stats["recrawl/plan_failed"] for stats in outcome.cycles if "recrawl/plan_failed" in stats]
    if failed:
        raise RecrawlError(f"no plan could be made: {failed[-1]}")


def _check_files(policy: str | None, model: str | None, plan: str | None) -> None:
    """What can be known to be wrong before anything is fetched."""
    from pathlib import Path

    from recrawl.cli.policy_options import made_policies
    from recrawl.crawl.planned import read_plan

    if policy is not None and any(one.sees_future for one in made_policies(policy)):
        raise typer.BadParameter(f"{policy} knows the future; it can only be replayed")
    if model is not None and not Path(model).is_file():
        raise typer.BadParameter(f"--model {model}: there is no such file; recrawl train makes one")
    if plan is not None and plan != "none":
        read_plan(Path(plan))


def _check_every(every: str) -> None:
    from recrawl.panel import parse_period

    try:
        if every != "crawl":
            parse_period(every)
    except ValueError as error:
        raise typer.BadParameter(f"--every tells when the next cycle begins: {error}") from None


def _frontier(
    seeds: list[str],
    pages: int,
    depth: int | None,
    order: str,
    trusted: list[str] | None,
    anywhere: bool,
    per_host: int | None,
    at_once: int,
) -> Frontier:
    """Where a first crawl begins, how far it goes and in which order."""
    from recrawl.crawl.frontier import BreadthFirst, ByRank, ByRelevance, Frontier, Limits
    from recrawl.urls import host, site

    starts = _listed(seeds)
    sites = None if anywhere else frozenset(site(host(url)) for url in starts)
    limits = Limits(pages, depth, per_host)
    frontier = Frontier(
        BreadthFirst(), limits, lambda url: sites is None or site(host(url)) in sites, at_once=max(2, 2 * at_once)
    )
    if order == "rank":
        frontier.order = ByRank(frontier.number(url) for url in (_listed(trusted) if trusted else starts))
    elif order != "breadth":
        from recrawl.models.relevance import Relevance

        model = Relevance.load(order)
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


def _summary(number: int, stats: dict[str, Any], n_cycles: int) -> None:
    """One cycle in words."""
    from recrawl.crawl.view import failures, told
    from recrawl.models.reasons import number as rounded

    found, screen = told(stats), console()
    head = f"cycle {number}: " if n_cycles > 1 else ""
    rate = found["visits"] / found["seconds"] if found["seconds"] else 0.0
    screen.print(
        f"{head}{found['visits']:,} visits in {found['seconds']:.0f} s ({rate:.1f}/s): {found['fetched']:,} fetched, "
        f"{found['not_modified']:,} unchanged, {found['gone']:,} gone, {found['failed']:,} failed; "
        f"{found['bytes'] / 1e6:.1f} MB",
        markup=False,
    )
    expected = f", {rounded(found['expected_new_links'])} were expected" if found["planned"] else ""
    screen.print(f"{found['new_links']:,} new links{expected}", markup=False)
    if found["failed"]:
        screen.print(f"failed: {failures(stats)}", style="yellow", markup=False)
    if found["written"] < found["visits"]:
        screen.print(
            f"{found['visits'] - found['written']:,} visits are not in the history ({found['spilled']:,} are in a file beside it, "
            "for recrawl import)",
            style="red",
            markup=False,
        )
    if found["ended"] != "finished":
        onward = "; the next crawl goes on with what was not fetched" if found["planned"] else ""
        screen.print(f"ended early: {found['ended']}{onward}", markup=False)
