"""Downloader middlewares that record responses. Three, because redirects, pages and failures pass different places in Scrapy."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from recrawl.crawl.page_links import links_of
from recrawl.crawl.page_request import CrawlEnded, FollowedRequest, PageRequest, PlannedRequest
from recrawl.crawl.session import Session
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit

_REDIRECTS = (301, 302, 303, 307, 308)
RECORD = "recrawl_record"  #: set it to False in a request's meta, and its response is not recorded


class _Recording:
    """Base of the three middlewares. Scrapy before 2.14 passes the spider to their methods."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)
        self.retried = {int(code) for code in crawler.settings.getlist("RETRY_HTTP_CODES")}
        if not crawler.settings.getbool("RETRY_ENABLED"):
            self.retried = set()

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def is_recorded(self, request: Request, response: Response | None = None) -> bool:
        """Whether the result of a request becomes a visit. A response from Scrapy's own cache does not."""
        is_cached = response is not None and "cached" in response.flags
        return request not in self.session.done and is_visit(request) and not is_cached


class RecordRedirects(_Recording):
    """Placed behind Scrapy's redirects: sees them before they are followed."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record the target of a redirect, once for every page on the way."""
        location = response.headers.get("Location")
        if response.status not in _REDIRECTS or not location:
            return response
        target = _text(location)
        # A page may redirect to itself to set a cookie: then its next response is recorded.
        if self.is_recorded(request, response) and not _is_round_trip(request, target):
            self.session.record_redirect(request.url, response.status, target)
        return response


def _text(location: bytes) -> str:
    """Decode a Location header: like browsers and Scrapy as UTF-8 if possible."""
    try:
        return location.decode("utf-8")
    except UnicodeDecodeError:
        return location.decode("latin-1")


def _is_round_trip(request: Request, target: str) -> bool:
    """Whether a redirect leads back to its own page, or comes from a page that was already recorded on the way."""
    return (
        request.url in request.meta.get("redirect_urls", ())
        or safe_url_string(urljoin(request.url, target)).partition("#")[0] == request.url.partition("#")[0]
    )


class RecordPages(_Recording):
    """Placed behind decompression: sees the actual bodies, including those of pages with a meta refresh."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record a page, unless it will be retried or was recorded as a redirect."""
        is_redirect = response.status in _REDIRECTS and response.headers.get("Location")
        if self.is_recorded(request, response) and not is_redirect and response.status not in self.retried:
            record(self.session, request, response)
        return response


class RecordFailures(_Recording):
    """Placed before Scrapy's retries: sees what remains when they are used up."""

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Give planned and followed pages an errback, for failures that no middleware sees."""
        if isinstance(request, PageRequest):
            request.errback = partial(unseen_failure, self.session)

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Record a response whose retries all failed."""
        if self.is_recorded(request, response) and response.status in self.retried:
            record(self.session, request, response)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Record that there was no response, and why."""
        if isinstance(exception, CrawlEnded):
            self.session.done[request] = None
            return
        # A spider's request that was ignored reached no server and is no visit. A planned page always gets an outcome.
        was_requested = isinstance(request, PlannedRequest) or not isinstance(exception, IgnoreRequest)
        if was_requested and self.is_recorded(request):
            record_exception(self.session, request, exception)


def record(session: Session, request: Request, response: Response) -> None:
    """Record the visit that a response means, once per request."""
    headers = {
        name.decode("latin-1").lower(): values[-1].decode("latin-1")
        for name, values in response.headers.items()
        if values
    }
    is_cut = "dataloss" in response.flags
    session.done[request] = visit = session.record_response(
        request.url, response.status, headers, response.body, is_cut
    )
    if visit is not None and visit.status == 200:
        _follow(session, request, visit)


def _follow(session: Session, request: Request, visit: Visit) -> None:
    """Note the new links of a planned page, and what a page brought that was followed."""
    if session.follower is None or not isinstance(request, PageRequest):
        return
    page = canonical(request.url)
    if isinstance(request, PlannedRequest):
        session.follower.found(page, links_of(visit), visit.relevance)
    elif isinstance(request, FollowedRequest):
        session.follower.fetched(page, links_of(visit), visit.relevance)


def record_exception(session: Session, request: Request, exception: BaseException) -> None:
    """Record a failed visit, once per request."""
    session.done[request] = None
    session.record_failure(request.url, reason(exception))


def unseen_failure(session: Session, failure: Any) -> Any:
    """Errback for failures that no middleware sees: a body that decompresses to too much, or too many redirects.

    The failure is returned, so that Scrapy logs and counts it as usual.
    """
    request = getattr(failure, "request", None)
    if request is None or request in session.done or not is_visit(request):
        return failure
    if isinstance(request, FollowedRequest) and failure.check(IgnoreRequest):
        return failure  # a redirect that leads where it must not be followed: no server was asked
    if getattr(failure.value, "response", None) is None:  # else there was a response, with a status the spider refuses
        record_exception(session, request, failure.value)
    return failure


def is_visit(request: Request) -> bool:
    """Whether a request is for a page: not for robots.txt or a pipeline's image, and without a form.

    >>> is_visit(Request("https://e.org/")), is_visit(Request("https://e.org/", method="HEAD"))
    (True, False)
    """
    if request.method != "GET" or request.body or request.callback is NO_CALLBACK or request.meta.get(RECORD) is False:
        return False
    parts = urlsplit(request.url)
    return parts.scheme in ("http", "https") and parts.path != "/robots.txt"


_FAILURE = re.compile(r"<twisted\.python\.failure\.Failure [\w.]+: ([^<>]*)>")  # how Twisted formats a cause
TOO_MANY_REDIRECTS = "too many redirects"
_KIND_BY_MESSAGE = {"max redirections reached": TOO_MANY_REDIRECTS}
_KIND_BY_CLASS = {
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


def reason(exception: BaseException) -> str:
    """Why a request failed: a kind that can be counted, then details.

    >>> reason(IgnoreRequest("Forbidden by robots.txt")), reason(TimeoutError("after 30 s"))
    ('forbidden by robots.txt', 'timeout: after 30 s')
    """
    if isinstance(exception, IgnoreRequest):
        text = str(exception) or "ignored"
        if "MAXSIZE" in text:
            return f"too large: {text}"
        return _KIND_BY_MESSAGE.get(text) or text[0].lower() + text[1:]
    name = type(exception).__name__
    kind = _KIND_BY_CLASS.get(name, name)
    text = _FAILURE.sub(r"\1", " ".join(str(exception).split()))[:300]
    if "certificate" in text.lower() or "SSL" in text:
        return f"certificate: {text}"
    return f"{kind}: {text}" if text else kind
