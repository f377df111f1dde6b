"""``recrawl explain``: why a page is, or is not, in the plan."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.common import (
    JsonOption,
    console,
    print_json,
)
from recrawl.cli.grouped import with_options
from recrawl.cli.planning import Asked, BudgetOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(with_options(explain))


def explain(
    url: Annotated[str, typer.Argument(help="The page.")],
    asked: Asked,
    budget: BudgetOption = "10%",
    json: JsonOption = False,
) -> None:
    """Why a page is, or is not, in the plan: the numbers behind, what it overlaps with, what would have to change."""
    from recrawl.plan.explain import explain as run
    from recrawl.urls import canonical

    opened, situation, now, request = asked.situation(budget)
    told = run(situation, request, canonical(url), now)
    related = _related(opened, told.url)
    if json:
        print_json(told.__dict__ | {"related": related})
        return
    _tell(told, related, request.pages)


def _related(history: Any, url: str, top: int = 5) -> list[dict[str, Any]]:
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


#: What it means by what the policy weighed a page.
_WEIGHED = {
    "urgency": "{:.0%} urgent (100%: it holds no more by waiting, 0%: it loses nothing)",
    "safety": "{:.0%} of it no other page will show in time",
}


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
    changed = "" if told.probability_changed is None else f"; {told.probability_changed:.0%} likely to have changed"
    say(f"a visit now: {number(told.expected)} new links expected, {told.probability:.0%} likely to have any{changed}")
    if told.weighed:
        say("can it wait: " + "; ".join(_WEIGHED[name].format(value) for name, value in told.weighed.items()))
    say(
        f"so far: asked for in {told.n_visits} cycle{'s' * (told.n_visits != 1)}, answered in {told.n_answers}; "
        f"{told.n_hits} of them found {told.n_new_links} new link{'s' * (told.n_new_links != 1)}"
        + (f"; changed at {told.n_changed} of {told.n_compared} compared" if told.n_compared else "")
        + (f"; the last {told.n_failures} failed" if told.n_failures else "")
    )
    last = told.last_visit_at.strftime("%Y-%m-%d %H:%M") if told.last_visit_at else "never"
    gained = told.last_change_at.strftime("%Y-%m-%d %H:%M") if told.last_change_at else "never"
    say(f"last visit {last}, last new link {gained} (UTC)")
    for other, share in told.overlaps:
        say(f"  new links {share:.0%} the same as on {other}")
    for page in related:
        say(f"  related: {page['url']}")
