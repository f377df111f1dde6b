"""Paging by time, for an index that has no pages of its own: an answer that is full is asked for again in smaller spans."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from recrawl.errors import ArchiveError
from recrawl.sources.wayback.captures import EXACT, IndexPage, IndexRequest, moment, timestamp

_BEGINNING = "19900101000000"
_SECOND = timedelta(seconds=1)
_OF_ONE_SECOND = 100  # answers may be this much larger where a span cannot be made smaller

Window = tuple[str, str]  #: from and to, 14 digits each, both included


def ask_by_time(request: IndexRequest, now: datetime, ask: Callable[[Window, int], IndexPage]) -> IndexPage:
    """The next span of a question; the resume key is the list of spans that are left. `ask` gets a span and the size of the answer.

    Of one page the captures come in order of time: a full answer is continued at its last capture. Of many pages they come page by
    page, so a full answer says nothing about the rest of its span, which is halved.
    """
    window, *left = _spans(request, now)
    size = request.page_size if window[0] < window[1] else request.page_size * _OF_ONE_SECOND
    page = ask(window, size)
    if page.n_lines >= size:
        left = [*_smaller(window, page, is_sorted=request.match == EXACT), *left]
    return IndexPage(page.captures, " ".join("-".join(span) for span in left) or None, page.bad)


def _spans(request: IndexRequest, now: datetime) -> list[Window]:
    if request.resume_key is None:
        # The end is fixed at the beginning, or the halves would differ from run to run.
        return [(request.since or _BEGINNING, request.until or timestamp(now + timedelta(days=1)))]
    spans = [tuple(span.split("-")) for span in request.resume_key.split(" ")]
    if not all(len(span) == 2 and all(len(end) == 14 and end.isdigit() for end in span) for span in spans):
        raise ArchiveError(f"cannot go on from {request.resume_key[:80]!r}: not a list of spans")
    return [(span[0], span[1]) for span in spans]


def _smaller(window: Window, page: IndexPage, *, is_sorted: bool) -> list[Window]:
    first, last = window
    if is_sorted and page.captures and (latest := max(capture.timestamp for capture in page.captures)) > first:
        return [(latest, last)]  # included: there may be more of that second
    if first >= last:
        raise ArchiveError(f"the index lists {page.n_lines:,} captures or more at {first}: more than one answer holds")
    middle = moment(first) + (moment(last) - moment(first)) // 2
    return [(first, timestamp(middle)), (timestamp(middle.replace(microsecond=0) + _SECOND), last)]
