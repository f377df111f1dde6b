"""The policy protocol: a policy sees the pages and a budget, and chooses; then it sees what the visits showed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from recrawl.core.growing import merged
from recrawl.core.whole import Whole
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice, PageName, by_number
from recrawl.policies.explanation import Explanation
from recrawl.world.pages import Need, Pages, Visits

TOP_OVERLAPS = 5  #: pages that an explanation lists


class Policy:
    """Chooses the pages to fetch; one that learns also observes what the visits showed.

    The constructor remembers its settings under their own names. `start` forgets everything and begins with a collection; what
    is learnt from then on has a name that ends in ``_``. `choose` must not change anything: asked twice, it answers the same.

    >>> from recrawl.policies.select import take
    >>> class NewestFirst(Policy):
    ...     name = "newest-first"
    ...     def choose(self, pages, budget, now):
    ...         return take(-pages.age_hours(now), pages, budget, reason="visited a moment ago")
    >>> from recrawl.testing import check_policy
    >>> check_policy(NewestFirst)
    """

    name: ClassVar[str]
    paper: ClassVar[str | None] = None  # what the paper calls it
    needs: frozenset[Need] = frozenset()  # what pages and visits must bring
    weighs: ClassVar[bool] = False  # what a visit is worth by the importance of the page, where any is stated
    #: It can learn and choose for parts of a collection (whole sites), each in a process of its own: what else it rests on is asked
    #: of `Pages.whole` and `Visits.whole`, and its choices say whose `turn` it was.
    parted: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False  # plans list pages as it chose them, not by what each is worth
    #: Constructor parameters that are objects with settings of their own, which `--set` reaches by their plain names.
    components: ClassVar[dict[str, type]] = {}

    def start(self, pages: Pages) -> None:
        """Forget everything, and get ready for these pages."""

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known: `pages` has all of them, and those after the first `n_before` are new.

        Arrays that `start` would make longer for more pages get entries for the new ones, as `start` makes them: it is called on a
        copy. A policy that keeps anything else that depends on the number of pages overrides this.
        """
        fresh = copy.copy(self)
        fresh.start(pages)
        for name, value in list(vars(self).items()):
            if name.endswith("_"):
                setattr(self, name, merged(value, vars(fresh).get(name), len(pages)))

    def observe(self, visits: Visits) -> None:
        """Learn from a batch of visits, each with its own time; called once per cycle, also when nothing was visited."""

    def learn_part(self, visits: Visits) -> None:
        """Learn from some of the visits of a batch, as far as they tell by themselves. Policies that are `parted` only.

        `settle` follows, after all other visits of the batch were learnt from elsewhere. What is asked of the whole before anything
        has changed may be interrupted.
        """
        self.observe(visits)

    def settle(self, whole: Whole) -> None:
        """Learn what all pages share, by asking the whole. May be interrupted and called again."""

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The pages to fetch now. Changes nothing."""
        raise NotImplementedError

    def explain(
        self, pages: Pages, page: int, now: datetime, budget: Budget | None = None, name: PageName = by_number
    ) -> Explanation:
        """What the policy thinks of one page; with a budget, as if that were all there is to spend per cycle.

        Its rank is that in a choice without limit. Where caps are filled by other pages then, it is that in the choice itself.
        """
        unlimited = Budget(len(pages)) if budget is None else replace(budget, pages=len(pages), per_cycle=budget.pages)
        ranked = self.choose(pages, unlimited, now)
        place = np.flatnonzero(ranked.page == page)
        if budget is not None and not len(place):
            ranked = self.choose(pages, budget, now)
            place = np.flatnonzero(ranked.page == page)
        if not len(place):
            return Explanation(page=page, rank=None, score=None, reason="", overlaps=self._overlaps(page))
        i = int(place[0])
        factors = {key: float(values[i]) for key, values in ranked.factors.items() if np.isfinite(values[i])}
        return Explanation(
            page=page,
            rank=i + 1,
            score=float(ranked.score[i]),
            reason=ranked.why(i, name),
            factors=factors,
            overlaps=self._overlaps(page),
        )

    @property
    def is_settled(self) -> bool:
        """Whether it has seen enough to choose by what it learnt, so that it can be judged by what it finds."""
        return True

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        """Pages that showed the same new links, for policies that keep track of it."""
        return ()

    # -- settings ------------------------------------------------------------------------------------------------------

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Every setting and its default; those of components are among them under their own names."""
        of_parts = {name: value for kind in cls.components.values() for name, value in _defaults_of(kind).items()}
        return {name: value for name, value in _defaults(cls) if name not in cls.components} | of_parts

    def _component(self, parameter: str, given: Any, settings: dict[str, Any]) -> Any:
        """The object given for a parameter of `components`, or one made from those of the settings that are its own.

        Settings that are used are taken out of `settings`.
        """
        kind = self.components[parameter]
        parts = kind.components if issubclass(kind, Policy) else {}
        own = {name: settings.pop(name) for name in (_defaults_of(kind).keys() | parts.keys()) & settings.keys()}
        if given is not None and own:
            raise TypeError(
                f"{type(self).__name__}: give {parameter} or its settings ({', '.join(sorted(own))}), not both"
            )
        return kind(**own) if given is None else given

    def _no_more(self, settings: dict[str, Any]) -> None:
        """Refuse settings that belong to no component."""
        if settings:
            known = ", ".join(self.default_settings())
            raise TypeError(f"{type(self).__name__} has no setting {next(iter(settings))!r}. It has: {known}")

    def settings(self) -> dict[str, Any]:
        """What the constructor remembered: with these settings it makes an equal policy.

        The settings of a component are among them under their own names; a component of another kind than usual is there itself.

        >>> from recrawl.policies import AverageCount, RegressionRoundRobin
        >>> RegressionRoundRobin(inner=AverageCount()).settings()
        {'inner': AverageCount(), 'share': 0.9}
        """
        return dict(sorted(self._settings()))

    def _settings(self) -> Iterator[tuple[str, Any]]:
        for name, _ in _defaults(type(self)):
            value = getattr(self, name)
            if type(value) is not self.components.get(name):
                yield name, value
            elif isinstance(value, Policy):
                yield from value.settings().items()
            elif is_dataclass(value):
                yield from ((each.name, getattr(value, each.name)) for each in fields(value))

    def __repr__(self) -> str:
        defaults = type(self).default_settings()
        changed = [(name, value) for name, value in self.settings().items() if _differs(value, defaults.get(name))]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed)})"


def _defaults(kind: type) -> list[tuple[str, Any]]:
    """Parameters of a constructor and their defaults."""
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return []
    parameters = inspect.signature(kind).parameters.values()
    return [(each.name, each.default) for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]


def _defaults_of(kind: type) -> dict[str, Any]:
    """The settings of a component: of a policy also those of its own components."""
    return kind.default_settings() if issubclass(kind, Policy) else dict(_defaults(kind))


def _differs(value: Any, default: Any) -> bool:
    return value is not default and (isinstance(value, np.ndarray) or bool(value != default))
