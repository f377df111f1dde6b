"""Which of the listed captures are wanted: by depth, and by whether they are of PDF files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from recrawl.errors import BadOption
from recrawl.sources.wayback.captures import Capture
from recrawl.sources.wayback.question import Question
from recrawl.web.pdf import ONLY, PDF_CHOICES, WITH, is_named_pdf
from recrawl.web.urls import canonical


@dataclass(frozen=True, slots=True)
class Filters:
    """What is left out of the captures of a question."""

    depth: int | None = None  # path segments below the prefix; None: any
    pdf: str = WITH  # the captures of PDF files: with the others, only they, or without them

    def __post_init__(self) -> None:
        if self.pdf not in PDF_CHOICES:
            raise BadOption(f"captures of PDF files cannot be {self.pdf!r}; known: {', '.join(PDF_CHOICES)}")
        if self.depth is not None and self.depth < 0:
            raise BadOption(f"a depth of {self.depth} is not possible; 0 is the page at the prefix itself")

    def apply(self, question: Question, captures: list[Capture]) -> tuple[list[Capture], Counter[str]]:
        """The wanted captures, in their order, and how many are not, by reason."""
        pdf_files = _pdf_files(captures) if self.pdf != WITH else frozenset[str]()
        kept: list[Capture] = []
        left_out: Counter[str] = Counter()
        for capture in captures:
            reason = self._reason(question, capture, pdf_files)
            if reason is None:
                kept.append(capture)
            else:
                left_out[reason] += 1
        return kept, left_out

    def _reason(self, question: Question, capture: Capture, pdf_files: frozenset[str]) -> str | None:
        """Why a capture is not wanted; None if it is."""
        if not question.holds(capture.original):
            return f"outside {question.text}"
        if self.depth is not None and question.depth(capture.original) > self.depth:
            return f"deeper than {self.depth}"
        if self.pdf == WITH or (canonical(capture.original) in pdf_files) == (self.pdf == ONLY):
            return None
        return "not a PDF file" if self.pdf == ONLY else "PDF file"


EVERYTHING = Filters()


def _pdf_files(captures: list[Capture]) -> frozenset[str]:
    """The URLs that were a PDF file at any time, or are named like one: also when they are missing, they belong to that file."""
    return frozenset(canonical(capture.original) for capture in captures if _is_pdf(capture))


def _is_pdf(capture: Capture) -> bool:
    return capture.mimetype.lower().startswith(("application/pdf", "application/x-pdf")) or is_named_pdf(
        capture.original
    )
