"""Scrapy's downloader middlewares that see what comes back. Three, since redirects, pages and failures pass different places."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from recrawl.crawl.page_request import Ended, PlannedPage
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

    def counts(self, request: Request, response: Response | None = None) -> bool:
        """Whether a visit is to be made of what becomes of a request: what comes from Scrapy's own cache is none."""
        is_cached = response is not None and "cached" in response.flags
        return request not in self.session.done and is_visit(request) and not is_cached


class Redirects(_Recording):
    """Behind Scrapy's redirects: sees them before they are followed."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record where a response points on to, once for every page that a request is sent round to."""
        location = response.headers.get("Location")
        if response.status not in _REDIRECTS or not location:
            return response
        target = _text(location)
        # A page that points to itself, to set a cookie, is told by what it answers next.
        if self.counts(request, response) and not _is_round_trip(request, target):
            self.session.redirected(request.url, response.status, target)
        return response


def _text(location: bytes) -> str:
    """Browsers and Scrapy take it for UTF-8 where it can be."""
    try:
        return location.decode("utf-8")
    except UnicodeDecodeError:
        return location.decode("latin-1")


def _is_round_trip(request: Request, target: str) -> bool:
    """Whether a redirect leads back to its page, or comes from one that was recorded on the way already."""
    return (
        request.url in request.meta.get("redirect_urls", ())
        or safe_url_string(urljoin(request.url, target)).partition("#")[0] == request.url.partition("#")[0]
    )


class Pages(_Recording):
    """Behind unpacking: sees bodies as they are meant, also of pages that refresh to another."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record a page, unless it will be tried again or a redirect was recorded already."""
        is_redirect = response.status in _REDIRECTS and response.headers.get("Location")
        if self.counts(request, response) and not is_redirect and response.status not in self.retried:
            record(self.session, request, response)
        return response


class Failures(_Recording):
    """Before Scrapy's retries: sees what is left when they are used up."""

    def process_request(self, request: Request, spider: Any = None) -> None:
        """See to it that failures are told that no middleware sees."""
        if isinstance(request, PlannedPage):
            request.errback = partial(unseen_failure, self.session)

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record an answer that was tried again in vain."""
        if self.counts(request, response) and response.status in self.retried:
            record(self.session, request, response)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Record that no answer came, and why."""
        if isinstance(exception, Ended):
            self.session.done[request] = None
            return
        # Who ignores what the spider asks for did not ask any server; a planned page must come to its end somehow.
        was_asked = isinstance(request, PlannedPage) or not isinstance(exception, IgnoreRequest)
        if was_asked and self.counts(request):
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


def unseen_failure(session: Session, failure: Any) -> Any:
    """For errbacks: it failed where no middleware sees it, since its body unpacks to too much or it was sent on too often.

    The failure is handed on, so that Scrapy logs and counts it as ever.
    """
    request = getattr(failure, "request", None)
    if request is None or request in session.done or not is_visit(request):
        return failure
    if getattr(failure.value, "response", None) is None:  # else it was answered, and the spider takes no such status
        fail(session, request, failure.value)
    return failure


def is_visit(request: Request) -> bool:
    """Whether a request is for a page: not for robots.txt, not for a picture that some pipeline wants, nor sent with a form.

    >>> is_visit(Request("https://e.org/")), is_visit(Request("https://e.org/", method="HEAD"))
    (True, False)
    """
    if request.method != "GET" or request.body or request.callback is NO_CALLBACK or request.meta.get(SKIP) is False:
        return False
    parts = urlsplit(request.url)
    return parts.scheme in ("http", "https") and parts.path != "/robots.txt"


_FAILURE = re.compile(r"<twisted\.python\.failure\.Failure [\w.]+: ([^<>]*)>")  # how Twisted writes a cause out
_PLAIN = {"max redirections reached": "too many redirects"}  # Scrapy's words → ours


def reason(exception: BaseException) -> str:
    """Why a request failed, in words that can be counted: a kind, then details.

    >>> reason(IgnoreRequest("Forbidden by robots.txt")), reason(TimeoutError("after 30 s"))
    ('forbidden by robots.txt', 'timeout: after 30 s')
    """
    if isinstance(exception, IgnoreRequest):
        text = str(exception) or "ignored"
        if "MAXSIZE" in text:
            return f"too large: {text}"
        return _PLAIN.get(text) or text[0].lower() + text[1:]
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
    text = _FAILURE.sub(r"\1", " ".join(str(exception).split()))[:300]
    if "certificate" in text.lower() or "SSL" in text:
        return f"certificate: {text}"
    return f"{known.get(name, name)}: {text}" if text else known.get(name, name)
