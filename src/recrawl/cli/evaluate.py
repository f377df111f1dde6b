"""``recrawl evaluate``: the papers' evaluations on any history, of new links, of history-aware choices or of experts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli import evaluate_experts as experts_options
from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    checked_period,
    checked_rounds,
    console,
    note,
    open_history,
    print_json,
    steps,
)

METHODS = ("outlinks", "history-aware", "experts")
HISTORY_AWARE = "Of --method history-aware"
#: The options that not every method takes.
OWN = {
    "outlinks": (
        "min_share", "rounds", "links", "parts", "split", "quick", "repeat", "papers_rate", "trees", "related", "neighbours",
        "trusted",
    ),
    "history-aware": ("windows", "thetas", "ahead", "since", "until", "level", "estimator", "updates"),
    "experts": (
        "min_share", "parts", "change", "train", "trains", "experts", "numbers", "choose", "reselect", "window", "ahead_rounds",
        "alpha", "word_scale", "c", "models", "pages",
    ),
}  # fmt: skip
PARTS = "features, history, importance, correlation, maps, rankings, counts"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(evaluate)


def checked_every(text: str | None) -> str | None:
    """Rounds, or ``visits``."""
    return text if text in (None, "visits") else checked_rounds(text)


def evaluate(
    context: typer.Context,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="'outlinks': learnt predictions (papers 000 and 003); 'history-aware': rates of updates (paper 004); "
            "'experts': changes of content told by related pages (paper 001).",
        ),
    ] = "outlinks",
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="PERIOD",
            help="Rounds: 'crawl' as crawled, a period such as 1h or 7d, or the times at which they end; for history-aware also "
            "'visits', each at its own time. Default: crawl, for experts 1d.",
            callback=checked_every,
        ),
    ] = None,
    min_share: Annotated[
        float | None,
        typer.Option(
            "--min-share",
            min=0.0,
            max=1.0,
            help="Keep pages seen in at least this share of the rounds. Default: 1, for experts 0.5.",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=2, help="Use the last so many rounds; the papers have 10.")
    ] = 10,
    links: Annotated[
        str, typer.Option("--links", help="internal, external, all, or several with commas.")
    ] = "internal,external",
    parts: Annotated[
        str | None,
        typer.Option("--parts", help=f"What to evaluate: {PARTS}; of experts: {experts_options.PARTS}. Default: all."),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            "--split", help="'pages': the papers' random quarter; 'time': learn from past rounds, predict the last."
        ),
    ] = "pages",
    quick: Annotated[
        bool, typer.Option("--quick", help="The papers' tuned settings instead of a cross-validation for each model.")
    ] = False,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Repetitions with other seeds.")] = 3,
    papers_rate: Annotated[
        bool,
        typer.Option(
            "--papers-rate",
            help="Rates of related pages that include the predicted round, as in the papers: they leak.",
        ),
    ] = False,
    trees: Annotated[int | None, typer.Option("--trees", min=1, help="At most so many trees, to look quickly.")] = None,
    related: Annotated[int, typer.Option("--related", min=1, help="Related pages of each page.")] = 30,
    neighbours: Annotated[str, typer.Option("--neighbours", help="auto, exact or approximate.")] = "auto",
    trusted: Annotated[
        list[str] | None,
        typer.Option("--trusted", metavar="URL", help="A page or host that TrustRank starts from; repeat it."),
    ] = None,
    windows: Annotated[
        str, typer.Option("--windows", help="Weeks of history to try.", rich_help_panel=HISTORY_AWARE)
    ] = "1-12",
    thetas: Annotated[
        str, typer.Option("--thetas", help="Thresholds on the probability of an update.", rich_help_panel=HISTORY_AWARE)
    ] = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    ahead: Annotated[
        str,
        typer.Option(
            "--ahead",
            metavar="PERIOD",
            help="Updates within this time are to be told.",
            callback=checked_period,
            rich_help_panel=HISTORY_AWARE,
        ),
    ] = "7d",
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Evaluate from then on; earlier visits still count as history.",
            rich_help_panel=HISTORY_AWARE,
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Evaluate until then.", rich_help_panel=HISTORY_AWARE)
    ] = None,
    level: Annotated[
        str,
        typer.Option("--level", help="page, or site: all pages of a host at depth ≤ 2.", rich_help_panel=HISTORY_AWARE),
    ] = "page",
    estimator: Annotated[
        str, typer.Option("--estimator", help="simple, regular or maximum-likelihood.", rich_help_panel=HISTORY_AWARE)
    ] = "maximum-likelihood",
    updates: Annotated[
        str,
        typer.Option(
            "--updates",
            help="When an update was: 'interpolated', halfway to the visit before, or 'observed'.",
            rich_help_panel=HISTORY_AWARE,
        ),
    ] = "interpolated",
    change: experts_options.ChangeOption = "significant",
    train: experts_options.TrainOption = 50,
    trains: experts_options.TrainsOption = "30,50,70,90,120",
    experts: experts_options.ExpertsOption = 20,
    numbers: experts_options.NumbersOption = "1,2,5,10,15,20,30",
    choose: experts_options.ChooseOption = "cross-correlation",
    reselect: experts_options.ReselectOption = None,
    window: experts_options.WindowOption = 1,
    ahead_rounds: experts_options.AheadRoundsOption = 1,
    alpha: experts_options.AlphaOption = 0.3,
    word_scale: experts_options.WordScaleOption = 1.0,
    c: experts_options.COption = "1",
    models: experts_options.ModelsOption = 10,
    pages: experts_options.PagesOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """How well new links, or changes of content, can be predicted: the tables and figures of the papers.

    With --method outlinks, the default: from which features and by which models. Without --quick every model is tuned by
    cross-validation over the papers' grids, which takes its time. Nothing is learnt from the round that is predicted.

    With --method history-aware: whether a page, or a site, will have new links soon, from the rate of its past updates, for
    --windows of history and thresholds --thetas; which are updated first; and whether updates come like a Poisson process.

    With --method experts: whether a page's content will change significantly in the next round, as related pages tell; beside
    random pages, the page alone and its past changes.
    """
    chosen_method = chosen("--method", method, METHODS)[0]
    _refuse_options_of_others(context, chosen_method)
    if chosen_method == "history-aware":
        from recrawl.cli import evaluate_updates
        from recrawl.experiments.captures import LEVELS
        from recrawl.experiments.updates import UPDATES, UpdateSettings
        from recrawl.panel import parse_period
        from recrawl.rates import ESTIMATORS

        wanted = UpdateSettings(
            windows=evaluate_updates.parse_windows(windows),
            thetas=evaluate_updates.parse_thetas(thetas),
            ahead=parse_period(ahead),
            every=every or "crawl",
            level=chosen("--level", level, LEVELS)[0],
            estimator=chosen("--estimator", estimator, tuple(ESTIMATORS))[0],
            updates=chosen("--updates", updates, UPDATES)[0],
            since=evaluate_updates.parse_moment("--from", since),
            until=evaluate_updates.parse_moment("--until", until),
            seed=seed,
        )
        evaluate_updates.run(history, as_of, wanted, out, json)
        return
    if every == "visits":
        raise typer.BadParameter(
            f"--every visits is for --method history-aware; --method {chosen_method} goes from round to round"
        )
    if chosen_method == "experts":
        from recrawl.experiments.experts import PARTS as EXPERT_PARTS
        from recrawl.experiments.experts import ExpertSettings
        from recrawl.experts.selection import METHODS as CHOICES

        asked = ExpertSettings(
            every=every or "1d",
            notion=experts_options.checked_change(change),
            parts=chosen("--parts", parts, EXPERT_PARTS) if parts is not None else EXPERT_PARTS,
            n_train=train,
            n_trains=experts_options.checked_lengths(train, trains, ahead_rounds),
            k=experts,
            ks=experts_options.parse_counts("--numbers", numbers),
            method=chosen("--choose", choose, CHOICES)[0],
            reselect=reselect,
            l=window,
            sigma=ahead_rounds,
            alpha=alpha,
            word_scale=word_scale,
            cs=experts_options.parse_cs(c),
            n_models=models,
            min_share=0.5 if min_share is None else min_share,
            most_pages=pages,
            seed=seed,
        )
        experts_options.run(history, as_of, asked, out, json)
        return
    from recrawl.experiments.outlinks import evaluate as run
    from recrawl.experiments.settings import PARTS as KNOWN
    from recrawl.experiments.settings import SPLITS, Settings
    from recrawl.panel import build
    from recrawl.targets import LINKS

    settings = Settings(
        links=chosen("--links", links, LINKS),
        parts=chosen("--parts", parts, KNOWN) if parts is not None else KNOWN,
        split=chosen("--split", split, SPLITS)[0],
        seeds=tuple(range(seed, seed + repeat)),
        quick=quick,
        papers_rate=papers_rate,
        trees=trees,
    )
    method = chosen("--neighbours", neighbours, ("auto", "exact", "approximate"))[0]
    opened = open_history(history, as_of)
    with steps("what was new in each round") as on_step:
        panel = build(opened, every or "crawl", 0.0)
        panel = panel.window(max(0, panel.shape[1] - rounds), panel.shape[1], 1.0 if min_share is None else min_share)
        found = run(opened, panel, settings, on_step, k=related, method=method, trusted=trusted)
        if out:
            from recrawl.experiments.outlinks_page import write_outlinks_page

            write_outlinks_page(out, found)
    for line in found.notes:
        note(line)
    if json:
        print_json({"part": "about", **found.about()})
        for part, rows in found.rows.items():
            for row in rows:
                print_json({"part": part, **row})
        return
    from rich.text import Text

    from recrawl.experiments.outlinks_tables import scope, tables

    screen = console()
    screen.print(Text(scope(found)))
    for table in tables(found):
        screen.print(table)
    if out:
        screen.print(Text(f"all of it with plots: {out}"))


def _refuse_options_of_others(context: typer.Context, method: str) -> None:
    """An option that would silently do nothing is wrong usage."""
    for name in dict.fromkeys(name for names in OWN.values() for name in names):
        source = context.get_parameter_source(name)
        if name not in OWN[method] and source is not None and source.name == "COMMANDLINE":
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            owners = " or ".join(other for other in METHODS if name in OWN[other])
            raise typer.BadParameter(f"{option} belongs to --method {owners}")


def chosen(option: str, text: str, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """The names given with an option, with commas between; an unknown one is wrong usage."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise typer.BadParameter(
            f"{option} {unknown[0] if unknown else text!r} is not known; choose from {', '.join(known)}"
        )
    return names
