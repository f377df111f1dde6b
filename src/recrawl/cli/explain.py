"""``recrawl explain``: why a page is, or is not, in the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import JsonOption, checked_url, print_json
from recrawl.cli.option_groups import with_options
from recrawl.cli.planning import HistoryOptions, planning
from recrawl.plan.options import PlanOptions

if TYPE_CHECKING:
    from recrawl.plan.explain import PlanExplanation
    from recrawl.plan.plan import PlanRequest


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(with_options(explain))


def explain(
    url: Annotated[str, typer.Argument(help="The page.", callback=checked_url)],
    options: PlanOptions,
    past: HistoryOptions,
    json: JsonOption = False,
) -> None:
    """Explain why a page is, or is not, in the plan: the numbers behind it, what it overlaps with, what would have to change."""
    with planning(past, options, url) as (history, planner):
        explanation = planner.explain(url)
    related = _related(history, explanation.url)
    if json:
        print_json(explanation.__dict__ | {"related": related})
        return
    _show(explanation, related, planner.request)


def _related(history: Any, url: str, top: int = 5) -> list[dict[str, Any]]:
    """The pages whose text is most like this one's, if texts are known."""
    from recrawl.errors import NotEnoughData
    from recrawl.insight import related, vectors
    from recrawl.web.urls import page_id
    from recrawl.world import panel

    try:
        built = panel.build(history, "crawl", 0.0)
        texts = vectors.page_vectors(history, built, built.shape[1] - 1)
    except NotEnoughData:
        return []
    page = int((built.page == page_id(url)).argmax()) if (built.page == page_id(url)).any() else -1
    if page < 0 or not texts.known[page]:
        return []
    near = related.related_pages(texts.values, top)
    return [
        {"url": built.url[int(other)].as_py(), "weight": round(float(weight), 4)}
        for other, weight in zip(near.neighbour[page], near.weight[page], strict=True)
        if weight > 0
    ]


#: What the numbers mean that a policy multiplies a page's score with.
_FACTORS = {
    "urgency": "{:.0%} urgent (100%: waiting adds nothing, 0%: waiting loses nothing)",
    "safety": "{:.0%} of it would not be shown by any other page in time",
}


def _expert(expert: dict[str, Any]) -> str:
    """An expert of the page in words."""
    if expert["is_lost"]:
        return f"expert: {expert['url']} (it disappeared, and has no vote)"
    right = "" if expert["right"] is None else f", right in {expert['right']:.0%} of the cycles"
    return f"expert: {expert['url']} ({expert['weight']:.0%} of the votes{right})"


def _show(it: PlanExplanation, related: list[dict[str, Any]], request: PlanRequest) -> None:
    from recrawl.cli.screen import Screen
    from recrawl.core.words import count, number

    screen = Screen()
    rank = f"rank {it.rank:,} of {it.n_known:,}" if it.rank else f"no rank among {it.n_known:,}"
    screen.item(it.url)
    screen.line(
        f"{'in the plan' if it.is_picked else 'not in the plan'} of {count(request.pages, 'page')} by {it.policy}: {rank}"
    )
    if it.reason:
        screen.line(f"why it would be picked: {it.reason}" if not it.is_picked else f"why: {it.reason}")
    if not it.is_picked:
        screen.line(f"why it was not: {it.cause}; {it.what_would_change}")
    if it.passed_over_for:
        screen.line(f"passed over for: {it.passed_over_for}")
    changed = "" if it.probability_changed is None else f"; {it.probability_changed:.0%} likely to have changed"
    screen.line(
        f"a visit now: {number(it.expected)} {request.new_links} expected, {it.probability:.0%} likely to have any{changed}"
    )
    if it.importance != 1:
        screen.line(f"importance: {it.importance:g}, as its visits state it")
    weighed = {name: value for name, value in it.weighed.items() if name != "importance"}
    if weighed:
        factors = (_FACTORS.get(name, name + " {:.2f}").format(value) for name, value in weighed.items())
        screen.line("can it wait: " + "; ".join(factors))
    screen.line(
        f"so far: fetched in {count(it.n_visits, 'cycle')}, answered in {it.n_answers:,}; "
        f"{it.n_hits:,} of them found {request.in_focus(count(it.n_new_links, 'new link'))}"
        + (f"; changed at {it.n_changed:,} of {it.n_compared:,} compared" if it.n_compared else "")
        + (f"; the last {it.n_failures:,} failed" if it.n_failures else "")
    )
    last = it.last_visit_at.strftime("%Y-%m-%d %H:%M") if it.last_visit_at else "never"
    gained = it.last_change_at.strftime("%Y-%m-%d %H:%M") if it.last_change_at else "never"
    screen.line(f"last visit {last}, last {request.in_focus('new link')} {gained} (UTC)")
    for other, share in it.overlaps:
        screen.line(f"{share:.0%} of its {request.new_links} also on {other}", indent="  ")
    for expert in it.experts:
        screen.line(_expert(expert), indent="  ")
    for page in related:
        screen.line(f"related: {page['url']}", indent="  ")
