"""History, policy and budget → the pages to fetch next, each with a reason. `planner` is the only way to a plan."""
