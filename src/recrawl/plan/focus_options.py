"""Which links count, as an option: for commands that take nothing else of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.core.options import check_values, option, read_values, same_option
from recrawl.plan.options import PlanOptions

if TYPE_CHECKING:
    from recrawl.models.link_relevance import Focus


@dataclass(frozen=True, kw_only=True)
class FocusOptions:
    """Only links to relevant pages count.

    >>> FocusOptions(relevance="recorded:2")
    Traceback (most recent call last):
    recrawl.errors.BadOption: relevance: the threshold 2 of 'recorded:2' is not between 0 and 1
    """

    relevance: str | None = same_option(PlanOptions, "relevance")

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)

    @property
    def focus(self) -> Focus | None:
        """What was asked for; None: all links count."""
        from recrawl.models.link_relevance import Focus

        return Focus.of(self.relevance)


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(FocusOptions):
    """The same with the threshold as an option of its own."""

    relevant_above: float | None = option(
        None,
        "Relevance above which a link counts, where --relevance does not say it; without --relevance: as recorded.",
        minimum=0.0,
        maximum=1.0,
    )

    @property
    def focus(self) -> Focus | None:
        """What was asked for; None: all links count."""
        from recrawl.models.link_relevance import Focus

        return Focus.of(self.relevance, self.relevant_above)
