"""What was seen and when: append, read, as_of, what was new on each visit."""

from recrawl.history.batch import BatchBuilder
from recrawl.history.history import History, count_new
from recrawl.history.link_sets import LinkSets
from recrawl.history.novelty import Novelty
from recrawl.history.page_timeline import PageTimeline, page_timeline
from recrawl.history.store import Appended
from recrawl.history.summary import Summary, summary
from recrawl.history.timeline import Timeline
from recrawl.history.visit_table import VisitTable

__all__ = [
    "Appended",
    "BatchBuilder",
    "History",
    "LinkSets",
    "Novelty",
    "PageTimeline",
    "Summary",
    "Timeline",
    "VisitTable",
    "count_new",
    "page_timeline",
    "summary",
]
