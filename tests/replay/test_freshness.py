"""What counts as a change, cycles that all see whole, and the words of a world."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from commands import command, output
from made_visits import laid_out
from making import imported, jsonl
from recrawl.errors import NotEnoughData, ReplayError
from recrawl.history import History
from recrawl.policies import Budget, RoundRobin, expert_panel, named
from recrawl.replay import past, replay, replay_many
from recrawl.replay.runs import Run, fingerprint
from recrawl.report.replays.comparison import gather
from recrawl.synth import Activity, SynthSettings, batches
from recrawl.testing import tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.notions import Digest, Shingles, Significant, notion_from
from recrawl.world.recorded import World
from recrawl.world.recording import record

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def visit(page: str, day: int, links: list[int], terms: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    fetched = {"url": f"https://e.org/{page}", "at": (NOON + timedelta(days=day)).isoformat(), **more}
    fetched |= {"links": [f"https://e.org/l{i}" for i in links]}
    return fetched if terms is None else fetched | {"terms": terms}


#: Page a: a little different on day 1, very much so on day 2. Page b: always the same words. Page c: words not known. All
#: pages show another link every day.
A = [{"x": 30, "y": 10}, {"x": 29, "y": 11}, {"x": 10, "y": 30}, {"x": 10, "y": 30}]


def three_pages() -> list[dict[str, Any]]:
    records = [visit("a", day, [day], terms) for day, terms in enumerate(A)]
    records += [visit("b", day, [10 + day], {"z": 9}) for day in range(4)]
    return records + [visit("c", day, [20 + day]) for day in range(4)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return imported(tmp_path, jsonl(three_pages()))[1]


# -- what counts as a change ---------------------------------------------------------------------------------------------------


def currents(world: World) -> list[float]:
    return [round(3 * row["current"]) for row in replay(world, RoundRobin(), Budget(1))]


def test_a_copy_is_current_until_a_significant_change(history: History) -> None:
    # Round-robin visits a, b, c. Any change: only what was just visited is current.
    assert currents(past(history)) == [1, 1, 1]
    # Significant: day 1, a and b; day 2, b alone (a has changed, c always does); day 3, b and c.
    assert currents(past(history, notion=Significant())) == [2, 1, 2]
    # Any difference of the words: a differs on days 1 and 2, of which the first was seen.
    assert currents(past(history, notion=Digest())) == [2, 1, 2]


def current_without_visits(world: World) -> list[list[bool]]:
    """Whether the copies of cycle 0 are current, cycle by cycle."""
    crawler = Crawler(world)
    current = [crawler.is_current().tolist()]
    for _ in range(world.n_cycles):
        crawler.visit(np.empty(0, np.int64))
        current.append(crawler.is_current().tolist())
    return current


def test_versions_are_wordings_and_pages_without_words_keep_theirs(history: History) -> None:
    plain, world = past(history), past(history, notion=Significant())
    assert world.wordings is not None
    version, plain_version = (laid_out(each, each.version) for each in (world, plain))
    assert [world.alike(version[0], later).tolist() for later in version] == [
        [True, True, True],
        [True, True, False],
        [False, True, False],
        [False, True, False],
    ]
    np.testing.assert_array_equal(version[:, 2] - plain_version[:, 2], [len(world.wordings.text)] * 4)
    assert fingerprint(world) != fingerprint(plain)
    assert fingerprint(past(history, notion=Significant(0.01))) != fingerprint(world)


def test_a_copy_is_compared_with_what_the_page_says_now(tmp_path: Path) -> None:
    """Not with what it said in between: small steps add up, and what changed back is current again."""
    words = {
        "drifts": [{"x": 30 - 6 * day, "y": 10 + 6 * day} for day in range(4)],
        "returns": [{"x": 30, "y": 10}, {"x": 10, "y": 30}, {"x": 30, "y": 10}, {"x": 30, "y": 10}],
    }
    records = [visit(page, day, [0], terms) for page, texts in words.items() for day, terms in enumerate(texts)]
    world = past(imported(tmp_path, jsonl(records))[1], notion=Significant())
    steps = [world.alike(*pair).tolist() for pair in pairwise(laid_out(world, world.version))]
    assert steps == [[True, False], [True, False], [True, True]]
    assert current_without_visits(world) == [[True, True], [True, False], [False, True], [False, True]]


def test_a_visit_tells_whether_such_a_change_came_since_the_last_one(history: History) -> None:
    crawler = Crawler(past(history, notion=Significant()))
    changed = [crawler.visit(np.arange(3)).visits.changed.tolist() for _ in range(3)]
    assert changed == [[0, 0, 1], [1, 0, 1], [0, 0, 1]]
    seldom = Crawler(past(history, notion=Significant()))
    seldom.visit(np.array([], np.int64))
    seldom.visit(np.array([], np.int64))
    assert seldom.visit(np.array([0, 1])).visits.changed.tolist() == [1, 0]


def test_a_page_that_nobody_saw_is_compared_with_what_it_was_before(tmp_path: Path) -> None:
    records = [each for each in three_pages() if not (each["url"].endswith("/a") and each["at"][8:10] == "04")]
    world = past(imported(tmp_path, jsonl(records))[1], notion=Significant())
    assert [now[0] for now in current_without_visits(world)] == [True, True, True, False]


def test_a_page_read_in_a_new_way_is_not_known_to_have_changed(tmp_path: Path) -> None:
    records = [each | ({"baseline": True} if each.get("terms") == A[2] else {}) for each in three_pages()]
    world = past(imported(tmp_path, jsonl(records))[1], notion=Significant())
    crawler = Crawler(world)
    assert [crawler.visit(np.array([0])).visits.changed.item() for _ in range(3)] == [0, -1, -1]  # both


def test_before_its_words_are_known_a_page_has_no_version(tmp_path: Path) -> None:
    records = [visit("a", day, [day], A[day] if day > 1 else None) for day in range(4)]
    world = past(
        imported(tmp_path, jsonl([*records, *(visit("b", day, [9], {"z": 1}) for day in range(4))]))[1], notion=Digest()
    )
    assert (laid_out(world, world.version)[:, 0] >= 0).tolist() == [False, False, True, True]
    assert [now[0] for now in current_without_visits(world)] == [False] * 4


def test_a_notion_needs_words(tmp_path: Path) -> None:
    history = imported(tmp_path, jsonl([visit(page, day, [day]) for page in "ab" for day in range(4)]))[1]
    with pytest.raises(NotEnoughData, match="import visits with text, terms or html"):
        past(history, notion=Significant())
    assert past(history, with_words=True).words is None


@pytest.mark.parametrize("notion", ["significant", "digest", "shingles", "shingles:0.5"])
def test_every_notion_makes_a_world(history: History, notion: str) -> None:
    assert past(history, notion=notion_from(notion)).n_cycles == 3


# -- words ---------------------------------------------------------------------------------------------------------------------


def carried(world: World) -> NDArray[Any]:
    """The versions of pages [cycle, page]: where a page has none, the one before."""
    version = laid_out(world, world.version)
    for before, now in pairwise(version):
        now[now < 0] = before[now < 0]
    return version


def said(world: World, cycle: int, page: int) -> float | None:
    """How many words, in the order of their counts; None where it is not known."""
    assert world.text is not None
    assert world.words is not None
    row = int(laid_out(world, world.text)[cycle, page])
    return None if row < 0 else sorted(world.words[row].data.tolist())  # type: ignore[return-value]


def test_texts_are_those_that_were_seen_and_are_not_carried_on(tmp_path: Path) -> None:
    early = [visit("a", -1, [7], {"q": 50})]  # before most pages: part of cycle 0
    records = [each for each in three_pages() if not (each["url"].endswith("/a") and each["at"][8:10] in ("02", "04"))]
    world = past(imported(tmp_path, jsonl(early + records))[1], with_words=True, notion=Significant())
    assert world.n_cycles == 3
    assert [said(world, cycle, 0) for cycle in range(4)] == [[50.0], [11.0, 29.0], None, [10.0, 30.0]]
    assert [said(world, cycle, 1) for cycle in range(4)] == [[9.0]] * 4
    assert [said(world, cycle, 2) for cycle in range(4)] == [None] * 4
    # The early one counts, too: cycle 1 is compared with it.
    version = carried(world)[:, 0]
    assert world.alike(version[:-1], version[1:]).tolist() == [False, True, False]


def test_the_past_from_a_moment_on_has_its_own_words_and_versions(history: History) -> None:
    world = past(history, since=NOON + timedelta(hours=12), with_words=True, notion=Significant())
    version = laid_out(world, world.version)[:, 0]
    assert world.alike(version[:-1], version[1:]).tolist() == [False, True]
    assert [said(world, cycle, 0) for cycle in range(3)] == [[11.0, 29.0], [10.0, 30.0], [10.0, 30.0]]


def test_visits_tell_texts_only_of_pages_that_came(history: History) -> None:
    world = past(history, with_words=True)
    crawler = Crawler(world)
    seen = crawler.visit(np.array([0, 2])).visits
    assert seen.words is world.words
    assert seen.text is not None
    assert world.text is not None
    assert seen.text.tolist() == [laid_out(world, world.text)[1, 0], -1]
    assert Crawler(past(history)).first.visits.text is None


@pytest.mark.parametrize("notion", [Significant(0.01), Shingles(0.5)])
def test_a_notion_is_saved_and_loaded(history: History, tmp_path: Path, notion: Any) -> None:
    world = past(history, notion=notion)
    (tmp_path / "saved").mkdir()
    world.save(tmp_path / "saved")
    loaded = World.load(tmp_path / "saved")
    assert loaded.wordings is not None
    assert loaded.wordings.notion == notion
    assert loaded.words is None
    assert current_without_visits(loaded) == current_without_visits(world)
    assert fingerprint(loaded) == fingerprint(world)


def test_a_world_with_words_is_cut_saved_and_loaded_with_them(history: History, tmp_path: Path) -> None:
    world = past(history, with_words=True)
    (tmp_path / "saved").mkdir()
    world.save(tmp_path / "saved")
    loaded = World.load(tmp_path / "saved")
    assert fingerprint(loaded) == fingerprint(world)
    assert loaded.words is not None
    assert (loaded.words != world.words).nnz == 0
    cut = world.until(1)
    assert cut.text is not None
    np.testing.assert_array_equal(laid_out(cut, cut.text), laid_out(world, world.text)[:2])  # type: ignore[arg-type]
    focused = world.relevant(np.zeros(len(world.link), np.bool_))
    np.testing.assert_array_equal(focused.text, world.text)  # type: ignore[arg-type]
    assert world.words is not None
    other = world.words.copy()
    other.data[0] += 1
    assert fingerprint(replace(world, words=other)) != fingerprint(world)


# -- experts on a made-up web with text ----------------------------------------------------------------------------------------

WEB = SynthSettings(
    pages=14,
    rounds=30,
    every=timedelta(days=1),
    seed=5,
    terms=True,
    failure_rate=0.03,
    words_per_text=60.0,
    internal=Activity(0.2, (2.0, 1.0), 4.0, 1.0),
)
QUICK = {"n_train": 6, "k": 4, "reselect": 5}


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> World:
    history = History.create(tmp_path_factory.mktemp("words") / "history")
    for batch in batches(WEB):
        history.append(batch)
    return past(history, with_words=True, notion=Digest())


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_panel, "N_OF_BOTH", 3)


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("experts", ["content", "cross-correlation", "dtw", "random"])
def test_related_experts_run_on_a_web_with_text(worded: World, experts: str) -> None:
    version = carried(worded)
    assert 0.02 < (version[1:] != version[:-1]).mean() < 0.9
    policy = named("related-experts", experts=experts, **QUICK)
    rows = list(replay(worded, policy, Budget(4), observed=10))
    assert len(rows) == 19
    assert all(0 < row["current"] <= 1 for row in rows)
    assert "related pages" in policy.predict()[1]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("name", ["change-frequency", "single-expert", "related-experts"])
def test_no_row_depends_on_texts_and_changes_that_come_later(worded: World, name: str) -> None:
    assert worded.text is not None
    assert worded.words is not None
    chance, last = np.random.default_rng(0), 20
    text, version, shows = worded.text.copy(), worded.version.copy(), worded.shows.copy()
    later = worded.cycle > last
    text[later] = chance.integers(-1, worded.words.shape[0], later.sum())
    version[later] = chance.integers(0, 99, later.sum())
    for page in range(worded.n_pages):
        its = later & (worded.row == page)
        shows[its] = chance.permutation(shows[its])
    other = replace(worded, text=text, version=version, shows=shows)
    rows = [timeless(replay(world, named(name, **QUICK), Budget(4), 8)) for world in (worded, other)]
    n = last - 8
    assert [row[:-1] for row in rows[0][:n]] == [row[:-1] for row in rows[1][:n]]
    assert rows[0] != rows[1]


def timeless(rows: Any) -> list[Any]:
    return [tuple(row[name] for name in ("cycle", "fetches", "found", "hosts", "current")) for row in rows]


def test_words_reach_the_processes_that_replay(worded: World) -> None:
    policies = [named(name, **QUICK) for name in ("single-expert", "related-experts")]
    alone = replay_many(worded, policies, [Budget(3)], workers=1, observed=9)
    shared = replay_many(worded, policies, [Budget(3)], workers=2, observed=9)
    assert [run.timeless_rows() for run in alone] == [run.timeless_rows() for run in shared]


# -- cycles that all see whole -------------------------------------------------------------------------------------------------


class Noting(RoundRobin):
    """Remembers what it was shown."""

    def start(self, pages: Any) -> None:
        self.seen_: list[list[int]] = []
        self.n_choices_ = 0

    def choose(self, *given: Any) -> Any:
        self.n_choices_ += 1
        return super().choose(*given)

    def observe(self, visits: Any) -> None:
        self.seen_.append(visits.page.tolist())


def growing() -> World:
    """Two pages; page p shows a new link every cycle."""
    return tiny_world([[{10 * p + t for t in range(cycle + 1)} for p in range(2)] for cycle in range(6)])


def test_observed_cycles_are_seen_whole_and_have_no_rows() -> None:
    policy = Noting()
    rows = list(replay(growing(), policy, Budget(1), observed=3))
    assert policy.seen_ == [[0, 1]] * 4 + [[0], [1]]
    assert policy.n_choices_ == 2
    assert [row["cycle"] for row in rows] == [4, 5]
    # In cycle 4 one page is visited and shows one new link, in cycle 5 the other with two: of four that are published.
    assert [(row["found"], row["published"]) for row in rows] == [(1, 2), (2, 2)]
    assert [row["current"] for row in rows] == [0.5, 0.5]


def test_what_was_observed_is_not_to_be_discovered() -> None:
    world = growing()
    (run,) = replay_many(world, [RoundRobin()], [Budget(2)], workers=1, observed=3)
    replays = gather(world, [run], observed=3)
    assert (replays.n_cycles, replays.discoverable) == (2, 4)
    assert replays.summaries["round-robin", 2].coverage == 1.0
    assert replays.first_at == "2026-03-02 03:00"


def test_runs_with_other_observed_cycles_are_kept_apart(tmp_path: Path) -> None:
    world = growing()
    assert Run(RoundRobin(), Budget(1), 2).describe() != Run(RoundRobin(), Budget(1)).describe()
    for observed in (0, 2, 2):
        (run,) = replay_many(world, [RoundRobin()], [Budget(1)], workers=1, folder=tmp_path, observed=observed)
        assert len(run.rows) == 5 - observed
    assert len(list(tmp_path.iterdir())) == 2


def test_observing_everything_leaves_nothing_to_choose(history: History) -> None:
    with pytest.raises(ReplayError, match="5 observed cycles of 5 leave none"):
        replay_many(growing(), [RoundRobin()], [Budget(1)], workers=1, observed=5)
    with pytest.raises(NotEnoughData, match="at most 2 with --observed"):
        past(history, observed=3)


def test_to_observe_nothing_is_to_begin_after_the_first_crawl(worded: World) -> None:
    assert timeless(replay(worded, RoundRobin(), Budget(3), 0)) == timeless(replay(worded, RoundRobin(), Budget(3)))


# -- the command ---------------------------------------------------------------------------------------------------------------


def replayed(history: History, *arguments: str) -> str:
    folder = str(history.store.folder)
    options = ("--history", folder, "--policies", "round-robin", "--budget", "1")
    return " ".join(output("replay", *options, *arguments).split())


def test_the_command_takes_both(history: History) -> None:
    fresh = [
        json.loads(replayed(history, *options, "--json"))["freshness"]
        for options in ((), ("--change", "significant"), ("--change", "significant", "--observed", "1"))
    ]
    # After one observed cycle: a on day 2 (b is current as well), then b on day 3.
    assert fresh == pytest.approx([1 / 3, 5 / 9, 2 / 3])
    shown = replayed(history, "--change", "significant", "--observed", "1")
    assert "before that, every policy saw 1 cycle completely" in shown
    assert "a copy is current until a change of the kind 'significant'" in shown
    assert "every policy saw" not in replayed(history)


def test_a_kind_of_change_that_does_not_exist_is_wrong_usage(history: History) -> None:
    done = command("replay", "--history", str(history.store.folder), "--change", "significent")
    assert done.code == 2
    assert "Did you mean 'significant'?" in done.message


def test_a_world_without_words_is_as_it_was(history: History) -> None:
    world = record(history)
    assert world.text is None
    assert world.words is None
