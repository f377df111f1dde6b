"""History, policy and budget → the pages to fetch next, each with a reason.

``recrawl.plan(history, budget="10%", policy=None, per_host=None, …)`` makes a plan: see `planner.plan` for the function
and `options.PlanOptions` for every option. `planner` is the only way to a plan.
"""

from recrawl.core.rooms import callable_room

callable_room(__name__, "recrawl.plan.planner:plan")
