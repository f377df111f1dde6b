"""Scrapy's downloader middlewares that see what comes back. Three, since redirects, pages and failures pass different places."""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK

from recrawl.crawl.session import Session

_REDIRECTS = (301, 302, 303, 307, 308)
SKIP = "recrawl_record"  #: set it to False in a request's meta, and its response is not recorded


class _Recording:
    """What the three have in common. Scrapy before 2.14 passes the spider to their methods."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)
        self.retried = {int(code) for code in crawler.settings.getlist("RETRY_HTTP_CODES")}
        if not crawler.settings.getbool("RETRY_ENABLED"):
            self.retried = set()

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    def counts(self, request: Request) -> bool:
        """Whether a visit is to be made of what becomes of a request."""
        return request not in self.session.done and is_visit(request)


class Redirects(_Recording):
    """Behind Scrapy's redirects: sees them before they are followed."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record where a response points on to."""
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location and self.counts(request):
            self.session.redirected(request.url, response.status, location.decode("latin-1"))
        return response


class Pages(_Recording):
    """Behind unpacking: sees bodies as they are meant, also of pages that refresh to another."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record a page, unless it will be tried again or a redirect was recorded already."""
        is_redirect = response.status in _REDIRECTS and response.headers.get("Location")
        if self.counts(request) and not is_redirect and response.status not in self.retried:
            record(self.session, request, response)
        return response


class Failures(_Recording):
    """Before Scrapy's retries: sees what is left when they are used up."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record an answer that was tried again in vain."""
        if self.counts(request) and response.status in self.retried:
            record(self.session, request, response)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Record that no answer came, and why."""
        if self.counts(request):
            fail(self.session, request, exception)


def record(session: Session, request: Request, response: Response) -> None:
    """Make a visit of a response, once."""
    headers = {
        name.decode("latin-1").lower(): values[-1].decode("latin-1")
        for name, values in response.headers.items()
        if values
    }
    is_cut = "dataloss" in response.flags
    session.done[request] = session.answered(request.url, response.status, headers, response.body, is_cut)


def fail(session: Session, request: Request, exception: BaseException) -> None:
    """Make a visit of a failure, once."""
    session.done[request] = None
    session.failed(request.url, reason(exception))


def unseen_failure(session: Session, failure: Any) -> None:
    """For errbacks: it failed where no middleware sees it, since its body unpacks to too much or it was sent on too often."""
    request = getattr(failure, "request", None)
    if request is None or request in session.done or not is_visit(request):
        return
    if getattr(failure.value, "response", None) is None:  # else it was answered, and the spider takes no such status
        fail(session, request, failure.value)


def is_visit(request: Request) -> bool:
    """Whether a request is for a page: not for robots.txt, not for a picture that some pipeline wants."""
    if request.meta.get(SKIP) is False or request.callback is NO_CALLBACK:
        return False
    parts = urlsplit(request.url)
    return parts.scheme in ("http", "https") and parts.path != "/robots.txt"


def reason(exception: BaseException) -> str:
    """Why a request failed, in words that can be counted: a kind, then details.

    >>> reason(IgnoreRequest("Forbidden by robots.txt")), reason(TimeoutError("after 30 s"))
    ('forbidden by robots.txt', 'timeout: after 30 s')
    """
    if isinstance(exception, IgnoreRequest):
        text = str(exception) or "ignored"
        return text[0].lower() + text[1:]
    name = type(exception).__name__
    known = {
        "DNSLookupError": "host not found",
        "CannotResolveHostError": "host not found",
        "TimeoutError": "timeout",
        "DownloadTimeoutError": "timeout",
        "TCPTimedOutError": "timeout",
        "ConnectionRefusedError": "connection refused",
        "DownloadConnectionRefusedError": "connection refused",
        "DownloadCancelledError": "too large",
        "ResponseDataLossError": "cut short",
        "ResponseFailed": "connection broken",
        "ResponseNeverReceived": "connection broken",
        "DownloadFailedError": "connection broken",
        "ConnectionLost": "connection broken",
    }
    text = " ".join(str(exception).split())[:300]
    if "certificate" in text.lower() or "SSL" in text:
        return f"certificate: {text}"
    return f"{known.get(name, name)}: {text}" if text else known.get(name, name)
