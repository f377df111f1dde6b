"""The same policies over a recorded past."""

from recrawl.core.rooms import callable_room
from recrawl.replay.compare import Comparison, against, compare
from recrawl.replay.many import replay_many
from recrawl.replay.past import past
from recrawl.replay.run import Row, replay
from recrawl.replay.runs import Replayed
from recrawl.replay.summary import ReplaySummary, coverage_over_time, summarise

__all__ = [
    "Comparison",
    "ReplaySummary",
    "Replayed",
    "Row",
    "against",
    "compare",
    "coverage_over_time",
    "past",
    "replay",
    "replay_many",
    "summarise",
]

callable_room(__name__, "recrawl.report.replays.api:replay")
