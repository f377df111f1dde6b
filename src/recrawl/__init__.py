"""Which known pages should a crawler fetch next?

recrawl learns from past visits where new links and changes appear, and plans the next fetches.

>>> import recrawl as rc
>>> [name for name in rc.__all__ if name[0].islower()]
['explain', 'import_files', 'plan', 'policies', 'replay', 'score', 'testing', 'train', 'tune']

Everything below is imported when it is first used, so that ``import recrawl`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recrawl.core.rooms import load
from recrawl.core.version import __version__

if TYPE_CHECKING:
    from recrawl import policies, testing
    from recrawl.history import History
    from recrawl.history.ingest import import_files
    from recrawl.models.trained import train
    from recrawl.plan.plan import Plan
    from recrawl.plan.planner import explain, plan
    from recrawl.plan.score import score
    from recrawl.policies import Budget, Policy
    from recrawl.report.replays.api import replay, tune
    from recrawl.web.visit import Visit

#: Public name → where it is. A new public name is one line here and one above.
_PLACES = {
    "Budget": "policies.budget:Budget",
    "History": "history:History",
    "Plan": "plan.plan:Plan",
    "Policy": "policies.base:Policy",
    "Visit": "web.visit:Visit",
    "explain": "plan.planner:explain",
    "import_files": "history.ingest:import_files",
    "plan": "plan.planner:plan",
    "policies": "policies",
    "replay": "report.replays.api:replay",
    "score": "plan.score:score",
    "testing": "testing",
    "train": "models.trained:train",
    "tune": "report.replays.api:tune",
}

_ROOMS = ("plan", "policies", "replay", "testing")  # public names that are packages or modules of recrawl as well

__all__ = [
    "Budget",
    "History",
    "Plan",
    "Policy",
    "Visit",
    "__version__",
    "explain",
    "import_files",
    "plan",
    "policies",
    "replay",
    "score",
    "testing",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'recrawl' has no attribute {name!r}")
    if name in _ROOMS:
        return import_module(f"recrawl.{name}")
    value = load(f"recrawl.{_PLACES[name]}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
