"""Policies for the tests of parallel replays; they lie here so that other processes can import them."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime
from typing import ClassVar

from recrawl.policies import Budget, RoundRobin
from recrawl.policies.choice import Choice
from recrawl.world.pages import Pages


class Slow(RoundRobin):
    """Takes half a minute for a short history."""

    name: ClassVar[str] = "slow"

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """As round-robin, after a while."""
        time.sleep(1)
        return super().choose(pages, budget, now)


class Dying(RoundRobin):
    """Its process is killed, as for want of memory."""

    name: ClassVar[str] = "dying"

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Never returns."""
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError
