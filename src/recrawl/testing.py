"""The contract that every policy keeps, as checks that an author of a policy can run.

>>> from recrawl.policies import named
>>> check_policy(lambda: named("windowed-clique"))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
from scipy import sparse

from recrawl.core.arrays import Flags, Ints, LinkLists
from recrawl.core.snapshot import restored, taken
from recrawl.core.times import moment
from recrawl.errors import BadState
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import LEVEL, Choice, Sentence
from recrawl.sources.contract import check_source as check_source  # re-exported: one module for all checks
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Need, Pages, Visits
from recrawl.world.readings import CARRY, ONLY_RECORDED
from recrawl.world.recorded import FAILED, GONE, NOTHING, World

if TYPE_CHECKING:
    from recrawl.history import History

Make = Callable[[], Policy]
Shown = Iterable[int] | int  # the links of a page in a cycle, or one of NOTHING, GONE, FAILED
Said = Mapping[int, int] | None  # how often a page says each word in a cycle; None: its words are not known
_START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday


def tiny_world(
    shows: Sequence[Sequence[Shown]],
    *,
    site: Sequence[int] | None = None,
    host: Sequence[int] | None = None,
    hours: Sequence[float] | None = None,
    n_pages: int | None = None,
    says: Sequence[Sequence[Said]] | None = None,
    known_from: Sequence[int] | None = None,
    between: str = ONLY_RECORDED,
    importance: Sequence[Sequence[float]] | None = None,
) -> World:
    """A world from plain lists: ``shows[cycle][page]`` holds the numbers of the links shown, or NOTHING, GONE or FAILED.

    Without `site` three pages share one, without `host` every site is a host; `hours` are the times of the cycles, one per hour
    if not given. `n_pages` is needed only where there is no cycle to count them in. ``says[cycle][page]``: the words as well.
    `known_from`: the cycle from which on each page is known, ascending; 0 if not given. `between`: see `recrawl.world.recorded`.
    ``importance[cycle][page]``: how much a page matters by the end of a cycle in which it was recorded; 1 if not given.

    >>> tiny_world([[{1}, {2}], [{1, 3}, FAILED], [{3}, {2, 3, 4}]]).discoverable
    2
    """
    n = len(shows[0]) if n_pages is None else n_pages
    site = [i // 3 for i in range(n)] if site is None else site
    host = site if host is None else host
    hours = range(len(shows)) if hours is None else hours
    lists = [[_list(shown) for shown in cycle] for cycle in shows]
    sets = sorted({each for cycle in lists for each in cycle if isinstance(each, tuple)})
    link = sorted({each for one in sets for each in one})
    number, small = ({each: i for i, each in enumerate(all_)} for all_ in (sets, link))
    shape = (len(shows), n)
    matrix = np.array([number.get(each, each) for cycle in lists for each in cycle], np.int32).reshape(shape)
    cycle, row = np.nonzero(matrix != NOTHING)
    shown = matrix[cycle, row]
    time = np.array([(_START + timedelta(hours=hour)).timestamp() * 1e6 for hour in hours], np.int64)
    first_shown = _first_shown(lists, small)
    return World(
        page=np.arange(n),
        url=pa.array([f"https://h{host[i]:04}.s{site[i]:04}.example/{i:04}" for i in range(n)], pa.string()),
        site=_renumbered(site),
        host=_renumbered(host),
        first_cycle=np.zeros(n, np.int32) if known_from is None else np.array(known_from, np.int32),
        time=time,
        row=row.astype(np.int32),
        cycle=cycle.astype(np.int32),
        shows=shown,
        version=np.where(shown >= 0, shown, -1).astype(np.int64),
        is_baseline=np.zeros(len(row), np.bool_),
        sets=LinkLists(
            np.cumsum([0, *(len(one) for one in sets)], dtype=np.int64),
            np.array([small[each] for one in sets for each in one], np.int32),
        ),
        link=np.array(link, np.int64),
        first_shown=first_shown,
        first_at=time[first_shown] if len(time) else np.zeros(len(link), np.int64),
        between=between,
        importance=None if importance is None else np.asarray(importance, np.float64).reshape(shape)[cycle, row],
        **({} if says is None else _words(says, cycle, row, shown)),
    )


@contextmanager
def tiny_history(n_days: int = 6) -> Iterator[History]:
    """A small history in a temporary folder, for examples: three pages of one host, visited once per day.

    ``/news`` gains four links per day, ``/blog`` one, ``/about`` none.

    >>> with tiny_history() as history:
    ...     history
    History(18 visits to 3 pages, 2026-03-02 to 2026-03-07)
    """
    from tempfile import TemporaryDirectory

    from recrawl.history import History
    from recrawl.web.visit import Visit

    with TemporaryDirectory() as folder:
        history = History.create(Path(folder) / "history")
        history.add(
            Visit(
                url=f"https://e.org/{name}",
                at=_START + timedelta(days=day, minutes=minute),
                links=[f"https://e.org/{name}/{i}" for i in range(per_day * (day + 1))],
            )
            for day in range(n_days)
            for minute, (name, per_day) in enumerate((("news", 4), ("blog", 1), ("about", 0)))
        )
        yield history


def _words(says: Sequence[Sequence[Said]], cycle: Ints, page: Ints, shows: Any) -> dict[str, Any]:
    """The texts as numbers, in the order in which they are first said, and their words."""
    texts: dict[tuple[tuple[int, int], ...], int] = {}
    said = [
        [-1 if one is None else texts.setdefault(tuple(sorted(one.items())), len(texts)) for one in c] for c in says
    ]
    entries = [(text, word, n) for pairs, text in texts.items() for word, n in pairs if n]
    row, word, n = np.array(entries, np.int64).reshape(-1, 3).T
    counts = sparse.csr_matrix((n.astype(np.float32), (row, word)), shape=(len(texts), int(word.max(initial=0)) + 1))
    text = np.array([said[c][p] for c, p in zip(cycle, page, strict=True)], np.int64)
    text = np.where(shows >= 0, text, -1).astype(np.int32)
    return {"text": text, "words": counts}


def _list(shown: Shown) -> Any:
    return shown if isinstance(shown, int) else tuple(sorted(set(shown)))


def _renumbered(group: Sequence[int]) -> Ints:
    return np.unique(np.asarray(group, np.int64), return_inverse=True)[1]


def _first_shown(lists: list[list[Any]], number: dict[int, int]) -> Any:
    first = np.zeros(len(number), np.int32)
    for cycle in range(len(lists) - 1, -1, -1):
        for shown in lists[cycle]:
            if isinstance(shown, tuple):
                first[[number[link] for link in shown]] = cycle
    return first


@dataclass(frozen=True)
class Case:
    """A collection and the budget of every cycle; after the last one the budgets start again."""

    world: World
    budgets: tuple[Budget, ...]


def check_policy(make: Make) -> None:
    """Raise an AssertionError that says how the policy breaks the contract; `make` gives a new one with the same settings.

    In each of `cases`: every choice keeps `check_choice`; equal policies choose alike, byte for byte; to ask twice, or for
    another budget or another time in between, changes nothing; `start` makes a used policy as good as new; what it is given
    stays as it is; `explain` agrees with `choose`; settings can be read back; more pages may become known (`extend`); what was
    learnt can be kept and restored, and goes on equal.
    """
    used = make()
    _check_settings(used)
    for name, case in cases().items():
        try:
            answers = _answers(make(), case)
            if answers != _answers(used, case, is_asked_more=True):
                raise AssertionError(_difference(make, case, answers))
            if Need.WORDS not in used.needs and Need.FUTURE not in used.needs and _can_be_kept(used):
                assert answers == _answers(make(), case, is_restored=True), (
                    "kept and restored, the policy chooses differently: something that it learnt has no name that ends in _, "
                    "or depends on what is not kept"
                )
        except Exception as problem:
            raise AssertionError(f"{used.name}, {name}: {problem}") from problem


def _difference(make: Make, case: Case, answers: list[bytes]) -> str:
    """Why a used policy that was asked more answers something else: the first of three reasons that holds."""
    if answers != _answers(make(), case):
        return "two new policies choose differently"
    if answers != _answers(make(), case, is_asked_more=True):
        return "`choose` is not pure: after it was asked something else, the policy chooses differently"
    return "after `start` a used policy does not choose like a new one"


def _check_settings(policy: Policy) -> None:
    kind = type(policy)
    assert isinstance(getattr(policy, "name", None), str), f"{kind.__name__} has no name"
    try:
        settings = policy.settings()
    except AttributeError as problem:
        raise AssertionError(
            f"{kind.__name__} does not remember its setting {problem.name!r} under that name"
        ) from None
    again = kind(**settings)
    assert repr(again) == repr(policy), f"{policy!r} made again from its settings is {again!r}"


def check_generated(make: Make, n: int, seed: int = 0) -> None:
    """As `check_choice`, for every choice in `n` collections made up at random."""
    chance = np.random.default_rng(seed)
    for i in range(n):
        policy = make()
        try:
            deque(choices(policy, generated(chance)), maxlen=0)
        except Exception as problem:
            raise AssertionError(f"{policy.name}, collection {i} of seed {seed}: {problem}") from problem


def choices(policy: Policy, case: Case, is_asked_more: bool = False, is_restored: bool = False) -> Iterator[Choice]:
    """Every choice of a policy, cycle by cycle, checked; the policy sees what its visits show.

    `is_asked_more`: before each real question it is asked others, which must not matter. `is_restored`: before each it is kept and
    restored, which must not matter either.
    """
    crawler = Crawler(case.world, policy.needs | {Need.UPDATES})
    policy.start(crawler.pages)
    _observe(policy, crawler.first.visits)
    for cycle in range(1, case.world.n_cycles + 1):
        budget = case.budgets[(cycle - 1) % len(case.budgets)]
        n_before = crawler.meet_pages()
        if len(crawler.pages) > n_before:
            policy.extend(crawler.pages, n_before)
        if is_restored:
            policy = _restored(policy)
        before = _bytes((crawler.pages, budget))
        if is_asked_more:
            _ask_more(policy, crawler.pages, budget, moment(int(case.world.time[cycle])))
        choice = policy.choose(crawler.pages, budget, moment(int(case.world.time[cycle])))
        after = _bytes((crawler.pages, budget))
        assert after == before, f"cycle {cycle}: `choose` changed the pages or the budget"
        check_choice(choice, crawler.pages, budget)
        yield choice
        _observe(policy, crawler.visit(choice.page, choice.memo).visits)


def _ask_more(policy: Policy, pages: Pages, budget: Budget, now: datetime) -> None:
    """Questions beside the real one: another budget, another time, and about single pages."""
    policy.choose(pages, Budget(len(pages), per_cycle=budget.pages), now)
    policy.choose(pages, Budget(1), now + timedelta(hours=5))
    choice = policy.choose(pages, budget, now)
    for page in {0, len(pages) - 1} if len(pages) else set():
        explanation = policy.explain(pages, page, now, budget)
        assert (explanation.rank is None) == (explanation.reason == ""), (
            f"page {page} has the rank {explanation.rank} and the reason {explanation.reason!r}"
        )
        is_picked = page in choice.page
        assert explanation.rank is not None or not is_picked, f"page {page} is chosen, but `explain` has no rank for it"


def _observe(policy: Policy, visits: Visits) -> None:
    before = _bytes(visits)
    policy.observe(visits)
    assert _bytes(visits) == before, "`observe` changed the visits"


def check_choice(choice: Choice, pages: Pages, budget: Budget) -> None:
    """One choice: within budget and caps, no page twice, none that is barred, with causes and reasons that fit."""
    page, n = choice.page, len(pages)
    assert len(page) <= budget.pages, f"{len(page)} pages chosen with a budget of {budget.pages}"
    assert page.dtype.kind == "i", f"pages must be whole numbers, not {page.dtype}"
    assert ((page >= 0) & (page < n)).all(), f"of {n} pages these were chosen: {page}"
    assert len(np.unique(page)) == len(page), f"a page was chosen twice: {page}"
    if budget.barred is not None:
        assert not budget.barred[page].any(), f"barred pages were chosen: {page[budget.barred[page] > 0]}"
    for what, cap, group in (("host", budget.per_host, pages.host), ("site", budget.per_site, pages.site)):
        if cap is not None and len(page):
            most = int(np.bincount(group[page]).max())
            assert most <= cap, f"{most} pages of one {what} chosen, {cap} are allowed"
    _check_causes(choice, n)
    _check_words(choice)


def _check_causes(choice: Choice, n: int) -> None:
    if choice.cause is None:
        return
    assert len(choice.cause) == n, f"{len(choice.cause)} causes for {n} pages"
    picked: Flags = np.zeros(n, np.bool_)
    picked[choice.page] = True
    wrong = np.flatnonzero(picked != (choice.cause == Cause.PICKED))
    assert not len(wrong), f"the causes of pages {wrong} do not say whether they were picked"
    if choice.overlaps is not None:
        assert len(choice.overlaps) == n, f"{len(choice.overlaps)} overlaps for {n} pages"
        overlapping = choice.cause == Cause.OVERLAP
        assert picked[choice.overlaps[overlapping]].all(), (
            "a page is left out for its overlap with one that was not picked"
        )


def _check_words(choice: Choice) -> None:
    n = len(choice)
    arrays = {"score": choice.score, "expected": choice.expected, **choice.factors}
    for name, values in arrays.items():
        assert values is None or len(values) == n, (
            f"{name} has {0 if values is None else len(values)} entries for {n} pages"
        )
    assert choice.expected is None or not (choice.expected < 0).any(), "fewer than 0 new links are expected"
    for i in range(n):
        assert choice.why(i).strip(), f"page {choice.page[i]} was chosen without a reason"


def _can_be_kept(policy: Policy) -> bool:
    """A policy that cannot is learnt again for every plan, which is slower, but no fault."""
    try:
        taken(policy)
    except BadState:
        return False
    return True


def _restored(policy: Policy) -> Policy:
    """The policy as the next process would have it: kept, written as text, and restored."""
    tree, arrays = taken(policy)
    copies = [array.copy() for array in arrays]
    again: Policy = restored(orjson.loads(orjson.dumps(tree)), copies, type(policy))
    return again


def _answers(policy: Policy, case: Case, is_asked_more: bool = False, is_restored: bool = False) -> list[bytes]:
    return [_bytes(_written_out(choice)) for choice in choices(policy, case, is_asked_more, is_restored)]


def _written_out(choice: Choice) -> tuple[Any, ...]:
    """A choice with everything that is worked out only when it is asked for."""
    every = np.arange(len(choice))
    reasons = tuple(choice.why(i) for i in range(len(choice)))
    spread = choice.spread(every, LEVEL) if choice.spread is not None else None
    return replace(choice, reason=Sentence(""), spread=None), reasons, spread


def _bytes(thing: Any) -> bytes:
    """A record as bytes: two are equal if everything in them is."""
    parts: list[bytes] = []
    _add_bytes(thing, parts)
    return b"|".join(parts)


def _add_bytes(thing: Any, parts: list[bytes]) -> None:
    """What is most frequent comes first: this is asked for all that a policy sees, before and after."""
    if isinstance(thing, np.ndarray):
        parts += (thing.dtype.str.encode(), thing.tobytes())
    elif thing is None or isinstance(thing, (int, float, str)):
        parts.append(repr(thing).encode())
    elif isinstance(thing, tuple):
        for each in thing:
            _add_bytes(each, parts)
    elif isinstance(thing, dict):
        for key in sorted(thing):
            parts.append(key.encode())
            _add_bytes(thing[key], parts)
    elif is_dataclass(thing):
        for each in fields(thing):
            _add_bytes(getattr(thing, each.name), parts)
    elif sparse.issparse(thing):
        _add_bytes((thing.data, thing.indices, thing.indptr, thing.shape), parts)
    else:
        parts.append(repr(thing).encode())


@cache
def cases() -> dict[str, Case]:
    """Collections that a policy must cope with, by what is special about them."""
    plain = _living(9, 15)
    one_host = tiny_world(plain, host=[0] * 9, site=[0] * 9)
    barred = np.array([0, Cause.GONE, 0, Cause.EXCLUDED, 0, 0, Cause.TOO_SOON, 0, 0], np.int8)
    never = [[NOTHING if t == 0 and p % 2 else shown for p, shown in enumerate(cycle)] for t, cycle in enumerate(plain)]
    failing = [[FAILED if p % 3 == 1 else shown for p, shown in enumerate(cycle)] for cycle in plain]
    dying = [[GONE if t > 5 and p > 5 else shown for p, shown in enumerate(cycle)] for t, cycle in enumerate(plain)]
    later = [
        [NOTHING if t < first else shown for shown, first in zip(cycle, (0, 0, 0, 1, 1, 4, 4, 9, 12), strict=True)]
        for t, cycle in enumerate(plain)
    ]
    sparse_records = [
        [shown if (3 * p + 5 * t) % 7 < 3 or t in (0, 15) else NOTHING for p, shown in enumerate(cycle)]
        for t, cycle in enumerate(plain)
    ]
    backwards = tiny_world(plain, hours=[10 - t if t % 4 else t for t in range(16)])
    said = _talking(9, 15)
    importance = [[float((7 * p + t // 4) % 5) / 2 for p in range(9)] for t in range(len(plain))]  # some are 0
    seldom = [[one if (p + t) % 3 else None for p, one in enumerate(cycle)] for t, cycle in enumerate(said)]
    return {
        "an ordinary collection": Case(tiny_world(plain), (Budget(3),)),
        "a budget of 0": Case(tiny_world(plain), (Budget(0),)),
        "a budget above the number of pages": Case(tiny_world(plain), (Budget(20),)),
        "cycles without visits": Case(tiny_world(plain), (Budget(4), Budget(0), Budget(0))),
        "barred pages": Case(tiny_world(plain), (Budget(4, barred=barred), Budget(9, barred=barred))),
        "every page barred": Case(
            tiny_world(plain), (Budget(3), Budget(3, barred=np.full(9, Cause.EXCLUDED, np.int8)))
        ),
        "two pages a host": Case(tiny_world(plain, host=[0, 0, 0, 0, 0, 1, 1, 1, 2]), (Budget(8, per_host=2),)),
        "one page a site": Case(tiny_world(plain), (Budget(8, per_site=1),)),
        "caps of 0": Case(tiny_world(plain), (Budget(3), Budget(3, per_host=0), Budget(3, per_site=0))),
        "both caps and barred pages": Case(tiny_world(plain), (Budget(5, 2, 1, barred),)),
        "all pages on one host with a cap of 1": Case(one_host, (Budget(5, per_host=1),)),
        "a cap just below the budget": Case(one_host, (Budget(5, per_host=4), Budget(9, per_site=8))),
        "all pages on one host": Case(one_host, (Budget(5),)),
        "no page": Case(tiny_world([[]] * 15), (Budget(3), Budget(0), Budget(2, 1, 1, np.zeros(0, np.int8)))),
        "one page": Case(tiny_world([[{t}] for t in range(15)]), (Budget(1), Budget(3), Budget(0))),
        "pages never visited": Case(tiny_world(never), (Budget(2),)),
        "nothing visited at all": Case(tiny_world([[NOTHING] * 9, *plain[1:]]), (Budget(2),)),
        "pages that always fail": Case(tiny_world(failing), (Budget(4),)),
        "nothing but failures": Case(tiny_world([[FAILED] * 9] * 15), (Budget(4),)),
        "pages that vanish": Case(tiny_world(dying), (Budget(5),)),
        "nothing new, ever": Case(tiny_world([[{p} for p in range(9)]] * 15), (Budget(3),)),
        "pages without links": Case(tiny_world([[set[int]()] * 9] * 15), (Budget(3),)),
        "pages that become known later": Case(
            tiny_world(later, known_from=[0, 0, 0, 1, 1, 4, 4, 9, 12]), (Budget(2), Budget(4))
        ),
        "pages that stay as they were between records": Case(tiny_world(sparse_records, between=CARRY), (Budget(3),)),
        "a clock that goes backwards": Case(backwards, (Budget(3),)),
        "a clock that stops": Case(tiny_world(plain, hours=[5] * 16), (Budget(3),)),
        "no cycle after the first": Case(tiny_world(plain[:1]), (Budget(3),)),
        "pages whose words are known": Case(tiny_world(plain, says=said), (Budget(4),)),
        "pages whose words are known at times": Case(tiny_world(failing, says=seldom), (Budget(4), Budget(0))),
        "pages without words": Case(tiny_world(plain, says=[[{}] * 9] * 16), (Budget(4),)),
        "words that are never known": Case(tiny_world(plain, says=[[None] * 9] * 16), (Budget(4),)),
        "one page with words": Case(
            tiny_world([[{t}] for t in range(15)], says=[[{0: t}] for t in range(15)]), (Budget(1),)
        ),
        "pages of different importance": Case(
            tiny_world(plain, importance=importance), (Budget(3), Budget(20), Budget(4, per_site=1))
        ),
    }


def _living(n_pages: int, n_cycles: int) -> list[list[Shown]]:
    """Page p gains p links per cycle and keeps the last few; every third shows what its neighbour shows."""

    def shown(page: int, cycle: int) -> set[int]:
        page -= page % 3 == 2
        return {1_000 * page + i for i in range(max(0, page * (cycle - 2)), page * (cycle + 1) + 1)}

    return [[shown(page, cycle) for page in range(n_pages)] for cycle in range(n_cycles + 1)]


def _talking(n_pages: int, n_cycles: int) -> list[list[Said]]:
    """Page p says something else every p + 1 cycles, and its neighbour says most of it as well."""
    return [[{p // 2: 5, 7 + t // (p + 1): 3, 40: p} for p in range(n_pages)] for t in range(n_cycles + 1)]


def generated(chance: np.random.Generator) -> Case:
    """A small collection made up at random: sizes, hosts, failures, times, caps, barred pages, words."""
    n, n_cycles = int(chance.integers(0, 13)), int(chance.integers(0, 7))
    site = np.sort(chance.integers(0, 1 + n // 2, n))
    host = site * 2 + chance.integers(0, 2, n)
    hours = np.cumsum(chance.choice([-30.0, 0.0, 0.5, 1.0, 24.0], n_cycles + 1, p=[0.05, 0.05, 0.2, 0.5, 0.2]))
    marks = chance.choice([0, NOTHING, FAILED, GONE], (n_cycles + 1, n), p=[0.8, 0.08, 0.08, 0.04]).tolist()
    low = chance.integers(0, 12, (n_cycles + 1, n)).tolist()
    size = chance.integers(0, 6, (n_cycles + 1, n)).tolist()
    shows: list[list[Shown]] = [
        [mark or range(low[t][p] + t, low[t][p] + t + size[t][p]) for p, mark in enumerate(row)]
        for t, row in enumerate(marks)
    ]
    budgets = tuple(_budget(chance, n) for _ in range(3))
    says = _made_up_words(chance, n_cycles + 1, n) if chance.random() < 0.5 else None
    world = tiny_world(shows, site=site.tolist(), host=host.tolist(), hours=hours.tolist(), n_pages=n, says=says)
    return Case(world, budgets)


def _made_up_words(chance: np.random.Generator, n_cycles: int, n: int) -> list[list[Said]]:
    known, first, times = (chance.integers(0, high, (n_cycles, n)).tolist() for high in (5, 3, 4))
    return [
        [{first[t][p]: times[t][p] + 1, 5 + p // 2: 2} if known[t][p] else None for p in range(n)]
        for t in range(n_cycles)
    ]


def _budget(chance: np.random.Generator, n: int) -> Budget:
    per_host, per_site = (None if chance.random() < 0.5 else int(chance.integers(0, 4)) for _ in range(2))
    causes = chance.choice([0, Cause.TOO_SOON, Cause.GONE, Cause.EXCLUDED], n, p=[0.7, 0.1, 0.1, 0.1]).astype(np.int8)
    return Budget(int(chance.integers(0, n + 3)), per_host, per_site, None if chance.random() < 0.5 else causes)
