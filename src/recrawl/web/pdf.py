"""PDF files: often the publications that a site is watched for."""

from __future__ import annotations

from urllib.parse import urlsplit

WITH, ONLY, WITHOUT = "with", "only", "without"
PDF_CHOICES = (WITH, ONLY, WITHOUT)  #: what is done with PDF files: as with all others, only they count, or they do not


def is_named_pdf(url: str) -> bool:
    """Whether a URL is named like a PDF file.

    >>> is_named_pdf("https://e.org/Paper.PDF?version=2"), is_named_pdf("https://e.org/pdf/")
    (True, False)
    """
    try:
        return urlsplit(url).path.lower().endswith(".pdf")
    except ValueError:
        return False
