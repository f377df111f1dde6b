"""The same work on many machines: functions that run on the workers of Sail or Apache Spark."""

from recrawl.engine.session import Engine, open_engine

__all__ = ["Engine", "open_engine"]
