"""Write the generated pages: commands.md, policies.md, api.md, and the table of settings in crawl.md.

``python -m docs.make`` writes them, ``--check`` only says whether they are up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import recrawl
from recrawl.cli import app
from recrawl.crawl.settings import CrawlOptions
from recrawl.policies import ALL, DEFAULT, Policy

FOLDER = Path(__file__).parent
SETTINGS = re.compile(r"(?<=<!-- settings: made by make docs -->\n).*(?=<!-- end of settings -->)", re.DOTALL)

#: Policy → when to use it. The test of the docs compares the names with `recrawl.policies.ALL`.
WHEN = {
    "expected-harvest": "The default. Use it unless a replay of your own history shows that another policy is better.",
    "round-robin": "If every page must be visited at the same pace, with fewer than three cycles of history, and as the "
    "baseline of every comparison.",
    "random": "As a baseline in replays. In a crawl, to sample pages without bias.",
    "last-observed": "Only to compare with Jayawardana et al. (2020); it does worse than random in replays.",
    "brute-force": "In replays with a budget of all pages: it shows the highest cost and full coverage.",
    "previous-count": "As a simple baseline where pages gain links at every visit.",
    "average-count": "As a simple baseline; hard to beat on short histories where every page is visited in every cycle.",
    "content-change-rate": "As a baseline for content; for new links it finds busy pages rather than rich ones.",
    "nutch-adaptive": "To see what Nutch would do with your budget. Lower `first_days` if your cycles are shorter than a day.",
    "stormcrawler-adaptive": "To see what StormCrawler would do with your budget; a fair choice if links are rare and stay.",
    "lambda-crawl": "If links or changes are rare, no page may be given up, and you want a published method.",
    "freshness-value": "For fresh copies: the default of `--goal content`. It gives up pages that change faster than you visit.",
    "history-aware": "If you have captures of a web archive and want pages whose next update is due.",
    "whole-sites": "If you keep whole websites, such as the personal sites of a list of people; name them with `--roots`.",
    "windowed-outdegree": "As a fast baseline for news pages, where rates differ by page and hardly by day.",
    "set-cover": "To compare with Pham, Santos and Freire (2018); if few pages show most new links of a site.",
    "windowed-clique": "If many pages of a site show the same new links; set `memory` so that overlap is forgotten.",
    "regression": "If pages gain links every hour or day and the budget is small; it does not explore.",
    "learning-to-rank": "As `regression`, if only the order of the pages matters to you; slower to train.",
    "regression-round-robin": "As `regression`, if some pages change their habits: a fixed share of the budget explores.",
    "bandit": "The best published policy for busy pages if you do not know how much to explore.",
    "predicted-count": "To test the models of `recrawl train` as a policy; it ignores that pages share links.",
    "predicted-probability": "As `predicted-count`, if any new link is worth the same as many.",
    "predicted-presence": "To compare with Dang et al. (2022); `predicted-probability` ranks better.",
    "predicted-rate": "To compare with Dang et al. (2022); for pages that should gain links often rather than many at once.",
    "change-frequency": "As the baseline of Radinsky and Bennett (2013) for content.",
    "single-expert": "To test whether the words of a page predict its own changes.",
    "related-experts": "To test whether related pages predict changes of content; needs the words of many cycles.",
    "freshness-oracle": "Only in replays: an upper bound for freshness.",
    "oracle": "Only in replays: an upper bound for policies that choose cycle by cycle.",
}

#: Heading → what it holds, and its public names. All of `recrawl.__all__` is here.
API = {
    "The history": ("What was seen and when.", ("History", "Visit", "import_files")),
    "The plan": (
        "The next pages to fetch, why, and how right past plans were. Options are those of "
        "[`recrawl plan`](commands.md#recrawl-plan), with underscores: `per_host`, `min_gap`.",
        ("plan", "Plan", "explain", "score"),
    ),
    "The past": (
        "What every policy would have found. Options are those of [`recrawl replay`](commands.md#recrawl-replay) and "
        "[`recrawl tune`](commands.md#recrawl-tune).",
        ("replay", "tune"),
    ),
    "Models": (
        "Which pages gain links, learnt from the past. Options are those of [`recrawl train`](commands.md#recrawl-train).",
        ("train",),
    ),
    "Policies": ("Who chooses; [Policies](policies.md) describes each.", ("Policy", "Budget")),
}
#: Public name → what it returns, where that has methods of its own.
RETURNS = {
    "score": ("recrawl.plan.score.Scores",),
    "replay": ("recrawl.report.replays.comparison.Replays",),
    "train": ("recrawl.models.trained.Model", "recrawl.models.trained.Predictions"),
}


def pages() -> dict[Path, str]:
    """What each generated file holds."""
    return {
        FOLDER / "commands.md": commands(),
        FOLDER / "policies.md": policies(),
        FOLDER / "api.md": api(),
        FOLDER / "crawl.md": with_settings((FOLDER / "crawl.md").read_text()),
    }


# -- commands ----------------------------------------------------------------------------------------------------------


def commands() -> str:
    """For every command its help and a table of its options."""
    parts = [
        "# Commands\n",
        "`make docs` writes this page from the commands' own help. Every command exits with 0 for success, 1 if the job failed, "
        "2 for wrong usage, 130 after Ctrl-C and 143 after SIGTERM; a reader that has seen enough (`| head -1`) is a success. "
        "The default history is `RECRAWL_HISTORY`, else `./history`.\n",
        "What people read shows control characters of titles, notes, URLs and file names written out (`\\x1b`), so that none can "
        "command a terminal; JSON, CSV and Parquet hold them as they are. A terminal that does not know a letter shows a likeness "
        "or `?`.\n",
    ]
    for name, command in leaves(typer.main.get_command(app)):
        parts.append(f"## recrawl {name}\n")
        parts.append(inspect.cleandoc(command.help or "").strip() + "\n")
        parts.append("| option | meaning | default |\n|---|---|---|")
        parameters = command.get_params(typer.Context(command))  # with the names of plug-ins in its lists
        parts += [option_row(parameter) for parameter in parameters if parameter.name != "help"]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def leaves(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its whole name; a group is replaced by its commands."""
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield before + name, command


def option_row(parameter: Any) -> str:
    """One option as a row of the table."""
    names = parameter.metavar or parameter.name.upper()
    if parameter.opts and parameter.opts[0].startswith("-"):
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    shown = "" if default in (None, False, [], ()) or callable(default) else f"`{default}`"
    return f"| `{names}` | {cell(getattr(parameter, 'help', '') or '')} | {shown} |"


def cell(text: str) -> str:
    """Plain text for the cell of a table.

    >>> cell("a|b, utm_*")
    'a/b, utm_\\\\*'
    """
    return text.replace("|", "/").replace("*", r"\*").replace("<", "&lt;")


def with_settings(page: str) -> str:
    """The page about crawling, with the current table of settings."""
    rows = [
        f"| `{name}` | {cell(meaning)} | {default and f'`{default}`'} |"
        for name, default, meaning in CrawlOptions.table()
    ]
    table = "\n".join(["| setting | meaning | default |", "|---|---|---|", *rows, ""])
    return SETTINGS.sub(lambda _: table, page)


# -- policies ----------------------------------------------------------------------------------------------------------


IMPORTANCE = {
    True: "counts ([how](guides/plan.md#pages-that-matter-more)).",
    False: "does not count, except that pages of importance 0 come last.",
}


def policies() -> str:
    """For every policy its description, when to use it, its settings and its paper."""
    ordered = sorted(ALL, key=lambda policy: policy.name != DEFAULT)  # the default first, else as in tables
    parts = [
        "# Policies\n",
        "A policy decides which pages to fetch within a budget. `make docs` writes this page from the policies themselves.\n",
        "Use one with `recrawl plan --policy NAME`, change a setting with `--set NAME.SETTING=VALUE`, and compare several on your "
        "own past with `recrawl replay --policies NAME,NAME` ([how](guides/policies.md)).\n",
        "| policy | name in its paper | what it does |\n|---|---|---|",
        *(
            f"| [`{policy.name}`](#{policy.name}) | {cell(policy.paper or '')} | {summary(policy)} |"
            for policy in ordered
        ),
        "",
        *(section(policy) for policy in ordered),
    ]
    return "\n".join(parts).rstrip() + "\n"


def section(policy: type[Policy]) -> str:
    """One policy."""
    prose = [part for part in paragraphs(policy) if not part.startswith(("References:", ">>>"))]
    papers = [part.removeprefix("References:").strip() for part in paragraphs(policy) if part.startswith("References:")]
    settings = ", ".join(f"`{name}` = `{shown(default)}`" for name, default in policy.default_settings().items())
    facts = [
        f"**When to use it:** {WHEN[policy.name]}" if policy.name in WHEN else "",
        f"**Importance of pages:** {IMPORTANCE[policy.weighs]}",
        f"**Settings:** {settings}." if settings else "",
        f"**Paper:** {' '.join(papers)}" if papers else "",
    ]
    return "\n\n".join([f"## {policy.name}", *prose, *filter(None, facts)]) + "\n"


def summary(policy: type[Policy]) -> str:
    """The first sentence of a policy's description, for the cell of a table."""
    return re.split(r"(?<=[.:;]) ", paragraphs(policy)[0].replace("\n", " "))[0].rstrip(":;.").replace("|", "/") + "."


def paragraphs(policy: type[Policy]) -> list[str]:
    """The description of a policy, cut at blank lines."""
    return [escaped(part) for part in re.split(r"\n\s*\n", inspect.getdoc(policy) or "") if part.strip()]


def escaped(text: str) -> str:
    """Prose whose stars are stars; what is between backticks stays as it is."""
    return re.sub(r"(`[^`]*`)|\*", lambda match: match[1] or r"\*", text)


def shown(default: Any) -> str:
    """A default as it is written."""
    return repr(default) if not isinstance(default, type) else default.__name__


# -- API ---------------------------------------------------------------------------------------------------------------


def api() -> str:
    """The reference of the public API; mkdocstrings fills in signatures and descriptions."""
    parts = [INTRODUCTION]
    for heading, (about, names) in API.items():
        parts.append(f"## {heading}\n\n{about}\n")
        for name in names:
            parts += [directive(f"recrawl.{name}", where) for where in [located(name)] if where]
            parts += [directive(where.rpartition(".")[2], where) for where in RETURNS.get(name, ())]
    parts.append(TESTING)
    return "\n".join(parts).rstrip() + "\n"


def located(name: str) -> str | None:
    """Where the thing with this public name is defined; None if it cannot be loaded."""
    try:
        getattr(recrawl, name)
    except (AttributeError, ImportError):
        return None
    return f"recrawl.{recrawl._PLACES[name].replace(':', '.')}"


def directive(heading: str, where: str) -> str:
    """What mkdocstrings replaces by the description."""
    label = heading.removeprefix("recrawl.")
    return f'::: {where}\n    options:\n      heading: "{heading}"\n      toc_label: "{label}"\n'


INTRODUCTION = """# Python API

`import recrawl as rc` gives you everything that the commands do. Imports are lazy, so a script loads only what it uses.

<!-- run -->
```python
import recrawl as rc

history = rc.History.open("history")
plan = rc.plan(history, budget="5%", per_host=5)
print(plan)
plan.write("tonight.txt", format="urls")
table = plan.to_pandas()

past = rc.replay(history, ["round-robin", rc.policies.Bandit(window=28)], budget="10%", every="7d")
print(past.to_pandas())
```

Times are aware datetimes in UTC. Names that end in `_per_day` are rates, those that begin with `n_` are counts, and those that
end in `_rate` are shares.
"""

TESTING = """## Tests for plug-ins

Contract suites for policies and sources of your own ([how](guides/plugins.md)).

::: recrawl.testing
    options:
      heading: "recrawl.testing"
      toc_label: "testing"
      members: [check_policy, check_source, tiny_world]
"""


if __name__ == "__main__":
    if "--check" in sys.argv:
        outdated = [path.name for path, text in pages().items() if not path.exists() or path.read_text() != text]
        sys.exit(f"out of date in docs: {', '.join(outdated)}; run make docs" if outdated else 0)
    for path, text in pages().items():
        path.write_text(text)
