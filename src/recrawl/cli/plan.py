"""``recrawl plan`` and ``recrawl explain``: the next pages to fetch, and why one is or is not among them."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    checked_period,
    console,
    note,
    open_history,
    print_json,
    steps,
    written,
)
from recrawl.cli.policy_options import checked_budgets

if TYPE_CHECKING:
    from recrawl.plan import Plan, Request
    from recrawl.plan.make import Situation


class Format(StrEnum):
    """What a crawler takes."""

    urls = "urls"
    jsonl = "jsonl"
    csv = "csv"
    scrapy = "scrapy"
    urlfrontier = "urlfrontier"
    heritrix = "heritrix"
    nutch = "nutch"


BudgetOption = Annotated[
    str,
    typer.Option(
        "--budget",
        "-b",
        metavar="N",
        help="How many pages: a number, or a share such as 10%.",
        callback=checked_budgets,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", "-p", help="Who chooses. Default: what recrawl tune recommended, else a fallback."),
]
PerHostOption = Annotated[int | None, typer.Option("--per-host", min=0, help="At most so many pages of one host.")]
PerSiteOption = Annotated[
    int | None, typer.Option("--per-site", min=0, help="At most so many pages of one registered domain.")
]
MinGapOption = Annotated[
    str | None,
    typer.Option(
        "--min-gap",
        metavar="PERIOD",
        help="No page sooner after its last visit.",
        callback=lambda p: p and checked_period(p),
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="No URL that begins so, or fits so (*, ?); repeat it."),
]
RetryGoneOption = Annotated[bool, typer.Option("--retry-gone", help="Also pages that answered 404 or 410.")]
ThresholdOption = Annotated[
    float | None,
    typer.Option("--threshold", min=0.0, max=1.0, help="Only pages at least so likely to have new links."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="POLICY.SETTING=VALUE", help="A setting of the policy; repeat it.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("plan")(plan)
    app.command("explain")(explain)


def plan(
    budget: BudgetOption,
    policy: PolicyOption = None,
    per_host: PerHostOption = None,
    per_site: PerSiteOption = None,
    min_gap: MinGapOption = None,
    threshold: ThresholdOption = None,
    exclude: ExcludeOption = None,
    retry_gone: RetryGoneOption = False,
    format: Annotated[
        Format | None, typer.Option("--format", help="For which crawler; default jsonl with --out.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write it; .gz and .zst compress, - is stdout.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many pages to show.")] = 20,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan in the history.")] = False,
    settings: SetOption = None,
    every: EveryOption = "crawl",
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """The next pages to fetch, each with what to expect of it and why; for a person, a script or a crawler.

    The plan is kept in the history: when the visits have come back, recrawl score tells how right it was. With --as-of it is
    made as if it were that time.
    """
    from recrawl.plan.formats import FORMATS, records
    from recrawl.plan.make import chosen
    from recrawl.plan.score import store

    opened, situation, now, request = _situation(
        history, as_of, policy, settings, every, budget, threshold, per_host, per_site, min_gap, exclude, retry_gone
    )
    made = chosen(situation, request, now)
    if not dry_run:
        store(opened, made)
    if out or format:
        with written(out or "-") as stream:
            for part in FORMATS[(format or Format.jsonl).value](made):
                stream.write(part)
        if out and out != "-":
            note(f"{len(made):,} pages: {out}")
        return
    if json:
        for row in records(made):
            print_json(row)
        return
    _show(made, top)


def explain(
    url: Annotated[str, typer.Argument(help="The page.")],
    budget: BudgetOption = "10%",
    policy: PolicyOption = None,
    per_host: PerHostOption = None,
    per_site: PerSiteOption = None,
    min_gap: MinGapOption = None,
    threshold: ThresholdOption = None,
    exclude: ExcludeOption = None,
    retry_gone: RetryGoneOption = False,
    settings: SetOption = None,
    every: EveryOption = "crawl",
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """Why a page is, or is not, in the plan: the numbers behind, what it overlaps with, what would have to change."""
    from recrawl.plan.explain import explain as run
    from recrawl.urls import canonical

    opened, situation, now, request = _situation(
        history, as_of, policy, settings, every, budget, threshold, per_host, per_site, min_gap, exclude, retry_gone
    )
    told = run(situation, request, canonical(url), now)
    related = _related(opened, situation, told.url)
    if json:
        print_json(told.__dict__ | {"related": related})
        return
    _tell(told, related, request.pages)


def _situation(
    history: str,
    as_of: str | None,
    policy: str | None,
    settings: list[str] | None,
    every: str,
    budget: str,
    threshold: float | None,
    per_host: int | None,
    per_site: int | None,
    min_gap: str | None,
    exclude: list[str] | None,
    retry_gone: bool,
) -> tuple[Any, Situation, datetime, Request]:
    """What both commands begin with."""
    from datetime import UTC

    from recrawl.cli.policy_options import budget_pages, made_policies
    from recrawl.panel import parse_period
    from recrawl.plan.default import default_policy
    from recrawl.plan.make import Request, survey

    opened = open_history(history, as_of)
    if policy is None:
        chosen_by = default_policy(opened, every)
        note(chosen_by.why)
        name, known = chosen_by.policy, chosen_by.settings
    else:
        name, known = policy, {}
    (one,) = made_policies(name, settings or (), **known)
    if one.sees_future:
        raise typer.BadParameter(
            f"{name} knows the future; it can only be replayed. Try recrawl replay --policies {name}"
        )
    with steps("what was visited") as on_step:
        situation = survey(opened, one, every, on_step)
    request = Request(
        pages=budget_pages(budget, len(situation.pages))[0],
        per_host=per_host,
        per_site=per_site,
        min_gap=parse_period(min_gap) if min_gap else timedelta(0),
        exclude=tuple(exclude or ()),
        retry_gone=retry_gone,
        every=every,
        threshold=threshold,
    )
    return opened, situation, opened.until or datetime.now(UTC), request


def _show(made: Plan, top: int) -> None:
    from rich.table import Table

    from recrawl.models.reasons import number
    from recrawl.plan.formats import records

    table = Table("page", "expected", "any", "last visit", "last new link", "why", pad_edge=False)
    for column in (1, 2):
        table.columns[column].justify = "right"
    for row in list(records(made))[:top]:
        table.add_row(
            row["url"],
            number(row["expected_new_links"]),
            f"{row['probability']:.0%}",
            _short(row["last_visit_at"]),
            _short(row["last_change_at"]),
            row["reason"],
        )
    screen = console()
    table.title, table.title_justify = f"the next pages, by {made.policy}", "left"
    if len(made):
        screen.print(table)
    total, curve = float(made.expected.sum()), made.yield_by_budget
    screen.print(
        f"{len(made):,} of {made.n_known:,} known pages, {number(total)} new links expected; plan {made.id}",
        markup=False,
    )
    if made.left_out:
        screen.print("not picked: " + ", ".join(f"{n:,} {cause}" for cause, n in made.left_out.items()), markup=False)
    if len(curve):
        steps_shown = sorted({max(1, round(len(made) * share)) for share in (0.5, 1, 2)})
        shown = ", ".join(f"{k:,} pages: {number(curve[min(k, len(curve)) - 1])}" for k in steps_shown)
        screen.print(f"expected by budget: {shown}; one page more would bring {number(made.gain_at_cut)}", markup=False)
    if made.n_starving:
        screen.print(
            f"{made.n_starving:,} pages have waited more than {made.request.max_wait.days} days and are not in the plan; "
            f"so that none waits longer, --budget {made.budget_needed:,} would be needed in every cycle",
            style="yellow",
            markup=False,
        )


def _short(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else "never"


def _related(history: Any, situation: Situation, url: str, top: int = 5) -> list[dict[str, Any]]:
    """The pages whose text is most like this one's, if texts are known."""
    from recrawl import panel, related, vectors
    from recrawl.errors import NotEnoughData
    from recrawl.urls import page_id

    try:
        built = panel.build(history, "crawl", 0.0)
        found = vectors.page_vectors(history, built, built.shape[1] - 1)
    except NotEnoughData:
        return []
    page = int((built.page == page_id(url)).argmax()) if (built.page == page_id(url)).any() else -1
    if page < 0 or not found.known[page]:
        return []
    near = related.related_pages(found.values, top)
    return [
        {"url": built.url[int(other)].as_py(), "weight": round(float(weight), 4)}
        for other, weight in zip(near.neighbour[page], near.weight[page], strict=True)
        if weight > 0
    ]


def _tell(told: Any, related: list[dict[str, Any]], budget: int) -> None:
    from recrawl.models.reasons import number

    screen = console()

    def say(text: str) -> None:
        screen.print(text, markup=False)

    screen.print(told.url, markup=False, style="bold")
    place = f"rank {told.rank:,} of {told.n_known:,}" if told.rank else f"none of {told.n_known:,} ranks"
    say(f"{'in the plan' if told.is_picked else 'not in the plan'} of {budget:,} pages by {told.policy}: {place}")
    if told.reason:
        say(f"speaks for it: {told.reason}")
    if not told.is_picked:
        say(f"stands in the way: {told.cause}; {told.what_would_change}")
    if told.passed_over_for:
        say(f"passed over for: {told.passed_over_for}")
    say(f"a visit now: {number(told.expected)} new links expected, {told.probability:.0%} likely to have any")
    say(
        f"so far: {told.n_visits} visits, {told.n_answers} answered; {told.n_hits} of them found {told.n_new_links} new links"
        + (f"; the last {told.n_failures} failed" if told.n_failures else "")
    )
    last = told.last_visit_at.strftime("%Y-%m-%d %H:%M") if told.last_visit_at else "never"
    changed = told.last_change_at.strftime("%Y-%m-%d %H:%M") if told.last_change_at else "never"
    say(f"last visit {last}, last new link {changed} (UTC)")
    for other, share in told.overlaps:
        say(f"  new links {share:.0%} the same as on {other}")
    for page in related:
        say(f"  related: {page['url']}")
