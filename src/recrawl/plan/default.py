"""Which policy plans when none is named: what a replay of this history recommended, else a fallback."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
import xxhash

from recrawl.core.words import count
from recrawl.errors import BadPlugin, UnknownPolicy
from recrawl.history import History
from recrawl.policies import DEFAULT, DEFAULT_FOR_CONTENT
from recrawl.policies.registry import policy_class
from recrawl.world.batches import CrawlPace, distinct_moments, rule_for
from recrawl.world.notions import ANY
from recrawl.world.roots import same_anywhere

if TYPE_CHECKING:
    from recrawl.models.link_relevance import Focus

ENOUGH_BATCHES = 3  #: after which pages were seen to gain links, or not
FALLBACK, SHORT_FALLBACK, FOR_CONTENT = DEFAULT, "round-robin", DEFAULT_FOR_CONTENT
#: By goal: what finds most links may keep few copies current.
FILES = {"links": "tuned.json", "content": "tuned-content.json"}


@dataclass(frozen=True)
class Default:
    """A policy with its settings, and why it is this one."""

    policy: str
    why: str
    settings: dict[str, Any] = field(default_factory=dict)


def default_policy(
    history: History,
    every: str = "auto",
    goal: str = "links",
    favour: str | None = None,
    *,
    roots: str = "domain",
    change: str = ANY,
    links: str = "all",
    focus: Focus | None = None,
) -> Default:
    """The recommendation of `recrawl tune` for this goal, such cycles and sites; without one a policy that suits the goal.

    `favour`: what a user asks for, coverage or freshness; only one policy can be asked. `roots`: what a site is. `change`: what
    makes a copy outdated. `links`: the kind that counts. `focus`: which links count as relevant; for each there is a
    recommendation of its own.
    """
    if favour is not None:
        return Default(FALLBACK, f"by {FALLBACK}, as --favour {favour} asks", {"favour": favour})
    tuned, missing = recommendation(history, goal, focus), ""
    counted = change if goal == "content" else links
    if tuned and _is_for(tuned, goal, every, roots, counted) and not _is_of_the_future(tuned, history):
        try:
            return _recommended(tuned)
        except (BadPlugin, UnknownPolicy) as error:
            missing = f" ({tuned['policy']}, which recrawl tune recommended, cannot be used: {error})"
    if goal == "content":
        return Default(FOR_CONTENT, f"by {FOR_CONTENT}, the default for --goal content{missing}")
    n_batches = _n_batches(history, every)
    if n_batches >= ENOUGH_BATCHES:
        return Default(
            FALLBACK, f"by {FALLBACK}{missing}; recrawl tune finds out whether another policy suits this history better"
        )
    so_far = f"{count(n_batches, 'batch', 'batches')} of visits so far, and {ENOUGH_BATCHES} are needed to learn from"
    return Default(
        SHORT_FALLBACK, f"by {SHORT_FALLBACK}: {so_far} (visits within minutes of each other count as one){missing}"
    )


def _is_for(tuned: dict[str, Any], goal: str, every: str, roots: str, counted: str) -> bool:
    """Whether a recommendation was made for such batches and sites, and for what counts: changes, or links of some kind.

    Recorded crawls are what is usually found by itself. What was tried without roots holds with any, since it needs none.
    """
    usual = ("auto", "crawl")
    is_every = tuned.get("every") == every or (every in usual and tuned.get("every") in usual)
    is_sites = tuned.get("roots", "domain") in ("domain", same_anywhere(roots))
    was_counted = tuned.get("change", ANY) if goal == "content" else tuned.get("links", "all")
    return is_every and is_sites and tuned.get("goal", "links") == goal and was_counted == counted


def _n_batches(history: History, every: str) -> int:
    """How many batches there are. What was learnt before does not say: visits that come later may show that they were fewer."""
    page, at = history.page_times()
    return len(rule_for(every, CrawlPace.of(page, at)).batch_ends(distinct_moments(at)))


def _recommended(tuned: dict[str, Any]) -> Default:
    """The policy that was recommended, by name or from its file; raises an error if it is not there any more."""
    name = tuned.get("place") or tuned["policy"]
    takes = policy_class(name).default_settings()
    when = str(tuned.get("made_at", ""))[:10]
    settings = {
        # JSON knows no tuples.
        key: tuple(value) if isinstance(value, list) and isinstance(takes.get(key), tuple) else value
        for key, value in tuned.get("settings", {}).items()
    }
    return Default(name, f"by {tuned['policy']}, as recrawl tune recommended on {when}", settings)


def _is_of_the_future(tuned: dict[str, Any], history: History) -> bool:
    """Whether a recommendation rests on visits that are not part of this history, as it was known at some moment."""
    try:
        return history.until is not None and datetime.fromisoformat(tuned.get("until", "")) > history.until
    except (TypeError, ValueError):
        return False


def _file(goal: str, focus: Focus | None) -> str:
    """The name under which a recommendation is kept: one for each goal, and one for each way to tell relevant links."""
    about = "" if focus is None else f"-{xxhash.xxh64_hexdigest(focus.name.encode())}"
    return FILES[goal].replace(".json", f"{about}.json")


def recommendation(history: History, goal: str = "links", focus: Focus | None = None) -> dict[str, Any] | None:
    """What was recommended last for a goal, None where nothing (readable) was."""
    try:
        value = orjson.loads(history.beside.read_bytes(_file(goal, focus)) or b"")
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("policy"), str) else None


def recommend(history: History, recommended: dict[str, Any], focus: Focus | None = None) -> None:
    """Remember a recommendation for its goal; a crash leaves the old one or the new one."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
    file = _file(recommended.get("goal", "links"), focus)
    history.beside.write_bytes(file, orjson.dumps(recommended, option=options))
