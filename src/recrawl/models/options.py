"""How a model is trained: one record of options, which the command line and the API share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.core.options import check_values, option, read_values
from recrawl.core.suggest import unknown
from recrawl.errors import BadOption, RecrawlError
from recrawl.insight.choices import FEATURE_SETS, LINKS, MAX_HISTORY, NEIGHBOUR_SEARCHES, OUTLINKS, RELATED_BY, TARGETS
from recrawl.world.every import parse_rounds

if TYPE_CHECKING:
    from recrawl.models.predictor import Recipe


def _check_learner(name: str) -> None:
    from recrawl.models.learners import named

    try:
        named(name)
    except RecrawlError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of ``recrawl train``, checked as soon as they are given.

    >>> TrainOptions(links="internal,all").links
    ('internal', 'all')
    >>> TrainOptions(neighbours="exakt")
    Traceback (most recent call last):
    recrawl.errors.BadOption: No neighbours named 'exakt'. Did you mean 'exact'? Known: auto, exact, approximate
    """

    every: str = option(
        "crawl",
        "How past visits are grouped into rounds: 'crawl' (as crawled), a period such as 1h or 7d, or the times at which "
        "rounds end.",
        metavar="PERIOD",
        check=parse_rounds,
    )
    rounds: int = option(60, "Number of rounds to learn from, the last ones.", minimum=2)
    links: tuple[str, ...] = option(
        LINKS, "Links to predict: internal, external, all, or several separated by commas.", metavar="KIND"
    )
    target: str = option(
        OUTLINKS,
        "Whose new links are learnt: outlinks (on a page), or inlinks (on other pages, and leading to it).",
        metavar="NAME",
        choices=TARGETS,
    )
    features: str = option(
        "default",
        "Feature set: default, look-back-look-around, summaries, everything or static.",
        metavar="NAME",
        choices=FEATURE_SETS,
    )
    learner: str = option(
        "forecast",
        "Learner: forecast, hurdle, poisson, extra-trees, lightgbm, … (an unknown name lists all).",
        metavar="NAME",
        check=_check_learner,
    )
    look_back: int = option(
        MAX_HISTORY, "Number of past rounds used one by one as features.", minimum=0, maximum=MAX_HISTORY
    )
    related: int = option(30, "Number of related pages per page.", minimum=1)
    related_by: str = option(
        "content",
        "What makes pages related: content (similar text), or new links that come and go together (correlation, dtw).",
        metavar="NAME",
        choices=RELATED_BY,
    )
    neighbours: str = option(
        "auto", "Search for related pages: auto, exact or approximate.", choices=NEIGHBOUR_SEARCHES
    )
    trusted: tuple[str, ...] = option(
        (),
        "Page or host that TrustRank starts from (feature sets 'everything' and 'static'). Repeatable.",
        metavar="URL",
    )
    with_content: bool = option(
        False, "Leave out pages without content: a visit that found an empty page (0 bytes) does not count."
    )
    seed: int = option(0, "Seed of all random choices.")

    def __post_init__(self) -> None:
        read_values(self)
        links = dict.fromkeys(part.strip() for text in self.links for part in text.split(","))
        object.__setattr__(self, "links", tuple(links))
        for kind in links:
            if kind not in LINKS:
                raise BadOption(unknown("kind of links", kind, LINKS))
        check_values(self)

    def recipe(self) -> Recipe:
        """The same as a recipe, which the model remembers."""
        from recrawl.models.predictor import Recipe

        return Recipe(
            every=self.every,
            features=self.features,
            learner=self.learner,
            links=self.links,  # type: ignore[arg-type]  # checked
            history=self.look_back,
            rounds=self.rounds,
            k=self.related,
            seed=self.seed,
            neighbours=self.neighbours,
            related_by=self.related_by,
            trusted=self.trusted,
            with_content=self.with_content,
            target=self.target,
        )
