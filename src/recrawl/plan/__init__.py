"""History, policy and budget → the pages to fetch next, each with a reason. `planner` is the only way to a plan."""

from recrawl.core.rooms import callable_room

callable_room(__name__, "recrawl.plan.planner:plan")
