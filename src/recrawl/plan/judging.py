"""Which links count in a plan where only relevant ones do, and whether what was learnt before still rests on the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from recrawl.history import History, Timeline
from recrawl.models.link_relevance import Focus, LinkJudgements, RelevanceEvidence, shown_links


@dataclass
class LinkJudge:
    """Judges the links of new visits by what the history knows of their pages; judgements are carried with what was learnt."""

    history: History
    focus: Focus
    on_note: Callable[[str], None]

    @cached_property
    def evidence(self) -> RelevanceEvidence:
        """What visits say of pages; read once."""
        return RelevanceEvidence.of(self.history, self.focus)

    def still_holds(self, judged: LinkJudgements | None) -> bool:
        """Whether links that were learnt from are still judged the same."""
        return judged is not None and judged.still_hold(self.focus, self.history, self.evidence)

    def focused(self, judged: LinkJudgements, timeline: Timeline) -> Timeline:
        """The visits with only the links that count; judgements of new links are added."""
        judged.add(self.focus, self.history, self.evidence, shown_links(timeline))
        return replace(timeline, sets=timeline.sets.among(judged.relevant))

    def finish(self, judged: LinkJudgements) -> None:
        """Say what was judged; raises an error where nothing could be."""
        judged.check_judged(self.focus)
        judged.tell(self.focus, self.on_note)
