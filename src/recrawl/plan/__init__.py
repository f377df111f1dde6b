"""History, policy and budget → the pages to fetch next, each with a reason. `planner` is the only way to a plan."""

from recrawl import callable_room

callable_room(__name__)
