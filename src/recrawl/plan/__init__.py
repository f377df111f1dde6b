"""History, policy and budget → the pages to fetch next, each with a reason."""

from recrawl.plan.make import Plan, Request, make

__all__ = ["Plan", "Request", "make"]
